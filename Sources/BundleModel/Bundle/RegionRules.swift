package import GateVocabulary

/// Which law applies where, and how long a belief about where a person is stays good (`regions.yaml`).
package struct RegionRules: Hashable, Sendable {
    /// Days an observation counts, by how it was made; `nil` for a source that never goes stale.
    package var freshnessDays: [RegionSource: Int?]
    package var regimes: [Regime: RegimeRule]
    /// Every regime once, the strictest first.
    package var order: [Regime]
    /// Every ISO 3166-1 country, and subdivisions where the country is not enough.
    package var regions: [RegionCode: RegionRule]
    package var permissionRows: [PermissionRow]
    /// Where a text message may bring a one-time code; nowhere else does one.
    package var codeTextRows: [CodeTextRow]
    /// Where a telephone number belongs by how it begins (ITU-T E.164), wherever its owner is.
    package var callingCodes: [String: RegionCode]
}

extension RegionRules {
    /// A region that was named, as far as it is registered: by ISO 3166-1, or as a subdivision of which a page says
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

/// Regions whose law lets a text message bring a one-time code, from one day to another.
package struct CodeTextRow: Hashable, Sendable {
    package var regions: [RegionCode]
    /// The row counts from the start of this day in UTC.
    package var from: CalendarDate
    /// The row no longer counts from the start of this day in UTC; `nil` while no end is known.
    package var until: CalendarDate?
    package var rationale: Rationale
}

extension RegionRules {
    init(_ reader: NodeReader) {
        let members = reader.members()
        freshnessDays = Self.freshness(
            members.required(
                "freshness",
                "Days after which an observation no longer says where a recipient is, by its source."
            ))
        regimes = Self.regimes(members.required("regimes", "What each regime is called in law."))
        order = Self.order(
            members.required(
                "strictest_first", hint: "every regime, the strictest first",
                "Every regime once, the strictest first: the first that a place of a recipient is under is theirs."
            ))
        regions = Self.regions(
            members.required("regions", "Every country, and subdivisions where the country is not enough."))
        permissionRows =
            members.optional(
                "permission_rows", "Rules that replace those of categories.yaml for recipients of one region."
            )?
            .elements().map { PermissionRow($0) } ?? []
        codeTextRows =
            members.optional(
                "code_texts",
                "Where a text message may bring a one-time code, by the region of the account. Nowhere else does one."
            )?
            .elements().map { CodeTextRow($0) } ?? []
        callingCodes = Self.callingCodes(
            members.optional("calling_codes", "Where a telephone number belongs by how it begins."))
        members.ignoreRationale()
        members.refuseOthers()
    }

    private static func order(_ reader: NodeReader?) -> [Regime] {
        guard let reader else { return [] }
        let order: [Regime] = reader.elements(
            countMin: Regime.allCases.count, shownCountMax: Regime.allCases.count
        ).map { $0.name() }
        if order.count != Regime.allCases.count || Set(order).count != order.count {
            reader.problem("does not name every regime once", hint: "the strictest first")
        }
        return order
    }

    private static func callingCodes(_ reader: NodeReader?) -> [String: RegionCode] {
        var found: [String: RegionCode] = [:]
        for (prefix, value) in reader?.members().others(.callingCodes) ?? [] {
            if !SendingHours.isCallingCode(prefix) {
                value.problem("is not for the beginning of a telephone number", hint: "write it as \"+1\"")
            }
            found[prefix] = value.region()
        }
        return found
    }

    private static func freshness(_ reader: NodeReader?) -> [RegionSource: Int?] {
        guard let members = reader?.members() else { return [:] }
        var days: [RegionSource: Int?] = [:]
        for source in RegionSource.allCases {
            let value = members.required(
                source.rawValue, hint: "days, or null for never stale", "Days; null never ages.")
            guard let value else { continue }
            days[source] = .some(value.nullable { $0.integer(1...3650) })
        }
        members.ignoreRationale()
        members.refuseOthers()
        return days
    }

    private static func regimes(_ reader: NodeReader?) -> [Regime: RegimeRule] {
        guard let members = reader?.members() else { return [:] }
        var rules: [Regime: RegimeRule] = [:]
        for regime in Regime.allCases {
            let value = members.required(regime.rawValue, "The regime's own line.")
            guard let rule = value?.named("regime_rule").members() else { continue }
            rules[regime] = RegimeRule(
                means: rule.text("means", "Which laws it stands for."), rationale: rule.rationale())
            rule.refuseOthers()
        }
        members.refuseOthers()
        return rules
    }

    private static func regions(_ reader: NodeReader?) -> [RegionCode: RegionRule] {
        guard let members = reader?.members() else { return [:] }
        var rules: [RegionCode: RegionRule] = [:]
        for (key, value) in members.others(.regions) {
            if let code = value.region(named: key) { rules[code] = RegionRule(value) }
        }
        return rules
    }
}

extension RegionRule {
    init(_ reader: NodeReader) {
        self = reader.oneOf(
            text: { RegionRule(regime: $0.name(), since: nil, because: nil) },
            else: { RegionRule(row: $0) })
    }

    private init(row: NodeReader) {
        let members = row.members()
        self.init(
            regime: members.name("regime", "The law of the place."),
            since: members.optional("since", "The first day on which the line was true.")?.date(),
            because: members.optional("because", "Why the answer is so, where it is not obvious.")?.reason())
        members.ignoreRationale()
        members.refuseOthers()
    }
}

extension PermissionRow {
    init(_ reader: NodeReader) {
        let members = reader.members()
        self.init(
            region: members.required("region", "Where the row counts.")?.region() ?? RegionCode("XK")!,
            channel: members.name("channel", "On which channel it counts."),
            categories: members.names("categories", countMin: 1, "Of which categories."),
            rule: members.name("rule", "What a send needs there, in place of the category's own rule."),
            from: members.optional(
                "from", "The first day, in UTC, on which the row counts; without it, it counts always.")?
                .date(),
            rationale: members.rationale())
        members.refuseOthers()
    }
}

extension CodeTextRow {
    init(_ reader: NodeReader) {
        let members = reader.members()
        self.init(
            regions: members.required("regions", "Where the row counts.")?.elements(countMin: 1)
                .compactMap { $0.region() } ?? [],
            from: members.date("from", "The first day, in UTC, on which the row counts."),
            until: members.optional(
                "until",
                "The first day, in UTC, on which the row no longer counts; without it, no end is known."
            )?.date(),
            rationale: members.rationale())
        members.refuseOthers()
    }
}
