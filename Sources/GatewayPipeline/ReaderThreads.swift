import Dispatch
import Foundation
import GateSteps
import GateVocabulary
import Synchronization

/// Threads that look things up, so that neither an event loop nor the writer waits for a disk.
///
/// - Ordering: the security lane first, in its order; then the callers in turn, each in its own order, so that
///   a caller's thousand look-ups do not delay another caller's one. Decision SG-0037 says why the engine's queue differs.
/// - Bounds: ``waitingCountMax`` in all, ``waitingCountPerCallerMax`` for one caller; the last
///   ``EngineLimits/securitySharePercent`` are the security lane's, and so is the last thread: a long look-up of others
///   never delays it.
final class ReaderThreads: Sendable {
    /// Look-ups waiting at once; more are refused with 429.
    static let waitingCountMax = 4096
    /// Look-ups of one caller: eight batches whose every line under way is a repeat.
    static let waitingCountPerCallerMax = 2048

    typealias Work = @Sendable () -> Void

    private struct Waiting {
        var security: [Work] = []
        /// The caller whose turn is next stands first; every caller in the list has look-ups waiting.
        var turns: [CallerName] = []
        var general: [CallerName: [Work]] = [:]
        var count = 0

        mutating func take(onlySecurity: Bool) -> Work? {
            if !security.isEmpty {
                count -= 1
                return security.removeFirst()
            }
            guard !onlySecurity, !turns.isEmpty else { return nil }
            let caller = turns.removeFirst()
            var own = general.removeValue(forKey: caller) ?? []
            let work = own.removeFirst()
            if !own.isEmpty {
                general[caller] = own
                turns.append(caller)
            }
            count -= 1
            return work
        }
    }

    private let waiting = Mutex(Waiting())
    private let available = DispatchSemaphore(value: 0)
    private let securityAvailable = DispatchSemaphore(value: 0)

    private let limits: EngineLimits

    /// - Parameters:
    ///   - threadCount: Threads for both lanes; the security lane has one more.
    ///   - limits: The security lane's share is that of the engine's queue.
    init(threadCount: Int, limits: EngineLimits = EngineLimits()) {
        self.limits = limits
        for number in 0...threadCount {
            let isSecurity = number == threadCount
            let thread = Thread { [self] in
                let signal = isSecurity ? securityAvailable : available
                while true {
                    signal.wait()
                    // Another thread may have been quicker; then there is nothing to do.
                    waiting.withLock { $0.take(onlySecurity: isSecurity) }?()
                }
            }
            thread.start()
            thread.name = isSecurity ? "reader-security" : "reader-\(number)"
        }
    }

    /// - Returns: Whether it was taken.
    func submit(for caller: CallerName, lane: EngineLane = .general, _ work: @escaping Work) -> Bool {
        let isTaken = waiting.withLock { waiting in
            let countMax = limits.part(of: Self.waitingCountMax, isSecurity: lane == .security)
            guard waiting.count < countMax else { return false }
            switch lane {
            case .security:
                waiting.security.append(work)
            case .general:
                guard waiting.general[caller, default: []].count < Self.waitingCountPerCallerMax
                else { return false }
                if waiting.general[caller, default: []].isEmpty { waiting.turns.append(caller) }
                waiting.general[caller, default: []].append(work)
            }
            waiting.count += 1
            return true
        }
        guard isTaken else { return false }
        available.signal()
        if lane == .security { securityAvailable.signal() }
        return true
    }
}
