package import GateVocabulary

/// One request's method, path and query, understood. Ids are decoded and within their bounds.
package enum Route: Hashable, Sendable {
    case postSend
    case streamSends
    case explainSend
    case acknowledgeEvent
    case getSend(SendID)
    case cancelSend(SendID)
    case listTypes
    case getType(TypeID)
    case listEvents(EventsQuery)
    case putRecipient(UserID)
    case getRecipient(UserID)
    case deleteRecipient(UserID)
    case putDevice(UserID, DestinationID)
    case deleteDevice(UserID, DestinationID)
    case putAddress(UserID, DestinationID)
    case deleteAddress(UserID, DestinationID)
    case addDeviceKey(UserID, DestinationID)
    case confirmDeviceKey(UserID, DestinationID, KeyID)
    case addConsent(UserID)
    case listConsents(UserID, ConsentsQuery)
    case withdrawConsent(UserID, consent: String)
    /// The scope is a category's name or a type's id; which, the policy knows.
    case putPreference(UserID, scope: String)
    case listPreferences(UserID)
    case addPermissionPrompt(UserID)
    case listDecisions(UserID, DecisionsQuery)
    case addReceipt
    case listKeys
    /// `key` is a key's id in the keyring, or a device key's 32 hexadecimal digits.
    case promoteKey(String)
    case suspendKey(String)
    case revokeKey(String)
    case destroyKey(String)
    case activatePolicy
    case getCheckpoint
    case getTile(TilePath)
    case getHealth
    case getReadiness
    case getMetrics
    case getOpenAPI

    package var template: RouteTemplate {
        switch self {
        case .postSend: .postSend
        case .streamSends: .streamSends
        case .explainSend: .explainSend
        case .acknowledgeEvent: .acknowledgeEvent
        case .getSend: .getSend
        case .cancelSend: .cancelSend
        case .listTypes: .listTypes
        case .getType: .getType
        case .listEvents: .listEvents
        case .putRecipient: .putRecipient
        case .getRecipient: .getRecipient
        case .deleteRecipient: .deleteRecipient
        case .putDevice: .putDevice
        case .deleteDevice: .deleteDevice
        case .putAddress: .putAddress
        case .deleteAddress: .deleteAddress
        case .addDeviceKey: .addDeviceKey
        case .confirmDeviceKey: .confirmDeviceKey
        case .addConsent: .addConsent
        case .listConsents: .listConsents
        case .withdrawConsent: .withdrawConsent
        case .putPreference: .putPreference
        case .listPreferences: .listPreferences
        case .addPermissionPrompt: .addPermissionPrompt
        case .listDecisions: .listDecisions
        case .addReceipt: .addReceipt
        case .listKeys: .listKeys
        case .promoteKey: .promoteKey
        case .suspendKey: .suspendKey
        case .revokeKey: .revokeKey
        case .destroyKey: .destroyKey
        case .activatePolicy: .activatePolicy
        case .getCheckpoint: .getCheckpoint
        case .getTile: .getTile
        case .getHealth: .getHealth
        case .getReadiness: .getReadiness
        case .getMetrics: .getMetrics
        case .getOpenAPI: .getOpenAPI
        }
    }
}

/// What a method and a request target lead to.
package enum RouteMatch: Hashable, Sendable {
    /// - `isHead`: answer with the headers of the `GET` and no body (RFC 9110 section 9.3.2).
    case match(Route, isHead: Bool)
    case notFound
    /// 405: the path exists under these methods, for the `Allow` header (RFC 9110 section 10.2.1).
    case methodNotAllowed(allow: [String])
    /// 400: the target is no URI path and query.
    case malformed(String)
    /// 422: the route exists, but a part of its path or a query parameter is not what it should be.
    case invalid(RouteTemplate, [Violation])
}

extension Route {
    /// Reads a request line's method and target.
    ///
    /// - Parameters:
    ///   - method: Case-sensitive, as RFC 9110 section 9.1 has it. `HEAD` stands for `GET`.
    ///   - target: Origin form, or absolute form, whose authority says nothing on a Unix socket (RFC 9112
    ///     section 3.2). Still percent-encoded.
    package static func match(method: String, target: String) -> RouteMatch {
        if method == "POST", target == "/v1/sends" { return .match(.postSend, isHead: false) }

        let split: RequestTarget
        switch RequestTarget.read(target) {
        case .success(let target): split = target
        case .failure(let error): return .malformed(error.message)
        }
        let candidates = RouteTable.templates(matching: split.segments)
        guard !candidates.isEmpty else { return .notFound }
        let isHead = method == "HEAD"
        guard let template = candidates.first(where: { $0.method == (isHead ? "GET" : method) }) else {
            var allow = candidates.map(\.method)
            if allow.contains("GET") { allow.append("HEAD") }
            return .methodNotAllowed(allow: allow.sorted())
        }

        var arguments = RouteArguments(template: template, target: split)
        guard let route = Route(template, &arguments), arguments.violations.isEmpty else {
            return .invalid(template, arguments.violations)
        }
        return .match(route, isHead: isHead)
    }

