import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GateRecords

/// Noes and verifications that outlive those who have a number or a mailbox (SG-0065).
///
/// A setting of the store under the keyed hash of the address. It names no person, so an erasure leaves it: a no that came by an
/// address is about everybody who is written to there later.
struct AddressHistory: Hashable, Sendable {
    /// When a reply took back all that had been agreed to there.
    var repliedAt: Instant?
    /// The newest verification by a person who removed the address since.
    private(set) var verifiedAt: Instant?
    /// The newest verification that two people had at one moment, so that it counts for neither, and that one of them removed.
    private(set) var tiedAt: Instant?
    /// The noes in the order in which they were said.
    private(set) var noes: [No] = []

    /// A no to one category, by an objection or an unsubscribe link.
    struct No: Hashable, Sendable {
        let category: GateVocabulary.Category
        /// `nil` of an objection, and of a link of which it is not known any more.
        fileprivate(set) var link: Tag?
        /// When it was said; the first use of a link that was used again while it could be taken back.
        let at: Instant
        /// The newest use of such a link, which can be taken back the longest.
        fileprivate(set) var newestAt: Instant

        fileprivate func isUndoable(at now: Instant) -> Bool {
            link != nil && UnsubscribeLink.isUndoable(from: newestAt, at: now)
        }
    }

    /// Noes at most that can be taken back.
    private static let undoableCountMax = StepContext.replyHolderCountMax

    mutating func add(_ category: GateVocabulary.Category, by link: Tag?, at now: Instant) {
        for index in noes.indices
        where !noes[index].isUndoable(at: now) || noes.count - index >= Self.undoableCountMax {
            noes[index].link = nil
        }
        if let own = noes.firstIndex(where: { link != nil && $0.category == category && $0.link == link }) {
            noes[own].newestAt = now
        } else {
            noes.append(No(category: category, link: link, at: now, newestAt: now))
        }
        // The newest no of a category stands for all others of it that nobody can take back.
        noes = noes.enumerated().filter { index, no in
            no.link != nil
                || !noes[(index + 1)...].contains { $0.link == nil && $0.category == no.category }
        }.map(\.element)
    }

    /// Takes back what a link said.
    mutating func remove(_ link: Tag) { noes.removeAll { $0.link == link } }

    mutating func addVerification(of address: AddressRecord) {
        if let tied = address.verifiedAt, tied == address.contestedAt { tiedAt = max(tiedAt ?? tied, tied) }
        verifiedAt = [verifiedAt, address.verifiedAt, address.contestedAt].compactMap(\.self).max()
    }

    /// Whether somebody had a newer verification than this and left, or the same and had not the address to themselves.
    func outdates(_ verification: Instant) -> Bool {
        verifiedAt.map { $0 > verification } == true || tiedAt == verification
    }

    /// When a category was said no to last.
    func newest(_ category: GateVocabulary.Category) -> Instant? {
        noes.filter { $0.category == category }.map(\.newestAt).max()
    }

    /// The link that can take back all that was said of a category; `nil` where there is none, or where somebody else said it too.
    func onlyLink(_ category: GateVocabulary.Category, at now: Instant) -> Tag? {
        let said = noes.filter { $0.category == category }
        return repliedAt == nil && said.count == 1 && said[0].isUndoable(at: now) ? said[0].link : nil
    }

    /// Whether a link can take its no back: in its time, and while nobody else has said the same since.
    func isUndoable(_ category: GateVocabulary.Category, by link: Tag, at now: Instant) -> Bool {
        guard let own = noes.first(where: { $0.category == category && $0.link == link }),
            own.isUndoable(at: now)
        else { return false }
        return repliedAt.map { $0 < own.at } != false
            && noes.allSatisfy { $0.category != category || $0.link == link || $0.at < own.at }
    }
}

extension AddressHistory {
    /// The setting that keeps it.
    ///
    /// - Parameter hash: See ``IndexKey/addressHash(_:)``.
    fileprivate static func setting(of hash: [UInt8]) -> String { "address \(Hexadecimal.encode(hash))" }

