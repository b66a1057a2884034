import GateVocabulary

/// Region → regime and permission rows, laid out for looking up without allocating.
struct RegionMap: Sendable {
    /// One byte per two-letter code, AA to ZZ: 0 for an unmapped one, else 1 + the regime's strictness, so
    /// that the larger is the stricter, and the highest bit when permission rows exist for the country or a part of it.
    private let countries: [UInt8]
    /// The same for subdivisions, by packed code.
    private let subdivisions: [UInt64: UInt8]
    /// Rows, those of one region together, the latest `from` first.
    private let rows: [Row]
    private let freshness: Freshness

    private static let hasRows: UInt8 = 0x80

    private struct Row: Sendable {
        var region: UInt64
        var channels: UInt8
        var categories: UInt8
        var rule: PermissionRule
        /// Milliseconds since 1970 from which the row counts.
        var from: Int64

        func applies(to behaviour: Behaviour, at now: Int64) -> Bool {
            // Bits instead of enums: see the note at the top of Gates.swift.
            channels & RegionMap.bit(behaviour.channel) != 0
                && categories & RegionMap.bit(behaviour.category) != 0 && from <= now
        }
    }

    /// Milliseconds an observation counts; ``Int64/max`` for one that never goes stale.
    private struct Freshness: Sendable {
        var kyc: Int64
        var userDeclared: Int64
        var device: Int64
        var sim: Int64
        var ip: Int64

        subscript(source: RegionSource) -> Int64 {
            switch source {
            case .kyc: kyc
            case .userDeclared: userDeclared
            case .device: device
            case .sim: sim
            case .ip: ip
            }
        }
    }

    init(_ rules: RegionRules) {
        var countries = [UInt8](repeating: 0, count: 26 * 26)
        var subdivisions: [UInt64: UInt8] = [:]
        for (code, rule) in rules.regions {
            if code.country == code {
                countries[Self.index(code.packed)] |= Self.byte(rule.regime)
            } else {
                subdivisions[code.packed] = Self.byte(rule.regime)
            }
        }
        for row in rules.permissionRows {
            countries[Self.index(row.region.country.packed)] |= Self.hasRows
        }
        self.countries = countries
        self.subdivisions = subdivisions
        rows = rules.permissionRows
            .map { row in
                Row(
                    region: row.region.packed, channels: Self.bit(row.channel),
                    categories: row.categories.reduce(0) { $0 | Self.bit($1) }, rule: row.rule,
                    from: row.from?.instant.milliseconds ?? .min)
            }
            .sorted { ($0.region, $1.from) < ($1.region, $0.from) }
        func milliseconds(_ source: RegionSource) -> Int64 {
            guard let days = rules.freshnessDays[source] ?? nil else { return .max }
            return Int64(days) * 86_400_000
        }
        freshness = Freshness(
            kyc: milliseconds(.kyc), userDeclared: milliseconds(.userDeclared),
            device: milliseconds(.device), sim: milliseconds(.sim), ip: milliseconds(.ip))
    }

    private static func bit(_ category: GateVocabulary.Category) -> UInt8 {
        switch category {
        case .transactional: 1
        case .security: 2
        case .social: 4
        case .marketing: 8
        }
    }

    private static func bit(_ channel: Channel) -> UInt8 {
        switch channel {
        case .push: 1
        case .sms: 2
        case .email: 4
        }
    }

    private static func byte(_ regime: Regime) -> UInt8 { UInt8(1 + regime.strictness) }

    private static func index(_ country: UInt64) -> Int {
        Int(country >> 8 - 65) * 26 + Int(country & 0xFF - 65)
    }

    @inline(__always)
    private func entry(_ code: RegionCode) -> UInt8 {
        if code.packed <= 0xFFFF { return countries[Self.index(code.packed)] }
        let country = countries[Self.index(code.country.packed)]
        guard let part = subdivisions[code.packed] else { return country }
        return part | country & Self.hasRows
    }

    /// The byte without ``hasRows``: the larger, the stricter; 0 for an unmapped code.
    @inline(__always)
    private func law(_ code: RegionCode) -> UInt8 { entry(code) & ~Self.hasRows }

    @inline(__always)
    private static func regime(_ law: UInt8) -> Regime? {
        switch law {
        case 4: .gdpr
        case 3: .ukGDPR
        case 2: .gdprLike
        case 1: .other
        default: nil
        }
    }

