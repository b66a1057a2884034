import CanonicalJSON
import Foundation
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import Testing
import WireProtocol

@testable import GateSteps
@testable import SQLiteStore

/// A bit is flipped in every page of both databases of a stopped gateway, of tables, indexes and free ones. Whatever it then
/// answers is what it would have answered, or 503: nobody is a stranger, no id is taken twice, and no "no" is forgotten.
@Suite struct FlippedPageTests {
    /// A stopped gateway with something in every table, and two people with everything a person can have.
    private func filled() async throws -> GatewayHarness {
        let gate = try GatewayHarness(keeping: .files())
        for user in ["u_1", "u_2"] {
            try await gate.register(user)
            try await gate.consent(user)
            _ = try await gate.addKey(user)
            let address = try await gate.call(
                "product", "PUT", "/v1/recipients/\(user)/addresses/e_1",
                ["kind": "email", "value": "a@example.org", "verified_at": .string(gate.clock.now().rfc3339)])
            try #require(address.status < 300, "\(address.json)")
            let preference = try await gate.call(
                "product", "PUT", "/v1/recipients/\(user)/preferences/transactional",
                ["state": "user_on", "source": "in_app_settings", "channel": "push"])
            try #require(preference.status == 200, "\(preference.json)")
            for id in ["a", "b"] {
                let sent = try await gate.call(
                    "payments", "POST", "/v1/sends", GatewayHarness.remittance("\(id)-\(user)", to: user))
                try #require(sent.status == 202, "\(sent.json)")
            }
            let promo = try await gate.promo("p-\(user)", to: user)
            try #require(try await gate.call("marketing", "POST", "/v1/sends", promo).status == 202)
            var breach = try await gate.example(
                "privacy.breach_notice", "n-\(user)", to: user, as: "security")
            breach["channel"] = "push"
            try #require(try await gate.call("security", "POST", "/v1/sends", breach).status < 500)
            try #require(
                try await gate.call("payments", "POST", "/v1/sends", processing("t-\(user)", user)).status
                    == 202)
        }
        // Of one the newest word is no.
        let off = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["state": "user_off", "source": "in_app_settings", "channel": "push"])
        try #require(off.status == 200, "\(off.json)")
        for id in ["r-1", "r-2"] {
            let answer = try await gate.call(
                "replies", "POST", "/v1/replies",
                [
                    "id": .string(id), "channel": "email", "from": "a@example.org", "text": "HELP",
                    "received_at": .string(gate.clock.now().rfc3339),
                ])
            try #require(answer.status == 200, "\(answer.json)")
        }
        // Some are handed over, so that there are events of sends.
        for delivery in try await gate.claim().prefix(3) {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        }
        // Of one the send is known no longer.
        let person = try gate.store.read { try $0.subject(of: UserID("u_1"))?.id }
        try gate.store.write {
            $0.appendEvent(
                EventRecord(
                    caller: CallerName("payments"), send: SendID(high: 1, low: 1), subject: person,
                    event: .handedOver, destination: nil, at: gate.clock.now(), reason: nil))
        }
        // And some are under way from memory.
        await gate.gateway.setHopUsable(true)
        for user in ["u_1", "u_2"] {
            let sent = try await gate.call(
                "payments", "POST", "/v1/sends", GatewayHarness.remittance("o-\(user)", to: user))
            try #require(sent.status == 202, "\(sent.json)")
        }
        gate.files.close()
        return gate
    }

    private func processing(_ id: String, _ user: String) -> JSONObject {
        [
            "id": .string(id), "type": "alert.payment_processing", "recipient": ["user": .string(user)],
            "params": [
                "alertId": "11111111-5c1b-4e52-9a1f-3f6f3d1f7a10",
                "paymentId": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
            ],
        ]
    }

    private struct Reply {
        var route: String
        var status: Int
        /// What a caller reads in a success, without what is new in each: ids, indexes and leaf hashes.
        var text: String
    }

    /// What is asked of both people. Nothing that is refused changes what another of them answers.
    private func replies(of gate: GatewayHarness) async throws -> [Reply] {
        var replies: [Reply] = []
        func ask(_ caller: String, _ method: String, _ target: String, _ body: JSONObject? = nil) async throws
        {
            let reply = try await gate.call(caller, method, target, body)
            var json = reply.json
            if method != "GET" {
                json = JSONObject(
                    ["outcome", "reason", "replayed"].compactMap { name in json[name].map { (name, $0) } })
            }
            replies.append(
                Reply(
                    route: "\(method) \(target)", status: reply.status,
                    text: String(decoding: CanonicalJSON.write(json), as: UTF8.self)))
        }
        for user in ["u_1", "u_2"] {
            for what in ["", "/consents", "/preferences", "/decisions"] {
                try await ask("help", "GET", "/v1/recipients/\(user)\(what)")
            }
        }
        for caller in ["payments", "marketing", "security"] {
            try await ask(caller, "GET", "/v1/events?after=0")
        }
        for user in ["u_1", "u_2"] {
            for id in ["a", "b"] {
                try await ask(
                    "payments", "POST", "/v1/sends", GatewayHarness.remittance("\(id)-\(user)", to: user))
            }
            try await ask("payments", "POST", "/v1/sends", GatewayHarness.remittance("a-\(user)", to: "u_3"))
            try await ask("payments", "POST", "/v1/sends", processing("again-\(user)", user))
            try await ask("marketing", "POST", "/v1/sends", gate.promo("new-\(user)", to: user))
            try await ask("payments", "POST", "/v1/sends", GatewayHarness.remittance("new-\(user)", to: user))
        }
        return replies
    }

    private func copy(of folder: String) throws -> String {
        let path = NSTemporaryDirectory() + "sendgate-flipped-\(UUID().uuidString)"
        try FileManager.default.copyItem(atPath: folder, toPath: path)
        return path
    }

    @Test(arguments: ["gate.db", "subjects.db"])
    func `a flipped bit in any page is never another answer`(file: String) async throws {
        let base = try await filled()
        let sound = try GatewayHarness(after: base, keeping: .folder(copy(of: base.folder)))
        let expected = try await replies(of: sound)
        #expect(expected.allSatisfy { $0.status < 500 }, "\(expected)")
        #expect(expected.contains { $0.text.contains("preference") }, "no word of who said no: \(expected)")
        let size = PageCode.pageByteCount
        let byteCount = try Data(contentsOf: URL(fileURLWithPath: "\(base.folder)/\(file)")).count
        var numbers = SeededNumbers(seed: Soak.seed("bits of \(file)"))
        var refusedCount = 0
        for page in Soak.part(of: 0..<byteCount / size, 16, "pages of \(file)") {
            let path = try copy(of: base.folder)
            let bit = Int(numbers.next() % UInt64(size * 8))
            let url = URL(fileURLWithPath: "\(path)/\(file)")
            var bytes = try Data(contentsOf: url)
            bytes[page * size + bit / 8] ^= 1 << (bit % 8)
            try bytes.write(to: url)
            let gate: GatewayHarness
            do {
                gate = try GatewayHarness(after: base, keeping: .folder(path))
            } catch  where error is StoreError || error is StoreOpeningError {
                refusedCount += 1
                try FileManager.default.removeItem(atPath: path)
                continue
            }
            for (was, now) in zip(expected, try await replies(of: gate)) {
                if now.status >= 500 { refusedCount += 1 }
                #expect(
                    now.status == 503 || (now.status == was.status && now.text == was.text),
                    "page \(page + 1) of \(file), bit \(bit): \(now.route) was \(was.status) \(was.text), is \(now.status) \(now.text)"
                )
            }
            while try !gate.store.checkPages(countMax: 100) {}
            #expect(
                gate.store.damages.contains { $0.table == "\(file) page \(page + 1)" },
                "page \(page + 1): \(gate.store.damages)")
        }
        #expect(refusedCount > 0)
    }
}
