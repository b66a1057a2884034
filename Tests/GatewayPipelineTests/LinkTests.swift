import CanonicalJSON
import GateSteps
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import SendPlanning
import Testing

@Suite struct LinkTests {
    @Test(arguments: [
        "https://evil.example", "javascript:alert(1)", "intent://x#Intent;end", "tel:+4790000000",
        "drop://send@evil.example", "drop:////evil", "drop://send/../x", "drop://%73end", "Drop://send",
        "drop://sendevil", "drop://profile", "https://app.getdrop.no/profile",
        "https://app.getdrop.no.evil.example/send", "https://app.getdrop.no:443/send",
    ])
    func `a link that the type does not declare is refused at gate 1 and recorded without it`(
        link: String
    ) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        var send = try await gate.example("transaction.failed", "f1", to: "u_1", as: "payments")
        send["deep_link"] = .string(link)
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(reply.status == 403)
        #expect(reply["reason"] == "invalid_params")
        let violations = try #require(reply.json["violations"]?.arrayValue).compactMap {
            $0["pointer"]?.stringValue
        }
        #expect(violations == ["/deep_link"])
        // Nothing leaves, nothing of the link stays, and the entry says where it was.
        #expect(try await gate.claim().isEmpty)
        let entries = try gate.store.read { try $0.entries(from: 0, limit: Int(try $0.entryCount())) }
        let bytes = try #require(entries.last?.bytes)
        #expect(!String(decoding: bytes, as: UTF8.self).contains(link))
        #expect(try SendEntry.read(bytes).entry.paramsVerdict.map(\.text) == ["/deep_link"])
        // The same question gets the same answer, and a repeat too.
        send["id"] = "f1"
        let again = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(again.json["violations"] == reply.json["violations"])
        let explained = try await gate.call("auditor", "POST", "/v1/sends/explain", send)
        #expect(explained.json["params_violations"] == ["/deep_link"], "\(explained.json)")
    }

    @Test(arguments: ["drop://send/retry?step=2", "https://app.getdrop.no/send/retry?step=2"])
    func `a link below the type's own place goes out inside the seal`(link: String) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        var send = try await gate.example("transaction.failed", "f1", to: "u_1", as: "payments")
        send["deep_link"] = .string(link)
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(reply.status == 202, "\(reply.json)")
        let delivery = try #require(try await gate.claim().first)
        #expect(!String(decoding: delivery.body, as: UTF8.self).contains("retry"))
    }

    @Test(arguments: [
        "https://evil.example/x", "evil.com", "Ahmad\nKarimi", "Ah\u{200B}mad", "\u{202E}damhA", " ",
    ])
    func `a name that is no plain text is refused`(name: String) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        var send = GatewayHarness.remittance("r1", to: "u_1")
        var params = try #require(send["params"]?.objectValue)
        params["recipient_name"] = .string(name)
        send["params"] = .object(params)
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(reply.status == 403 && reply["reason"] == "invalid_params", "\(reply.json)")
    }
}
