import CanonicalJSON
import GateVocabulary
import SQLiteStore
import Testing
import WireProtocol

@testable import GatewayPipeline

/// A settings screen saves several choices in one request: all of them, or none.
@Suite struct ChoicesAtOnceTests {
    private static let path = "/v1/recipients/u_1/preferences"

    private static func choice(
        _ scope: String, _ state: String, on channel: String? = "push", device: String? = nil,
        source: String = "in_app_settings"
    ) -> JSONObject {
        var choice: JSONObject = [
            "scope": .string(scope), "state": .string(state), "source": .string(source),
        ]
        if let channel { choice["channel"] = .string(channel) }
        if let device { choice["device"] = .string(device) }
        return choice
    }

    private func put(
        _ choices: [JSONObject], by caller: String = "product", in gate: GatewayHarness
    ) async throws -> GatewayHarness.Reply {
        try await gate.call(
            caller, "PUT", Self.path, ["preferences": .array(choices.map { .object($0) })])
    }

    private func gate() async throws -> GatewayHarness {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try #require(try await gate.consent("u_1").status == 200)
        return gate
    }

    private func preferences(_ gate: GatewayHarness) async throws -> JSONValue? {
        try await gate.call("product", "GET", Self.path).json["preferences"]
    }

    private static let screen = [
        choice("marketing", "user_off"), choice("social", "user_off", device: "d_1"),
        choice("social", "user_on"), choice("social.like", "user_off"),
        choice("transactional", "user_off", on: nil),
    ]

    @Test func `what a screen saves comes to what its choices come to one by one`() async throws {
        let (together, alone) = (try await gate(), try await gate())
        let reply = try await put(Self.screen, in: together)
        #expect(reply.status == 200, "\(reply.json)")
        for choice in Self.screen {
            var body = choice
            body["scope"] = nil
            let scope = try #require(choice["scope"]?.stringValue)
            let reply = try await alone.call("product", "PUT", "\(Self.path)/\(scope)", body)
            #expect(reply.status == 200, "\(reply.json)")
        }
        #expect(try await preferences(together) == preferences(alone))
        for kind in ["preference", "consent", "switch_off"] {
            func effects(_ gate: GatewayHarness) throws -> [JSONObject] {
                // What is random, or a tag under a random key.
                let random: Set = ["subject", "destination", "consent", "previous", "withdraws", "index"]
                return try gate.entries(kind).compactMap(\.objectValue).map { entry in
                    var entry = entry
                    for name in random { entry[name] = nil }
                    return entry
                }
            }
            #expect(try effects(together) == effects(alone), "\(kind)")
        }
        // Each choice cites its own entry, in the order of the request.
        let rows = try #require(reply.json["preferences"]?.arrayValue)
        #expect(rows.map { $0["scope"]?.stringValue } == Self.screen.map { $0["scope"]?.stringValue })
        let indices = rows.compactMap { $0["trail"]?["index"]?.integerValue }
        #expect(indices.count == Self.screen.count && indices == indices.sorted())
        #expect(Set(indices).count == indices.count)
        // The yes to marketing ended with the choice, as by its own route.
        let promo = try await together.call(
            "marketing", "POST", "/v1/sends", together.promo("p", to: "u_1"))
        #expect(promo["reason"] == "no_gdpr_consent" && promo["detail"] == "withdrawn", "\(promo.json)")
        // Said again, each answers that nothing changed.
        let again = try await put(Self.screen, in: together)
        #expect(again.json["preferences"]?.arrayValue?.allSatisfy { $0["effect"] == "none" } == true)
    }

    /// Each refused at its last choice, after others that would have been recorded. `product` may not report a step-up.
    private static let refused: [(choice: JSONObject, status: Int, problem: String)] = [
        (choice("no.such.scope", "user_off"), 422, "unknown_scope"),
        (choice("security", "user_off"), 403, "assertion_not_permitted"),
        (choice("security", "user_off", source: "in_app_step_up"), 403, "grant_missing"),
        (choice("social", "user_off", device: "d_9"), 404, "not_found"),
    ]

    @Test(arguments: refused.indices)
    func `where one choice is refused, none is recorded`(_ row: Int) async throws {
        let gate = try await gate()
        let before = try await preferences(gate)
        let entryCount = try gate.store.read { try $0.entryCount() }
        let (choice, status, problem) = Self.refused[row]
        let reply = try await put(
            [Self.choice("marketing", "user_off"), Self.choice("transactional", "user_off"), choice],
            in: gate)
        #expect(reply.status == status, "\(reply.json)")
        #expect(reply["type"] == "urn:sendgate:problem:\(problem)", "\(reply.json)")
        if problem != "grant_missing" {
            #expect(reply["detail"]?.hasPrefix("`/preferences/2`: ") == true, "\(reply.json)")
        }
        #expect(try await preferences(gate) == before)
        #expect(try gate.store.read { try $0.entryCount() } == entryCount)
    }

    @Test func `a list has a bound, and says each thing once`() async throws {
        let gate = try await gate()
        let twice = try await put(
            [
                Self.choice("social", "user_off", on: nil), Self.choice("marketing", "user_off"),
                Self.choice("social", "user_on"),
            ], in: gate)
        #expect(twice.status == 422, "\(twice.json)")
        #expect(twice.json["violations"]?.arrayValue?.map { $0["pointer"] } == ["/preferences/2"])
        for count in [0, PreferencesBody.choiceCountMax + 1] {
            let choices = (0..<count).map { Self.choice("type.\($0)", "user_off") }
            let reply = try await put(choices, in: gate)
            #expect(reply.status == 422, "\(count): \(reply.json)")
            #expect(reply.json["violations"]?.arrayValue?.first?["pointer"] == "/preferences")
        }
    }
}
