import CanonicalJSON
import GateVocabulary
import Testing

@testable import WireProtocol

@Suite struct RouteTests {
    static let send = "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11"
    static let key = "5b1d9f0477aa4c318c02f3d190be6a55"

    static let sendID: SendID = {
        guard let id = SendID(uuidText: send) else { preconditionFailure("the test's own id") }
        return id
    }()
    static let keyID: KeyID = {
        guard let id = KeyID(hexadecimal: key) else { preconditionFailure("the test's own id") }
        return id
    }()

    static let table: [(method: String, target: String, route: Route)] = [
        ("POST", "/v1/sends", .postSend), ("POST", "/v1/sends/stream", .streamSends),
        ("POST", "/v1/sends/explain", .explainSend), ("POST", "/v1/sends/acknowledge", .acknowledgeEvent),
        ("GET", "/v1/sends/\(send)", .getSend(sendID)),
        ("POST", "/v1/sends/\(send)/cancel", .cancelSend(sendID)), ("GET", "/v1/types", .listTypes),
        ("GET", "/v1/types/promo.offer", .getType(TypeID("promo.offer"))),
        ("GET", "/v1/events", .listEvents(EventsQuery(after: 0, limit: 100))),
        (
            "GET", "/v1/events?after=9007199254740991&limit=1000",
            .listEvents(EventsQuery(after: 9_007_199_254_740_991, limit: 1000))
        ),
        ("PUT", "/v1/recipients/u_42", .putRecipient(UserID("u_42"))),
        ("GET", "/v1/recipients/u_42", .getRecipient(UserID("u_42"))),
        ("DELETE", "/v1/recipients/u_42", .deleteRecipient(UserID("u_42"))),
        ("PUT", "/v1/recipients/u/devices/d", .putDevice(UserID("u"), DestinationID("d"))),
        ("DELETE", "/v1/recipients/u/devices/d", .deleteDevice(UserID("u"), DestinationID("d"))),
        ("PUT", "/v1/recipients/u/addresses/a", .putAddress(UserID("u"), DestinationID("a"))),
        ("DELETE", "/v1/recipients/u/addresses/a", .deleteAddress(UserID("u"), DestinationID("a"))),
        ("POST", "/v1/recipients/u/devices/d/keys", .addDeviceKey(UserID("u"), DestinationID("d"))),
        (
            "POST", "/v1/recipients/u/devices/d/keys/\(key)/confirm",
            .confirmDeviceKey(UserID("u"), DestinationID("d"), keyID)
        ),
        ("POST", "/v1/recipients/u/consents", .addConsent(UserID("u"))),
        (
            "GET", "/v1/recipients/u/consents",
            .listConsents(UserID("u"), ConsentsQuery(asOf: nil, knownAt: nil))
        ),
        (
            "GET",
            "/v1/recipients/u/consents?known_at=2026-11-21T05:00:00Z&as_of=2026-11-21T06:00:00%2B01:00",
            .listConsents(
                UserID("u"),
                ConsentsQuery(
                    asOf: Instant(milliseconds: 1_795_237_200_000),
                    knownAt: Instant(milliseconds: 1_795_237_200_000)))
        ),
        ("POST", "/v1/recipients/u/consents/c-1/withdraw", .withdrawConsent(UserID("u"), consent: "c-1")),
        ("PUT", "/v1/recipients/u/preferences/marketing", .putPreference(UserID("u"), scope: "marketing")),
        ("GET", "/v1/recipients/u/preferences", .listPreferences(UserID("u"))),
        ("POST", "/v1/recipients/u/permission-prompts", .addPermissionPrompt(UserID("u"))),
        ("GET", "/v1/recipients/u/decisions?limit=1", .listDecisions(UserID("u"), DecisionsQuery(limit: 1))),
        ("POST", "/v1/receipts", .addReceipt), ("GET", "/v1/keys", .listKeys),
        ("POST", "/v1/keys/origin-2026/promote", .promoteKey("origin-2026")),
        ("POST", "/v1/keys/origin-2026/suspend", .suspendKey("origin-2026")),
        ("POST", "/v1/keys/\(key)/revoke", .revokeKey(key)),
        ("POST", "/v1/keys/origin-2026/destroy", .destroyKey("origin-2026")),
        ("POST", "/v1/policy/activate", .activatePolicy), ("GET", "/v1/trail/checkpoint", .getCheckpoint),
        (
            "GET", "/v1/trail/tile/0/x001/234.p/17",
            .getTile(TilePath(level: .hashes(0), index: 1234, width: 17))
        ),
        ("GET", "/v1/trail/tile/entries%2F000", .getTile(TilePath(level: .entries, index: 0, width: 256))),
        ("GET", "/healthz", .getHealth), ("GET", "/readyz", .getReadiness), ("GET", "/metrics", .getMetrics),
        ("GET", "/openapi.json", .getOpenAPI),
        // Ids are decoded once, after the path is split.
        ("PUT", "/v1/recipients/a%2Fb%20c", .putRecipient(UserID("a/b c"))),
        ("PUT", "/v1/recipients/J%C3%BCrgen", .putRecipient(UserID("Jürgen"))),
        ("PUT", "/v1/recipients/%25", .putRecipient(UserID("%"))),
        ("PUT", "/v1/recipients/a+b", .putRecipient(UserID("a+b"))),
        ("PUT", "/v1/recipients/...", .putRecipient(UserID("..."))),
        ("GET", "/v1/sends/%37d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11", .getSend(sendID)),
        // Absolute form, and an empty query.
        ("GET", "http://gate/v1/types?", .listTypes),
    ]

