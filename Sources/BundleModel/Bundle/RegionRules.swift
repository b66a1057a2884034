package import GateVocabulary

/// Which law applies where, and how long a belief about where somebody is stays good (`regions.yaml`).
package struct RegionRules: Hashable, Sendable {
    /// Days an observation counts, by how it was made; `nil` for a source that never goes stale.
    package var freshnessDays: [RegionSource: Int?]
    package var regimes: [Regime: RegimeRule]
    /// Every regime once, the strictest first.
    package var order: [Regime]
    /// Every ISO 3166-1 country, and subdivisions where the country is not enough.
    package var regions: [RegionCode: RegionRule]
    package var permissionRows: [PermissionRow]
    /// Where a telephone number belongs by how it begins (ITU-T E.164), wherever its owner is.
    package var callingCodes: [String: RegionCode]
}

extension RegionRules {
    /// A region somebody named, as far as it is registered: by ISO 3166-1, or as a subdivision of which a page says
    /// something. Any other subdivision is its country, whose law it has.
    ///
    /// - Returns: `nil` for a country that does not exist.
    package func registered(_ code: RegionCode) -> RegionCode? {
        if regions[code] != nil || permissionRows.contains(where: { $0.region == code }) { return code }
        let country = code.country
        return regions[country] != nil || ISOCodes.countries.contains(country.description) ? country : nil
    }
}

/// What a regime is called in law.
package struct RegimeRule: Hashable, Sendable {
    package var means: String
    package var rationale: Rationale
}

/// The regime of one region.
package struct RegionRule: Hashable, Sendable {
    package var regime: Regime
    /// Since when; not after the day the bundle takes effect.
    package var since: CalendarDate?
    /// Said where the answer is not obvious.
    package var because: String?
}

/// A rule that replaces the category table for people of one region: the TCPA, a dated opt-out law.
package struct PermissionRow: Hashable, Sendable {
    package var region: RegionCode
    package var channel: Channel
    package var categories: [GateVocabulary.Category]
    package var rule: PermissionRule
    /// The row counts from the start of this day in UTC; always when `nil`.
    package var from: CalendarDate?
    package var rationale: Rationale
}

extension RegionRules {
    init(_ reader: NodeReader) {
        let members = reader.members()
        freshnessDays = Self.freshness(members.required("freshness"))
        regimes = Self.regimes(members.required("regimes"))
        order = Self.order(members.required("strictest_first", hint: "every regime, the strictest first"))
        regions = Self.regions(members.required("regions"))
        permissionRows = members.optional("permission_rows")?.elements().map { PermissionRow($0) } ?? []
        callingCodes = Self.callingCodes(members.optional("calling_codes"))
        members.ignoreRationale()
        members.refuseOthers()
    }

    private static func order(_ reader: NodeReader?) -> [Regime] {
        guard let reader else { return [] }
        let order: [Regime] = reader.elements().map { $0.name() }
        if order.count != Regime.allCases.count || Set(order).count != order.count {
            reader.problem("does not name every regime once", hint: "the strictest first")
        }
        return order
    }

    private static func callingCodes(_ reader: NodeReader?) -> [String: RegionCode] {
        var found: [String: RegionCode] = [:]
        for (prefix, value) in reader?.members().others() ?? [] {
            if !SendingHours.isCallingCode(prefix) {
                value.problem("is not for the beginning of a telephone number", hint: "write it as \"+1\"")
            }
            guard let code = RegionCode(value.text(byteCountMax: 6)) else {
                value.problem("is not an ISO 3166 code", hint: "write it as \"US\"")
                continue
            }
            found[prefix] = code
        }
        return found
    }

    private static func freshness(_ reader: NodeReader?) -> [RegionSource: Int?] {
        guard let members = reader?.members() else { return [:] }
        var days: [RegionSource: Int?] = [:]
        for source in RegionSource.allCases {
            guard let value = members.required(source.rawValue, hint: "days, or null for never stale") else {
                continue
            }
            if case .null = value.node.value {
                days[source] = .some(nil)
            } else {
                days[source] = value.integer(1...3650)
            }
        }
        members.ignoreRationale()
        members.refuseOthers()
        return days
    }

    private static func regimes(_ reader: NodeReader?) -> [Regime: RegimeRule] {
        guard let members = reader?.members() else { return [:] }
        var rules: [Regime: RegimeRule] = [:]
        for regime in Regime.allCases {
            guard let rule = members.required(regime.rawValue)?.members() else { continue }
            rules[regime] = RegimeRule(means: rule.text("means"), rationale: rule.rationale())
            rule.refuseOthers()
        }
        members.refuseOthers()
        return rules
    }

    private static func regions(_ reader: NodeReader?) -> [RegionCode: RegionRule] {
        guard let members = reader?.members() else { return [:] }
        var rules: [RegionCode: RegionRule] = [:]
        for (key, value) in members.others() {
            guard let code = RegionCode(key) else {
                value.problem("is not an ISO 3166 code", hint: "write it as \"NO\" or \"US-CA\"")
                continue
            }
            rules[code] = RegionRule(value)
        }
        return rules
    }
}

extension RegionRule {
    init(_ reader: NodeReader) {
        if case .text = reader.node.value {
            self.init(regime: reader.name(), since: nil, because: nil)
            return
        }
        let members = reader.members()
        self.init(
            regime: members.name("regime"), since: members.optional("since")?.date(),
            because: members.optional("because")?.reason())
        members.ignoreRationale()
        members.refuseOthers()
    }
}

extension PermissionRow {
    init(_ reader: NodeReader) {
        let members = reader.members()
        let place = members.required("region")
        let text = place?.text(byteCountMax: 6) ?? "XK"
        let code = RegionCode(text)
        if code == nil { place?.problem("is not an ISO 3166 code", hint: "write it as \"US\" or \"US-CA\"") }
        self.init(
            region: code ?? RegionCode("XK")!, channel: members.name("channel"),
            categories: members.names("categories"), rule: members.name("rule"),
            from: members.optional("from")?.date(), rationale: members.rationale())
        members.refuseOthers()
    }
}
