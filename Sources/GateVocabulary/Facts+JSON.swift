package import CanonicalJSON

/// The names and shapes of facts in the trail, in `explain` and in `Policies/cases`.
///
/// The object is flat, its keys are the properties in snake case, a fact nobody knows is absent, and
/// every moment is an integer of milliseconds. Reading accepts exactly what writing gives: a key that
/// is not known is an error, because a misspelled fact would otherwise look like a missing one.
extension Facts {
    package var json: JSONObject {
        var object = JSONObject()
        func put(_ key: String, _ value: JSONValue?) {
            if let value { object[key] = value }
        }
        func name(_ value: (some RawRepresentable<String>)?) -> JSONValue? {
            value.map { .string($0.rawValue) }
        }
        put("account_preference", name(accountPreference))
        put("account_region", accountRegion.map { .object($0.json) })
        put("account_type_preference", name(accountTypePreference))
        put("age", name(age))
        put("category_count", categoryCount.map { .integer(Int64($0)) })
        put("consent", consent.map { .object($0.json) })
        put("critical_alerts", criticalAlerts.map { .boolean($0) })
        put("destination", name(destination))
        put("destination_preference", name(destinationPreference))
        put("destination_type_preference", name(destinationTypePreference))
        put("device_key", name(deviceKey))
        put("device_regions", deviceRegions.map { .array($0.map { .object($0.json) }) })
        put("due", due.map { .integer($0.milliseconds) })
        put("everything_count", everythingCount.map { .integer(Int64($0)) })
        put("expiry", expiry.map { .integer($0.milliseconds) })
        put("fallback", name(fallback))
        put("now", now.map { .integer($0.milliseconds) })
        put("os_permission", name(osPermission))
        put("own_request", ownRequest.map { .object($0.json) })
        put("params", name(params))
        put("platform", name(platform))
        put("privacy", name(privacy))
        put("purpose_consent", purposeConsent.map { .object($0.json) })
        put("push_enabled", pushEnabled.map { .boolean($0) })
        put("quiet_hours", quietHours.map { .object($0.json) })
        put("recipient", name(recipient))
        put("repetition", name(repetition))
        put("sizes", sizes.map { .object($0.json) })
        put("type_count", typeCount.map { .integer(Int64($0)) })
        put("withheld", withheld.map { .boolean($0) })
        return object
    }

    /// - Parameter pointer: Where `json` stands in its document, for the errors.
    package init(json: JSONObject, at pointer: JSONPointer = .root) throws(JSONShapeError) {
        self.init()
        var members = JSONMembers(json, at: pointer)
        now = try members.optional("now", JSONShape.instant)
        expiry = try members.optional("expiry", JSONShape.instant)
        due = try members.optional("due", JSONShape.instant)
        params = try members.optional("params", JSONShape.name)
        fallback = try members.optional("fallback", JSONShape.name)
        repetition = try members.optional("repetition", JSONShape.name)
        recipient = try members.optional("recipient", JSONShape.name)
        age = try members.optional("age", JSONShape.name)
        accountRegion = try members.optional("account_region", RegionObservation.init(json:at:))
        deviceRegions = try members.optional("device_regions", Self.regions)
        privacy = try members.optional("privacy", JSONShape.name)
        consent = try members.optional("consent", ConsentFact.init(json:at:))
        purposeConsent = try members.optional("purpose_consent", ConsentFact.init(json:at:))
        ownRequest = try members.optional("own_request", ConsentFact.init(json:at:))
        pushEnabled = try members.optional("push_enabled", JSONShape.boolean)
        accountPreference = try members.optional("account_preference", JSONShape.name)
        destinationPreference = try members.optional("destination_preference", JSONShape.name)
        accountTypePreference = try members.optional("account_type_preference", JSONShape.name)
        destinationTypePreference = try members.optional("destination_type_preference", JSONShape.name)
        quietHours = try members.optional("quiet_hours", QuietHoursFact.init(json:at:))
        destination = try members.optional("destination", JSONShape.name)
        platform = try members.optional("platform", JSONShape.name)
        osPermission = try members.optional("os_permission", JSONShape.name)
        criticalAlerts = try members.optional("critical_alerts", JSONShape.boolean)
        deviceKey = try members.optional("device_key", JSONShape.name)
        sizes = try members.optional("sizes", PayloadSizes.init(json:at:))
        typeCount = try members.optional("type_count", JSONShape.count)
        categoryCount = try members.optional("category_count", JSONShape.count)
        everythingCount = try members.optional("everything_count", JSONShape.count)
        withheld = try members.optional("withheld", JSONShape.boolean)
        try members.refuseOthers()
    }

    /// The name of every fact, sorted: what ``removing(_:)`` takes.
    package static let names: [String] = [
        "account_preference", "account_region", "account_type_preference", "age", "category_count",
        "consent", "critical_alerts", "destination", "destination_preference",
        "destination_type_preference", "device_key", "device_regions", "due", "everything_count", "expiry",
        "fallback", "now",
        "os_permission", "own_request", "params", "platform", "privacy", "purpose_consent", "push_enabled",
        "quiet_hours", "recipient", "repetition", "sizes", "type_count", "withheld",
    ]

