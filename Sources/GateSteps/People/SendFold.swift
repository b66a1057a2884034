import GateVocabulary
import RecipientModel
import SendPlanning

/// What the trail alone tells of sends: what each told its recipient, and whether anything of it can still arrive.
struct SendFold {
    struct Sent {
        let caller: CallerName
        let subject: SubjectID
        let type: TypeID
        let channel: Channel
        let receivedAt: Instant
        let entryIndex: UInt64
        let fallback: FallbackFact
        /// What it tells on its own channel.
        let event: Tag?
        /// Messages that wait or are under way, with the form of those that are composed.
        var messages: [MessageID: BodyForm?] = [:]
        var mayHaveArrived = false
    }

    private(set) var sends: [SendID: Sent] = [:]
    private var told: [SubjectID: [Tag: ToldRecord]] = [:]

    func told(_ event: Tag, to subject: SubjectID) -> ToldRecord? { told[subject]?[event] }

    mutating func apply(_ entry: SendEntry, at time: Instant, index: UInt64) {
        guard let subject = entry.subject else { return }
        let event = entry.request.eventTags[entry.request.channel]
        var sent = Sent(
            caller: entry.caller, subject: subject, type: entry.attested.type, channel: entry.request.channel,
            receivedAt: time, entryIndex: index, fallback: entry.deliveries[0].facts.fallback ?? .mismatch,
            event: event)
        // The end of a message matters only for an event that is told once.
        for delivery in entry.deliveries where event != nil {
            guard let message = delivery.message else { continue }
            sent.messages[message] = .some(Self.form(delivery.decision))
        }
        sends[entry.send] = sent
        if let event, entry.overall.outcome.isPromise {
            told[subject, default: [:]][event] = ToldRecord(event: event, send: entry.send, at: time)
        }
    }

    /// The form of what is composed now; `nil` for what is composed later.
    private static func form(_ decision: Decision) -> BodyForm? {
        decision.outcome == .forward ? decision.form : nil
    }

    /// A message that waited was looked at again.
    mutating func apply(_ entry: RedecisionEntry) {
        guard let known = sends[entry.send]?.messages[entry.message] else { return }
        let decision = entry.decision
        switch WithdrawalCause(rawValue: entry.cause) {
        case .summarised: end(entry.message, of: entry.send, mayHaveArrived: true)
        case .due where decision.outcome.isPromise:
            sends[entry.send]?.messages[entry.message] = .some(Self.form(decision))
        case .due: end(entry.message, of: entry.send, mayHaveArrived: false)
        default:
            guard !decision.stands(forMessageOf: known) else { return }
            end(entry.message, of: entry.send, mayHaveArrived: false)
        }
    }

    /// A message left the outbox.
    mutating func end(_ message: MessageID, of send: SendID, mayHaveArrived: Bool, isSettled: Bool = false) {
        guard sends[send] != nil else { return }
        sends[send]?.messages[message] = nil
        if mayHaveArrived { arrived(send) } else if !isSettled { forgetUntold(send) }
    }

    mutating func arrived(_ send: SendID) { sends[send]?.mayHaveArrived = true }

    /// An event may be told again once nothing of the send that told it is left and nothing of it arrived.
    private mutating func forgetUntold(_ id: SendID) {
        guard let send = sends[id], send.messages.isEmpty, !send.mayHaveArrived, let event = send.event else {
            return
        }
        if told[send.subject]?[event]?.send == id { told[send.subject]?[event] = nil }
    }

    mutating func acknowledge(_ event: Tag, of subject: SubjectID, at time: Instant) {
        told[subject, default: [:]][event] = ToldRecord(event: event, send: nil, at: time)
    }

    /// Removes the events of an erased person. Their sends stay: no later entry has this pseudonym.
    mutating func forget(_ subject: SubjectID) { told[subject] = nil }
}
