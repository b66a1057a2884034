import Dispatch
import GateSteps
import GateVocabulary
import Synchronization

/// Operations that wait for the engine: two lanes, bounded in total and per caller.
///
/// - Ordering: first in, first out within a lane; the security lane always goes first, so an alert
///   does not wait behind a campaign. One caller's operations of one lane keep their order; what one caller sends to
///   one person and changes of them keeps it in either lane, as requests that are not safe must on one connection (RFC 9112
///   section 9.3.2), but that a security notice overtakes other sends. An operation of the security lane that would overtake
///   what it must not waits in the general one, behind what others have there.
/// - Bounds: ``EngineLimits/queuedOperationCountMax`` and its per-caller part; the last
///   ``EngineLimits/securitySharePercent`` of the queue is open to the security lane only.
final class OperationQueue: Sendable {
    private struct Waiting {
        var security: [any EngineOperation] = []
        var general: [any EngineOperation] = []
        var callers: [CallerName: CallerCounts] = [:]
        /// Of the general lane's operations, by the person they concern.
        var people: [PersonKey: PersonCounts] = [:]
        var isClosed = false
        var count: Int { security.count + general.count }

        /// Whether an operation is waiting that this one must not overtake.
        func mustFollow(_ operation: any EngineOperation) -> Bool {
            guard let caller = operation.caller, callers[caller, default: CallerCounts()].orderedCount > 0
            else { return false }
            func waiting(_ user: UserID?) -> PersonCounts? { people[PersonKey(caller: caller, user: user)] }
            return switch operation.order {
            case .free: false
            case .send(let user): (waiting(user)?.changeCount ?? 0) > 0 || waiting(nil) != nil
            case .change(.some(let user)): waiting(user) != nil || waiting(nil) != nil
            case .change(nil): true
            }
        }

        /// Counts an operation of the general lane that comes (1) or is taken (-1).
        mutating func count(_ operation: any EngineOperation, of caller: CallerName, _ difference: Int) {
            let order = operation.order
            guard let user = order.user else { return }
            callers[caller, default: CallerCounts()].orderedCount += difference
            let key = PersonKey(caller: caller, user: user)
            var counts = people[key] ?? PersonCounts()
            if case .send = order {
                counts.sendCount += difference
            } else {
                counts.changeCount += difference
            }
            people[key] = counts == PersonCounts() ? nil : counts
        }

        /// Counts operations that are taken.
        mutating func uncount(_ batch: [any EngineOperation], generalFrom position: Int) {
            if count == 0 {
                callers.removeAll(keepingCapacity: true)
                people.removeAll(keepingCapacity: true)
                return
            }
            for (index, operation) in batch.enumerated() {
                guard let caller = operation.caller else { continue }
                callers[caller, default: CallerCounts()].count -= 1
                if index >= position { count(operation, of: caller, -1) }
                if callers[caller] == CallerCounts() { callers[caller] = nil }
            }
        }
    }

    /// Waiting operations of one caller.
    private struct CallerCounts: Equatable {
        var count = 0
        /// In the general lane and not ``CallerOrder/free``.
        var orderedCount = 0
    }

    private struct PersonKey: Hashable {
        var caller: CallerName
        /// `nil` for operations that name no person.
        var user: UserID?
    }

    /// Waiting operations of one caller that concern one person.
    private struct PersonCounts: Equatable {
        var sendCount = 0
        var changeCount = 0
    }

    private let waiting = Mutex(Waiting())
    private let available = DispatchSemaphore(value: 0)
    private let limits: EngineLimits

    init(limits: EngineLimits) {
        self.limits = limits
    }

    /// - Returns: Why the operation was not taken; `nil` when it was.
    func append(_ operation: any EngineOperation) -> EngineFailure? {
        let failure: EngineFailure? = waiting.withLock { waiting in
            guard !waiting.isClosed else { return .stopping }
            let isSecurity = operation.lane == .security
            guard waiting.count < limits.part(of: limits.queuedOperationCountMax, isSecurity: isSecurity)
            else {
                return .overloaded
            }
            let follows = !isSecurity || waiting.mustFollow(operation)
            if let caller = operation.caller {
                let count = waiting.callers[caller, default: CallerCounts()].count
                guard isSecurity || count < limits.queuedOperationCountPerCallerMax else {
                    return .overloaded
                }
                waiting.callers[caller, default: CallerCounts()].count += 1
                if follows { waiting.count(operation, of: caller, 1) }
            }
            if follows { waiting.general.append(operation) } else { waiting.security.append(operation) }
            return nil
        }
        if failure == nil { available.signal() }
        return failure
    }

    /// Blocks until an operation waits, then takes those that have queued up.
    ///
    /// - Returns: At most `countMax` operations; empty only when the queue is closed and drained.
    func take(countMax: Int) -> [any EngineOperation] {
        while true {
            available.wait()
            let (batch, isOver): ([any EngineOperation], Bool) = waiting.withLock { waiting in
                var batch = waiting.security.takeFirst(countMax)
                let fromSecurity = batch.count
                let general = waiting.general.takeFirst(countMax - fromSecurity)
                if batch.isEmpty { batch = general } else { batch += general }
                waiting.uncount(batch, generalFrom: fromSecurity)
                return (batch, waiting.isClosed && batch.isEmpty)
            }
            if !batch.isEmpty || isOver { return batch }
        }
    }

    /// Refuses new operations; those that wait are still taken.
    func close() {
        waiting.withLock { $0.isClosed = true }
        available.signal()
    }

    var count: Int { waiting.withLock { $0.count } }
}

extension [any EngineOperation] {
    /// Takes at most so many operations from the front. Most often these are all, and none is copied.
    fileprivate mutating func takeFirst(_ countMax: Int) -> Self {
        guard count > countMax else {
            defer { self = [] }
            return self
        }
        defer { removeFirst(countMax) }
        return Array(prefix(countMax))
    }
}