    /// These facts without one of them, as if nobody knew it.
    ///
    /// - Returns: `nil` when no fact has that name.
    package func removing(_ name: String) -> Facts? {
        var rest = self
        switch name {
        case "account_preference": rest.accountPreference = nil
        case "account_region": rest.accountRegion = nil
        case "account_type_preference": rest.accountTypePreference = nil
        case "age": rest.age = nil
        case "category_count": rest.categoryCount = nil
        case "consent": rest.consent = nil
        case "critical_alerts": rest.criticalAlerts = nil
        case "destination": rest.destination = nil
        case "destination_preference": rest.destinationPreference = nil
        case "destination_type_preference": rest.destinationTypePreference = nil
        case "device_key": rest.deviceKey = nil
        case "device_regions": rest.deviceRegions = nil
        case "due": rest.due = nil
        case "everything_count": rest.everythingCount = nil
        case "expiry": rest.expiry = nil
        case "fallback": rest.fallback = nil
        case "now": rest.now = nil
        case "os_permission": rest.osPermission = nil
        case "own_request": rest.ownRequest = nil
        case "params": rest.params = nil
        case "platform": rest.platform = nil
        case "privacy": rest.privacy = nil
        case "purpose_consent": rest.purposeConsent = nil
        case "push_enabled": rest.pushEnabled = nil
        case "quiet_hours": rest.quietHours = nil
        case "recipient": rest.recipient = nil
        case "repetition": rest.repetition = nil
        case "sizes": rest.sizes = nil
        case "type_count": rest.typeCount = nil
        case "withheld": rest.withheld = nil
        default: return nil
        }
        return rest
    }

    /// A recipient has at most 20 devices, and a text goes to one number; more regions than that are not facts.
    package static let deviceRegionCountMax = 21

    private static func regions(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> [RegionObservation] {
        guard case .array(let elements) = value else {
            throw JSONShapeError(
                pointer, "expected an array, found \(JSONMembers.article(value.shapeName))")
        }
        guard elements.count <= deviceRegionCountMax else {
            throw JSONShapeError(
                pointer, "expected at most \(deviceRegionCountMax) regions, found \(elements.count)")
        }
        var regions: [RegionObservation] = []
        regions.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            regions.append(try RegionObservation(json: element, at: pointer.appending(index)))
        }
        return regions
    }
}

extension RegionObservation {
    package var json: JSONObject {
        [
            "code": .string(code.description), "observed_at": .integer(observedAt.milliseconds),
            "source": .string(source.rawValue),
        ]
    }

    package init(json: JSONValue, at pointer: JSONPointer) throws(JSONShapeError) {
        var members = try JSONMembers(json, at: pointer)
        code = try members.required("code", RegionCode.read)
        source = try members.required("source", JSONShape.name)
        observedAt = try members.required("observed_at", JSONShape.instant)
        try members.refuseOthers()
    }
}

extension RegionCode {
    package static func read(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> RegionCode {
        guard let code = RegionCode(try JSONShape.text(value, pointer)) else {
            throw JSONShapeError(pointer, "expected an ISO 3166 code such as `NO` or `US-CA`")
        }
        return code
    }
}

extension ConsentFact {
    package var json: JSONObject {
        var object: JSONObject = ["state": .string(state.rawValue)]
        if let method { object["method"] = .string(method.rawValue) }
        if let expiresAt { object["expires_at"] = .integer(expiresAt.milliseconds) }
        return object
    }

    package init(json: JSONValue, at pointer: JSONPointer) throws(JSONShapeError) {
        var members = try JSONMembers(json, at: pointer)
        state = try members.required("state", JSONShape.name)
        method = try members.optional("method", JSONShape.name)
        expiresAt = try members.optional("expires_at", JSONShape.instant)
        try members.refuseOthers()
    }
}

extension QuietHoursFact {
    /// The name of the case.
    package var state: String {
        switch self {
        case .off: "off"
        case .zoneMissing: "zone_missing"
        case .outside: "outside"
        case .inside: "inside"
        case .insideSomewhere: "inside_somewhere"
        }
    }

    package var json: JSONObject {
        var object: JSONObject = ["state": .string(state)]
        if let endsAt { object["ends_at"] = .integer(endsAt.milliseconds) }
        return object
    }

    package init(json: JSONValue, at pointer: JSONPointer) throws(JSONShapeError) {
        var members = try JSONMembers(json, at: pointer)
        let state = try members.required("state", JSONShape.text)
        switch state {
        case "off": self = .off
        case "zone_missing": self = .zoneMissing
        case "outside": self = .outside
        case "inside": self = .inside(endsAt: try members.required("ends_at", JSONShape.instant))
        case "inside_somewhere":
            self = .insideSomewhere(endsAt: try members.required("ends_at", JSONShape.instant))
        default:
            throw JSONShapeError(
                pointer.appending("state"),
                "expected one of `off`, `zone_missing`, `outside`, `inside`, `inside_somewhere`")
        }
        try members.refuseOthers()
    }
}

extension PayloadSizes {
    package var json: JSONObject {
        var object = JSONObject()
        if let sealed { object["sealed"] = .integer(Int64(sealed)) }
        if let generic { object["generic"] = .integer(Int64(generic)) }
        if let full { object["full"] = .integer(Int64(full)) }
        return object
    }

    package init(json: JSONValue, at pointer: JSONPointer) throws(JSONShapeError) {
        var members = try JSONMembers(json, at: pointer)
        self.init()
        sealed = try members.optional("sealed", JSONShape.count)
        generic = try members.optional("generic", JSONShape.count)
        full = try members.optional("full", JSONShape.count)
        try members.refuseOthers()
    }
}
