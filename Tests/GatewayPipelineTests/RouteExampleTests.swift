import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateRecords
import GateTestKit
import GateVocabulary
import SendPlanning
import Testing

@testable import GatewayPipeline
@testable import WireProtocol

/// What the reference shows is asked of a gateway with the bundle of this repository, as it stands.
@Suite struct RouteExampleTests {
    /// The moment of the examples' world.
    private static let now = "2026-11-21T05:00:00Z"

    /// Who asks, where it is not the app's backend, and no example of a send, which its type's own caller asks.
    private static func caller(of route: String) -> String {
        switch route {
        case "addReply": "replies"
        case "cancelSend": "payments"
        case "activatePolicy", "putKeyset", "revokeDeviceKeys": "keys-team"
        case _ where route.hasSuffix("Key") && !["addDeviceKey", "confirmDeviceKey"].contains(route):
            "keys-team"
        default: "product"
        }
    }

    /// Routes whose example names what a gateway of a test has none of: a key, a reviewed bundle, a note of an authority; and an act
    /// that is not done twice while the first one stands.
    private static let elsewhere: Set<String> = [
        "confirmDeviceKey", "addKey", "promoteKey", "resumeKey", "suspendKey", "revokeKey", "destroyKey",
        "putKeyset", "activatePolicy", "runDrift", "withdrawConsent",
    ]

    /// What a producer would have to put right before it sends again.
    private static let faults: Set<String> = [
        "unknown_type", "invalid_params", "caller_not_permitted", "critical_not_permitted",
        "channel_not_allowed", "unknown_recipient", "no_destination", "fact_missing",
    ]

    private static func sender(of type: String?, in policy: CompiledPolicy) -> String? {
        guard let type = type.flatMap({ policy.type(TypeID($0)) }) else { return nil }
        return policy.bundle.callers.filter {
            $0.value.grants.contains(.send) && $0.value.types.covers(type.id, of: type.category)
        }.keys.map(\.text).min()
    }

    /// The person of the examples, with a device, a number and a mailbox.
    private static func gate() async throws -> GatewayHarness {
        let gate = try GatewayHarness(at: now)
        try await gate.register("u_42")
        for (address, kind, value) in [
            ("a_1", "sms", "+4790000000"), ("a_2", "email", "customer@example.org"),
        ] {
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_42/addresses/\(address)",
                ["kind": .string(kind), "value": .string(value), "verified_at": "2026-11-01T12:00:00Z"])
            try #require(reply.status == 200, "\(reply.json)")
        }
        return gate
    }

    @Test func `every example of a body is taken`() async throws {
        let gate = try await Self.gate()
        let made = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("made", to: "u_42"))
        let send = try #require(made["send_id"], "\(made.json)")
        try #require(try await !gate.claim().isEmpty)
        let names = [
            "{user}": "u_42", "{device}": "d_1", "{consent}": "c-20261120-1", "{scope}": "marketing",
            "{send_id}": send, "{key}": RouteTests.key, "{key_id}": RouteTests.key,
        ]
        var asked: Set<String> = []
        for route in Route.all.map(\.description) {
            guard let content = route.body.content, route.body.mediaType == MediaType.json else { continue }
            for (number, example) in content.examples.enumerated() {
                guard var body = example.value.objectValue else {
                    Issue.record("\(route.name): \(example.name) is no object")
                    continue
                }
                if body["send"] != nil { body["send"] = .string(send) }
                let target = names.merging(["{address}": "a_\(number + 1)"]) { own, _ in own }
                    .reduce(route.path) { $0.replacing($1.key, with: $1.value) }
                let sender =
                    route.name == "postSend"
                    ? Self.sender(of: body["type"]?.stringValue, in: gate.policy) : nil
                let reply = try await gate.call(
                    sender ?? Self.caller(of: route.name), route.method.rawValue, target, body)
                let told = "\(route.name), \(example.name): \(reply.status) \(reply.json)"
                asked.insert(route.name)
                if Self.elsewhere.contains(route.name) {
                    #expect(
                        (200..<300).contains(reply.status) || [404, 409].contains(reply.status), "\(told)")
                } else if let reason = reply["reason"] {
                    #expect(!Self.faults.contains(reason), "\(told)")
                } else {
                    #expect((200..<300).contains(reply.status), "\(told)")
                }
            }
        }
        #expect(asked.count > 20 && asked.isSuperset(of: Self.elsewhere), "\(asked.sorted())")
    }

    @Test func `every example of a type is a send that its caller may make`() async throws {
        let gate = try await Self.gate()
        var count = 0
        for type in gate.policy.types where type.isEnabled {
            guard let caller = Self.sender(of: type.id.text, in: gate.policy) else { continue }
            let body = try await gate.example(type.id.text, "e-\(count)", to: "u_42", as: caller)
            let reply = try await gate.call(caller, "POST", "/v1/sends", body)
            let reason = try #require(reply["reason"], "\(type.id): \(reply.json)")
            #expect(!Self.faults.contains(reason), "\(type.id): \(reply.json)")
            count += 1
        }
        #expect(count > 40)
    }

    /// A notice is never edited, so the digest of the examples is that of the text in the bundle.
    @Test func `the notices of the examples are in the bundle`() async throws {
        let notices = try Repository.policy().bundle.notices.values
        let notice = try #require(ConsentRecord.NoticeReference.givenExample.objectValue)
        #expect(
            notices.contains {
                $0.key.id == notice["id"]?.stringValue && $0.key.version == notice["version"]?.stringValue
                    && $0.key.language == notice["language"]?.stringValue
                    && $0.sha256 == notice["sha256"]?.stringValue
            }, "\(notice)")
    }
}
