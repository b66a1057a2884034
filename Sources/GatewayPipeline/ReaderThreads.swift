import Dispatch
import Foundation
import GateVocabulary
import Synchronization

/// Threads that look things up, so that neither an event loop nor the writer waits for a disk.
///
/// - Ordering: the security lane first, in its order; then the callers in turn, each in its own order, so that
///   whoever asks for a thousand things does not stand before who asks for one.
/// - Bounds: ``waitingCountMax`` in all, ``waitingCountPerCallerMax`` for one caller; the last tenth is the
///   security lane's, and so is the last thread: a long look-up of others never stands in its way.
final class ReaderThreads: Sendable {
    /// Look-ups waiting at once; more are refused with 429.
    static let waitingCountMax = 4096
    /// Look-ups of one caller: eight batches whose every line under way is a repeat.
    static let waitingCountPerCallerMax = 2048
    static let securityShareCount = (waitingCountMax + 9) / 10

    typealias Work = @Sendable () -> Void

    private struct Waiting {
        var security: [Work] = []
        /// Whose turn it is stands first; every caller in it has work.
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

    /// - Parameter threadCount: Threads for everybody; the security lane has one more.
    init(threadCount: Int) {
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
            switch lane {
            case .security:
                guard waiting.count < Self.waitingCountMax else { return false }
                waiting.security.append(work)
            case .general:
                guard waiting.count < Self.waitingCountMax - Self.securityShareCount,
                    waiting.general[caller, default: []].count < Self.waitingCountPerCallerMax
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
