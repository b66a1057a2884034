import GateVocabulary
import GateRecords

/// Where one message stands between its decision and its end, as far as what happens to it next depends on that.
///
///     waiting ── given ──→ under way ── taken, refused ──→ gone
///        ↑                  │     │                         ↑
///        └─ recalled, busy ─┘     └─ no answer ─→ in doubt ─┘
///
/// A value without a store or a clock: ``after(_:)`` answers what an event asks for, and ``StepContext`` carries it out
/// (decision SG-0038).
struct OutboxState: Hashable, Sendable {
    enum Phase: CaseIterable, Sendable, Hashable {
        /// In the store alone: the hop does not have it.
        case waiting
        /// Given to the relay, and no result is known.
        case underWay
        /// A hand-over ended without a known result, so the hop may have it.
        case inDoubt
        /// Ended with an entry of its own, or erased with its person.
        case gone
    }

    /// What is done with a message on its way, should the hop turn out not to have it.
    enum Pending: CaseIterable, Sendable, Hashable {
        /// The message is handed over again.
        case retry
        /// The person changed meanwhile: the message is decided again.
        case decision
        /// The caller cancelled the send: the message is withdrawn.
        case cancellation
    }

    var phase: Phase
    var content: OutboxRecord.State
    var pending: Pending

    /// What an event asks for: every event in every phase, and none by default.
    func after(_ event: OutboxEvent) -> OutboxAction {
        switch (event, phase) {
        // The entry that ended it says what became of it. Whatever is heard later would contradict that.
        case (_, .gone): return .nothing

        case (.turn(let isFresh), .waiting):
            if pending == .cancellation { return .withdraw(.cancelled) }
            switch content {
            case .deferred: return .compose
            case .digesting: return .summarise
            case .ready: return isFresh && pending == .retry ? .handOver : .decide(.old)
            }
        case (.turn, .underWay), (.turn, .inDoubt):
            // The age of its decision does not matter: deciding against what the hop may have cannot call it back.
            if pending == .cancellation { return .giveUp(.cancelled) }
            // Only composed content is given to the relay, so this row contradicts itself.
            if content != .ready { return .giveUp(.damaged) }
            return pending == .decision ? .decide(.old) : .handOver
        case (.expired, .waiting): return .withdraw(cause(orElse: .expired))
        case (.expired, .underWay), (.expired, .inDoubt): return .giveUp(cause(orElse: .expired))
        case (.recipientMissing, .waiting): return .withdraw(.erased)
        case (.recipientMissing, .underWay), (.recipientMissing, .inDoubt): return .giveUp(.erased)
        case (.destinationMissing, .waiting): return .withdraw(.destinationRemoved)
        case (.destinationMissing, .underWay), (.destinationMissing, .inDoubt):
            return .giveUp(.destinationRemoved)
        case (.given, .waiting): return .attempt(.underWay)
        // Tried by a process that ended before it knew the result.
        case (.given, .underWay), (.given, .inDoubt): return .attempt(.inDoubt)

        case (.recalled, .waiting), (.recalled, .underWay): return .keep(.waiting)
        case (.recalled, .inDoubt): return .keep(.inDoubt)
        case (.neverTaken, .waiting), (.neverTaken, .underWay): return waitingAgain
        // A message that an earlier try may have delivered cannot be called back.
        case (.neverTaken, .inDoubt): return .keep(.inDoubt)
        case (.taken, .waiting), (.taken, .underWay), (.taken, .inDoubt): return .end(.handedOver)
        case (.refused, .waiting), (.refused, .underWay), (.refused, .inDoubt): return .end(.refusedByHop)
        case (.failed(.busy, let mayRetry), .waiting), (.failed(.busy, let mayRetry), .underWay),
            (.failed(.misconfigured, let mayRetry), .waiting),
            (.failed(.misconfigured, let mayRetry), .underWay),
            (.failed(.notWritten, let mayRetry), .waiting), (.failed(.notWritten, let mayRetry), .underWay):
            // The hop does not have the message: only the gateway has it again.
            if mayRetry { return waitingAgain }
            return pending == .cancellation ? .withdraw(.cancelled) : .end(.expiredUnsent)
        case (.failed(.ambiguous, let mayRetry), .waiting), (.failed(.ambiguous, let mayRetry), .underWay),
            (.failed(_, let mayRetry), .inDoubt):
            // An earlier try may have got through, whatever the last one says.
            return mayRetry && pending != .cancellation
                ? .keep(.inDoubt) : .giveUp(cause(orElse: .expired))

        case (.unrepeatable, .waiting), (.unrepeatable, .underWay), (.unrepeatable, .inDoubt):
            return .giveUp(cause(orElse: .unrepeatable))

        case (.cancelled, .waiting): return .withdraw(.cancelled)
        case (.cancelled, .underWay), (.cancelled, .inDoubt): return .remember(.cancellation)
        case (.acknowledged, .waiting): return .withdraw(.acknowledged)
        case (.acknowledged, .underWay), (.acknowledged, .inDoubt): return .remember(.decision)
        case (.recipientChanged(let cause), .waiting): return .decide(cause)
        case (.recipientChanged, .underWay), (.recipientChanged, .inDoubt): return .remember(.decision)
        // A message that is not composed yet is decided when it is due anyway, and its time in a summary counts from `decidedAt`.
        case (.restored, .waiting): return content == .ready ? .remember(.decision) : .nothing
        case (.restored, .underWay), (.restored, .inDoubt): return .remember(.decision)
        case (.destinationRemoved, .waiting): return .withdraw(.destinationRemoved)
        case (.destinationRemoved, .underWay), (.destinationRemoved, .inDoubt): return .nothing
        case (.erased, .waiting): return .withdraw(.erased)
        case (.erased, .underWay), (.erased, .inDoubt): return .giveUp(.erased)

        case (.decidedAgain(.keep), .waiting): return .confirm
        case (.decidedAgain(.waits(let until)), .waiting): return .postpone(until: until)
        case (.decidedAgain(.withdraw), .waiting): return .withdrawAsDecided
        case (.decidedAgain(.keep), .underWay), (.decidedAgain(.keep), .inDoubt),
            (.decidedAgain(.waits), .underWay), (.decidedAgain(.waits), .inDoubt):
            return .handOver
        case (.decidedAgain(.withdraw), .underWay), (.decidedAgain(.withdraw), .inDoubt):
            return .giveUpAsDecided

        case (.composed(let outcome), .waiting):
            switch (content, outcome) {
            // A composed row does not hold its params any more, so it is not composed again.
            case (.ready, _): return .nothing
            case (.deferred, .forward), (.deferred, .defer), (.deferred, .digest): return .replace
            case (.digesting, .forward): return .replace
            case (.digesting, .defer), (.digesting, .digest): return .keepDigesting
            case (.deferred, .suppress), (.deferred, .reject): return .withdrawAsDecided
            case (.digesting, .suppress), (.digesting, .reject): return .withdrawAsDecided
            }
        case (.composed, .underWay), (.composed, .inDoubt): return .nothing
        case (.summarised, .waiting): return content == .digesting ? .close : .nothing
        case (.summarised, .underWay), (.summarised, .inDoubt): return .nothing
        }
    }

