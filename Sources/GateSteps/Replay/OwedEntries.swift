import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import OpenSSLCrypto
import GateRecords
import SendPlanning
import WireProtocol

/// The entries that the act which stands still owes the trail: its step writes consents and choices together, and all of them follow,
/// in their order.
///
/// An entry may be right by itself and still be one of several. So the step of its request is run again over what the entries
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
            // Its step is run again for one person at a time, and whether it was news is answered for all of them.
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
        [.consent, .preference, .address].contains(entry.kind)
    }

    /// The entries left of each reading; an empty one is an act that is whole.
    private var readings: Set<[Line]> = [[]]
    private var newest: (line: Line, index: UInt64)?
    /// How many people the act that stands is of.
    private var peopleCount = 0

    /// Whether the entry is the next of the act that stands.
    func goOn(with entry: TrailEntry) -> Bool { readings.contains { $0.first == Line(entry) } }

    /// Why an entry cannot come next; `nil` where it can.
    func objection(to entry: TrailEntry) -> StepRefusal? {
        let line = Line(entry)
        guard let newest, entry.kind != .restore, !isWhole, !isBeside(line),
            !readings.contains(where: { $0.first == line }), !mayBeginAnother(line),
            let owed = readings.compactMap(\.first).map(\.text).min()
        else { return nil }
        return StepRefusal(
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

// MARK: Running steps again

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
            caller: CallerName(entry.members["caller"]?.stringValue ?? ""), now: entry.time, policy: policy)
        return try act.steps(for: change).compactMap { step in
            let lines = try lines(of: entry, under: policy, step.run)
            return lines.map {
                $0 + (step.endsInReply ? [.reply(to: step.channel, by: act.caller, at: act.now)] : [])
            }
        }
    }

    /// The entries that a step writes on the rows that the entries before tell of.
    ///
    /// - Returns: `nil` where it asks for what no entry holds, or refuses: then the entry is none of its.
    private func lines(
        of entry: TrailEntry, under policy: CompiledPolicy, _ run: (StepContext) throws -> Void
    ) throws -> [OwedEntries.Line]? {
        let memory = GateMemory()
        memory.begin(
            at: TrailTail(
                entryCount: entry.index, publishedSize: entry.index, newestTime: nil, newestClock: nil))
        let moment = Moment(
            time: .success(entry.time), reading: ClockReading(wall: entry.time, uptime: 0, boot: nil))
        do {
            let entries = try memory.step(loading: { $0.forEach { load($0, into: memory) } }) {
                let step = StepContext(
                    memory, moment: moment, policy: policy, settings: Self.settings,
                    identifiers: IdentifierPool())
                try run(step)
                return memory.change.entries
            }
            return try entries.map { try TrailEntry(reading: $0.bytes) }
                .filter(OwedEntries.begins).map(OwedEntries.Line.init)
        } catch is StepRefusal {
            return nil
        } catch is MissingRows {
            return nil
        }
    }

    /// Messages that wait are not here: their entries stand beside the act's.
    private func load(_ ask: Ask, into memory: GateMemory) {
        switch ask {
        case .subject(let id): memory.person(adding: id).subject = .success(snapshot(of: id)?.subject)
        case .state(let id): memory.person(adding: id).state = .success(people[id])
        case .consents(let id): memory.person(adding: id).consents = .success(ledgers[id, default: []])
        case .choices(let id): memory.person(adding: id).choices = .success(choices[id, default: []])
        case .forwards(let id, let since):
            // Only what is counted of an act needs them.
            memory.person(adding: id).forwards = .success(KnownForwards(since: since, records: []))
        case .messagesOfPerson(let id): memory.messagesOfPerson[id] = .success([])
        case .setting(let name): memory.settings[name] = .success(acts.notices[name])
        default: break
        }
    }

    /// A step that is run again sends nothing and looks nothing up, so its keys are empty.
    private static let settings = StepSettings(
        limits: EngineLimits(), index: IndexKey(HMACKey(emptyTagKey)),
        unsubscribe: UnsubscribeAddress(
            url: "", keys: LinkKeys(current: LinkKeys.Key(id: "", secret: emptyTagKey))),
        process: .blank)
}

