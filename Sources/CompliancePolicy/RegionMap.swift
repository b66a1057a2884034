import BundleModel
import GateVocabulary

/// Region → regime and permission rows, laid out for looking up without allocating.
struct RegionMap: Sendable {
    /// By two-letter code, AA to ZZ. The lowest four bits are the law: 0 for an unmapped code, else the regime's position
    /// from the end of `strictest_first`, counted from 1, so that the larger is the stricter. Above are ``kind(_:)`` bits: what
    /// the country or a part of it has permission rows about.
    private let countries: [UInt16]
    /// The same for subdivisions, by packed code.
    private let subdivisions: [UInt64: UInt16]
    /// Rows, those of one region together, the latest `from` first.
    private let rows: [Row]
    /// The regimes by their byte, less 1.
    private let regimes: [Regime]
    /// What an unknown place counts as.
    private let gdpr: UInt16
    private let freshness: Freshness
    /// The milliseconds since 1970 in which a text message may bring a code, by packed region.
    private let codeTexts: [UInt64: [Range<Int64>]]

    private static let lawBits: UInt16 = 0xF

    private struct Row: Sendable {
        var region: UInt64
        var channels: UInt8
        var categories: UInt8
        var rule: PermissionRule
        /// Milliseconds since 1970 from which the row counts.
        var from: Int64