    /// A message that the hop does not have waits on, unless what happened meanwhile ends it.
    private var waitingAgain: OutboxAction {
        switch pending {
        case .retry: .keep(.waiting)
        case .decision: .decide(.old)
        case .cancellation: .withdraw(.cancelled)
        }
    }

    /// Why the message goes no more. A cancellation ends it whatever its time.
    private func cause(orElse other: WithdrawalCause) -> WithdrawalCause {
        pending == .cancellation ? .cancelled : other
    }
}

/// What happens to a message of the outbox.
enum OutboxEvent: Hashable, Sendable {
    /// The message is due, and its time is not over. A decision that is not fresh is made again before the message goes.
    case turn(isFresh: Bool)
    /// The message is due, and its time is over.
    case expired
    /// The person is not known any more.
    case recipientMissing
    /// The destination is gone, or has nothing that a message could be handed over to.
    case destinationMissing
    /// The message goes to the relay.
    case given

    /// The offer was taken back before the relay took it.
    case recalled
    /// The relay gave the message back without a try.
    case neverTaken
    /// The hop has the message.
    case taken
    /// The hop will never take the message.
    case refused
    /// The hop did not take the message, or it is not known whether it did. Without a retry the time of the message is over
    /// before the next try.
    case failed(HandOverObstacle, mayRetry: Bool)
    /// The hop may have the message, and a second copy would do harm.
    case unrepeatable

