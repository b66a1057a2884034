import GateVocabulary

/// Why an operation was not done. Nothing of it is remembered; the caller may try again with the same id.
package enum EngineFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// 429: the engine's queue is full.
    case overloaded
    /// 429: the outbox has reached its bound.
    case outboxFull
    /// 429: as many messages wait for the recipient as may wait for one person.
    case outboxFullForRecipient
    /// 503: the gateway is draining.
    case stopping
    /// 503: the store or the trail takes no writes; the text says what to check.
    case unavailable(String)
    /// 503: fewer bytes of disk are left than are kept free.
    case diskLow(byteCountMin: Int64)
    /// 503: a stored row that this needs cannot be read. Operators are told which; a caller is not.
    case damaged(StoredDamage)
    /// 503: the published trail is this far behind, in milliseconds.
    case trailBehind(milliseconds: Int64)
    /// 503: the clock stands before the newest entry by so many milliseconds.
    case clockWentBack(milliseconds: Int64)
    /// 503: the clock is this much further than the time since the newest entry accounts for, in milliseconds.
    case clockJumped(milliseconds: Int64)
    /// 503: the time since boot is this much less than it was at the newest entry, in the same boot.
    case uptimeWentBack(milliseconds: Int64)
    /// 503: the body of this one send could not be sealed or signed.
    case sealingFailed(String)

    /// The failure that a caller is told of for an error of a store or a step.
    package init(_ error: any Error) {
        switch error {
        case let failure as EngineFailure: self = failure
        case StoreError.unavailable(let what), StoreError.lostDurability(let what): self = .unavailable(what)
        case let error as StoreError:
            // `unavailable` and `lostDurability` are above.
            self = error.damage.map { .damaged($0) } ?? .unavailable("\(error)")
        default: self = .unavailable("\(error)")
        }
    }

    /// For the log and for readiness: everything that is known.
    package var description: String {
        if case .damaged(let damage) = self { "\(damage)" } else { detail }
    }

    /// For the caller: what is wrong and what to do, and nothing of what is stored.
    package var detail: String {
        switch self {
        case .overloaded: "the engine's queue is full; send the same id again later"
        case .outboxFullForRecipient:
            "too much waits for this recipient already; send the same id again later"
        case .outboxFull: "the next hop does not take what waits; send the same id again later"
        case .stopping: "send the same id again when the gateway is back"
        case .unavailable(let what): "\(what); nothing was recorded, send the same id again later"
        case .diskLow(let byteCountMin):
            "less than \(byteCountMin) bytes of disk are left; send the same id again later"
        case .damaged:
            "something stored that this needs is damaged; the gateway's log and `sendgate status` name it for its operator"
        case .trailBehind(let milliseconds):
            "the published trail is \(milliseconds) ms behind; send the same id again later"
        case .clockWentBack(let milliseconds):
            "the clock stands \(milliseconds) ms before the newest entry; set it right, or stop the gateway and run `sendgate clock accept`"
        case .clockJumped(let milliseconds):
            "the clock is \(milliseconds) ms ahead of the time since the newest entry; set it right, or stop the gateway and run `sendgate clock accept`"
        case .uptimeWentBack(let milliseconds):
            "the time since boot is \(milliseconds) ms less than at the newest entry, in the same boot; find out what changed it, then stop the gateway and run `sendgate clock accept`"
        case .sealingFailed(let what): "\(what); nothing was recorded, send the same id again"
        }
    }

    /// Whether the clock is what is wrong.
    package var isOfClock: Bool {
        switch self {
        case .clockWentBack, .clockJumped, .uptimeWentBack: true
        default: false
        }
    }

    /// Whether sends are refused until there is room again, while other things may still be recorded.
    package var isOfRoom: Bool {
        switch self {
        case .trailBehind, .diskLow: true
        default: false
        }
    }
}
