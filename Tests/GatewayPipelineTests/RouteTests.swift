import CanonicalJSON
import GateVocabulary
import Testing

@testable import GatewayPipeline
@testable import WireProtocol

@Suite struct RouteTests {
    static let send = "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11"
    static let key = "5b1d9f0477aa4c318c02f3d190be6a55"

    static let table: [(method: String, target: String, route: String)] = [
        ("POST", "/v1/sends", "postSend"),
        ("POST", "/v1/sends/stream", "streamSends"),
        ("POST", "/v1/import", "importPeople"),
        ("POST", "/v1/sends/explain", "explainSend"),
        ("POST", "/v1/sends/explain?locale=nb", "explainSend"),
        ("POST", "/v1/sends/acknowledge", "acknowledgeEvent"),
        ("GET", "/v1/sends/\(send)", "getSend"),
        ("POST", "/v1/sends/\(send)/cancel", "cancelSend"),
        ("GET", "/v1/types", "listTypes"),
        ("GET", "/v1/types/promo.offer", "getType"),
        ("GET", "/v1/events", "listEvents"),
        ("GET", "/v1/events?after=9007199254740991&limit=1000", "listEvents"),
        ("PUT", "/v1/recipients/u_42", "putRecipient"),
        ("GET", "/v1/recipients/u_42", "getRecipient"),
        ("DELETE", "/v1/recipients/u_42", "deleteRecipient"),
        ("PUT", "/v1/recipients/u/devices/d", "putDevice"),
        ("DELETE", "/v1/recipients/u/devices/d", "deleteDevice"),
        ("PUT", "/v1/recipients/u/addresses/a", "putAddress"),
        ("DELETE", "/v1/recipients/u/addresses/a", "deleteAddress"),
        ("POST", "/v1/recipients/u/devices/d/keys", "addDeviceKey"),
        ("POST", "/v1/recipients/u/devices/d/keys/\(key)/confirm", "confirmDeviceKey"),
        ("POST", "/v1/recipients/u/consents", "addConsent"),
        ("GET", "/v1/recipients/u/consents", "listConsents"),
        (
            "GET",
            "/v1/recipients/u/consents?known_at=2026-11-21T05:00:00Z&as_of=2026-11-21T06:00:00%2B01:00",
            "listConsents"
        ),
        ("POST", "/v1/recipients/u/consents/c-1/withdraw", "withdrawConsent"),
        ("PUT", "/v1/recipients/u/preferences/marketing", "putPreference"),
        ("PUT", "/v1/recipients/u/preferences", "putPreferences"),
        ("GET", "/v1/recipients/u/preferences", "listPreferences"),
        ("POST", "/v1/recipients/u/permission-prompts", "addPermissionPrompt"),
        ("GET", "/v1/recipients/u/decisions?limit=1", "listDecisions"),
        ("POST", "/v1/receipts", "addReceipt"),
        ("POST", "/v1/replies", "addReply"),
        ("PUT", "/v1/recipients/u/devices/d/subscriptions", "putSubscriptions"),
        ("POST", "/v1/drift", "runDrift"),
        ("GET", "/v1/drift", "getDrift"),
        ("GET", "/v1/drift/findings?limit=500&after=\(key)", "listDrifts"),
        ("GET", "/v1/keys", "listKeys"),
        ("GET", "/v1/keys/lagging", "listLaggingRows"),
        ("POST", "/v1/keys", "addKey"),
        ("POST", "/v1/keys/origin-2026/promote", "promoteKey"),
        ("POST", "/v1/keys/origin-2026/resume", "resumeKey"),
        ("POST", "/v1/keys/origin-2026/suspend", "suspendKey"),
        ("POST", "/v1/keys/\(key)/revoke", "revokeKey"),
        ("POST", "/v1/keys/origin-2026/destroy", "destroyKey"),
        ("POST", "/v1/device-keys/revoke", "revokeDeviceKeys"),
        ("GET", "/v1/keyset", "getKeyset"),
        ("PUT", "/v1/keyset", "putKeyset"),
        ("POST", "/v1/policy/activate", "activatePolicy"),
        ("GET", "/v1/trail/checkpoint", "getCheckpoint"),
        ("GET", "/v1/trail/tile/0/x001/234.p/17", "getTile"),
        ("GET", "/v1/trail/tile/entries%2F000", "getTile"),
        ("GET", "/healthz", "getHealth"),
        ("GET", "/readyz", "getReadiness"),
        ("GET", "/metrics", "getMetrics"),
        ("GET", "/openapi.json", "getOpenAPI"),
        ("PUT", "/v1/recipients/a%2Fb%20c", "putRecipient"),
        ("PUT", "/v1/recipients/J%C3%BCrgen", "putRecipient"),
        ("PUT", "/v1/recipients/%25", "putRecipient"),
        ("PUT", "/v1/recipients/a+b", "putRecipient"),
        ("PUT", "/v1/recipients/...", "putRecipient"),
        ("GET", "/v1/sends/%37d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11", "getSend"),
        ("GET", "http://gate/v1/types?", "listTypes"),
        ("GET", "HTTP://gate:80/v1/types", "listTypes"),
    ]

