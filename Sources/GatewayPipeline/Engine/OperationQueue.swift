import Dispatch
import GateSteps
import GateVocabulary
import Synchronization

/// What waits for the engine: two lanes, bounded in total and per caller.
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
        var countByCaller: [CallerName: Int] = [:]
        /// Counts of the general lane's operations, by caller and by the person they concern.
        var ordered: [CallerName: [UserID?: Ordered]] = [:]
        var isClosed = false
        var count: Int { security.count + general.count }

        /// Whether something waits that the operation must not overtake.
        func mustFollow(_ operation: any EngineOperation) -> Bool {
            guard let caller = operation.caller, let waiting = ordered[caller] else { return false }
            return switch operation.order {
            case .free: false
            case .send(let user): (waiting[user]?.changeCount ?? 0) > 0 || waiting[nil] != nil
            case .change(.some(let user)): waiting[user] != nil || waiting[nil] != nil
            case .change(nil): true
            }
        }

        /// Counts an operation of the general lane that comes (1) or is taken (-1).
        mutating func count(_ operation: any EngineOperation, _ difference: Int) {
            guard let caller = operation.caller else { return }
            let user: UserID?
            switch operation.order {
            case .free: return
            case .send(let person): user = person
            case .change(let person): user = person
            }
            var about = ordered[caller]?[user] ?? Ordered()
            if case .send = operation.order {
                about.sendCount += difference
            } else {
                about.changeCount += difference
            }
            ordered[caller, default: [:]][user] = about == Ordered() ? nil : about
            if ordered[caller]?.isEmpty == true { ordered[caller] = nil }
        }
    }

    /// Counts of one caller's waiting operations that concern one person; those that name no person are under `nil`.
    private struct Ordered: Equatable {
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
            if let caller = operation.caller {
                let count = waiting.countByCaller[caller, default: 0]
                guard isSecurity || count < limits.queuedOperationCountPerCallerMax else {
                    return .overloaded
                }
                waiting.countByCaller[caller] = count + 1
            }
            if isSecurity, !waiting.mustFollow(operation) {
                waiting.security.append(operation)
            } else {
                waiting.general.append(operation)
                waiting.count(operation, 1)
            }
            return nil
        }
        if failure == nil { available.signal() }
        return failure
    }

    /// Blocks until something waits, then takes what has queued up.
    ///
    /// - Returns: At most `countMax` operations; empty only when the queue is closed and drained.
    func take(countMax: Int) -> [any EngineOperation] {
        while true {
            available.wait()
            let (batch, isOver): ([any EngineOperation], Bool) = waiting.withLock { waiting in
                var batch: [any EngineOperation] = []
                let fromSecurity = min(countMax, waiting.security.count)
                batch.append(contentsOf: waiting.security.prefix(fromSecurity))
                waiting.security.removeFirst(fromSecurity)
                let fromGeneral = min(countMax - fromSecurity, waiting.general.count)
                for operation in waiting.general.prefix(fromGeneral) {
                    batch.append(operation)
                    waiting.count(operation, -1)
                }
                waiting.general.removeFirst(fromGeneral)
                for operation in batch {
                    guard let caller = operation.caller else { continue }
                    let left = waiting.countByCaller[caller, default: 1] - 1
                    waiting.countByCaller[caller] = left == 0 ? nil : left
                }
                return (batch, waiting.isClosed && batch.isEmpty)
            }
            if !batch.isEmpty || isOver { return batch }
        }
    }

    /// Refuses everything new; what waits is still taken.
    func close() {
        waiting.withLock { $0.isClosed = true }
        available.signal()
    }

    var count: Int { waiting.withLock { $0.count } }
}