    /// The caller cancelled the send.
    case cancelled
    /// The event that the message tells need not be told any more.
    case acknowledged
    /// Something that decisions look at is not as it was, for the person as a whole.
    case recipientChanged(WithdrawalCause)
    /// The store came back from the trail, which does not say what was learned about the person meanwhile.
    case restored
    case destinationRemoved
    /// The person is being erased.
    case erased

    case decidedAgain(DecidedAgain.Disposition)
    /// A message that is not composed yet was decided as if it had just come in.
    case composed(Outcome)
    /// A summary took the message in.
    case summarised
}

/// What is to be done with a message of the outbox after an event.
enum OutboxAction: Hashable, Sendable {
    case nothing
    /// The row goes on, in this phase.
    case keep(OutboxState.Phase)
    /// The row goes on, and this is done should the hop not have the message.
    case remember(OutboxState.Pending)
    /// The row leaves with an `unsent` entry. The hop does not have the message.
    case withdraw(WithdrawalCause)
    /// The row leaves with a `delivery` entry that says what the hop made of the message.
    case end(HandOver)
    /// The row leaves with a `delivery` entry that the hop may have the message; an offer of it is taken back.
    case giveUp(WithdrawalCause)

    /// The message may go now.
    case handOver
    /// A try is marked before it begins.
    case attempt(OutboxState.Phase)
    /// The message waits, and is decided again at once.
    case decide(WithdrawalCause)
    case compose
    case summarise

    /// The new decision lets the message go.
    case confirm
    case postpone(until: Instant)
    /// The new decision refuses the message: the row leaves with a `redecision` entry.
    case withdrawAsDecided
    /// The new decision refuses the message, and the hop may have it: as ``giveUp(_:)``, with the decision's reason.
    case giveUpAsDecided
    /// The message that was composed takes the place of the row.
    case replace
    /// The row goes on waiting for a summary.
    case keepDigesting
    /// The row leaves: the entry of the summary tells what became of the message.
    case close

    /// Whether the action reads the person of the message as they are now.
    var needsRecipient: Bool {
        switch self {
        case .handOver, .decide, .compose, .summarise: true
        case .nothing, .keep, .remember, .withdraw, .end, .giveUp, .attempt: false
        case .confirm, .postpone, .withdrawAsDecided, .giveUpAsDecided, .replace, .keepDigesting, .close:
            false
        }
    }
}

extension OutboxState {
    init(_ row: borrowing OutboxRecord) {
        phase = row.mayHaveArrived ? .inDoubt : row.attemptedAt == nil ? .waiting : .underWay
        content = row.state
        pending = row.isCancelled ? .cancellation : row.decidedAt == .longAgo ? .decision : .retry
    }
}

extension OutboxRecord {
    /// Changes what says in which phase it is.
    mutating func move(to phase: OutboxState.Phase) {
        switch phase {
        case .waiting: attemptedAt = nil
        case .inDoubt: mayHaveArrived = true
        case .underWay, .gone: preconditionFailure("no row goes on as \(phase)")
        }
    }

    /// Keeps what is to be done should the hop not have it.
    mutating func remember(_ pending: OutboxState.Pending) {
        switch pending {
        case .retry: break
        case .decision: decidedAt = .longAgo
        case .cancellation: isCancelled = true
        }
    }
}