    /// Where somebody is, as far as it is known. Regimes as bytes, 0 for none: see the note at the top of Gates.swift.
    private struct Places {
        /// The strictest of the known ones.
        var strictest: UInt8 = 0
        /// The account's own, when it is known, mapped and fresh.
        var account: UInt8 = 0
        var isKnown = true
    }

    /// An observation from the future counts as fresh: clocks differ by seconds, and the strictest of all
    /// places is taken anyway. Without a `now` only sources that never go stale are known.
    @inline(__always)
    private func isFresh(_ observation: RegionObservation, _ now: Instant?) -> Bool {
        let most = freshness[observation.source]
        if most == .max { return true }
        guard let now else { return false }
        let (age, overflow) = now.milliseconds.subtractingReportingOverflow(
            observation.observedAt.milliseconds)
        return overflow ? now < observation.observedAt : age <= most
    }

    @inline(__always)
    private func places(
        _ account: RegionObservation?, _ devices: [RegionObservation]?, _ now: Instant?
    ) -> Places {
        var places = Places()
        let own = account.map { law($0.code) } ?? 0
        if let account, isFresh(account, now) { places.account = own }
        places.strictest = places.account
        places.isKnown = places.account != 0
        guard let devices else {
            places.isKnown = false
            return places
        }
        for device in devices {
            // A device in use whose whereabouts are old news may be anywhere.
            guard isFresh(device, now) else {
                places.isKnown = false
                continue
            }
            let there = device.code.packed == account?.code.packed ? own : law(device.code)
            if there == 0 { places.isKnown = false }
            places.strictest = max(places.strictest, there)
        }
        return places
    }

    /// The strictest law of all places; ``Regime/gdpr`` when one is unknown.
    func regime(of facts: Facts) -> Regime {
        let places = places(facts.accountRegion, facts.deviceRegions, facts.now)
        return places.isKnown ? Self.regime(places.strictest) ?? .gdpr : .gdpr
    }

    func territory(of facts: Facts, under behaviour: Behaviour) -> Territory {
        // These three and not the facts: a loop over a part of a struct copies the whole of it.
        territory(facts.accountRegion, facts.deviceRegions, at: facts.now, under: behaviour)
    }

    @inline(__always)
    private func territory(
        _ account: RegionObservation?, _ devices: [RegionObservation]?, at moment: Instant?,
        under behaviour: Behaviour
    ) -> Territory {
        let places = places(account, devices, moment)
        let now = moment?.milliseconds ?? .max
        let table = behaviour.permission
        guard places.isKnown, let own = Self.regime(places.account),
            let regime = Self.regime(places.strictest), let region = account?.code, let devices
        else {
            var rule = max(max(table.gdpr, table.ukGDPR), max(table.gdprLike, table.other))
            for row in rows where row.applies(to: behaviour, at: now) { rule = max(rule, row.rule) }
            return Territory(
                regime: .gdpr, isKnown: false,
                isStrictForWantOfRegion: places.strictest != Self.byte(.gdpr), rule: rule)
        }
        var rule = row(of: region, for: behaviour, at: now) ?? table[own]
        // A traveller has both laws: a row of where a device is adds to the account's rule. Of laws without a row of
        // their own only the strictest regime is asked, so that Norway's word on old customers holds abroad.
        for device in devices where device.code.packed != region.packed {
            if let row = row(of: device.code, for: behaviour, at: now) {
                rule = max(rule, row)
            } else if law(device.code) == places.strictest {
                rule = max(rule, table[regime])
            }
        }
        return Territory(regime: regime, isKnown: true, isStrictForWantOfRegion: false, rule: rule)
    }

    /// The rule of the row for a region, a subdivision's before its country's.
    @inline(__always)
    private func row(of region: RegionCode, for behaviour: Behaviour, at now: Int64) -> PermissionRule? {
        entry(region) & Self.hasRows == 0 ? nil : writtenRow(of: region, for: behaviour, at: now)
    }

    @inline(never)
    private func writtenRow(
        of region: RegionCode, for behaviour: Behaviour, at now: Int64
    ) -> PermissionRule? {
        for row in rows where row.region == region.packed && row.applies(to: behaviour, at: now) {
            return row.rule
        }
        let country = region.country.packed
        guard country != region.packed else { return nil }
        for row in rows where row.region == country && row.applies(to: behaviour, at: now) {
            return row.rule
        }
        return nil
    }
}