    /// The route that a request line leads to, and the values in its target.
    static func find(
        _ method: String, _ target: String
    ) -> (route: Route, arguments: RouteArguments)? {
        guard
            case .match(let index, let arguments) = Route.table.match(
                method: method, target: target)
        else { return nil }
        return (Route.all[index], arguments)
    }

    @Test(arguments: table)
    func `a method and a target are one route`(_ method: String, _ target: String, _ name: String) throws {
        let found = try #require(Self.find(method, target))
        #expect(found.route.description.name == name)
        #expect(found.route.description.method.rawValue == method)
        if case .invalid(let violations) = found.route.read(found.arguments) {
            Issue.record("\(target): \(violations)")
        }
    }

    @Test func `every route has a name of its own and is reached by some target`() {
        let names = Route.all.map(\.description.name)
        #expect(Set(Self.table.map(\.route)) == Set(names))
        #expect(Set(names).count == names.count)
    }

    @Test(arguments: table.filter { $0.method == "GET" })
    func `HEAD leads to what GET leads to`(_: String, _ target: String, _ name: String)
        throws
    {
        let found = try #require(Self.find("HEAD", target))
        #expect(found.route.description.name == name)
    }

    /// The value of one part of a target, decoded once, after the path is split.
    static func value<Value>(_ part: PathPart<Value>, in method: String, _ target: String) throws -> Value? {
        var arguments = try #require(find(method, target)).arguments
        return arguments.value(part)
    }