    /// - Returns: `nil` after noting at least one violation.
    private init?(_ template: RouteTemplate, _ arguments: inout RouteArguments) {
        // Parts and parameters are all read before the first is missed, so that every violation is told.
        let user = { (arguments: inout RouteArguments) in arguments.identifier("user").map(UserID.init) }
        var route: Route?
        switch template {
        case .postSend: route = .postSend
        case .streamSends: route = .streamSends
        case .explainSend: route = .explainSend
        case .acknowledgeEvent: route = .acknowledgeEvent
        case .getSend: route = arguments.sendID("send_id").map { .getSend($0) }
        case .cancelSend: route = arguments.sendID("send_id").map { .cancelSend($0) }
        case .listTypes: route = .listTypes
        case .getType: route = arguments.identifier("type").map { .getType(TypeID($0)) }
        case .listEvents:
            let query = EventsQuery(
                after: arguments.integer("after", in: 0...9_007_199_254_740_991) ?? 0,
                limit: arguments.integer("limit", in: 1...WireLimits.eventCountMax)
                    ?? WireLimits.eventCountDefault)
            route = .listEvents(query)
        case .putRecipient: route = user(&arguments).map { .putRecipient($0) }
        case .getRecipient: route = user(&arguments).map { .getRecipient($0) }
        case .deleteRecipient: route = user(&arguments).map { .deleteRecipient($0) }
        case .putDevice: route = arguments.destination("device").map { .putDevice($0, $1) }
        case .deleteDevice: route = arguments.destination("device").map { .deleteDevice($0, $1) }
        case .putAddress: route = arguments.destination("address").map { .putAddress($0, $1) }
        case .deleteAddress: route = arguments.destination("address").map { .deleteAddress($0, $1) }
        case .addDeviceKey: route = arguments.destination("device").map { .addDeviceKey($0, $1) }
        case .confirmDeviceKey:
            let owner = arguments.destination("device")
            let key = arguments.keyID("key_id")
            if let owner, let key { route = .confirmDeviceKey(owner.0, owner.1, key) }
        case .addConsent: route = user(&arguments).map { .addConsent($0) }
        case .listConsents:
            let owner = user(&arguments)
            let query = ConsentsQuery(
                asOf: arguments.instant("as_of"), knownAt: arguments.instant("known_at"))
            route = owner.map { .listConsents($0, query) }
        case .withdrawConsent:
            let owner = user(&arguments)
            let consent = arguments.identifier("consent")
            if let owner, let consent { route = .withdrawConsent(owner, consent: consent) }
        case .putPreference:
            let owner = user(&arguments)
            let scope = arguments.identifier("scope")
            if let owner, let scope { route = .putPreference(owner, scope: scope) }
        case .listPreferences: route = user(&arguments).map { .listPreferences($0) }
        case .addPermissionPrompt: route = user(&arguments).map { .addPermissionPrompt($0) }
        case .listDecisions:
            let owner = user(&arguments)
            let query = DecisionsQuery(
                before: arguments.sendIDParameter("before"),
                limit: arguments.integer("limit", in: 1...WireLimits.decisionCountMax)
                    ?? WireLimits.decisionCountDefault)
            route = owner.map { .listDecisions($0, query) }
        case .addReceipt: route = .addReceipt
        case .listKeys: route = .listKeys
        case .promoteKey: route = arguments.identifier("key").map { .promoteKey($0) }
        case .suspendKey: route = arguments.identifier("key").map { .suspendKey($0) }
        case .revokeKey: route = arguments.identifier("key").map { .revokeKey($0) }
        case .destroyKey: route = arguments.identifier("key").map { .destroyKey($0) }
        case .activatePolicy: route = .activatePolicy
        case .getCheckpoint: route = .getCheckpoint
        case .getTile: route = arguments.tile("tile").map { .getTile($0) }
        case .getHealth: route = .getHealth
        case .getReadiness: route = .getReadiness
        case .getMetrics: route = .getMetrics
        case .getOpenAPI: route = .getOpenAPI
        }
        arguments.refuseOtherParameters()
        guard let route else { return nil }
        self = route
    }
}

/// `GET /v1/events?after=&limit=`
package struct EventsQuery: Hashable, Sendable {
    /// The newest cursor the caller has seen; 0 for everything still kept.
    package var after: Int64
    /// 1 to ``WireLimits/eventCountMax``.
    package var limit: Int64

    package init(after: Int64, limit: Int64) {
        self.after = after
        self.limit = limit
    }
}

/// `GET …/consents?as_of=&known_at=`: the ledger as it stood at one moment, as far as it was known at another.
package struct ConsentsQuery: Hashable, Sendable {
    /// Events up to this `event_time`; `nil` for all.
    package var asOf: Instant?
    /// Events the gate had heard of by then; `nil` for all.
    package var knownAt: Instant?

    package init(asOf: Instant?, knownAt: Instant?) {
        self.asOf = asOf
        self.knownAt = knownAt
    }
}

/// `GET …/decisions?limit=`, newest first.
package struct DecisionsQuery: Hashable, Sendable {
    /// Only older sends than this one; `nil` begins with the newest.
    package var before: SendID?
    /// 1 to ``WireLimits/decisionCountMax``.
    package var limit: Int64

    package init(before: SendID? = nil, limit: Int64) {
        self.before = before
        self.limit = limit
    }
}
