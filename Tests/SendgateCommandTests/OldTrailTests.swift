import BundleModel
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
        #""reason":"no_purpose_consent""#, #""channel":"email""#,
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

    @Test(.serialized, arguments: ["record", "verify", "replay", "replay --from-genesis"])
    func `a trail of an earlier build verifies and replays`(step: String) async throws {
        if step == "record" {
            if Self.isRecording {
                try await Self.record()
                Issue.record("recorded; run again without SENDGATE_RECORD_TRAIL")
            }
            let entries = try Self.entries()
            for part in Self.held {
                let isThere = entries.contains(part)
                #expect(isThere, "nothing is there of \(part)")
            }
            return
        }
        let run = try await CommandLineRun(
            ["audit"] + step.split(separator: " ").map(String.init)
                + [Self.trail, "--key", "\(Self.trail)/trail.pub", "--json"])
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
        // The author of a new one has to write down why.
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

    /// Has a gateway decide under the repository's bundle, with keys that are gone afterwards, and keeps what an auditor
    /// would take away.
    private static func record() async throws {
        let folder = try TemporaryFolder()
        let gate = try await GatewayFixture(in: folder.root)
        let policy = try Repository.policy()
        let person = "/v1/recipients/u_42"
        func ask(_ status: Int, _ method: String, _ target: String, _ body: JSONObject? = nil) async throws
            -> JSONObject
        {
            let answer = try await gate.ask(method, target, body)
            #expect(answer.status == status, "\(method) \(target): \(answer.object)")
            return answer.object
        }
        var sent = 0
        /// Sends the example of a type's own page.
        @discardableResult
        func send(_ type: String, _ more: JSONObject = [:], reason: String? = nil) async throws -> String {
            sent += 1
            var body: JSONObject = ["type": .string(type), "params": [:]]
            if policy.type(TypeID(type)) != nil {
                body = try #require(try await ask(200, "GET", "/v1/types/\(type)")["example"]?.objectValue)
            }
            body["id"] = .string("s-\(sent)")
            body["recipient"] = ["user": "u_42"]
            for (name, value) in more { body[name] = value }
            let answer = try await gate.ask("POST", "/v1/sends", body).object
            if let reason { #expect(answer["reason"]?.stringValue == reason, "\(type): \(answer)") }
            return answer["send_id"]?.stringValue ?? ""
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
        try await send("promo.offer", reason: "no_gdpr_consent")
        let notice = try #require(
            policy.bundle.notices.values.first { $0.key.id == "promo" && $0.key.language == "en" })
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
        // Every type there is: outcomes and reasons of many sorts, caps among them. Fewer than 256 entries, so that there is
        // one bundle.
        let login = try await send("security.new_login")
        for type in policy.types.map(\.id.text).sorted() {
            try await send(type, ["channel": .string(["push", "email", "sms"][sent % 3])])
        }
        for _ in 1...5 { try await send("savings.transfer") }
        _ = try await ask(200, "POST", "\(person)/consents/c_1/withdraw", [:])
        try await send("promo.offer", reason: "no_gdpr_consent")
        try await send("statement.available", ["params": ["amount": 7]], reason: "invalid_params")
        try await send("no.such.type", reason: "unknown_type")
        try await send("statement.available", ["recipient": ["user": "nobody"]], reason: "unknown_recipient")
        // What is handed over, and what was seen of it.
        let relay = Task { try await gate.wiring.relay.run() }
        var looksLeft = 20_000
        var isGone = false
        while !isGone, looksLeft > 0 {
            looksLeft -= 1
            isGone = try await ask(200, "GET", "/v1/sends/\(login)")["waiting"] == []
        }
        #expect(isGone)
        relay.cancel()
        try await relay.value
        _ = try await ask(
            200, "POST", "/v1/receipts",
            [
                "send": .string(login), "destination": "d_1", "event": "user_observed", "action": "opened",
                "at": .string(Instant(milliseconds: Int64(Date().timeIntervalSince1970) * 1000).rfc3339),
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
        _ = try await ask(
            200, "PUT", "\(person)/devices/d_1",
            [
                "platform": "ios", "app": "no.getdrop.app", "token": "00aa", "os_permission": "granted",
                "time_zone": .string(TimeZone.current.identifier),
            ])
        try await send("social.like", reason: "quiet_hours_dropped")
        let cancelled = try await send("account.statement_corrected")
        _ = try await gate.ask("POST", "/v1/sends/\(cancelled)/cancel", [:])
        for state in ["user_off", "user_on"] {
            try await send("order.shipped")
            _ = try await ask(
                200, "PUT", "\(person)/preferences/transactional",
                ["state": .string(state), "source": "in_app_settings", "channel": "push"])
        }
        let once = try #require(
            try await ask(200, "GET", "/v1/types/transfer.sent")["example"]?.objectValue?["params"])
        _ = try await ask(
            200, "POST", "/v1/sends/acknowledge",
            ["type": "transfer.sent", "recipient": ["user": "u_42"], "params": once])
        try await send("order.shipped")
        _ = try await ask(200, "DELETE", person)
        try await gate.stop()
        try keep("\(folder.root)/gate/trail")
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
