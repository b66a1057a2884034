package import AuditTrail
import BundleModel
import CanonicalJSON
package import CompliancePolicy
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
    /// - Throws: `TrailEntryError`, `EntryError`, ``TrailObservationError``, or what `policies` throws.
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
        _ bytes: [UInt8], as kind: String,
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
            if !decision.stands(forMessageOf: message.stage.form) {
                waiting[again.message] = nil
            } else if decision.outcome == .defer {
                waiting[again.message]?.start = decision.notBefore ?? time
            }
        }
        return .decidedAgain(
            reason: decision.reason, category: message.axes.category, tier: message.axes.tier, cause: cause)
    }

    private mutating func observe(_ entry: TrailEntry) throws -> [Observation] {
        func name<Name: RawRepresentable<String>>(_ member: String, of: Name.Type) throws -> Name {
            guard let name = entry.members[member]?.stringValue.flatMap(Name.init(rawValue:)) else {
                throw TrailObservationError.unknownName(member)
            }
            return name
        }
        switch entry.kind {
        case .unsent:
            let message = try end(entry)
            return [
                .withdrawn(
                    try name("cause", of: WithdrawalCause.self), category: message.axes.category)
            ]
        case .delivery:
            let message = try end(entry)
            let result = try name("result", of: HandOver.self)
            return [
                .ended(
                    result, channel: message.channel, category: message.axes.category,
                    tier: message.axes.tier,
                    waitedMilliseconds: result == .handedOver ? waited(message, until: entry) : nil)
            ]
        case .receipt:
            let event = try name("event", of: ReceiptBody.Event.self)
            guard let observed = Observed(event: event.fate, entry.members) else {
                throw TrailObservationError.unknownName("channel")
            }
            return observed.observations
        case .switchOff:
            let category = entry.members["category"]?.stringValue
            return [
                .disabled(
                    try name("means", of: DisabledBy.self),
                    category: try category.map { _ in try name("category", of: Category.self) },
                    isAfterSend: entry.members["send_id"] != nil)
            ]
        case .mandatoryUnreached:
            return [.unreached(TypeID(entry.members["type"]?.stringValue ?? ""))]
        case .review:
            return [
                .review(
                    try name("cause", of: ReviewCause.self), category: try name("category", of: Category.self)
                )
            ]
        case .drift:
            return [
                .drift(try name("finding", of: DriftKind.self), try name("action", of: DriftAction.self))
            ]
        default: return []
        }
    }

    private mutating func end(_ entry: TrailEntry) throws -> Waiting {
        guard let message = entry.members["message_id"]?.stringValue.flatMap(MessageID.init(uuidText:)) else {
            throw TrailObservationError.unknownName("message_id")
        }
        guard let ended = waiting.removeValue(forKey: message) else {
            throw TrailObservationError.unknownMessage(message)
        }
        return ended
    }

    /// As ``OutboxRecord/waitedMilliseconds(until:)`` has it.
    private func waited(_ message: Waiting, until entry: TrailEntry) -> Int64? {
        guard let attempts = entry.members["attempts"]?.integerValue,
            let send = entry.members["send_id"]?.stringValue.flatMap(SendID.init(uuidText:))
        else { return nil }
        let start = attempts <= 1 ? message.start.milliseconds : send.milliseconds
        return max(0, entry.time.milliseconds - start)
    }
}

/// Why what the gateway counted cannot be told from its entries.
package enum TrailObservationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// No archived bundle has this digest.
    case policyUnknown(PolicyDigest)
    /// An entry is about a message that none before it speaks of.
    case unknownMessage(MessageID)
    /// A member has a name that this build does not know.
    case unknownName(String)

    package var description: String {
        switch self {
        case .policyUnknown(let digest):
            "no archived policy has the digest \(digest); copy the trail's `policies` folder with it"
        case .unknownMessage(let message):
            "it is about the message \(message), of which no entry before it speaks; give the trail from its first entry"
        case .unknownName(let member):
            "its `\(member)` is none that this build knows; use the build that wrote the trail, or a newer one"
        }
    }
}
