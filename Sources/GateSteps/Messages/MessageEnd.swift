import GateRecords
package import GateVocabulary

/// How a message left the outbox: what ended it, and what is known of whether the next hop has it.
///
/// The event of `GET /v1/events` and its reason, from which the sentence follows, depend on this value alone. The gateway that
/// ends a message makes it from what happened, and a restore makes the same one from the entry (decision SG-0051).
package enum MessageEnd: Hashable, Sendable {
    /// Why a message goes no more.
    package enum Why: Hashable, Sendable {
        case cause(WithdrawalCause)
        /// The message was decided again, and this refused it.
        case decision(Reason)

        /// The event's reason, and `cause` of the entry.
        package var code: String {
            switch self {
            case .cause(let cause): cause.rawValue
            case .decision(let reason): reason.rawValue
            }
        }

        /// - Parameter code: `expired` is a cause and a reason, and both say the same.
        package init?(code: String) {
            if let cause = WithdrawalCause(rawValue: code) {
                self = .cause(cause)
            } else if let reason = Reason(rawValue: code) {
                self = .decision(reason)
            } else {
                return nil
            }
        }
    }

    /// The hop answered for good, or nothing is tried any more. `why` stands beside ``HandOver/ambiguous`` alone, and is `nil`
    /// there where the entry does not say it.
    case tried(HandOver, why: Why?)
    /// The hop does not have the message and does not get it.
    case unsent(Why)
    /// The message is told by the summary of this send; `nil` where the entry does not say which.
    case summarised(into: SendID?)

    package var kind: SendEventKind {
        switch self {
        case .tried(.handedOver, _): .handedOver
        case .tried(.refusedByHop, _): .refusedByHop
        case .tried(.expiredUnsent, _): .expiredUnsent
        case .tried(.ambiguous, _): .ambiguous
        case .unsent: .withdrawn
        case .summarised: .summarised
        }
    }

    package var reason: String? {
        switch self {
        case .tried(.ambiguous, let why): why?.code
        case .tried: nil
        case .unsent(let why): why.code
        case .summarised(let summary): summary?.uuidText
        }
    }

    /// Whether nothing is left to tell, though the message did not go.
    package var settlesDedupe: Bool {
        if case .unsent(.cause(let cause)) = self { cause.settlesDedupe } else { false }
    }
}

extension MessageEnd {
    /// - Throws: `UnknownCode` of a result that this build does not know.
    init(_ entry: DeliveryEntry) throws(UnknownCode) {
        self = .tried(
            try entry.result.name(HandOver.self), why: entry.cause.flatMap { Why(code: $0.text) })
    }

    /// - Throws: `UnknownCode` of a cause that this build does not know.
    init(_ entry: UnsentEntry) throws(UnknownCode) { self = .unsent(.cause(try entry.cause.name())) }
}

extension EventRecord {
    /// The event that ends one message.
    init(_ end: MessageEnd, of row: OutboxRecord, at now: Instant) {
        self.init(
            caller: row.request.caller, send: row.send, subject: row.subject, event: end.kind,
            destination: row.destination, at: now, reason: end.reason)
    }
}
