import Dispatch
import GateVocabulary
import Synchronization

/// What waits for the engine: two lanes, bounded in total and per caller.
///
/// - Ordering: first in, first out within a lane; the security lane always goes first, so an alert
///   does not wait behind a campaign. One caller's operations of one lane keep their order; what one caller changes of
///   one person keeps it in either lane, as requests that are not safe must on one connection (RFC 9112 section 9.3.2):
///   an operation of the security lane waits in the general one where it would overtake such a change.
/// - Bounds: ``EngineLimits/queuedOperationCountMax`` and its per-caller part; the last
///   ``EngineLimits/securitySharePercent`` of the queue is open to the security lane only.
final class OperationQueue: Sendable {
    private struct Waiting {
        var security: [any EngineOperation] = []
        var general: [any EngineOperation] = []
        var countByCaller: [CallerName: Int] = [:]
        /// How many changes wait in the general lane, by whom and of whom.
        var changeCounts: [CallerName: [UserID?: Int]] = [:]
        var isClosed = false
        var count: Int { security.count + general.count }

        /// Whether a change waits that the operation must not overtake.
        func hasChange(before operation: any EngineOperation) -> Bool {
            guard let caller = operation.caller, let counts = changeCounts[caller] else { return false }
            return switch operation.order {
            case .free: false
            case .after(let user), .change(.some(let user)): counts[user] != nil || counts[nil] != nil
            case .change(nil): true
            }
        }

        /// Counts a change of the general lane that comes (1) or is taken (-1).
        mutating func countChange(_ operation: any EngineOperation, _ difference: Int) {
            guard let caller = operation.caller, case .change(let user) = operation.order else { return }
            let count = changeCounts[caller, default: [:]][user, default: 0] + difference
            changeCounts[caller, default: [:]][user] = count == 0 ? nil : count
            if changeCounts[caller] == [:] { changeCounts[caller] = nil }
        }
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
            if isSecurity, !waiting.hasChange(before: operation) {
                waiting.security.append(operation)
            } else {
                waiting.general.append(operation)
                waiting.countChange(operation, 1)
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
                    waiting.countChange(operation, -1)
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