    /// A line for each thing: what, and when in milliseconds.
    fileprivate var text: String {
        var lines: [String] = []
        if let repliedAt { lines.append("replied \(repliedAt.milliseconds)") }
        if let verifiedAt { lines.append("verified \(verifiedAt.milliseconds)") }
        if let tiedAt { lines.append("tied \(tiedAt.milliseconds)") }
        lines += noes.map {
            "no \($0.at.milliseconds) \($0.newestAt.milliseconds) \($0.category.rawValue) \($0.link?.hexadecimal ?? "")"
        }
        return lines.joined(separator: "\n")
    }

    fileprivate init?(text: String) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            guard words.count >= 2, let at = Int64(words[1]).map(Instant.init(milliseconds:)) else {
                return nil
            }
            switch (words[0], words.count) {
            case ("replied", 2): repliedAt = at
            case ("verified", 2): verifiedAt = at
            case ("tied", 2): tiedAt = at
            case ("no", 4...5):
                guard let newest = Int64(words[2]), let category = Category(rawValue: words[3]) else {
                    return nil
                }
                let link = words.count == 5 ? Tag(hexadecimal: words[4]) : nil
                guard (link == nil) == (words.count == 4) else { return nil }
                noes.append(
                    No(category: category, link: link, at: at, newestAt: Instant(milliseconds: newest)))
            default: return nil
            }
        }
    }
}

extension RecordReading {
    /// - Parameter hash: See ``IndexKey/addressHash(_:)``.
    func history(ofAddress hash: [UInt8]) throws -> AddressHistory {
        try setting(
            AddressHistory.setting(of: hash), orDamaged: "it holds nothing of an address",
            AddressHistory.init(text:)) ?? AddressHistory()
    }
}

extension StepContext {
    func history(of address: AddressKey) throws -> AddressHistory {
        try memory.history(ofAddress: settings.index.addressHash(address))
    }

    func remember(at address: AddressKey, _ change: (inout AddressHistory) -> Void) throws {
        try remember(atAddress: settings.index.addressHash(address), change)
    }

    /// - Parameter hash: See ``IndexKey/addressHash(_:)``.
    func remember(atAddress hash: [UInt8], _ change: (inout AddressHistory) -> Void) throws {
        var history = try memory.history(ofAddress: hash)
        change(&history)
        let isEmpty = history == AddressHistory()
        memory.setSetting(AddressHistory.setting(of: hash), to: isEmpty ? nil : history.text)
    }

    /// Ends at a number or mailbox that a person has just registered what was said no to there before: what they had agreed to up
    /// to then, and what would go there without a consent. What the person agrees to there afterwards counts.
    func applyNoes(
        saidAt address: AddressKey, to subject: SubjectID, by caller: CallerName, at now: Instant
    ) throws {
        let history = try history(of: address)
        if history.repliedAt != nil {
            let everyText = policy.endsEveryText(on: address.channel, at: now)
            if try !isStopped(address, of: subject, everyText: everyText, at: now) {
                _ = try stop(address, of: subject, by: caller, at: now)
            }
        }
        for category in Category.allCases {
            guard let saidAt = history.newest(category),
                let no = try sharedNo(
                    to: category, at: address, of: subject, by: .gateway, saidAt: saidAt, at: now),
                !no.edit.person.hasAgreed(
                    to: policy.purposes(endedWith: category), at: no.choice, since: saidAt)
            else { continue }
            try choose(no.choice, on: [address.channel], in: no.edit)
            // An undo of the link gives this person back what its no took, too.
            if let link = history.onlyLink(category, at: now) { try remember([no.choice], of: link, at: now) }
        }
    }
}

extension RecipientSnapshot {
    /// Whether the person said yes, after some moment, at the place of a choice to what it would end.
    fileprivate func hasAgreed(
        to purposes: [Purpose], at choice: PreferenceRecord, since moment: Instant
    ) -> Bool {
        let isGiven = state.consentsInForce.byScope.contains { scope, consent in
            scope.channel == choice.channel && scope.address == choice.destination
                && purposes.contains(scope.purpose) && consent.state == .given && consent.moment > moment
        }
        return isGiven
            || state.preferences.contains {
                $0.scope == choice.scope && $0.channel == choice.channel && $0.state == .userOn
                    && $0.destination == choice.destination && $0.at > moment
            }
    }
}