    @Test func `the parts of a path are the values that they name`() throws {
        let sendID = try #require(SendID(uuidText: Self.send))
        #expect(try Self.value(.send, in: "GET", "/v1/sends/\(Self.send)") == sendID)
        #expect(
            try Self.value(.send, in: "GET", "/v1/sends/%37d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11") == sendID)
        #expect(try Self.value(.type, in: "GET", "/v1/types/promo.offer") == TypeID("promo.offer"))
        for (text, user) in [
            ("u_42", "u_42"), ("a%2Fb%20c", "a/b c"), ("J%C3%BCrgen", "Jürgen"), ("%25", "%"), ("a+b", "a+b"),
            ("...", "..."),
        ] {
            #expect(try Self.value(.user, in: "PUT", "/v1/recipients/\(text)") == UserID(user))
        }
        let confirm = "/v1/recipients/u/devices/d/keys/\(Self.key)/confirm"
        #expect(try Self.value(.user, in: "POST", confirm) == UserID("u"))
        #expect(try Self.value(.device, in: "POST", confirm) == DestinationID("d"))
        #expect(try Self.value(.deviceKey, in: "POST", confirm) == KeyID(hexadecimal: Self.key))
        #expect(
            try Self.value(.address, in: "DELETE", "/v1/recipients/u/addresses/a") == DestinationID("a"))
        #expect(try Self.value(.consent, in: "POST", "/v1/recipients/u/consents/c-1/withdraw") == "c-1")
        #expect(
            try Self.value(.scope, in: "PUT", "/v1/recipients/u/preferences/marketing") == "marketing")
        #expect(try Self.value(.key, in: "POST", "/v1/keys/origin-2026/promote") == "origin-2026")
        #expect(
            try Self.value(.tile, in: "GET", "/v1/trail/tile/0/x001/234.p/17") == "0/x001/234.p/17")
        #expect(try Self.value(.tile, in: "GET", "/v1/trail/tile/entries%2F000") == "entries/000")
    }

    /// The query of a target.
    static func query<Query: RouteQuery>(_: Query.Type, _ target: String) throws -> Query {
        var arguments = try #require(find("GET", target)).arguments
        return Query(&arguments)
    }

    @Test func `the parameters of a query are the values that they name, or what counts without them`() throws
    {
        let events = try Self.query(EventsQuery.self, "/v1/events")
        #expect(events.after == 0 && events.limit == 100)
        let last = try Self.query(EventsQuery.self, "/v1/events?after=9007199254740991&limit=1000")
        #expect(last.after == 9_007_199_254_740_991 && last.limit == 1000)
        let all = try Self.query(ConsentsQuery.self, "/v1/recipients/u/consents")
        #expect(all == ConsentsQuery(asOf: nil, knownAt: nil))
        let moment = Instant(milliseconds: 1_795_237_200_000)
        #expect(
            try Self.query(
                ConsentsQuery.self,
                "/v1/recipients/u/consents?known_at=2026-11-21T05:00:00Z&as_of=2026-11-21T06:00:00%2B01:00")
                == ConsentsQuery(asOf: moment, knownAt: moment))
        let decisions = try Self.query(
            DecisionsQuery.self, "/v1/recipients/u/decisions?limit=1&before=\(Self.send)")
        #expect(decisions.limit == 1 && decisions.before == SendID(uuidText: Self.send))
        #expect(try Self.query(DecisionsQuery.self, "/v1/recipients/u/decisions").before == nil)
        #expect(decisions.locale == nil)
        #expect(
            try Self.query(LocaleQuery.self, "/v1/recipients/u/preferences?locale=nb-NO").locale == "nb-NO")
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
            guard case .notFound = Route.table.match(method: method, target: target) else {
                Issue.record("\(method) \(target)")
                continue
            }
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
        guard case .methodNotAllowed(let found) = Route.table.match(method: method, target: target) else {
            Issue.record("\(method) \(target)")
            return
        }
        #expect(found == allow)
    }

    @Test(arguments: [
        "", "v1/sends", "*", "https://gate/v1/types", "http://", "http:///v1/types", "/v1/types#part",
        "/v1/types/a b",
        "/v1/types/\"a\"", "/v1/types/ä", "/v1/types/a\u{0}", "/v1/types/a\r\nx", "/v1/types/<a>",
        "/v1/types/{a}",
        "/v1/types/" + String(repeating: "a", count: WireLimits.targetByteCountMax),
    ])
    func `a target that is no path and query is malformed`(_ target: String) {
        guard case .malformed = Route.table.match(method: "GET", target: target) else {
            Issue.record("\(target) is not malformed")
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
        ("/v1/recipients/u/decisions?locale=", ["locale"]),
        ("/v1/recipients/u/decisions?locale=norsk", ["locale"]),
        ("/v1/recipients/u/decisions?locale=nb_NO", ["locale"]),
        ("/v1/recipients/u/preferences?locale=nb&locale=en", ["locale"]),
        ("/v1/recipients/u?locale=" + String(repeating: "nb-", count: 300), ["locale"]),
        ("/v1/recipients/u?language=nb", ["language"]),
        ("/v1/trail/tile/64/000", ["tile"]), ("/v1/trail/tile/../checkpoint", ["tile"]),
    ])
    func `everything wrong with a path or a query is told at once`(_ target: String, _ names: [String]) throws
    {
        let (route, arguments) = try #require(Self.find("GET", target))
        guard case .invalid(let violations) = route.read(arguments) else {
            Issue.record("\(target) is valid")
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

    @Test func `a conditional grant is one the route does not ask of everybody`() {
        for route in Route.all.map(\.description) {
            for condition in route.conditions {
                #expect(route.permission != .oneOf([condition.grant]))
            }
        }
    }
}
