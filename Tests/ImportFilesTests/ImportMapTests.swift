import CanonicalJSON
import ConfigurationPages
import Foundation
import ImportFiles
import Testing

/// A map says what each column of another system's export is.
@Suite struct ImportMapTests {
    private static func map(_ page: String) throws -> ImportMap {
        let file = SampleFile(page)
        return try withExtendedLifetime(file) { try ImportMap.read(file.path) }
    }

    private static func line(_ page: String, _ columns: [String], _ fields: [String]) throws -> JSONObject {
        let file = SampleFile(page)
        let map = try ImportMap.read(file.path)
        return try map.line(of: .fields(fields), places: map.places(in: columns).get()).get()
    }

    private static let page = """
        map: a sample
        reads: csv
        missing: ["", "null"]
        line:
          user: {column: id}
          recipient:
            region: {column: country, as: upper}
            region_source: kyc
            locale: {column: language, as: language}
            push_enabled: {column: enabled, as: boolean}
          devices:
            - when: [{column: token}, {column: platform, is: ["0", "1"]}, {column: gone, is_not: ["t"]}]
              id: {column: phone}
              platform: {column: platform, values: {"0": ios, "1": android}}
              token: {column: token}
          consents:
            - when: {column: decision, is: ["granted"]}
              id: {column: record}
              event_time: {column: at, as: instant}
          preferences:
            - when: {column: decision, is_not: ["granted"]}
              state: user_off
              event_time: {column: seconds, as: unix_seconds}
        """
    private static let columns = [
        "token", "id", "country", "language", "enabled", "platform", "gone", "phone", "decision", "record",
        "at", "seconds",
    ]