        func applies(to compiled: CompiledRule, at now: Int64) -> Bool {
            // Bits instead of enums: see the note at the top of Gates.swift.
            channels & RegionMap.bit(compiled.channel) != 0
                && categories & RegionMap.bit(compiled.category) != 0 && from <= now
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
        var countries = [UInt16](repeating: 0, count: 26 * 26)
        var subdivisions: [UInt64: UInt16] = [:]
        let regimes = Array(rules.order.reversed())
        func law(_ regime: Regime) -> UInt16 { UInt16(1 + regimes.firstIndex(of: regime)!) }
        for (code, rule) in rules.regions {
            if code.country == code {
                countries[Self.index(code.packed)] |= law(rule.regime)
            } else {
                subdivisions[code.packed] = law(rule.regime)
            }
        }
        self.regimes = regimes
        gdpr = law(.gdpr)
        for row in rules.permissionRows {
            for category in row.categories {
                countries[Self.index(row.region.country.packed)] |= Self.kind(row.channel, category)
            }
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
        var codeTexts: [UInt64: [Range<Int64>]] = [:]
        for row in rules.codeTextRows {
            let end = max(row.from.instant.milliseconds, row.until?.instant.milliseconds ?? .max)
            for region in row.regions {
                codeTexts[region.packed, default: []].append(row.from.instant.milliseconds..<end)
            }
        }
        self.codeTexts = codeTexts
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

    /// One bit for a channel and a category, above the law.
    @inline(__always)
    private static func kind(_ channel: Channel, _ category: GateVocabulary.Category) -> UInt16 {
        // Both are powers of two, up to 4 and 8: three times four bits.
        let position =
            switch channel {
            case .push: 4
            case .sms: 8
            case .email: 12
            }
        return UInt16(bit(category)) << UInt16(position)
    }

    private static func index(_ country: UInt64) -> Int {
        Int(country >> 8 - 65) * 26 + Int(country & 0xFF - 65)
    }

    @inline(__always)
    private func entry(_ code: RegionCode) -> UInt16 {
        if code.packed <= 0xFFFF { return countries[Self.index(code.packed)] }
        let country = countries[Self.index(code.country.packed)]
        guard let part = subdivisions[code.packed] else { return country }
        return part | country & ~Self.lawBits
    }

    /// The larger, the stricter; 0 for an unmapped code.
    @inline(__always)
    private func law(_ code: RegionCode) -> UInt16 { entry(code) & Self.lawBits }

    @inline(__always)
    private func regime(_ law: UInt16) -> Regime { regimes[Int(law) - 1] }

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

    /// The law of a place that is known: mapped, and seen lately enough. 0 for one that is not.
    @inline(__always)
    private func knownLaw(_ place: RegionObservation, _ now: Instant?) -> UInt16 {
        isFresh(place, now) ? law(place.code) : 0
    }

    func jurisdiction(of facts: Facts, under compiled: CompiledRule) -> Jurisdiction {
        // These three and not the facts: a loop over a part of a struct copies the whole of it.
        jurisdiction(facts.accountRegion, facts.deviceRegions, at: facts.now, under: compiled)
    }

    @inline(__always)
    private func jurisdiction(
        _ account: RegionObservation?, _ devices: [RegionObservation]?, at moment: Instant?,
        under compiled: CompiledRule
    ) -> Jurisdiction {
        guard let account, let devices else {
            return jurisdictionInPart(account, devices, at: moment, under: compiled)
        }
        let own = knownLaw(account, moment)
        var strictest = own
        var isKnown = own != 0
        for device in devices {
            // The place of the account, most often. A law that never ages says nothing of what does.
            let there =
                isFresh(device, moment)
                ? device.code.packed == account.code.packed && own != 0 ? own : law(device.code) : 0
            if there == 0 { isKnown = false }
            strictest = max(strictest, there)
        }
        guard isKnown else { return jurisdictionInPart(account, devices, at: moment, under: compiled) }
        let now = moment?.milliseconds ?? .max
        let table = compiled.permission
        var rule = row(of: account.code, for: compiled, at: now) ?? table[regime(own)]
        // A traveller has both laws: a row of where a device is adds to the account's rule. Of laws without a row of
        // their own only the strictest regime is asked, so that Norway's word on old customers holds abroad.
        for device in devices where device.code.packed != account.code.packed {
            if let row = row(of: device.code, for: compiled, at: now) {
                rule = max(rule, row)
            } else if law(device.code) == strictest {
                rule = max(rule, table[regime(strictest)])
            }
        }
        return Jurisdiction(
            regime: regime(strictest), isKnown: true, isStrictForWantOfRegion: false, rule: rule,
            knownRule: rule, allowsCodeText: allowsCodeText(account, at: moment, under: compiled))
    }

    /// The same where a place is unknown: unmapped, or seen too long ago, it counts as `gdpr`, and what was asked where it
    /// was seen last is asked still, so that an observation frees nothing by growing old. A fact that is lost altogether
    /// demands what any place demands, so that losing it frees nothing either.
    @inline(never)
    private func jurisdictionInPart(
        _ account: RegionObservation?, _ devices: [RegionObservation]?, at moment: Instant?,
        under compiled: CompiledRule
    ) -> Jurisdiction {
        let now = moment?.milliseconds ?? .max
        let table = compiled.permission
        let own = account.map { knownLaw($0, moment) } ?? 0
        var strictest = own
        for device in devices ?? [] { strictest = max(strictest, knownLaw(device, moment)) }
        var known: PermissionRule?
        var seenLast = PermissionRule.noneNeeded
        func ask(_ place: RegionObservation, _ law: UInt16, always: Bool) {
            let mapped = self.law(place.code)
            let row = row(of: place.code, for: compiled, at: now)
            guard
                let rule = row
                    ?? (always && mapped != 0 || law != 0 && law == strictest
                        ? table[regime(mapped)] : nil)
            else { return }
            if law == 0 { seenLast = max(seenLast, rule) } else { known = max(known ?? rule, rule) }
        }
        if let account { ask(account, own, always: true) }
        for device in devices ?? [] { ask(device, knownLaw(device, moment), always: false) }
        let knownRule = known ?? table.gdpr
        var rule = max(knownRule, seenLast, table.gdpr)
        if account == nil || devices == nil {
            rule = max(rule, max(table.ukGDPR, table.gdprLike, table.other))
            for row in rows where row.applies(to: compiled, at: now) { rule = max(rule, row.rule) }
        }
        return Jurisdiction(
            regime: .gdpr, isKnown: false, isStrictForWantOfRegion: strictest != gdpr, rule: rule,
            knownRule: knownRule, allowsCodeText: allowsCodeText(account, at: moment, under: compiled))
    }

    /// Who keeps the account answers to the regulator of its region, wherever its owner's phone is. The region that was told
    /// last counts however old the word is: what it forbids it forbids still.
    @inline(__always)
    private func allowsCodeText(
        _ account: RegionObservation?, at moment: Instant?, under compiled: CompiledRule
    ) -> Bool {
        guard compiled.flags.contains(.codeText), let account, let moment else { return false }
        return isCodeTextAllowed(in: account.code, at: moment.milliseconds)
    }

    @inline(never)
    private func isCodeTextAllowed(in region: RegionCode, at now: Int64) -> Bool {
        let rows = codeTexts[region.packed] ?? codeTexts[region.country.packed]
        return rows?.contains { $0.contains(now) } ?? false
    }

    /// The rule of the row for a region, a subdivision's before its country's.
    @inline(__always)
    private func row(of region: RegionCode, for compiled: CompiledRule, at now: Int64) -> PermissionRule? {
        entry(region) & Self.kind(compiled.channel, compiled.category) == 0
            ? nil : writtenRow(of: region, for: compiled, at: now)
    }

    @inline(never)
    private func writtenRow(
        of region: RegionCode, for compiled: CompiledRule, at now: Int64
    ) -> PermissionRule? {
        if let rule = writtenRow(of: region.packed, for: compiled, at: now) { return rule }
        let country = region.country.packed
        return country == region.packed ? nil : writtenRow(of: country, for: compiled, at: now)
    }

    private func writtenRow(of region: UInt64, for compiled: CompiledRule, at now: Int64) -> PermissionRule? {
        // The first row of the region: they are sorted by it.
        var (low, high) = (0, rows.count)
        while low < high {
            let middle = (low + high) / 2
            if rows[middle].region < region { low = middle + 1 } else { high = middle }
        }
        while low < rows.count, rows[low].region == region {
            if rows[low].applies(to: compiled, at: now) { return rows[low].rule }
            low += 1
        }
        return nil
    }
}
