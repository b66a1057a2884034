import CanonicalJSON
package import GateVocabulary
package import KeyLifecycle
import GateRecords
import SendPlanning

/// What the trail tells that a store is held against (``StateAudit``), of the people of one share.
///
/// A trail of millions of people is read once for each share, so that memory holds one share at a time and nothing has to be kept
/// and trusted between two passes.
package struct StateFold {
    /// A range of pseudonyms, which are random: every share has about as many people as another.
    package struct Share: Hashable, Sendable {
        package let index: Int
        package let count: Int

        /// - Parameters:
        ///   - index: From 0, below `count`.
        ///   - count: At most ``countMax``.
        package init(index: Int, count: Int) {
            precondition((0..<count).contains(index) && count <= Self.countMax)
            self.index = index
            self.count = count
        }

        package static let countMax = 1 << 16
        /// People in a share. A person with a device, a consent and five sends within the retention takes some 3 KiB.
        package static let personCountMax = 50_000

        /// How many shares so many people are.
        package static func count(ofPeople count: Int) -> Int {
            min(max((count + personCountMax - 1) / personCountMax, 1), countMax)
        }

        package func contains<Kind>(_ id: RandomIdentifier<Kind>) -> Bool {
            (Int(id.high >> 32) * count) >> 32 == index
        }

        /// The identifier that all of its kind in the share come after; `nil` where that is none.
        package func lowerBound<Kind>() -> RandomIdentifier<Kind>? {
            index == 0
                ? nil
                : RandomIdentifier(high: UInt64((index << 32 + count - 1) / count) << 32 - 1, low: .max)
        }
    }

    /// What the trail tells of a send by which the stored one is known.
    package struct SentEvidence: Hashable, Sendable {
        package let caller: CallerName
        package let subject: SubjectID
        package let channel: Channel
        package let receivedAt: Instant
        package let entryIndex: UInt64
        package let isShadow: Bool
    }

    package let share: Share
    package private(set) var told = PeopleFold()
    /// Every send to somebody who was registered then, since ``keptSince``, but for those that were settled.
    package private(set) var sent: [SendID: SentEvidence] = [:]
    /// Those of ``sent`` that came since the last ``settle(_:isStored:)``.
    private var unsettled: [SendID] = []
    package var hasUnsettled: Bool { !unsettled.isEmpty }
    /// The bundle in force after the newest entry; `nil` before the first start.
    package private(set) var policyInForce: PolicyDigest?
    /// The gateway's own keys, with their states.
    package private(set) var keyring = Keyring()
    /// SHA-256 of the signed note that was adopted last, hexadecimal; `nil` before the first.
    package private(set) var keysetDigest: String?
    /// The index of the entry to apply next.
    package private(set) var next: UInt64 = 0
    private let keptSince: Instant
    /// The entry that told first of each person.
    private var firstEntries: [SubjectID: UInt64] = [:]
    /// Who was told of first in entries that a restore brought back: nobody's mapping is in the trail, so the store need not
    /// have them.
    package private(set) var lost: Set<SubjectID> = []

    /// Of ``strays``, who was erased.
    package private(set) var erased: Set<SubjectID> = []
    private let strays: Set<SubjectID>

    /// - Parameters:
    ///   - keptSince: Sends from before are let go of, so they are not held against the store.
    ///   - strays: Whom a user leads to and of whom nothing is stored. Erasures of others are not kept, which may be many times
    ///     the people there are.
    package init(
        of share: Share = Share(index: 0, count: 1), sendsSince keptSince: Instant,
        strays: Set<SubjectID> = []
    ) {
        self.share = share
        self.keptSince = keptSince
        self.strays = strays
    }

    /// Lets go of sends that are stored as the trail tells, which nothing that comes later changes: those of a month would not fit
    /// memory. One that is not stays: its person may be forgotten by a later entry.
    ///
    /// - Parameters:
    ///   - countMax: How many at most; ``hasUnsettled`` says whether more are left.
    ///   - isStored: Asked once of each send that came since.
    /// - Returns: How many it was asked of.
    @discardableResult
    package mutating func settle(
        _ countMax: Int = .max, isStored: (SendID, SentEvidence) throws -> Bool
    ) rethrows -> Int {
        let piece = unsettled.suffix(countMax)
        for id in piece {
            if let told = sent[id], try isStored(id, told) { sent[id] = nil }
        }
        unsettled.removeLast(piece.count)
        return piece.count
    }

    /// Applies the next entry.
    ///
    /// - Throws: What is wrong with an entry that cannot be read.
    package mutating func apply(_ bytes: [UInt8]) throws {
        let entry = try TrailEntry(reading: bytes)
        next = entry.index + 1
        for key in try RecordedKey.changed(by: entry) { keyring.take(key) }
        switch entry.kind {
        case .start: policyInForce = try entry.knownBody(StartEntry.self).policy
        case .policy: policyInForce = try entry.knownBody(PolicyEntry.self).policy
        case .keyset:
            let keyset = try entry.knownBody(KeysetEntry.self)
            if keyset.event == KeysetEntry.adopted { keysetDigest = keyset.digest }
        case .restore:
            let backupSize = try entry.knownBody(RestoreEntry.self).backupSize
            lost.formUnion(firstEntries.lazy.filter { $0.value >= backupSize }.map(\.key))
        default:
            try EntrySchema.version1.requireKind(of: entry)
            guard let text = entry.members["subject"]?.stringValue,
                let subject = SubjectID(hexadecimal: text), share.contains(subject)
            else { return }
            try apply(entry, bytes, of: subject)
        }
    }

    private mutating func apply(_ entry: TrailEntry, _ bytes: [UInt8], of subject: SubjectID) throws {
        switch entry.kind {
        case .send:
            guard entry.time >= keptSince else { return }
            let (index, time, send) = try SendEntry.read(bytes)
            sent[send.send] = SentEvidence(
                caller: send.caller, subject: subject, channel: send.request.channel, receivedAt: time,
                entryIndex: index, isShadow: send.isShadow)
            unsettled.append(send.send)
        case .erasure:
            told.forget(subject)
            // They went with their person. Of those that were settled none is here.
            sent = sent.filter { $0.value.subject != subject }
            firstEntries[subject] = nil
            lost.remove(subject)
            if strays.contains(subject) { erased.insert(subject) }
        default:
            for part in try entry.parts() {
                guard let (subject, change) = try PersonChange.read(part) else { return }
                if firstEntries[subject] == nil { firstEntries[subject] = entry.index }
                told.apply(change, to: subject)
            }
        }
    }
}
