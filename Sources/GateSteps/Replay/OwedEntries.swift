import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GateRecords
import WireProtocol

/// The entries that the act which stands still owes the trail: its step writes consents and choices together, and all of them follow,
/// in their order.
///
/// An entry may be right by itself and still be one of several. So the edit of its request is made again from what the entries
/// before it tell (``EvidenceFold/readings(of:)``). The first entry does not always tell which request it was: an objection on
/// every channel begins like one on push alone. Each such reading stands until an entry tells them apart.
struct OwedEntries {
    /// An entry without what only the gateway can make: its index, a tag, and the digest of a ledger that has such tags.
    struct Line: Hashable {
        let kind: EntryKind
        let time: Instant
        private let members: JSONObject

        init(_ entry: TrailEntry) {
            (kind, time) = (entry.kind, entry.time)
            var members = entry.members
            if kind == .consent { (members["consent"], members["previous"]) = (nil, nil) }
            // Its edit is made again for one person at a time, and whether it was news is answered for all of them.
            if kind == .reply {
                members = JSONObject(members.filter { ["caller", "channel"].contains($0.key) })
            }
            self.members = members
        }

        private init(_ kind: EntryKind, _ time: Instant, _ members: JSONObject) {
            (self.kind, self.time, self.members) = (kind, time, members)
        }

        /// The entry of a reply, which stands behind what it ended.
        static func reply(to channel: Channel, by caller: CallerName, at now: Instant) -> Line {
            Line(
                .reply, now,
                ["caller": .string(caller.text), "channel": .string(channel.rawValue)])
        }

        var subject: String? { members["subject"]?.stringValue }

        var text: String {
            let told = ["caller", "scope", "purpose", "channel", "state", "effect"].compactMap {
                members[$0]?.stringValue
            }
            return "`\(kind)` (\(told.joined(separator: ", ")))"
        }
    }

    /// Whether an entry is of the kinds that an act is held together by.
    static func begins(_ entry: TrailEntry) -> Bool {
        [.consent, .preference, .address, .device].contains(entry.kind)
    }

    /// The entries left of each reading; an empty one is an act that is whole.
    private var readings: Set<[Line]> = [[]]
    private var newest: (line: Line, index: UInt64)?
    /// How many people the act that stands is of.
    private var peopleCount = 0

    /// Whether the entry is the next of the act that stands.
    func goOn(with entry: TrailEntry) -> Bool { readings.contains { $0.first == Line(entry) } }

    /// Why an entry cannot come next; `nil` where it can.
    func objection(to entry: TrailEntry) -> Problem? {
        let line = Line(entry)
        guard let newest, entry.kind != .restore, !isWhole, !isBeside(line),
            !readings.contains(where: { $0.first == line }), !mayBeginAnother(line),
            let owed = readings.compactMap(\.first).map(\.text).min()
        else { return nil }
        return Problem(
            .wrongState,
            detail:
                "the act of entry \(newest.index) goes on with \(owed), and this is \(line.text): an entry was taken out, doubled or moved"
        )
    }

    /// - Parameter begun: What each request writes that the entry may be the first of, the entry itself included.
    mutating func follow(_ entry: TrailEntry, begun: () throws -> [[Line]]) rethrows {
        let line = Line(entry)
        // A reading that owes nothing more does not end those that do: what is written between their entries is none of them.
        if readings.contains(where: { !$0.isEmpty }), isBeside(line) { return }
        var next = Set(readings.filter { $0.first == line }.map { Array($0.dropFirst()) })
        if next.isEmpty || isWhole || mayBeginAnother(line) {
            peopleCount = mayBeginAnother(line) ? peopleCount + 1 : 1
            next.formUnion(try begun().filter { $0.first == line }.map { Array($0.dropFirst()) })
        }
        // A reply from a number of more people than one step changes is recorded by a later step.
        if peopleCount >= StepContext.replyHolderCountMax {
            next = Set(next.map { $0.last?.kind == .reply ? $0.dropLast() : $0 })
        }
        readings = next.isEmpty ? [[]] : next
        newest = (line, entry.index)
    }

    private var isWhole: Bool { readings.contains([]) }

    /// A reply ends what several people agreed to; it is recorded after all of them.
    private func mayBeginAnother(_ line: Line) -> Bool {
        guard line.kind == .consent || line.kind == .preference, line.time == newest?.line.time else {
            return false
        }
        return line.subject != newest?.line.subject
            && readings.contains { $0.count == 1 && $0[0].kind == .reply }
    }

    /// Whether the entry is about messages, or counts: what else a step of the same moment writes between the others.
    private func isBeside(_ line: Line) -> Bool {
        guard line.time == newest?.line.time else { return false }
        switch line.kind {
        case .redecision, .unsent, .delivery: return line.subject == newest?.line.subject
        case .switchOff, .review: return true
        default: return false
        }
    }
}

// MARK: Editing again

