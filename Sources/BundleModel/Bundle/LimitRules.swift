package import GateVocabulary

/// At most so many forwards in any window of so many hours.
package struct Cap: Hashable, Sendable {
    /// At least 1.
    package var count: Int
    /// 1 to 8,760, a year.
    package var windowHours: Int
    /// Where the number comes from.
    package var source: String

    package var windowSeconds: Int64 { Int64(windowHours) * 3600 }
}

/// When so many switch a category off within 24 hours of a send of it that a person has to look at what was sent.
package struct DisableSpikeRule: Hashable, Sendable {
    /// In a UTC day, at least 1.
    package var count: Int
    /// More than so many times the mean of the seven days before, at least 1.
    package var times: Int
}

/// The caps (`limits.yaml`). The type's, its category's and that over everything all apply.
///
/// What of them holds for a type is ``PolicyBundle/typeCap(of:)`` and those beside it.
package struct LimitRules: Hashable, Sendable {
    /// Over all categories of a recipient together; `nil` for none.
    package var everything: Cap?
    /// For each type of a tier that has no line of its own.
    package var tiers: [Tier: Cap]
    package var categories: [GateVocabulary.Category: Cap]
    package var types: [TypeID: Cap]
    /// `nil`: no day is ever looked at.
    package var disableSpike: DisableSpikeRule?
}

extension LimitRules {
    init(_ reader: NodeReader) {
        tiers = [:]
        categories = [:]
        types = [:]
        let members = reader.members()
        everything = members.optional(
            "everything",
            "Over all categories of a recipient together: not of security, the highest tier, a duty and what `overflow: allow` lets through."
        ).flatMap { Self.cap($0) }
        if let rows = members.optional(
            "tiers", "For each type of a tier that has no line of its own in `types`.")?.members()
        {
            for tier in Tier.allCases {
                let row =
                    tier == .critical
                    ? rows.refused(tier.rawValue)
                    : rows.optional(tier.rawValue, "For each type of the tier by itself.")
                guard let row else { continue }
                tiers[tier] = Self.cap(row)
                if tier == .critical {
                    row.problem(
                        "limits the highest tier, and no limit may silence it", hint: "remove the line")
                }
            }
            rows.refuseOthers()
        }
        if let rows = members.required("categories", "For all types of a category together.")?.members() {
            for category in GateVocabulary.Category.allCases {
                let row = rows.optional(category.rawValue, "For all types of the category together.")
                if let row { categories[category] = Self.cap(row) }
            }
            rows.refuseOthers()
        }
        let ownRows = members.optional("types", "For one type, by its id.")?.members().others(.typeIDs)
        for (key, value) in ownRows ?? [] {
            types[TypeID(key)] = Self.cap(value)
        }
        if let row = members.optional(
            "disables_after_send",
            "When so many switch a category off within 24 hours of a send of it, in one UTC day, that a review is recorded."
        )?.members() {
            disableSpike = DisableSpikeRule(
                count: row.integer(
                    "count", 1...1_000_000, hint: "a review of every single one is count: 1",
                    "At least so many."
                ),
                times: row.integer(
                    "times", 1...1_000, hint: "how many times the mean of the seven days before",
                    "More than so many times the mean of the seven days before."))
            _ = row.text("source", "Where the numbers come from.")
            row.ignoreRationale()
            row.refuseOthers()
        }
        members.ignoreRationale()
        members.refuseOthers()
    }

    /// A decision knows one count per type, one per category and one over everything, over one window each, so a list has one
    /// element. It stays a list in the format for the day facts carry more.
    private static func cap(_ reader: NodeReader) -> Cap? {
        let reader = reader.named(
            "limit",
            "One limit: a decision knows one count per type, one per category and one over everything.")
        let elements = reader.elements(countMin: 1, shownCountMax: 1)
        if elements.count > 1 {
            reader.problem(
                "has \(elements.count) limits, and one is supported",
                hint: "keep the one that matters most; a type, its category and everything may have one each")
        }
        guard let members = elements.first?.members() else {
            reader.problem("has no limit", hint: "remove the line if there is none")
            return nil
        }
        let cap = Cap(
            count: members.integer(
                "count", 1...1_000_000,
                hint: "a cap lets something through; to let nothing through, disable the type",
                "Forwards in any window, at most."),
            windowHours: members.integer(
                "window_hours", 1...Int(Retention.daysMin * 24),
                hint:
                    "a window is an hour to 31 days (744 hours) long: for so long at least it is known what was sent",
                "Hours that the window is long."),
            source: members.text("source", "Where the number comes from."))
        members.ignoreRationale()
        members.refuseOthers()
        return cap
    }
}