    @Test func `a record becomes a line, and what it does not have is left out`() throws {
        let line = try Self.line(
            Self.page, Self.columns,
            [
                "aabb", "u_1", "de", "en_US", "1", "0", "f", "d_1", "granted", "r_1",
                "2025-11-03 10:00:00 UTC",
                "",
            ])
        #expect(
            line == [
                "user": "u_1",
                "recipient": [
                    "region": "DE", "region_source": "kyc", "locale": "en-US", "push_enabled": true,
                ],
                "devices": ["d_1": ["platform": "ios", "token": "aabb"]],
                "consents": [["id": "r_1", "event_time": "2025-11-03T10:00:00Z"]],
            ])
        let other = try Self.line(
            Self.page, Self.columns,
            ["null", "u_2", "", "", "perhaps", "0", "", "d_1", "refused", "", "", "1767434400"])
        #expect(
            other == [
                "user": "u_2", "recipient": ["region_source": "kyc", "push_enabled": "perhaps"],
                "preferences": [["state": "user_off", "event_time": "2026-01-03T10:00:00Z"]],
            ])
        // A time that is none goes as it is, and the gateway refuses it by name.
        let wrong = try Self.line(
            Self.page, Self.columns,
            ["aabb", "u_3", "", "", "", "0", "", "d", "granted", "r", "yesterday", ""])
        #expect(wrong["consents"] == [["id": "r", "event_time": "yesterday"]])
    }

    @Test func `a column that a file does not have is named, with one that is near`() throws {
        let map = try Self.map(Self.page)
        guard case .failure(let error) = map.places(in: ["id", "countri"]) else {
            Issue.record("the columns were found")
            return
        }
        #expect(
            "\(error)".contains("the column `country`, and the file has none; it has `countri`"), "\(error)")
    }

    @Test(arguments: [
        ("reads: csv", "reads: cvs", "did you mean `csv`?"),
        ("as: upper", "as: uper", "did you mean `upper`?"),
        ("column: language", "colum: language, column: x", "did you mean `column`?"),
        ("reads: csv", "reads: ndjson\nseparator: \",\"", "`separator` says nothing of `ndjson`"),
        ("missing:", "mising:", "did you mean `missing`?"),
        ("id: {column: phone}", "name: {column: phone}", "expected a mapping with `id`"),
        ("is: [\"granted\"]", "is: granted", "`is` must be a list of texts, and is a text"),
        ("is: [\"granted\"]", "is: granted", "write `is: [\"granted\"]`"),
        ("is: [\"granted\"]", "is: []", "`is` lists nothing"),
        ("is: [\"granted\"]", "is: [[a]]", "must be a list of texts, and has a list in it"),
        ("is: [\"granted\"]", "iz: [\"granted\"]", "did you mean `is`?"),
        ("is: [\"granted\"]", "is: [\"granted\"], is_not: [\"x\"]", "`is` or `is_not`, not both"),
        ("missing: [\"\", \"null\"]", "missing: null", "`missing` must be a list of texts, and is nothing"),
        ("missing: [\"\", \"null\"]", "missing: [null]", "and has nothing in it"),
        // What the gateway would refuse of each person.
        ("user_off", "userr_off", "`state` is `userr_off` did you mean `user_off`?"),
        (
            "      state: user_off", "      stat: user_off",
            "`stat` is nothing that `preferences` has did you mean `state`?"
        ),
        ("token: {column: token}", "tokn: {column: token}", "did you mean `token`?"),
        (
            "token: {column: token}", "token: {colum: token}",
            "this is a mapping without `column` did you mean `column`?"
        ),
        ("region_source: kyc", "region_source: ky", "`region_source` is `ky` did you mean `kyc`?"),
        (
            "region_source: kyc", "region_source: {constant: ky}",
            "`region_source` is `ky` did you mean `kyc`?"
        ),
        ("region_source: kyc", "region_source: {constant: kyc, as: lower}", "is nothing that a constant has"),
        ("region_source: kyc", "region_source: [kyc]", "`region_source` does not fit: expected one of `kyc`"),
        ("\"1\": android", "\"1\": androit", "`platform` is `androit` did you mean `android`?"),
        ("\"1\": android}", "\"1\": android}, otherwise: iso", "`platform` is `iso` did you mean `ios`?"),
        ("as: boolean", "as: upper", "it is true or false, and `as` is `upper` write `as: boolean`"),
        (", as: boolean", "", "write `as: boolean`"),
        ("as: language", "as: integer", "it is a text, and `as` is `integer` write `as: text`"),
        ("as: language", "otherwise: x", "`otherwise` says nothing without `values`"),
        ("event_time: {column: at, as: instant}", "event_time: yesterday", "`event_time` does not fit"),
        ("id: {column: record}", "id: 7", "`id` does not fit: expected a string"),
        ("  user: {column: id}\n", "", "`user` is not set"),
        (
            "  user: {column: id}\n", "  usr: {column: id}\n",
            "`usr` is nothing that `line` has did you mean `user`?"
        ),
        ("line:\n", "line:\n  when: {column: id}\n", "`line` has no `when`"),
        (
            "  recipient:\n", "  recipient:\n    quiet_hours: {column: id}\n",
            "it has members, and a column is one text"
        ),
        ("  recipient:\n", "  recipient:\n    quiet_hours: {strt: {column: id}}\n", "did you mean `start`?"),
        ("map: a sample\n", "", "`map` is not set"),
    ])
    func `a mistake in a page is named with its line`(text: String, mistake: String, said: String) {
        #expect {
            _ = try Self.map(Self.page.replacing(text, with: mistake, maxReplacements: 1))
        } throws: { error in
            guard let problems = error as? ConfigurationDiagnostics else { return false }
            return problems.diagnostics.contains { problem in
                "\(problem.message) \(problem.hint ?? "")".contains(said)
                    && (problem.place?.wholeMatch(of: /.+:\d+:\d+/) != nil || said.hasSuffix("not set"))
            }
        }
    }

    @Test func `a part under a condition is there only where it holds, a constant and a column among them`()
        throws
    {
        let page = """
            map: conditions
            reads: csv
            line:
              user: {column: id}
              recipient:
                region: {column: country, as: upper}
                region_source: {when: {column: country}, constant: ip}
                locale: {when: {column: country, is: ["no"]}, column: language}
            """
        let columns = ["id", "country", "language"]
        #expect(
            try Self.line(page, columns, ["u_1", "no", "nb"])
                == ["user": "u_1", "recipient": ["region": "NO", "region_source": "ip", "locale": "nb"]])
        #expect(
            try Self.line(page, columns, ["u_1", "se", "nb"])
                == ["user": "u_1", "recipient": ["region": "SE", "region_source": "ip"]])
        #expect(try Self.line(page, columns, ["u_1", "", "nb"]) == ["user": "u_1"])
    }

    @Test func `a device without its id stays in the line, so that the gateway refuses it`() throws {
        let line = try Self.line(
            Self.page, Self.columns,
            ["aabb", "u_1", "", "", "", "0", "", "", "", "", "", ""])
        #expect(line["devices"] == ["": ["platform": "ios", "token": "aabb"]], "\(line)")
    }

    @Test func `a whole object or list of a JSON record may be a member, and a number of a page a text`()
        throws
    {
        let map = try Self.map(
            """
            map: nested
            reads: ndjson
            missing: [0]
            line:
              user: {column: id}
              recipient: {quiet_hours: {column: quiet}, locale: {column: language}}
              consents: {column: consents}
            """)
        let row = ImportRow.json(
            Array(
                #"{"id": "k", "quiet": {"start": "22:00"}, "language": "0", "consents": [{"id": "c"}]}"#.utf8)
        )
        #expect(
            try map.line(of: row, places: []).get() == [
                "user": "k", "recipient": ["quiet_hours": ["start": "22:00"]], "consents": [["id": "c"]],
            ])
    }

    @Test(arguments: [
        ("a;b;c", "say `separator: \";\"` in the map"), ("a\tb", "with tabs in it: say `separator: \"tab\"`"),
        ("a|b", "say `separator: \"|\"` in the map"), ("\"a\";\"b\"", "say `separator: \";\"` in the map"),
        ("{\"a\": 1}", "say `reads: ndjson` in the map"),
    ])
    func `a file with another separator, or of another kind, is told so`(header: String, said: String) throws
    {
        let file = SampleFile("\(header)\n")
        let map = try Self.map("map: m\nreads: csv\nline:\n  user: {column: a}\n")
        #expect {
            _ = try map.places(in: CSVReader(descriptor: file.descriptor, separator: map.separator).columns)
                .get()
        } throws: { "\($0)".contains(said) }
    }

    @Test func `a header that is one column by right has no hint`() throws {
        let map = try Self.map("map: m\nreads: csv\nseparator: \"|\"\nline:\n  user: {column: a}\n")
        guard case .failure(let error) = map.places(in: ["other"]) else {
            Issue.record("the column was found")
            return
        }
        #expect(
            "\(error)"
                == "the first line does not name the columns: the map asks for the column `a`, and the file has none"
        )
        #expect(try map.places(in: ["a", "b"]).get() == [0])
    }

    @Test func `a column of JSON is a path, and lines of an import stay as they are`() throws {
        let map = try Self.map(
            "map: nested\nreads: ndjson\nline:\n  user: {column: person.id}\n  recipient: {age: {column: person.age}}\n"
        )
        let row = ImportRow.json(Array(#"{"person": {"id": 7, "age": null}}"#.utf8))
        #expect(try map.line(of: row, places: []).get() == ["user": "7"])
        // An export has numbers of every kind, in columns that the map asks for and in others.
        let fractions = ImportRow.json(
            Array(#"{"person": {"id": 7.50, "age": null}, "spent": [-0.5e3]}"#.utf8))
        #expect(try map.line(of: fractions, places: []).get() == ["user": "7.50"])
        let line = Array(#"{"user": "u_1", "consents": []}"#.utf8)
        #expect(
            try ImportMap.lines.line(of: .json(line), places: []).get() == ["user": "u_1", "consents": []])
        for (bad, why) in [
            ("[]", "the line is an array, and must be a JSON object"),
            ("{\"a\" 1}", "the line is no JSON: expected `:` at byte 5"),
            ("{", "the line is no JSON: the document ends"), ("{\"a\": 1.5}", "only integers are accepted"),
            ("\"text\"", "the line is a string"), ("null", "the line is `null`"),
        ] {
            guard case .failure(let problem) = ImportMap.lines.line(of: .json(Array(bad.utf8)), places: [])
            else {
                Issue.record("\(bad) was read")
                continue
            }
            #expect(problem.reason == "malformed_json" && problem.detail.contains(why), "\(problem)")
        }
    }

    @Test func `a tally counts each refused part once, and says so in words`() throws {
        var tally = ImportTally()
        tally.recordCount = 2
        let said = tally.add([
            "status": 200, "recorded": ["recipients": 1, "consents": 2], "unchanged": ["devices": 1],
            "kept": ["/recipient"], "trail": ["index": 7],
            "refused": [
                ["pointer": "/consents/0/notice", "reason": "invalid_request", "detail": "missing"],
                ["pointer": "/consents/0/event_time", "reason": "invalid_request", "detail": "missing"],
                ["pointer": "/consents/1", "reason": "unknown_notice", "detail": "no"],
                ["pointer": "/consents/2", "reason": "event_in_future", "detail": "no"],
                ["pointer": "/devices/d_1/token", "reason": "invalid_request", "detail": "no"],
            ],
        ])
        #expect(said.count == 5)
        _ = tally.add(["status": 404, "type": "urn:sendgate:problem:not_found", "detail": "nobody"])
        #expect(tally.unprovenCount == 2 && tally.refusedCount == 5)
        #expect(
            tally.refused["consents"] == ["invalid_request": 1, "unknown_notice": 1, "event_in_future": 1])
        #expect(tally.refused["lines"] == ["not_found": 1] && tally.kept == ["recipients": 1])
        #expect(ImportTally(tally.json) == tally)
        let words = tally.words(file: "f", digest: "d", map: "m", isDryRun: false, refusals: "r").joined(
            separator: "\n")
        #expect(words.contains("2 opt-ins came without the text"))
        #expect(words.contains("entries 7 to 7"))
        #expect(
            tally.words(file: "f", digest: "d", map: "m", isDryRun: true, refusals: "r")[0]
                == "Trial of an import; nothing was recorded.")
    }
}
