package import GateSteps
package import GateVocabulary
import KeyLifecycle
package import GateRecords
import SealedFormat

/// Holds what is stored against what the trail tells: whether the state is what happened.
///
/// Codes of pages say that the bytes are what somebody with the index key wrote. This says that they are what the entries made of
/// them: an old page or file that was put back, a withdrawal that was deleted, a consent that nobody gave, a mapping that is gone, a
/// send id that is free again. What no entry holds (names, tokens, numbers, public keys) is not compared; whether it can be
/// found is.
package struct StateAudit {
    /// One thing that is stored otherwise than it happened.
    package struct Difference: Hashable, Sendable, CustomStringConvertible {
        /// `nil` for what is no person's.
        package var subject: SubjectID?
        package var what: String

        package init(subject: SubjectID? = nil, what: String) {
            self.subject = subject
            self.what = what
        }

        package var description: String {
            (subject.map { "person \($0.hexadecimal): " } ?? "") + what
        }
    }

    private let fold: StateFold
    private let store: any StoreReading
    /// Sends from before are let go of.
    private let keptSince: Instant

    /// - Parameters:
    ///   - fold: After the newest entry that the store has.
    ///   - store: One snapshot.
    package init(_ fold: StateFold, _ store: any StoreReading, keptSince: Instant) {
        self.fold = fold
        self.store = store
        self.keptSince = keptSince
    }

    private static let pageCount = 1_000

    /// What is compared by itself. A list of one audit can be gone through by others, of later moments.
    package enum Item: Sendable {
        case person(SubjectID)
        case send(SendID)
        /// A key whose own id is of the share: one that leads to somebody who does not have it.
        case key(KeyID)
        /// The bundle that was last in force, the gateway's own keys and the keyset.
        case settings
    }

    /// What there is to compare in the share: people in the order of their pseudonyms, sends, device keys; in the first share the
    /// settings, too.
    package func items() throws -> [Item] {
        let people = Set(fold.told.people.keys).union(fold.erased)
            .union(try Self.stored(in: fold.share) { try store.people(after: $0, limit: $1) })
        let keys = try Self.stored(in: fold.share) { try store.deviceKeys(after: $0, limit: $1) }
        return people.sorted().map(Item.person) + fold.sent.keys.sorted().map(Item.send)
            + keys.map(Item.key) + (fold.share.index == 0 ? [.settings] : [])
    }

    /// What is stored otherwise than it happened.
    ///
    /// - Throws: What the store does, but for damage, which is a difference. That of a page is nobody's, because a page is shared,
    ///   and nothing is decided on what cannot be read.
    package func differences(of item: Item) throws -> [Difference] {
        switch item {
        case .person(let subject): return try isLost(subject) ? [] : differences(of: subject)
        case .send(let id):
            guard let send = fold.sent[id], send.receivedAt >= keptSince,
                fold.told.people[send.subject] != nil, try !isLost(send.subject)
            else { return [] }
            return try differences(for: send.subject) { try Self.difference(of: id, send, in: store) }
        case .key(let key):
            return try differences(for: nil) {
                _ = try store.deviceKey(key)
                return nil
            }
        case .settings:
            return try [policyDifference, keyringDifference, keysetDifference].flatMap {
                try differences(for: nil, lookingAt: $0)
            }
        }
    }

    /// Whom a user leads to and of whom nothing is stored: an erasure that was undone, or a registration that a crash ended between
    /// its two databases.
    package static func strays(
        in share: StateFold.Share, of store: any StoreReading
    ) throws -> Set<SubjectID> {
        // Whoever registers meanwhile is no stray: the mapping is looked for first, and written first.
        let mapped = try stored(in: share) { try store.mappedSubjects(after: $0, limit: $1) }
        return Set(mapped).subtracting(try stored(in: share) { try store.people(after: $0, limit: $1) })
    }

    /// The identifiers of the share that are stored.
    ///
    /// - Parameter next: Gives so many at most that come after one, in their order.
    private static func stored<Kind>(
        in share: StateFold.Share, _ next: (RandomIdentifier<Kind>?, Int) throws -> [RandomIdentifier<Kind>]
    ) throws -> [RandomIdentifier<Kind>] {
        var found: [RandomIdentifier<Kind>] = []
        var last: RandomIdentifier<Kind>? = share.lowerBound()
        while true {
            let page = try next(last, Self.pageCount)
            let own = page.prefix { share.contains($0) }
            found += own
            guard own.count == Self.pageCount else { return found }
            last = own.last
        }
    }

    /// What `look` finds of `subject`, or the damage that it meets. A row's is theirs, and a page's is nobody's.
    private func differences(for subject: SubjectID?, lookingAt look: () throws -> String?) throws
        -> [Difference]
    {
        do {
            return try look().map { [Difference(subject: subject, what: $0)] } ?? []
        } catch let error as StoreError {
            guard let damage = error.damage else { throw error }
            return [Difference(subject: damage.row == nil ? nil : subject, what: "\(damage)")]
        }
    }

    /// Whether a restore could not bring the person back.
    private func isLost(_ subject: SubjectID) throws -> Bool {
        try fold.lost.contains(subject)
            && differences(for: subject) {
                try store.subject(subject) == nil && store.state(of: subject) == nil ? nil : ""
            }.isEmpty
    }

    // MARK: People

    private func differences(of subject: SubjectID) throws -> [Difference] {
        let looks = [
            stateDifference, mappingDifference, ledgerDifference, choiceDifference, keyDifference,
            tokenDifference, addressDifference,
        ]
        // One damaged row is met by several.
        return try Set(looks.flatMap { look in try differences(for: subject) { try look(subject) } })
            .sorted { $0.what < $1.what }
    }

    private func stateDifference(of subject: SubjectID) throws -> String? {
        let nothing = RecipientState(subject)
        let stored = try store.state(of: subject)?.evidence ?? nothing
        let told = fold.told.people[subject] ?? nothing
        guard stored != told else { return nil }
        if told == nothing { return "nothing in the trail is about this person" }
        if stored == nothing { return "nothing is stored of this person" }
        let parts: [(name: String, differs: Bool)] = [
            ("recipient", stored.record != told.record), ("devices", stored.devices != told.devices),
            ("addresses", stored.addresses != told.addresses), ("device keys", stored.keys != told.keys),
            ("consents in force", stored.consentsInForce != told.consentsInForce),
            ("preferences", stored.preferences != told.preferences),
            ("permission prompts", stored.prompts != told.prompts),
            ("drift findings", stored.drifts != told.drifts),
            ("number of consent records", stored.consentCount != told.consentCount),
            ("number of choices", stored.choiceCount != told.choiceCount),
        ]
        return "\(parts.filter(\.differs).map(\.name).joined(separator: ", ")): not what the trail tells"
    }

    private func mappingDifference(of subject: SubjectID) throws -> String? {
        let isMapped = try store.subject(subject) != nil
        if fold.erased.contains(subject) {
            return isMapped ? "a user leads to this person, who was erased" : nil
        }
        return fold.told.people[subject]?.record == nil || isMapped
            ? nil : "no user leads to this person any more"
    }

    private func ledgerDifference(of subject: SubjectID) throws -> String? {
        let stored = try store.consentRecords(of: subject)
        let told = fold.told.ledgers[subject, default: []]
        guard stored.count == told.count else {
            return "the consent ledger has \(stored.count) records, the trail \(told.count)"
        }
        for (one, other) in zip(stored, told) where one.evidence != other.evidence {
            return "consent record \(one.sequence) is not what the trail tells"
        }
        return nil
    }

    private func choiceDifference(of subject: SubjectID) throws -> String? {
        guard try store.preferenceHistory(of: subject) != fold.told.choices[subject, default: []] else {
            return nil
        }
        return "the history of choices is not what the trail tells"
    }

    private func keyDifference(of subject: SubjectID) throws -> String? {
        for key in fold.told.people[subject]?.keys ?? []
        where try store.deviceKey(key.key)?.subject != subject {
            return "device key \(key.key.hexadecimal) does not lead to this person"
        }
        return nil
    }

    private func tokenDifference(of subject: SubjectID) throws -> String? {
        for device in try store.state(of: subject)?.devices ?? []
        where device.isActive && !device.token.isEmpty {
            guard try store.device(withToken: device.tokenIdentity)?.tag != device.tag else { continue }
            return "the token of device \(device.tag.hexadecimal) does not lead to it"
        }
        return nil
    }

    private func addressDifference(of subject: SubjectID) throws -> String? {
        for address in try store.state(of: subject)?.addresses ?? []
        where try !store.holders(of: AddressKey(address)).contains(subject) {
            return "address \(address.tag.hexadecimal) does not lead to this person"
        }
        return nil
    }

    // MARK: Sends and settings

    /// Whether a send is stored as the trail tells. One that cannot be read is not: ``differences(of:)`` names the damage.
    package static func isStored(
        _ id: SendID, _ told: StateFold.SentEvidence, in store: any StoreReading
    ) throws -> Bool {
        do {
            return try difference(of: id, told, in: store) == nil
        } catch let error as StoreError where error.damage != nil {
            return false
        }
    }

    private static func difference(
        of id: SendID, _ told: StateFold.SentEvidence, in store: any StoreReading
    ) throws -> String? {
        guard let stored = try store.send(id) else { return "send \(id.uuidText) is not stored" }
        guard stored.entryIndex == told.entryIndex, stored.subject == told.subject,
            stored.caller == told.caller, stored.channel == told.channel,
            stored.receivedAt == told.receivedAt, stored.isShadow == told.isShadow
        else { return "send \(id.uuidText) is not what entry \(told.entryIndex) tells" }
        guard try store.send(caller: stored.caller, idHash: stored.idHash)?.id == id else {
            return "send \(id.uuidText) is not found by its caller's id, which could be sent again"
        }
        return nil
    }

    private func policyDifference() throws -> String? {
        guard let told = fold.policyInForce else { return nil }
        guard try store.activatedPolicy()?.digest == told else {
            return "the bundle that was last in force is not \(told.text), as the trail tells"
        }
        return nil
    }

    private func keysetDifference() throws -> String? {
        guard let told = fold.keysetDigest else { return nil }
        guard try store.keysetNote().map(StepContext.digest(of:)) == told else {
            return "the keyset in force is not the one that was adopted last, \(told) by the trail"
        }
        return nil
    }

    private func keyringDifference() throws -> String? {
        let (stored, told) = (try store.keyring() ?? Keyring(), fold.keyring)
        let differing = Set((stored.keys + told.keys).map(\.id)).sorted().filter {
            stored[$0]?.state != told[$0]?.state || stored[$0]?.purpose != told[$0]?.purpose
        }
        guard let id = differing.first else { return nil }
        func name(_ key: GatewayKey?) -> String { key.map { "`\($0.state.rawValue)`" } ?? "unknown" }
        return "gateway key `\(id)` is \(name(stored[id])), and \(name(told[id])) by the trail"
    }
}

extension ConsentRecord {
    /// The same record as the trail alone tells it.
    fileprivate var evidence: ConsentRecord {
        var record = self
        record.id = ""
        record.entryIndex = 0
        return record
    }
}

extension Engine {
    /// Switches marketing off for a person of whom is stored what did not happen (``StateAudit``). The next pass does it again,
    /// where they switched it on and the difference is still there.
    ///
    /// - Parameter ends: How long the person's ledgers are; the choices are appended after them.
    package func closeMarketing(
        of subject: SubjectID, behind ends: LedgerEnds, finished: @escaping @Sendable (EngineFailure?) -> Void
    ) {
        submit(in: .general, scans: true, finished: finished) { batch in
            for channel in Channel.allCases {
                do {
                    try batch.step { try $0.closeMarketing(channel, of: subject, behind: ends, at: $0.now()) }
                } catch let error as StoreError where error.damage != nil {
                    // Nothing is decided on what cannot be read.
                    continue
                }
            }
        }
    }
}
