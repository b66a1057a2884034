import CompliancePolicy
package import GateSteps
package import GateVocabulary
import WireProtocol

/// One piece of work of the engine inside a batch: a send, a consent, a relay result, a publisher mark.
///
/// Everything that writes is an operation, so that all writes have one order.
package protocol EngineOperation: Sendable {
    /// The caller that asked; bounds are kept per caller. `nil` for the gateway's own work.
    var caller: CallerName? { get }
    var lane: EngineLane { get }
    /// The operations of its caller that it must not overtake; see ``OperationQueue``.
    var order: CallerOrder { get }

    /// The asks that it is certain to have; loaded for the whole batch at once.
    var asks: [Ask] { get }

    /// Whether it asks the store which rows there are. Such an operation begins a batch of its own, so that the store
    /// has the changes of all operations before it.
    var scans: Bool { get }

    /// Whether this may be committed before the batch in front is durable, and the batch behind before this is. Only where the
    /// completion changes nothing that a step looks at: it answers the caller. A claim must not, for its completion puts
    /// messages in flight; a hop's result may, for a step looks at offers, and those are carried over with the commit.
    var isPipelined: Bool { get }

    /// Whether its completion puts another bundle in force. Such an operation ends its batch, and the batch is durable and
    /// answered before the next one begins: the steps after it run under the new bundle, and so every entry behind its own
    /// names that bundle (decision SG-0047).
    var changesPolicy: Bool { get }

    /// Runs its steps, most often one. When it throws, ``refuse(_:)`` is called.
    ///
    /// May run again, when the batch it was in could not be committed; it must therefore keep nothing from the first
    /// time.
    ///
    /// - Returns: What to do once the batch is durable: usually, give the answer.
    func perform(in batch: Batch) throws -> Completion

    /// Called instead of the completion when nothing of this operation was committed.
    func refuse(_ failure: EngineFailure)
}

extension EngineOperation {
    package typealias Completion = @Sendable (EntryPlaces) -> Void

    package var order: CallerOrder { .free }
    package var asks: [Ask] { [] }
    package var scans: Bool { false }
    package var isPipelined: Bool { false }
    package var changesPolicy: Bool { false }
}

/// How an operation is ordered with others of the same caller.
package enum CallerOrder: Sendable, Hashable {
    /// The operation may overtake others and be overtaken.
    case free
    /// A send to this person: after the changes of them that were asked for before it.
    case send(UserID)
    /// A change of this person's state; `nil` where the request names no person (a key is revoked by its id). It comes
    /// after the sends and changes before it.
    case change(UserID?)

    /// The person it is about, itself `nil` where it names none; `nil` for ``free``.
    var user: UserID?? {
        switch self {
        case .free: nil
        case .send(let user): .some(user)
        case .change(let user): .some(user)
        }
    }
}

/// Which queue an operation waits in.
package enum EngineLane: Sendable, Hashable {
    /// Sends of the `security` category by callers that may send them, and operations that protect people:
    /// withdrawals, mutes, revocations, erasures.
    case security
    case general

    /// The lane of a send. The caller's word alone does not open the reserved share: a type that the caller may not
    /// send is refused in the general lane.
    init(of request: AttestedRequest, under policy: CompiledPolicy) {
        let rule = policy.rule(for: request)
        let isSecurity = rule.category == .security && rule.flags.contains(.typeGranted)
        self = isSecurity ? .security : .general
    }
}
