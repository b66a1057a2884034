import BundleModel
package import CompliancePolicy
package import GateRecords
package import GateVocabulary
import SendPlanning
import WireProtocol

/// Derives what the gateway counted from the trail alone: the observations of each entry, in the order in which they
/// were made.
///
/// Keeps the messages that wait or are under way, and nothing of those that have ended, so it is as large as the
/// outbox was. Two things are in no entry, and so not in it: tries that failed and were repeated, and that a message
/// was put off because a row could not be read. The latter makes the time to accept that the trail tells longer than
/// the counted one.
package struct TrailObservations {
    private struct Waiting {
        var axes: TypeAxes
        var channel: Channel
        /// From when it could go.
        var start: Instant
        /// As in ``SendFold``.
        var stage: SendFold.Stage
    }
    private var waiting: [MessageID: Waiting] = [:]

    package init() {}

    /// Messages that the trail leaves waiting or under way.
    package var waitingCount: Int { waiting.count }

    /// Entries are given in their order, from the first.
    ///
    /// - Parameter policies: The archived bundles: a type's category and tier are those of the bundle that decided.
    /// - Returns: When the entry was recorded, and what was counted with it.
    /// - Throws: `TrailEntryError`, `EntryError`, `JSONShapeError`, `UnknownCode`, ``TrailObservationError``, or what `policies`
    ///   throws.
    package mutating func observe(
        _ bytes: [UInt8], policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> (time: Instant, kind: EntryKind, observations: [Observation]) {
        if let (_, time, send) = try Self.read(bytes, as: SendEntry.kind, SendEntry.read) {
            return (time, .send, [try observe(send, at: time, policies)])
        }
        if let (_, time, again) = try Self.read(bytes, as: RedecisionEntry.kind, RedecisionEntry.read) {
            return (time, .redecision, [try observe(again, at: time, policies)])
        }
        let entry = try TrailEntry(reading: bytes)
        return (entry.time, entry.kind, try observe(entry))
    }

    /// Reads an entry of a kind straight from its bytes; `nil` for one of another kind.
    private static func read<Entry>(
        _ bytes: [UInt8], as kind: EntryKind,
        _ body: ([UInt8]) throws(EntryError) -> (index: UInt64, time: Instant, entry: Entry)
    ) throws -> (index: UInt64, time: Instant, entry: Entry)? {
        let start = Array((kind == SendEntry.kind ? "{\"caller\":" : "{\"cause\":").utf8)
        guard bytes.starts(with: start) else { return nil }
        do throws(EntryError) {
            return try body(bytes)
        } catch .otherKind {
            return nil
        }
    }

    private static func axes(
        _ type: TypeID, under digest: PolicyDigest, _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> TypeAxes? {
        guard let policy = try policies(digest) else { throw TrailObservationError.policyUnknown(digest) }
        return policy.type(type).map { TypeAxes(category: $0.category, tier: $0.tier) }
    }

    private mutating func observe(
        _ send: SendEntry, at time: Instant, _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> Observation {
        let axes = try send.request.type.flatMap { try Self.axes($0, under: send.policy, policies) }
        for delivery in send.deliveries {
            guard let message = delivery.message, let axes else { continue }
            waiting[message] = Waiting(
                axes: axes, channel: send.request.channel, start: delivery.decision.notBefore ?? time,
                stage: SendFold.Stage(delivery.decision))
        }
        if send.isShadow {
            return .shadowed(
                reason: send.overall.reason, category: axes?.category, channel: send.request.channel)
        }
        return .decided(
            reason: send.overall.reason, type: axes, channel: send.request.channel, caller: send.caller)
    }

    private mutating func observe(
        _ again: RedecisionEntry, at time: Instant, _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> Observation {
        guard let message = waiting[again.message], let cause = WithdrawalCause(rawValue: again.cause) else {
            throw TrailObservationError.unknownMessage(again.message)
        }
        let decision = again.decision
        switch cause {
        case .summarised: waiting[again.message] = nil
        case .due where decision.outcome.isPromise:
            // Composed anew, under the bundle of its day.
            waiting[again.message]?.axes =
                try Self.axes(again.request.type, under: again.policy, policies) ?? message.axes
            waiting[again.message]?.start = decision.notBefore ?? time
            waiting[again.message]?.stage = SendFold.Stage(decision)
        case .due: waiting[again.message] = nil
        default:
            if !decision.keepsMessage(composedAs: message.stage.form) {
                waiting[again.message] = nil
            } else if decision.outcome == .defer {
                waiting[again.message]?.start = decision.notBefore ?? time
            }
        }
        return .decidedAgain(
            reason: decision.reason, category: message.axes.category, tier: message.axes.tier, cause: cause)
    }

    private mutating func observe(_ entry: TrailEntry) throws -> [Observation] {
        switch entry.kind {
        case .unsent:
            let unsent: UnsentEntry = try entry.knownBody()
            let message = try end(unsent.message)
            return [.withdrawn(try unsent.cause.name(), category: message.axes.category)]
        case .delivery:
            let delivery: DeliveryEntry = try entry.knownBody()
            let message = try end(delivery.message)
            let result: HandOver = try delivery.result.name()
            return [
                .ended(
                    result, channel: message.channel, category: message.axes.category,
                    tier: message.axes.tier,
                    waitedMilliseconds: result == .handedOver
                        ? Self.waited(message, delivery, until: entry.time) : nil)
            ]
        case .receipt: return try Observed(try entry.knownBody()).observations
        case .switchOff:
            let switchOff: SwitchOffEntry = try entry.knownBody()
            return [switchOff.observation(try switchOff.means.name())]
        case .reply:
            let reply: ReplyEntry = try entry.knownBody()
            return [.reply(try reply.why?.name() ?? .withdrawn, channel: reply.channel)]
        case .mandatoryUnreached: return [.unreached(try entry.knownBody(MandatoryUnreachedEntry.self).type)]
        case .review:
            let review: ReviewEntry = try entry.knownBody()
            return [.review(try review.cause.name(), category: try review.category.name())]
        case .drift:
            let drift: DriftEntry = try entry.knownBody()
            return [.drift(drift.record.kind, drift.record.action)]
        default: return []
        }
    }

    private mutating func end(_ message: MessageID) throws -> Waiting {
        guard let ended = waiting.removeValue(forKey: message) else {
            throw TrailObservationError.unknownMessage(message)
        }
        return ended
    }

    /// As ``OutboxRecord/waitedMilliseconds(until:)`` has it.
    private static func waited(_ message: Waiting, _ delivery: DeliveryEntry, until end: Instant) -> Int64 {
        let start = delivery.attempts <= 1 ? message.start.milliseconds : delivery.send.milliseconds
        return max(0, end.milliseconds - start)
    }
}

/// Why what the gateway counted cannot be told from its entries.
package enum TrailObservationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// No archived bundle has this digest.
    case policyUnknown(PolicyDigest)
    /// An entry is about a message that none before it speaks of.
    case unknownMessage(MessageID)

    package var description: String {
        switch self {
        case .policyUnknown(let digest):
            "no archived policy has the digest \(digest); copy the trail's `policies` folder with it"
        case .unknownMessage(let message):
            "it is about the message \(message), of which no entry before it speaks; give the trail from its first entry"
        }
    }
}
