import CanonicalJSON
import CommandTerminal
import Foundation
import GateVocabulary
import ImportFiles
import OpenSSLCrypto
import Synchronization
import Testing

@testable import sendgate

/// `sendgate import`: what it reads, what it leaves beside the file, and how it goes on.
@Suite struct ImportCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static func notice() throws -> JSONValue {
        let text = CommandLineRun.repository.appending(path: "Policies/notices/promo.3.en.txt")
        let digest = SHA256.digest(Array(try Data(contentsOf: text))).bytes
        return [
            "id": "promo", "version": "3", "language": "en", "sha256": .string(Hexadecimal.encode(digest)),
        ]
    }

    /// A person with a phone and a consent of today, which needs no import.
    private static func person(_ number: Int, _ change: JSONObject = [:]) throws -> String {
        var line: JSONObject = [
            "user": .string("k_\(number)"),
            "recipient": ["region": "DE", "region_source": "kyc", "locale": "en", "age": "adult"],
            "devices": [
                "d_1": [
                    "platform": "android", "app": "no.getdrop.app", "token": .string("token-\(number)"),
                    "os_permission": "granted",
                ]
            ],
            "consents": [
                [
                    "id": .string("c_\(number)"), "purpose": "marketing", "channel": "push",
                    "event_time": .string(
                        ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: -3600))),
                    "method": "in_app_toggle", "jurisdiction": "DE", "notice": try notice(),
                ]
            ],
        ]
        for member in change.members { line[member.key] = member.value }
        return String(decoding: CanonicalJSON.write(.object(line)), as: UTF8.self)
    }

    // MARK: Against a gateway

    @Test func `a file comes over, twice changes nothing, and what is refused has its line`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        var lines = try (0..<5).map { try Self.person($0) }
        lines[1] = #"{"user": "k_1", "recipient": {"time_zone": "Mars/Olympus"}}"#
        lines[2] = "no JSON"
        lines[3] = try Self.person(3, ["consents": [["id": "c", "purpose": "marketing", "channel": "push"]]])
        let file = try folder.file("people.ndjson", lines.joined(separator: "\n"))
        try await gate.listening { socket in
            let tried = try await CommandLineRun("import", file, "--dry-run", "--json", "--socket", socket)
            let first = try await CommandLineRun("import", file, "--json", "--socket", socket)
            #expect(first.status == 2, "\(first.errors)")
            let json = try #require(try CanonicalJSON.read(Array(first.output.dropLast().utf8)).objectValue)
            #expect(json["recorded"] == ["consents": 2, "devices": 3, "recipients": 3], "\(json)")
            #expect(
                json["refused"] == [
                    "consents": ["invalid_request": 1],
                    "lines": ["malformed_json": 1, "unknown_time_zone": 1],
                ], "\(json)")
            #expect(json["unproven_consents"] == 1 && json["records"] == 5)
            let trial = try #require(try CanonicalJSON.read(Array(tried.output.dropLast().utf8)).objectValue)
            #expect(trial["recorded"] == json["recorded"] && trial["entries"] == nil)
            let refused = try String(contentsOfFile: "\(file).refused.ndjson", encoding: .utf8)
                .split(separator: "\n").map { try CanonicalJSON.read(Array($0.utf8)) }
            #expect(Set(refused.compactMap { $0["line"]?.integerValue }) == [2, 3, 4])
            #expect(refused.contains { $0["pointer"] == "/consents/0/notice" })

            let again = try await CommandLineRun("import", file, "--json", "--socket", socket)
            let second = try #require(try CanonicalJSON.read(Array(again.output.dropLast().utf8)).objectValue)
            #expect(second["recorded"] == [:] && second["unchanged"] == json["recorded"], "\(second)")
            #expect(second["entries"] == nil)
        }
        try await gate.stop()
    }

    @Test func `a person is shown, exported and erased, and their devices are listed`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.registerSomebody()
        let copy = "\(folder.root)/u_42.json"
        try await gate.listening { socket in
            func run(_ arguments: String...) async throws -> CommandLineRun {
                try await CommandLineRun(arguments + ["--socket", socket])
            }
            let shown = try await run("recipients", "show", "u_42")
            #expect(shown.status == 0 && shown.output.contains("time_zone: Europe/Berlin"), "\(shown.errors)")
            #expect(shown.output.contains("no.getdrop.app") && !shown.output.contains("00aa"))
            let listed = try await run("devices", "list", "u_42", "--json")
            #expect(listed.output.contains("\"device\":\"d_1\"") && !listed.output.contains("00aa"))
            let keys = try await run("devices", "keys", "u_42", "--device", "d_1")
            #expect(keys.status == 0 && keys.output == "no key is registered\n", "\(keys.errors)")
            #expect(try await run("devices", "keys", "u_42", "--device", "d_9").status == 1)
            let none = try await run("devices", "revoke", "u_42", "--cause", "lost")
            #expect(none.status == 1 && none.errors.contains("has no device with a key"), "\(none.errors)")
            #expect(try await run("recipients", "export", "u_42", "--output", copy).status == 0)
            #expect(
                try String(contentsOfFile: copy, encoding: .utf8).contains("\"time_zone\":\"Europe/Berlin\""))
            // A copy that is there is never overwritten.
            #expect(try await run("recipients", "export", "u_42", "--output", copy).status == 1)
            #expect(try await run("recipients", "erase", "u_42", "--confirm", "u_24").status == 64)
            let erased = try await run("recipients", "erase", "u_42", "--confirm", "u_42")
            #expect(
                erased.status == 0 && erased.output.hasPrefix("u_42 is forgotten, entry "), "\(erased.errors)"
            )
            for arguments in [["recipients", "show", "u_42"], ["devices", "list", "u_42"]] {
                #expect(try await CommandLineRun(arguments + ["--socket", socket]).status == 1)
            }
        }
        try await gate.stop()
    }

    // MARK: Going on

    /// A gateway that takes each person once, and is gone at one of its answers.
    private final class Taker: ImportSending {
        struct Gone: Error {}
        let taken = Mutex<[String: Int]>([:])
        let callCount = Mutex(0)
        /// At which call, and whether the lines of that call were recorded before it broke off.
        let end: (call: Int, isRecorded: Bool)?

        init(endingAt end: (call: Int, isRecorded: Bool)? = nil, after earlier: Taker? = nil) {
            self.end = end
            if let earlier { taken.withLock { $0 = earlier.taken.withLock { $0 } } }
        }

        func send(_ batch: ImportBatch) async throws -> AnsweredBatch {
            let call = callCount.withLock { count in
                defer { count += 1 }
                return count
            }
            if let end, end.call == call, !end.isRecorded { throw Gone() }
            let answers = try batch.lines.map { line -> JSONObject in
                let user = try #require(try CanonicalJSON.read(line.bytes)["user"]?.stringValue)
                let isNew = taken.withLock { taken in
                    taken[user, default: 0] += 1
                    return taken[user] == 1
                }
                let counts: JSONValue = ["recipients": 1]
                return [
                    "status": 200, "recorded": isNew ? counts : [:], "unchanged": isNew ? [:] : counts,
                    "kept": [],
                    "refused": user.hasSuffix("7")
                        ? [["pointer": "/consents/0", "reason": "not_found", "detail": "a sample"]] : [],
                ]
            }
            if let end, end.call == call { throw Gone() }
            return AnsweredBatch(batch: batch, answers: answers)
        }
    }

    private func work(_ file: String, _ sender: Taker) -> ImportWork {
        ImportWork(
            file: file, map: .lines, mapDigest: "", refusals: "\(file).refused", isDryRun: false,
            isReplacing: false, sender: sender)
    }

    @Test func `an import that is killed at any of twenty points goes on, and loses and doubles nothing`()
        async throws
    {
        let count = ImportBatch.lineCountMax * 10 - 100
        let text = (0..<count).map { #"{"user":"k_\#($0)"}"# }.joined(separator: "\n")
        for call in 0..<10 {
            for isRecorded in [false, true] {
                let file = try folder.file("people-\(call)-\(isRecorded).ndjson", text)
                let first = Taker(endingAt: (call, isRecorded))
                await #expect(throws: Taker.Gone.self) { try await work(file, first).run() }
                // As a kill between the two writes of a batch leaves it.
                let handle = try #require(FileHandle(forWritingAtPath: "\(file).refused"))
                try handle.seekToEnd()
                try handle.write(contentsOf: Data("half a li".utf8))
                try handle.close()
                let second = Taker(after: first)
                let outcome = try await work(file, second).run()
                #expect(second.taken.withLock { $0.count } == count)
                // Sent again is what was under way, and nothing that was settled.
                let again = second.taken.withLock { $0.values.count { $0 > 1 } }
                #expect(again <= ImportBatch.lineCountMax * 2, "\(call) \(isRecorded): \(again)")
                #expect(outcome.tally.recordCount == Int64(count))
                let sum =
                    (outcome.tally.recorded["recipients"] ?? 0) + (outcome.tally.unchanged["recipients"] ?? 0)
                #expect(sum == Int64(count))
                let refused = try String(contentsOfFile: "\(file).refused", encoding: .utf8)
                    .split(separator: "\n").map { try CanonicalJSON.read(Array($0.utf8)) }
                let lines = refused.compactMap { $0["line"]?.integerValue }
                #expect(lines == (0..<count).filter { "\($0)".hasSuffix("7") }.map { Int64($0 + 1) })
            }
        }
    }

    @Test func `an unfinished import is not gone on with for another file, and two do not write one list`()
        async throws
    {
        let path = "\(folder.root)/refused"
        var journal: ImportJournal? = try ImportJournal(path, of: ["sha256": "one"])
        #expect {
            _ = try ImportJournal(path, of: ["sha256": "one"])
        } throws: {
            "\($0)".contains("another import writes")
        }
        try journal?.add(AnsweredBatch(batch: ImportBatch(recordCount: 1), answers: []))
        journal = nil
        #expect {
            _ = try ImportJournal(path, of: ["sha256": "another"])
        } throws: {
            "\($0)".contains("is of an import of something else")
        }
        // The one that was not finished goes on; once it is, the next begins anew.
        journal = try ImportJournal(path, of: ["sha256": "one"])
        #expect(journal?.isResumed == true && journal?.tally.recordCount == 1)
        try journal?.finish()
        journal = nil
        #expect(try ImportJournal(path, of: ["sha256": "another"]).tally.recordCount == 0)
    }

    @Test func `rows of one person that follow each other are one line`() async throws {
        let file = try folder.file(
            "people.ndjson",
            """
            {"user":"k_1","devices":{"d_1":{"token":"a"}},"consents":[1]}
            {"user":"k_1","devices":{"d_2":{"token":"b"}},"consents":[1,2]}
            {"user":"k_1","devices":{"d_2":{"token":"c"}}}
            {"user":"k_2"}
            {"user":"k_1"}
            """)
        let taker = Taker()
        let outcome = try await work(file, taker).run()
        #expect(taker.taken.withLock { $0 } == ["k_1": 3, "k_2": 1])
        #expect(outcome.tally.recordCount == 5)
    }

    @Test func `a file that is none, a map that is none and a column that is none are told`() async throws {
        let csv = try folder.file("people.csv", "id,name\n1,2\n")
        let map = try folder.file("map.yaml", "map: m\nreads: csv\nline:\n  user: {column: ident}\n")
        let wrong = try folder.file("wrong.yaml", "map: m\nreads: cvs\n")
        let lines = try folder.file("lines.yaml", "map: m\nreads: ndjson\nline:\n  user: {column: id}\n")
        for (arguments, said): ([String], String) in [
            (["import", "/no/such/file"], "cannot read `/no/such/file`"),
            (["import", folder.root], "is not a file"),
            (["import", csv, "--map", map], "the map asks for the column `ident`"),
            (["import", csv, "--map", wrong], "did you mean `csv`?"),
            (
                ["import", csv],
                "does not look like JSON with one document a line: its first line is `id,name`"
            ),
            (["import", csv], "say with `--map PAGE` what each column is"),
            (["import", csv, "--map", lines], "say in the map what it `reads`"),
        ] {
            let run = try await CommandLineRun(arguments + ["--socket", "/no/socket"])
            #expect(run.status != 0 && run.errors.contains(said), "\(arguments): \(run.errors)")
        }
        #expect(try await CommandLineRun("import").status == 64)
    }

    @Test func `lines without a person are each refused, however many follow each other`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let rows = ["k_1,no", ",no", ",no", ",se", ",no", ",no", "k_2,no", ","]
        let csv = try folder.file("people.csv", (["id,country"] + rows).joined(separator: "\n"))
        let map = try folder.file(
            "map.yaml",
            """
            map: m
            reads: csv
            line:
              user: {column: id}
              recipient: {region: {column: country, as: upper}, region_source: {when: {column: country}, constant: ip}}
            """)
        // The same of lines that are written for the gateway, whatever stands in place of the user.
        let people =
            ["{\"user\": \"k_3\", \"recipient\": {}}"] + [
                "{}", "{}", "{\"user\": 7}", "{\"user\": 7}", "{\"user\": \"\"}",
            ]
        let ndjson = try folder.file("people.ndjson", people.joined(separator: "\n"))
        try await gate.listening { socket in
            for (arguments, refused) in [
                ([csv, "--map", map], [3, 4, 5, 6, 7, 9]), ([ndjson], [2, 3, 4, 5, 6]),
            ] {
                let run = try await CommandLineRun(["import"] + arguments + ["--json", "--socket", socket])
                let json = try #require(
                    try CanonicalJSON.read(Array(run.output.dropLast().utf8)).objectValue, "\(run.errors)")
                #expect(
                    json["refused"]?["lines"] == ["invalid_request": .integer(Int64(refused.count))],
                    "\(json)")
                let told = try String(contentsOfFile: "\(arguments[0]).refused.ndjson", encoding: .utf8)
                    .split(separator: "\n").compactMap {
                        try CanonicalJSON.read(Array($0.utf8))["line"]?.integerValue
                    }
                #expect(told == refused.map(Int64.init))
            }
        }
        try await gate.stop()
    }

    /// Each would wait for ever, should opening it wait for whoever is at its other end.
    @Test func `a pipe in place of a file is refused at once, wherever it stands`() async throws {
        let pipe = "\(folder.root)/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        let file = try folder.file("people.ndjson", "{\"user\": \"k_1\"}\n")
        let other = try folder.file("other.ndjson", "{\"user\": \"k_1\"}\n")
        try #require(mkfifo("\(other).refused.ndjson.state", 0o600) == 0)
        for (arguments, said) in [
            ([pipe], "`\(pipe)` is not a file"), ([file, "--map", pipe], "is not a file"),
            ([file, "--refusals", pipe], "`\(pipe)` is not a file"),
            ([other], "`\(other).refused.ndjson.state` is not what an import writes"),
        ] {
            let run = try await CommandLineRun(["import"] + arguments + ["--socket", "/no/socket"])
            #expect(run.status != 0 && run.errors.contains(said), "\(arguments): \(run.errors)")
        }
        // What lies where the next state is written is put away.
        try #require(mkfifo("\(file).refused.state.part", 0o600) == 0)
        let outcome = try await work(file, Taker()).run()
        #expect(outcome.tally.recordCount == 1)
    }
}
