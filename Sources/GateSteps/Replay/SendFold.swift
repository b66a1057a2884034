import GateVocabulary
import GateRecords
import SendPlanning

/// The state of sends as the trail alone tells it: what each told its recipient, and whether anything of it can still
/// arrive.
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
        let eventTag: Tag?
        let destinations: [Tag]
        let isShadow: Bool
        /// Messages that wait or are under way.
        var messages: [MessageID: Stage] = [:]
        var mayHaveArrived = false
    }

    /// How far a message is.
    enum Stage {
        /// Composed when its time comes.
        case deferred
        case composed(BodyForm?)

        init(_ decision: Decision) {
            self = decision.outcome == .forward ? .composed(decision.form) : .deferred
        }

        var form: BodyForm? { if case .composed(let form) = self { form } else { nil } }
    }

    /// How a message left the outbox.
    enum Ending {
        case mayHaveArrived
        case cameToNothing
        /// The send did not go, and there is nothing left to tell.
        case settled
    }

    private(set) var sends: [SendID: Sent] = [:]
    /// Of sends to people that nobody had registered.
    private var callersToNobody: [SendID: CallerName] = [:]
    private var dedupe: [SubjectID: [Tag: DedupeRecord]] = [:]

    /// Who asked for a send; `nil` where there was none of this id.
    func caller(of send: SendID) -> CallerName? { sends[send]?.caller ?? callersToNobody[send] }

    /// Whether a message of the send waits or is under way.
    func waits(_ message: MessageID, of send: SendID) -> Bool { sends[send]?.messages[message] != nil }

    func dedupeRecord(_ eventTag: Tag, to subject: SubjectID) -> DedupeRecord? { dedupe[subject]?[eventTag] }

    mutating func apply(_ entry: SendEntry, at time: Instant, index: UInt64) {
        guard let subject = entry.subject else {
            callersToNobody[entry.send] = entry.caller
            return
        }
        let eventTag = entry.request.eventTags[entry.request.channel]
        var sent = Sent(
            caller: entry.caller, subject: subject, type: entry.attested.type, channel: entry.request.channel,
            receivedAt: time, entryIndex: index, fallback: entry.deliveries[0].facts.fallback ?? .mismatch,
            eventTag: eventTag, destinations: entry.deliveries.compactMap(\.destination),
            isShadow: entry.isShadow)
        for delivery in entry.deliveries {
            guard let message = delivery.message else { continue }
            sent.messages[message] = Stage(delivery.decision)
        }
        sends[entry.send] = sent
        if let eventTag, entry.overall.outcome.isPromise {
            dedupe[subject, default: [:]][eventTag] = DedupeRecord(
                eventTag: eventTag, send: entry.send, at: time)
        }
    }

    /// A message that waited was decided again.
    mutating func apply(_ entry: RedecisionEntry) {
        guard let known = sends[entry.send]?.messages[entry.message] else { return }
        let decision = entry.decision
        switch WithdrawalCause(rawValue: entry.cause) {
        case .summarised: end(entry.message, of: entry.send, .mayHaveArrived)
        case .due where decision.outcome.isPromise:
            sends[entry.send]?.messages[entry.message] = Stage(decision)
        case .due: end(entry.message, of: entry.send, .cameToNothing)
        default:
            guard !decision.keepsMessage(composedAs: known.form) else { return }
            end(entry.message, of: entry.send, .cameToNothing)
        }
    }

    /// A message left the outbox.
    mutating func end(_ message: MessageID, of send: SendID, _ ending: Ending) {
        guard sends[send] != nil else { return }
        sends[send]?.messages[message] = nil
        switch ending {
        case .mayHaveArrived: arrived(send)
        case .cameToNothing: forgetUntold(send)
        case .settled: break
        }
    }

    mutating func arrived(_ send: SendID) { sends[send]?.mayHaveArrived = true }

    /// An event may be told again once nothing of the send that told it is left and nothing of it arrived.
    private mutating func forgetUntold(_ id: SendID) {
        guard let send = sends[id], let eventTag = send.eventTag, send.messages.isEmpty, !send.mayHaveArrived
        else { return }
        if dedupe[send.subject]?[eventTag]?.send == id { dedupe[send.subject]?[eventTag] = nil }
    }

    mutating func acknowledge(_ eventTag: Tag, of subject: SubjectID, at time: Instant) {
        dedupe[subject, default: [:]][eventTag] = DedupeRecord(eventTag: eventTag, send: nil, at: time)
    }

    /// Removes the events of an erased person. Their sends stay: no later entry has this pseudonym.
    mutating func forget(_ subject: SubjectID) { dedupe[subject] = nil }
}