extension EvidenceFold {
    /// The entries of each request that an entry may be the first of: consents and choices, and a registered address before them.
    ///
    /// Empty for an entry that begins no such act, and for one that the gateway writes by itself: after an audit of
    /// subscriptions, and from a restore to the next start.
    func readings(of entry: TrailEntry) throws -> [[OwedEntries.Line]] {
        guard OwedEntries.begins(entry), let policy = acts.policy, !acts.isPolicyUnknown, !acts.isRestoring,
            let (subject, change) = try PersonChange.read(entry), let person = snapshot(of: subject)
        else { return [] }
        let act = ActAgain(
            person: RecipientWithLedger(person: person, consents: ledgers[subject, default: []]),
            choices: choices[subject, default: []],
            caller: CallerName(entry.members["caller"]?.stringValue ?? ""), now: entry.time, policy: policy)
        return try act.requests(for: change).map { request in
            var edit = PersonEdit(act.person, policy: policy, at: act.now)
            request.apply(&edit)
            let lines = try edit.changes.map { change, caller in
                let again = change.entry(of: subject, by: caller, at: act.now)
                return OwedEntries.Line(
                    try TrailEntry(reading: try again.bytes(index: entry.index, time: act.now)))
            }
            return lines + (request.replyChannel.map { [.reply(to: $0, by: act.caller, at: act.now)] } ?? [])
        }
    }
}

/// The requests that an entry may be the first entry of.
private struct ActAgain {
    struct Request {
        /// The channel of a reply, whose entry stands behind what it ended.
        var replyChannel: Channel?
        var apply: (inout PersonEdit) -> Void

        init(replyChannel: Channel? = nil, _ apply: @escaping (inout PersonEdit) -> Void) {
            (self.replyChannel, self.apply) = (replyChannel, apply)
        }
    }

    let person: RecipientWithLedger
    /// The history of the person's choices, oldest first.
    let choices: [PreferenceRecord]
    let caller: CallerName
    let now: Instant
    let policy: CompiledPolicy

    func requests(for change: PersonChange) -> [Request] {
        switch change {
        case .consent(let record): return requests(for: record)
        case .preference(let choice): return requests(for: choice)
        case .address(let address, let action, let replaced):
            // Whether the number or mailbox was taken back before somebody registered it is in no entry.
            return [false, true].map { isTakenBack in
                Request { edit in
                    edit.append(change, by: caller)
                    if let replaced {
                        _ = edit.carryNoes(from: replaced, to: address.tag, on: address.channel, by: caller)
                    }
                    if isTakenBack, action == .registered || replaced != nil {
                        _ = edit.stop(address, by: caller)
                    }
                }
            }
        case .device(let device, _, _):
            // Whose token it took is in no entry: nobody's, or that of another device of the person's, which has none any more.
            let without = person.person.devices.filter { !$0.isActive && $0.tag != device.tag }
            let others: [Tag?] = [nil] + without.map(\.tag)
            return others.map { other in
                Request { edit in
                    edit.append(change, by: caller)
                    if let other { _ = edit.carryNoes(from: other, to: device.tag, on: .push, by: caller) }
                }
            }
        default: return []
        }
    }

    private func requests(for record: ConsentRecord) -> [Request] {
        let said = Request { $0.apply(record) }
        switch record.state {
        case .given, .refused, .shown: return [said]
        case .undone: return []
        case .withdrawn: break
        }
        let replies = replies(on: record.channel, from: record.address)
        guard mayRequest(.withdrawConsent),
            let given = person.consents.first(where: { $0.idTag == record.withdraws })
        else { return replies }
        let everywhere = Request {
            $0.apply(record)
            $0.endEverywhere(record, of: given)
        }
        return replies + [said, everywhere]
    }

    private func requests(for choice: PreferenceRecord) -> [Request] {
        let here = Request { $0.choose(choice, on: [choice.channel]) }
        switch choice.source {
        case .driftAudit: return [undo(choice)]
        case .stateAudit: return [Request { $0.closeMarketing(on: choice.channel) }]
        case .sharedAddress: return caller == .gateway ? [here, undo(choice)] : [here]
        case .unsubscribeLink where caller == .gateway: return [here, undo(choice)]
        default: if caller == .gateway { return [undo(choice)] }
        }
        var requests = choice.source == .reply ? replies(on: choice.channel, from: choice.destination) : []
        guard mayRequest(.putPreference) else { return requests }
        requests.append(here)
        if choice.destination == nil, choice.channel == Channel.allCases[0] {
            requests.append(Request { $0.choose(choice, on: Channel.allCases, isForEveryChannel: true) })
        }
        return requests
    }

    /// A reply from each address that an entry may be about. A consent to a whole channel names none.
    private func replies(on channel: Channel, from place: Tag?) -> [Request] {
        guard mayRequest(.addReply) else { return [] }
        return person.person.addresses.filter { $0.channel == channel && (place == nil || $0.tag == place) }
            .map { address in
                Request(replyChannel: channel) { _ = $0.stop(address, by: caller) }
            }
    }

    private func undo(_ choice: PreferenceRecord) -> Request {
        Request { edit in
            guard let category = Category(rawValue: choice.scope) else { return }
            let link = UnsubscribeLink(
                of: person.subject, category: category, channel: choice.channel,
                destination: choice.destination ?? person.subject.tag(.device, ""))
            // The newest choice there; of any other nothing can be taken back.
            let muted = person.person.state.preferences.first {
                $0.scope == choice.scope && $0.channel == choice.channel
                    && $0.destination == choice.destination
            }
            guard
                let mute = muted.map(LinkMute.init)?.undoable(
                    of: link, in: person, after: choices, at: now, under: policy)
            else { return }
            edit.takeBack(mute)
        }
    }

    private func mayRequest(_ act: CallerAct) -> Bool {
        act.permission.isSatisfied(by: policy.grants(of: caller).contains)
    }
}
