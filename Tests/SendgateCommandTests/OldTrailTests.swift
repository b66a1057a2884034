import CanonicalJSON
import CompliancePolicy
import DeliveryRelay
import Foundation
import GateTestKit
import GateVocabulary
import Testing

@testable import sendgate

/// A trail that an earlier build recorded, kept in the repository: what this build reads must be what that one wrote.
///
/// `SENDGATE_RECORD_TRAIL=1` records it anew; `Tests/Fixtures/Trails/README.md` says when that may be done.
@Suite struct OldTrailTests {
    private static let fixtures = CommandLineRun.repository.appending(path: "Tests/Fixtures/Trails").path
    private static let trail = "\(fixtures)/first"
    private static let isRecording = ProcessInfo.processInfo.environment["SENDGATE_RECORD_TRAIL"] == "1"

    /// What must be in it, so that a smaller one does not take its place unseen.
    private static let held = [
        // Every kind of entry that callers bring about.
        #""kind":"acknowledgement""#, #""kind":"address""#, #""kind":"cancel""#, #""kind":"consent""#,
        #""kind":"delivery""#, #""kind":"device""#, #""kind":"device_key""#, #""kind":"erasure""#,
        #""kind":"permission_prompt""#, #""kind":"preference""#, #""kind":"receipt""#, #""kind":"recipient""#,
        #""kind":"redecision""#, #""kind":"send""#, #""kind":"start""#, #""kind":"stop""#,
        #""kind":"unsent""#,
        // Every outcome, and decisions of every sort.
        #""outcome":"forward""#, #""outcome":"defer""#, #""outcome":"digest""#, #""outcome":"suppress""#,
        #""outcome":"reject""#, #""reason":"allowed""#, #""reason":"digested""#, #""reason":"frequency_cap""#,
        #""reason":"generic_only""#, #""reason":"invalid_params""#, #""reason":"no_gdpr_consent""#,
        #""reason":"quiet_hours_deferred""#, #""reason":"quiet_hours_dropped""#, #""reason":"type_disabled""#,
        #""reason":"unknown_recipient""#, #""reason":"unknown_type""#, #""reason":"user_preference""#,
        #""reason":"no_purpose_consent""#, #""reason":"no_device_key""#, #""channel":"email""#,
        #""channel":"sms""#,
    ]

    private static func entries() throws -> String {
        let folder = "\(trail)/tile/entries"
        return try FileManager.default.subpathsOfDirectory(atPath: folder).sorted()
            .filter { !$0.hasSuffix(".p") }
            .map { String(decoding: try Data(contentsOf: URL(filePath: "\(folder)/\($0)")), as: UTF8.self) }
            .joined()
    }

    private static func checkpoint(_ trail: String) throws -> [String] {
        try String(contentsOfFile: "\(trail)/checkpoint", encoding: .utf8).split(separator: "\n").map(
            String.init)
    }

    @Test(.serialized, arguments: ["record", "verify", "replay"])
    func `a trail of an earlier build verifies and replays`(step: String) async throws {
        if step == "record" {
            if Self.isRecording {
                try await Self.record()
                Issue.record("recorded; run again without SENDGATE_RECORD_TRAIL")
            }
            let entries = try Self.entries()
            for part in Self.held { #expect(entries.contains(part), "nothing is there of \(part)") }
            return
        }
        let run = try await CommandLineRun(
            "audit", step, Self.trail, "--key", "\(Self.trail)/trail.pub", "--json")
        #expect(
            run.status == 0,
            "\(run.output)\(run.errors)\nan auditor's copy of an earlier trail must stay readable: \(Self.fixtures)/README.md"
        )
        let object = try CanonicalJSON.read(Array(run.output.dropLast().utf8), limits: .document)
        let size = try #require(Int64(try Self.checkpoint(Self.trail)[1]))
        #expect(size >= 50)
        switch step {
        case "verify":
            #expect(object["damaged"] == false && object["entries"] == .integer(size), "\(run.output)")
        default:
            #expect(object["same"]?.integerValue ?? 0 > 30, "\(run.output)")
        }
    }