    @Test(arguments: table)
    func `a method and a target are one route`(_ method: String, _ target: String, _ route: Route) {
        #expect(Route.match(method: method, target: target) == .match(route, isHead: false))
        #expect(route.template.method == method)
    }

    @Test func `every route is reached by some target`() {
        #expect(Set(Self.table.map(\.route.template)) == Set(RouteTemplate.allCases))
    }

    @Test(arguments: table.filter { $0.method == "GET" })
    func `HEAD asks for what GET would answer, without its body`(_: String, _ target: String, _ route: Route)
    {
        #expect(Route.match(method: "HEAD", target: target) == .match(route, isHead: true))
    }

    @Test(arguments: [
        "/", "/v1", "/v1/", "/v1/send", "/v1/sends/", "/v1/types/", "/v1/recipients//devices/d", "/v1/SENDS",
        "/v2/sends", "//v1/sends", "/v1//sends",
        "/v1/sends/stream/", "/v1/recipients", "/v1/recipients/u/devices",
        "/v1/recipients/u/devices/d/keys/k",
        "/v1/recipients/u/addresses", "/v1/recipients/u/preferences/marketing/push", "/v1/keys/k",
        "/v1/keys/k/rotate",
        "/v1/policy", "/v1/trail", "/v1/trail/tile", "/healthz/", "/v1/%73ends", "/openapi.yaml",
        "/v1/recipients/u/consents/c", "/v1/sends/\(send)/cancel/now",
    ])
    func `an unknown path is not found under any method`(_ target: String) {
        for method in ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"] {
            #expect(Route.match(method: method, target: target) == .notFound)
        }
    }

    @Test(arguments: [
        ("GET", "/v1/sends", ["POST"]), ("post", "/v1/sends", ["POST"]),
        ("GET", "/v1/sends/stream", ["POST"]), ("DELETE", "/v1/sends/\(send)", ["GET", "HEAD"]),
        ("POST", "/v1/recipients/u", ["DELETE", "GET", "HEAD", "PUT"]),
        ("PATCH", "/v1/recipients/u/consents", ["GET", "HEAD", "POST"]),
        ("POST", "/metrics", ["GET", "HEAD"]),
        ("OPTIONS", "/v1/receipts", ["POST"]), ("", "/healthz", ["GET", "HEAD"]),
        ("HEAD", "/v1/receipts", ["POST"]),
    ])
    func `another method is told which there are`(_ method: String, _ target: String, _ allow: [String]) {
        #expect(Route.match(method: method, target: target) == .methodNotAllowed(allow: allow))
    }

    @Test(arguments: [
        "", "v1/sends", "*", "https://gate/v1/types", "http://gate", "/v1/types#part", "/v1/types/a b",
        "/v1/types/\"a\"", "/v1/types/ä", "/v1/types/a\u{0}", "/v1/types/a\r\nx", "/v1/types/<a>",
        "/v1/types/{a}",
        "/v1/types/" + String(repeating: "a", count: WireLimits.targetByteCountMax),
    ])
    func `a target that is no path and query is malformed`(_ target: String) {
        guard case .malformed = Route.match(method: "GET", target: target) else {
            Issue.record("\(target) is \(Route.match(method: "GET", target: target))")
            return
        }
    }

    @Test(arguments: [
        ("/v1/types/%", ["type"]), ("/v1/types/%4", ["type"]),
        ("/v1/types/%zz", ["type"]),
        ("/v1/types/%C3", ["type"]), ("/v1/types/%C0%AF", ["type"]), ("/v1/types/%ED%A0%80", ["type"]),
        ("/v1/types/%00", ["type"]), ("/v1/types/a%0Ab", ["type"]), ("/v1/types/%7F", ["type"]),
        ("/v1/types/%C2%85", ["type"]), ("/v1/types/.", ["type"]), ("/v1/types/%2E%2E", ["type"]),
        ("/v1/types/" + String(repeating: "a", count: 129), ["type"]),
        ("/v1/types/" + String(repeating: "%C3%A6", count: 33), ["type"]),
        ("/v1/sends/7D1C0D52-93A1-4F0E-8D7B-2F3F1F0A9C11", ["send_id"]), ("/v1/sends/1", ["send_id"]),
        ("/v1/events?after=-1", ["after"]), ("/v1/events?after=01", ["after"]),
        ("/v1/events?after=", ["after"]),
        ("/v1/events?after", ["after"]), ("/v1/events?after=1&after=1", ["after"]),
        ("/v1/events?after=9007199254740992", ["after"]),
        ("/v1/events?after=99999999999999999999", ["after"]),
        ("/v1/events?limit=0&after=x", ["after", "limit"]), ("/v1/events?limit=1001", ["limit"]),
        ("/v1/events?since=1", ["since"]), ("/v1/events?&", ["", ""]), ("/v1/events?after=%zz", ["after"]),
        ("/v1/types?x=1", ["x"]), ("/healthz?verbose=1", ["verbose"]),
        ("/v1/recipients/u/consents?as_of=2026-11-21T06:00:00+0100", ["as_of"]),
        ("/v1/recipients/u/consents?as_of=2026-11-21", ["as_of"]),
        ("/v1/recipients/%00/consents?as_of=x&known_at=y&z=1", ["user", "as_of", "known_at", "z"]),
        ("/v1/recipients/u/decisions?limit=1001", ["limit"]),
        ("/v1/trail/tile/64/000", ["tile"]), ("/v1/trail/tile/../checkpoint", ["tile"]),
    ])
    func `everything wrong with a path or a query is told at once`(_ target: String, _ names: [String]) throws
    {
        guard case .invalid(_, let violations) = Route.match(method: "GET", target: target) else {
            Issue.record("\(target) is \(Route.match(method: "GET", target: target))")
            return
        }
        let found = violations.map { violation -> String in
            switch violation.place {
            case .path(let name), .query(let name): name
            case .body(let pointer): pointer.text
            }
        }
        #expect(found.sorted() == names.sorted())
    }

    @Test(arguments: [
        ("0/000", TilePath(level: .hashes(0), index: 0, width: 256)),
        ("63/999", TilePath(level: .hashes(63), index: 999, width: 256)),
        ("0/x001/x234/067", TilePath(level: .hashes(0), index: 1_234_067, width: 256)),
        ("entries/x001/000.p/255", TilePath(level: .entries, index: 1000, width: 255)),
        ("1/x999/x999/x999/x999/999.p/1", TilePath(level: .hashes(1), index: 999_999_999_999_999, width: 1)),
    ])
    func `a tile has one name`(_ text: String, _ tile: TilePath) {
        #expect(TilePath(text) == tile)
        #expect(tile.description == text)
    }

    @Test(arguments: [
        "", "0", "0/", "/000", "00/000", "64/000", "a/000", "0/0", "0/0000", "0/x000/000", "0/001/000",
        "0/x001", "0/x01/000",
        "0/000.p", "0/000.p/", "0/000.p/0", "0/000.p/256", "0/000.p/01", "0/000.p/1/2", "0/000/p/1",
        "Entries/000",
        "entries", "0/x001/x001/x001/x001/x001/000", "0/-01", "0/٠٠٠", "0/000/", "0/.p/1", "0/x00a/000",
    ])
    func `another name of a tile is refused, and its pattern agrees`(_ text: String) throws {
        #expect(TilePath(text) == nil)
        let regex = try Regex(TilePath.pattern).matchingSemantics(.unicodeScalar)
        #expect(text.firstMatch(of: regex) == nil)
    }

    @Test func `a conditional grant is one the route does not ask of everybody`() {
        for template in RouteTemplate.allCases {
            for condition in template.conditions {
                #expect(template.permission != .oneOf([condition.grant]))
            }
        }
    }
}
