import NIOCore
import Synchronization

/// The bounds on requests over time: one for the links that the gateway made, one for the style sheet of their pages, one for
/// all other requests.
///
/// A flood of forged links, or of one genuine link over and over, uses up the last and leaves the others to the recipients.
final class PageRates: Sendable {
    /// What a request is counted as.
    enum Target {
        /// A link that the gateway made, with its token.
        case link(String)
        case styleSheet
        case other
    }

    private struct Second {
        var begin: NIODeadline
        var requestCounts: [String: Int] = [:]
    }

    private let ofLinks: PageRate
    private let ofStyleSheet: PageRate
    private let ofOthers: PageRate
    private let requestCountOfLinkMax: Int
    /// More than a second can serve, so that the table of a second is bounded.
    private let linkCountMax: Int
    private let clock: @Sendable () -> NIODeadline
    private let second: Mutex<Second>

    init(_ limits: PageLimits, clock: @escaping @Sendable () -> NIODeadline) {
        func rate() -> PageRate {
            PageRate(perSecond: limits.requestsPerSecond, burst: limits.requestBurst, clock: clock)
        }
        (ofLinks, ofStyleSheet, ofOthers) = (rate(), rate(), rate())
        requestCountOfLinkMax = limits.requestsPerSecondOfLink
        linkCountMax = limits.requestsPerSecond + limits.requestBurst + 1
        self.clock = clock
        second = Mutex(Second(begin: clock()))
    }

    /// - Returns: Whether the request may be served now.
    func take(for target: Target) -> Bool {
        switch target {
        case .link(let token): isSeldom(token) ? ofLinks.take() : ofOthers.take()
        case .styleSheet: ofStyleSheet.take()
        case .other: ofOthers.take()
        }
    }

    /// Counts a request of a link in the second that it falls into.
    private func isSeldom(_ token: String) -> Bool {
        let now = clock()
        return second.withLock { second in
            if now - second.begin >= .seconds(1) || now < second.begin { second = Second(begin: now) }
            let count = second.requestCounts[token] ?? 0
            guard count < requestCountOfLinkMax, count > 0 || second.requestCounts.count < linkCountMax else {
                return false
            }
            second.requestCounts[token] = count + 1
            return true
        }
    }
}