/// The requests that an entry may be the first entry of.
private struct ActAgain {
    struct Step {
        var channel: Channel
        var endsInReply = false
        var run: (StepContext) throws -> Void
    }

    let person: RecipientWithLedger
    let caller: CallerName
    let now: Instant
    let policy: CompiledPolicy

    func steps(for change: PersonChange) -> [Step] {
        switch change {
        case .consent(let record): steps(for: record)
        case .preference(let choice): steps(for: choice)
        case .address(let address, let action, let replaced):
            // Whether the number or mailbox was taken back before somebody registered it is in no entry.
            [false, true].map { isTakenBack in
                Step(channel: address.channel) { step in
                    try step.record(change, of: person.subject.id, by: caller, at: now)
                    if let replaced {
                        try step.carryNoes(
                            from: replaced, to: address.tag, on: address.channel, of: person.subject,
                            by: caller, at: now)
                    }
                    guard isTakenBack, action == .registered || replaced != nil else { return }
                    _ = try step.stop(address, of: step.reloaded(person), by: caller, at: now)
                }
            }
        default: []
        }
    }

    private func steps(for record: ConsentRecord) -> [Step] {
        let append = Step(channel: record.channel) {
            _ = try $0.append(record, of: person, by: caller, at: now)
        }
        switch record.state {
        case .given, .refused, .shown: return [append]
        case .undone: return []
        case .withdrawn: break
        }
        let replies = replies(on: record.channel, from: record.address)
        guard mayRequest(.withdrawConsent),
            let given = person.consents.first(where: { $0.idTag == record.withdraws })
        else { return replies }
        let everywhere = Step(channel: record.channel) {
            _ = try $0.append(record, of: person, by: caller, at: now)
            _ = try $0.endEverywhere(record, of: given, person, at: now)
        }
        return replies + [append, everywhere]
    }

    private func steps(for choice: PreferenceRecord) -> [Step] {
        let here = Step(channel: choice.channel) {
            try $0.choose(choice, on: [choice.channel], of: person, heardAt: now)
        }
        switch choice.source {
        case .driftAudit: return [undo(choice)]
        case .stateAudit:
            return [
                Step(channel: choice.channel) {
                    // A replay counts the trail's own events, so there is nothing to raise.
                    try $0.closeMarketing(choice.channel, of: choice.subject, behind: LedgerEnds(), at: now)
                }
            ]
        case .sharedAddress: return caller == .gateway ? [here, undo(choice)] : [here]
        case .unsubscribeLink where caller == .gateway: return [here, undo(choice)]
        default: if caller == .gateway { return [undo(choice)] }
        }
        var steps = choice.source == .reply ? replies(on: choice.channel, from: choice.destination) : []
        guard mayRequest(.putPreference) else { return steps }
        steps.append(here)
        if choice.destination == nil, choice.channel == Channel.allCases[0] {
            steps.append(
                Step(channel: choice.channel) {
                    try $0.choose(
                        choice, on: Channel.allCases, isForEveryChannel: true, of: person, heardAt: now)
                })
        }
        return steps
    }

    /// A reply from each address that an entry may be about. A consent to a whole channel names none.
    private func replies(on channel: Channel, from place: Tag?) -> [Step] {
        guard mayRequest(.addReply) else { return [] }
        return person.person.addresses.filter { $0.channel == channel && (place == nil || $0.tag == place) }
            .map { address in
                Step(channel: channel, endsInReply: true) {
                    _ = try $0.stop(address, of: person, by: caller, at: now)
                }
            }
    }

    private func undo(_ choice: PreferenceRecord) -> Step {
        Step(channel: choice.channel) { step in
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
                let mute = muted.map(LinkMute.init)?.undoable(of: link, in: person, at: now, under: policy)
            else { return }
            try step.takeBack(mute, of: person, at: now)
        }
    }

    private func mayRequest(_ act: CallerAct) -> Bool {
        act.permission.isSatisfied(by: policy.grants(of: caller).contains)
    }
}