    @Test func `what the note says was recorded is what lies there, and nothing private does`() throws {
        let note = try String(contentsOfFile: "\(Self.fixtures)/README.md", encoding: .utf8)
        let lines = try Self.checkpoint(Self.trail)
        // Whoever records it anew has to write down why.
        #expect(
            note.contains("| \(lines[1]) | `\(lines[2])` |"), "the note does not name \(lines[1]) \(lines[2])"
        )
        let files = try FileManager.default.subpathsOfDirectory(atPath: Self.trail)
        #expect(files.count > 5)
        for file in files {
            #expect(
                file.wholeMatch(
                    of:
                        /checkpoint|trail\.pub|policies(\/[0-9a-f]{64}\.json)?|tile(\/(entries|[0-9])(\/[x0-9]+(\.p(\/[0-9]+)?)?)*)?/
                ) != nil, "\(file)")
        }
        #expect(try String(contentsOfFile: "\(Self.trail)/trail.pub", encoding: .utf8).count < 200)
    }

    @Test(arguments: ["forward", "digest", "user_off", "given"])
    func `an earlier trail with one word changed does not verify`(word: String) async throws {
        let folder = try TemporaryFolder()
        let copy = folder.path("trail")
        try FileManager.default.copyItem(atPath: Self.trail, toPath: copy)
        let bundle = try #require(
            try FileManager.default.subpathsOfDirectory(atPath: "\(copy)/tile/entries").first {
                $0.contains(".p/")
            })
        let file = URL(filePath: "\(copy)/tile/entries/\(bundle)")
        var bytes = try Data(contentsOf: file)
        let place = try #require(bytes.range(of: Data("\"\(word)\"".utf8))).lowerBound
        bytes[place + 1] ^= 1
        try bytes.write(to: file)
        let run = try await CommandLineRun("audit", "verify", copy, "--key", "\(copy)/trail.pub")
        #expect(run.status == 3 && run.errors.contains("tile/entries/\(bundle)"), "\(run.errors)")
    }

    // MARK: Recording

    /// Has a gateway decide under the test policy, with keys that are gone afterwards, and keeps what an auditor would
    /// take away.
    private static func record() async throws {
        let folder = try TemporaryFolder()
        let gate = try await GatewayFixture(in: folder.root, policies: try testPolicies(in: folder))
        let person = "/v1/recipients/u_42"
        func ask(_ status: Int, _ method: String, _ target: String, _ body: JSONObject? = nil) async throws
            -> JSONObject
        {
            let answer = try await gate.ask(method, target, body)
            #expect(answer.status == status, "\(method) \(target): \(answer.object)")
            return answer.object
        }
        var sent = 0
        @discardableResult
        func send(_ reason: String, _ type: String, _ more: JSONObject = [:], to user: String = "u_42")
            async throws
            -> String
        {
            sent += 1
            var body: JSONObject = [
                "id": .string("s-\(sent)"), "type": .string(type), "recipient": ["user": .string(user)],
                "params": [:],
            ]
            for (name, value) in more { body[name] = value }
            let answer = try await gate.ask("POST", "/v1/sends", body).object
            #expect(answer["reason"]?.stringValue == reason, "\(type): \(answer)")
            return answer["send_id"]?.stringValue ?? ""
        }
        func payment(_ number: Int) -> JSONObject {
            [
                "params": [
                    "amount": ["minor": 1_400, "currency": "NOK"],
                    "id": .string("0d4f5a3e-5c1b-4e52-9a1f-\(String(format: "%012d", number))"),
                ]
            ]
        }
        func preference(_ scope: String, _ state: String) async throws {
            _ = try await ask(
                200, "PUT", "\(person)/preferences/\(scope)",
                ["state": .string(state), "source": "in_app_settings", "channel": "push"])
        }

        try await gate.registerSomebody()
        for (name, body) in [
            ("a_1", ["kind": "sms", "value": "+4790000000", "verified_at": "2026-01-02T00:00:00Z"]),
            (
                "a_2",
                ["kind": "email", "value": "somebody@example.com", "verified_at": "2026-01-02T00:00:00Z"]
            ),
        ] as [(String, JSONObject)] {
            _ = try await ask(200, "PUT", "\(person)/addresses/\(name)", body)
        }
        _ = try await ask(
            200, "POST", "\(person)/permission-prompts", ["device": "d_1", "answer": "granted"])
        _ = try await ask(
            201, "POST", "\(person)/devices/d_1/keys",
            [
                "suite": "X25519_SHA256_CHACHA20POLY1305",
                "public_key": "3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08",
            ])
        try await send("no_gdpr_consent", "promo")
        let bundle = try TestBundle.minimal.read().get()
        let notice = try #require(bundle.notices.values.first { $0.key.id == "promo" })
        _ = try await ask(
            200, "POST", "\(person)/consents",
            [
                "id": "c_1", "purpose": "marketing", "channel": "push",
                "event_time": .string(
                    Instant(milliseconds: Int64(Date().timeIntervalSince1970) * 1000).rfc3339),
                "method": "in_app_toggle", "jurisdiction": "DE",
                "notice": [
                    "id": "promo", "version": .string(notice.key.version), "language": "en",
                    "sha256": .string(notice.sha256),
                ],
            ])
        let promo = try await send("allowed", "promo")
        try await send("frequency_cap", "promo")
        _ = try await ask(200, "POST", "\(person)/consents/c_1/withdraw", [:])
        try await send("no_gdpr_consent", "promo")
        for number in 1...5 { try await send("generic_only", "payment", payment(number)) }
        for number in 6...7 { try await send("digested", "payment", payment(number)) }
        try await send("allowed", "payment", payment(8).merging(["channel": "email"]))
        try await send("allowed", "payment", payment(9).merging(["channel": "sms"]))
        try await send("invalid_params", "payment", ["params": ["amount": 7]])
        for type in ["statement", "comment", "notice", "duty"] { try await send("allowed", type) }
        for (reason, type) in [
            ("no_device_key", "sealed_only"), ("no_purpose_consent", "help"), ("type_disabled", "disabled"),
            ("unknown_type", "no.such.type"), ("generic_only", "login"),
        ] {
            try await send(reason, type)
        }
        try await send("unknown_recipient", "notice", to: "u_nobody")
        // What is handed over, and what was seen of it.
        let relay = Task { try await gate.wiring.relay.run() }
        var looksLeft = 20_000
        var isGone = false
        while !isGone, looksLeft > 0 {
            looksLeft -= 1
            isGone = try await ask(200, "GET", "/v1/sends/\(promo)")["waiting"] == []
        }
        #expect(isGone)
        relay.cancel()
        try await relay.value
        _ = try await ask(
            200, "POST", "/v1/receipts",
            [
                "send": .string(promo), "destination": "d_1", "event": "user_observed", "action": "opened",
                "at": .string(Instant(milliseconds: Int64(Date().timeIntervalSince1970 + 1) * 1000).rfc3339),
            ])
        // What waits, and is taken out in every way.
        let hour = Calendar(identifier: .gregorian).component(.hour, from: Date())
        _ = try await ask(
            200, "PUT", person,
            [
                "region": "DE", "region_source": "kyc", "time_zone": .string(TimeZone.current.identifier),
                "age": "adult",
                "quiet_hours": [
                    "start": .string(String(format: "%02d:00", (hour + 23) % 24)),
                    "end": .string(String(format: "%02d:00", (hour + 2) % 24)),
                ],
            ])
        try await send("quiet_hours_dropped", "comment")
        let cancelled = try await send("quiet_hours_deferred", "statement")
        _ = try await ask(200, "POST", "/v1/sends/\(cancelled)/cancel", [:])
        try await send("quiet_hours_deferred", "statement")
        try await preference("transactional", "user_off")
        try await send("user_preference", "statement")
        try await preference("transactional", "user_on")
        _ = try await ask(
            200, "POST", "/v1/sends/acknowledge",
            ["type": "payment", "recipient": ["user": "u_42"], "params": payment(11)["params"] ?? [:]])
        try await send("quiet_hours_deferred", "statement")
        _ = try await ask(200, "DELETE", person)
        try await gate.stop()
        try keep("\(folder.root)/gate/trail")
    }

    /// The pages of the test policy as files; JSON is YAML.
    private static func testPolicies(in folder: TemporaryFolder) throws -> String {
        let path = folder.path("test-policy")
        for (name, node) in TestBundle.minimal.nodes {
            let file = URL(filePath: "\(path)/\(name)")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            let text = node.json.stringValue.map { Array($0.utf8) } ?? CanonicalJSON.write(node.json)
            try Data(text).write(to: file)
        }
        return path
    }

    /// Copies what the checkpoint stands for, the key and the policy; nothing of what lies beside them.
    private static func keep(_ made: String) throws {
        let size = try #require(Int(try checkpoint(made)[1]))
        let manager = FileManager.default
        if manager.fileExists(atPath: trail) { try manager.removeItem(atPath: trail) }
        for file in try manager.subpathsOfDirectory(atPath: made).sorted() {
            var isFolder: ObjCBool = false
            _ = manager.fileExists(atPath: "\(made)/\(file)", isDirectory: &isFolder)
            let width = file.split(separator: "/").last.flatMap { Int($0) }
            let isWanted =
                ["checkpoint", "trail.pub"].contains(file) || file.hasPrefix("policies/")
                || file.hasPrefix("tile/") && (!file.contains(".p/") || width == size % 256)
            guard isWanted, !isFolder.boolValue else { continue }
            let target = URL(filePath: "\(trail)/\(file)")
            try manager.createDirectory(
                at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(contentsOf: URL(filePath: "\(made)/\(file)")).write(to: target)
        }
    }
}

extension JSONObject {
    fileprivate func merging(_ other: JSONObject) -> JSONObject {
        var object = self
        for (name, value) in other { object[name] = value }
        return object
    }
}
