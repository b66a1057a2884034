package import GateVocabulary

/// Something that a step did, for the metrics. Counted once the step is durable, so that nothing is counted that is
/// not in the trail.
///
/// Its values are closed lists, a registered name of the bundle and times; the type has no place for personal data.
package enum Observation: Hashable, Sendable {
    /// A send was decided, all its destinations together: the outcome and reason of its answer and of its entry.
    ///
    /// - type: What the registry says of it; `nil` for a type that is in no bundle.
    case decided(reason: Reason, type: TypeAxes?, channel: Channel, caller: CallerName)
    /// A send was decided in shadow.
    ///
    /// - category: `nil` for a type that is in no bundle.
    case shadowed(reason: Reason, category: Category?, channel: Channel)
    /// A message that waits was decided again.
    case decidedAgain(reason: Reason, category: Category, tier: Tier, cause: WithdrawalCause)
    /// A message was taken out without being handed over and without being decided again.
    case withdrawn(WithdrawalCause, category: Category)
    /// The hand-over of a message ended.
    ///
    /// - waitedMilliseconds: From the moment it could go; `nil` where that is not known.
    case ended(
        HandOver, channel: Channel, category: Category, tier: Tier, waitedMilliseconds: Int64?)
    /// A hand-over failed and is tried again.
    case retried(HandOverObstacle, channel: Channel, tier: Tier)
    /// The delivery layer or the app reported.
    case receipt(SendEventKind, category: Category?, channel: Channel)
    /// The first sight or act of a person at one destination.
    ///
    /// - afterMilliseconds: From the hand-over, or from the decision where no hand-over is on record.
    case opened(category: Category?, channel: Channel, afterMilliseconds: Int64)
    /// The first act of a person on a message at one destination, besides seeing it.
    case tapped(category: Category?, channel: Channel)
    /// A person switched notifications off.
    ///
    /// - category: What was switched off; for a switch of everything, each category that the person was sent in the
    ///   24 hours before, and `nil` when there was none.
    /// - isAfterSend: Whether a send of this category was forwarded to the person in the 24 hours before.
    case disabled(DisabledBy, category: Category?, isAfterSend: Bool)
    /// A recipient answered a text or an e-mail.
    case reply(ReplyEffect, channel: Channel)
    /// A notice that the law requires did not reach its recipient.
    case unreached(TypeID)
    /// The gateway found something that an operator has to review.
    case review(ReviewCause, category: Category)
    /// An audit found that two sides disagree, or do not any more.
    case drift(DriftKind, DriftAction)
}

/// The two axes of a type that sends are counted by.
package struct TypeAxes: Hashable, Sendable {
    package var category: Category
    package var tier: Tier

    package init(category: Category, tier: Tier) {
        self.category = category
        self.tier = tier
    }
}

/// Why a hand-over is tried again.
package enum HandOverObstacle: String, CaseIterable, Sendable, Hashable {
    /// The hop answered that it does not take it now.
    case busy
    /// The answer can only come from something that is set up wrong.
    case misconfigured
    /// Nothing was written to the hop.
    case notWritten = "not_written"
    /// The message was written to the hop and no answer came, or an answer that ends nothing.
    case ambiguous
}

/// The switch by which notifications were turned off.
package enum DisabledBy: String, CaseIterable, Sendable, Hashable {
    /// A preference of the category, or of a type of it.
    case preference
    /// The device's permission.
    case osPermission = "os_permission"
    /// The account's switch for push.
    case pushSwitch = "push_switch"
    /// A reply to a text or an e-mail that withdraws consent; every such reply is counted.
    case reply
}

/// The observations of one step. Most steps have one, for which nothing is allocated.
package struct Observations: Sendable {
    package private(set) var first: Observation?
    package private(set) var more: [Observation] = []

    mutating func append(_ observation: Observation) {
        if first == nil { first = observation } else { more.append(observation) }
    }
}

extension HopResult {
    /// Why the hand-over has to be tried again; `nil` for a result that ends it.
    var obstacle: HandOverObstacle? {
        switch self {
        case .busy: .busy
        case .misconfigured: .misconfigured
        case .notWritten: .notWritten
        case .ambiguous(_, mayRepeat: true): .ambiguous
        case .accepted, .seenBefore, .refused, .tokenGone, .ambiguous(_, mayRepeat: false): nil
        }
    }
}

extension OutboxRecord {
    /// How long the message was on its way to a hop that has taken it now.
    ///
    /// A row that was tried once could go from ``notBefore`` on: when it was decided, or when its quiet hours ended. Each
    /// failed try moves that, so one that was tried more often counts from its send, with what it was held back for.
    func waitedMilliseconds(until now: Instant) -> Int64 {
        let start = attemptCount <= 1 ? notBefore.milliseconds : send.milliseconds
        return max(0, now.milliseconds - start)
    }
}

extension SendID {
    /// Milliseconds since 1970 at which the id was made (RFC 9562 section 5.7).
    var milliseconds: Int64 { Int64(high >> 16) }
}
