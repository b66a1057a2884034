package import GateVocabulary
package import GateRecords

/// The stored records that facts are derived from, read on one snapshot or in a step.
package protocol RecordReading {
    /// The pseudonym and tag key of a user; `nil` for one never registered, or erased.
    func subject(of user: UserID) throws -> Subject?
    /// The same person, found by the pseudonym; `nil` once erased.
    func subject(_ id: SubjectID) throws -> Subject?
    /// The state of a person; `nil` for one of whom nothing was ever stored, and for an erased one. It does not hold the
    /// ledgers, which only grow.
    func state(of subject: SubjectID) throws -> RecipientState?
    /// The ledger of a person, oldest first by sequence; all purposes.
    func consentRecords(of subject: SubjectID) throws -> [ConsentRecord]
    func send(_ id: SendID) throws -> SendRecord?
    /// The newest forwards to this person since a moment, of real sends and of those in shadow: newest first, at most `limit`.
    func countedForwards(of subject: SubjectID, since: Instant, limit: Int) throws -> [ForwardRecord]
    /// The record of an event that was told to this person, or acknowledged; `nil` where there is none.
    func dedupeRecord(_ eventTag: Tag, to subject: SubjectID) throws -> DedupeRecord?
    /// How a duty to tell this person stands, if one is on record; see ``DutyRecord``.
    func duty(_ duty: Tag, of subject: SubjectID) throws -> DutyRecord?
    /// A small named value (policy in force, counters that survive a restart).
    func setting(_ name: String) throws -> String?
}

/// The same with the ledger of choices, which no fact is derived from and which the trail alone does not give.
package protocol HistoryReading: RecordReading {
    /// Every transition of a preference, oldest first.
    func preferenceHistory(of subject: SubjectID) throws -> [PreferenceRecord]
}

extension RecordReading {
    /// What the text of a setting says; `nil` where there is none.
    ///
    /// - Parameter damage: What is wrong with a text that `read` gives `nil` of.
    func setting<Value>(
        _ name: String, orDamaged damage: String, _ read: (String) -> Value?
    ) throws -> Value? {
        guard let text = try setting(name) else { return nil }
        guard let value = read(text) else {
            throw StoreError.damaged(table: "setting", row: name, damage)
        }
        return value
    }

    /// The newest forwards of real sends, or of those in shadow: neither takes the place of the other's.
    package func forwards(
        of subject: SubjectID, inShadow isShadow: Bool = false, since: Instant, limit: Int
    ) throws -> [ForwardRecord] {
        let counted = try countedForwards(of: subject, since: since, limit: KnownForwards.countMax)
        // Nearly always all are of one kind, and no list is copied.
        guard counted.count > limit || counted.contains(where: { $0.isShadow != isShadow }) else {
            return counted
        }
        return Array(counted.lazy.filter { $0.isShadow == isShadow }.prefix(limit))
    }

    /// Forwards to this person since a moment: this type, this category and everything, each counted apart.
    ///
    /// - Parameters:
    ///   - isShadow: Whether those of sends in shadow are counted, and no others.
    ///   - besides: A send that does not count against itself, at a second device or a second look.
    ///   - uncounted: Whether a type is not counted in everything. Security never is, whatever its type.
    package func forwardCounts(
        of subject: SubjectID, type: TypeID, typeSince: Instant?, category: Category,
        categorySince: Instant?, everythingSince: Instant? = nil, besides: SendID?,
        inShadow isShadow: Bool = false, uncounted: (TypeID) -> Bool = { _ in false }
    ) throws -> (type: Int, category: Int, everything: Int) {
        func earlier(_ one: Instant?, _ other: Instant?) -> Instant? {
            guard let one, let other else { return one ?? other }
            return min(one, other)
        }
        guard let earliest = earlier(earlier(typeSince, categorySince), everythingSince) else {
            return (0, 0, 0)
        }
        var counts = (type: 0, category: 0, everything: 0)
        let forwards = try countedForwards(of: subject, since: earliest, limit: KnownForwards.countMax)
        // A span reads each record in place; a `for` loop would copy them all for every send.
        let places = forwards.span
        for index in places.indices
        where places[index].isShadow == isShadow && (besides == nil || places[index].send != besides) {
            if let typeSince, places[index].at >= typeSince, places[index].type == type { counts.type += 1 }
            if let categorySince, places[index].at >= categorySince, places[index].category == category {
                counts.category += 1
            }
            if let everythingSince, places[index].at >= everythingSince,
                places[index].category != .security, !uncounted(places[index].type)
            {
                counts.everything += 1
            }
        }
        return counts
    }
}

extension RecordReading {
    package func recipient(_ subject: SubjectID) throws -> RecipientRecord? { try state(of: subject)?.record }
    /// Every device that is not removed, by tag.
    package func devices(of subject: SubjectID) throws -> [DeviceRecord] {
        try state(of: subject)?.devices ?? []
    }
    /// Every address that is not removed, by tag.
    package func addresses(of subject: SubjectID) throws -> [AddressRecord] {
        try state(of: subject)?.addresses ?? []
    }
    /// Keys of a device, newest first, in whatever state.
    package func deviceKeys(of subject: SubjectID, device: Tag) throws -> [DeviceKeyRecord] {
        try state(of: subject)?.keys(of: device) ?? []
    }
    /// The newest transition of every preference ever set.
    package func preferences(of subject: SubjectID) throws -> [PreferenceRecord] {
        try state(of: subject)?.preferences ?? []
    }
    package func permissionPrompts(of subject: SubjectID) throws -> [PermissionPrompt] {
        try state(of: subject)?.prompts ?? []
    }
}
