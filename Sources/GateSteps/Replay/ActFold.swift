import BundleModel
import CanonicalJSON
package import CompliancePolicy
package import GateVocabulary
import KeyLifecycle
import OpenSSLCrypto
import GateRecords
import SealedFormat
import WireProtocol

/// What the trail tells besides people and sends, that an act is judged by: the bundle in force, the notices that were shown,
/// and who proposed what only two callers can do.
struct ActFold {
    /// Of the newest `start` or `policy` entry.
    private(set) var policy: CompiledPolicy?
    /// Whether the newest such entry names a bundle that is not in the archive.
    private(set) var isPolicyUnknown = false
    /// Texts and scopes of every notice that was in force, under the names of the store's settings.
    private(set) var notices: [String: String] = [:]
    /// From a `restore` entry to the next start. Meanwhile the gateway itself removes what it has no private values of, and
    /// withdraws what may have been withdrawn.
    private(set) var isRestoring = false
    /// Callers that some bundle in force let begin a drift run. A run goes on under the bundle that comes after it.
    private(set) var driftCallers: Set<CallerName> = [.gateway]
    /// By whom, and in which state of the key, its destruction was proposed.
    private(set) var deviceKeyProposals: [KeyID: (state: String, by: GatewayKey.Proposal)] = [:]
    private(set) var gatewayKeyProposals: [String: (event: String, by: GatewayKey.Proposal)] = [:]
    private(set) var keysetProposal: (digest: String, by: GatewayKey.Proposal)?
    private(set) var keysetVersion = 0
    /// The entry before; the alarm of a duty that reached nobody comes between the end of a message and what the provider said
    /// of it, and is passed over.
    private var newest: TrailEntry?

    enum Answered: Hashable {
        /// The message of a destination ended with what the hop answered: what the provider said may follow, if it agrees.
        case ended(SendID, Tag, HandOver)
        /// The provider said that the token of a device is gone: the device may be taken out of use.
        case tokenGone(SubjectID, Tag)
    }

    mutating func begin(under next: CompiledPolicy?) {
        policy = next
        isPolicyUnknown = next == nil
        guard let next else { return }
        notices.merge(noticeSettings(of: next)) { old, _ in old }
        driftCallers.formUnion(next.bundle.callers.filter { $0.value.grants.contains(.driftRun) }.keys)
    }

    mutating func apply(
        _ entry: TrailEntry, policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        if entry.kind != .mandatoryUnreached { newest = entry }
        switch entry.kind {
        case .start:
            isRestoring = false
            begin(under: try policies(entry.knownBody(StartEntry.self).policy))
        case .policy: begin(under: try policies(entry.knownBody(PolicyEntry.self).policy))
        case .restore: isRestoring = true
        case .deviceKey:
            let key: DeviceKeyEntry = try entry.knownBody()
            let isProposal = key.event?.known() == PersonChange.KeyTransition.Event.proposeDestruction
            deviceKeyProposals[key.key] =
                isProposal ? (key.state, .init(caller: key.caller, at: entry.time)) : nil
        case .gatewayKey:
            let key: GatewayKeyEntry = try entry.knownBody()
            let proposed = key.change.event.known(KeyTransition.Event.self).flatMap(Self.proposed)
            gatewayKeyProposals[key.change.key] = proposed.flatMap { event in
                key.caller.map { (event.rawValue, .init(caller: $0, at: entry.time)) }
            }
        case .keyset:
            let keyset: KeysetEntry = try entry.knownBody()
            if keyset.event == KeysetEntry.proposed {
                keysetProposal = (keyset.digest, .init(caller: keyset.caller, at: entry.time))
            } else {
                keysetProposal = nil
                keysetVersion = keyset.version
            }
        default: break
        }
    }

    /// What the gateway itself may record next of a message; `nil` where the entry before says nothing of one.
    func answered() throws -> Answered? {
        guard let entry = newest else { return nil }
        switch entry.kind {
        case .delivery:
            let ended: DeliveryEntry = try entry.knownBody()
            return try .ended(ended.send, ended.destination, ended.result.name())
        case .receipt:
            let receipt: ReceiptEntry = try entry.knownBody()
            guard receipt.caller == .gateway, receipt.event.known() == ReceiptBody.Event.tokenGone else {
                return nil
            }
            return receipt.subject.map { .tokenGone($0, receipt.destination) }
        default: return nil
        }
    }

    private static func proposed(by event: KeyTransition.Event) -> KeyTransition.Event? {
        switch event {
        case .proposePromotion: .promote
        case .proposeDestruction: .destroy
        default: nil
        }
    }
}

// MARK: Judging entries

extension EvidenceFold {
    /// Holds an entry of a person's or a caller's act against the rules that its request had to pass: under the bundle in
    /// force, with what the entries before it tell. Call it before the entry is applied.
    ///
    /// Not judged is what no entry holds (handbook, "Verifying").
    ///
    /// - Returns: `nil` where the gate would have taken it, and for an entry that is no such act.
    package func objection(
        to bytes: [UInt8], policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> ActObjection? {
        let entry = try TrailEntry(reading: bytes)
        guard entry.kind == .imported else { return try objection(to: entry, policies: policies) }
        let read: ImportEntry = try entry.knownBody()
        if let objection = try objectionToImport(by: read.caller, at: entry.time) { return objection }
        var fold = alone(read.subject)
        for part in try entry.parts() {
            if let objection = try fold.objection(to: part, policies: policies) { return objection }
            try fold.apply(part, bytes, policies: policies)
        }
        return nil
    }

    private func objectionToImport(by caller: CallerName, at now: Instant) throws -> ActObjection? {
        if acts.isPolicyUnknown { return nil }
        guard let policy = acts.policy else { return ActObjection.noPolicy }
        do {
            try ActRules(policy: policy, known: self, now: now).require(.importPerson, of: caller)
            return nil
        } catch let refusal as Problem {
            return ActObjection(refusal)
        }
    }

    private func objection(
        to entry: TrailEntry, policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> ActObjection? {
        do {
            if let refusal = owed.objection(to: entry) { throw refusal }
            switch entry.kind {
            case .start: try judgeStart(try entry.knownBody(), at: entry.time, policies)
            case .policy: try judge(try entry.knownBody(PolicyEntry.self), at: entry.time, policies)
            default:
                guard let rules = try rules(for: entry) else { return nil }
                try judge(entry, by: rules)
                try requireBegun(entry)
            }
            return nil
        } catch let refusal as Problem {
            return ActObjection(refusal)
        } catch let objection as ActObjection {
            return objection
        }
    }

    /// Refuses a consent or a choice that neither goes on with an act nor begins one.
    private func requireBegun(_ entry: TrailEntry) throws {
        guard entry.kind == .consent || entry.kind == .preference, !acts.isRestoring, !owed.goOn(with: entry),
            entry.members["source"] != .string(PreferenceSource.driftAudit.rawValue)
        else { return }
        let line = OwedEntries.Line(entry)
        guard try readings(of: entry).contains(where: { $0.first == line }) else {
            throw Problem(
                .wrongState,
                detail: "\(line.text) is of an act, and the entry that the act begins with is not before it")
        }
    }

    /// - Returns: `nil` where nothing can be judged, which is said of the entry that began it.
    private func rules(for entry: TrailEntry) throws -> ActRules? {
        if acts.isPolicyUnknown { return nil }
        guard let policy = acts.policy else { throw ActObjection.noPolicy }
        return ActRules(policy: policy, known: self, now: entry.time)
    }
}
