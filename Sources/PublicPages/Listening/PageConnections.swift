import NIOCore
import Synchronization

/// The open connections, and which of them is closed for a new one when their number has reached the bound.
///
/// The first to be closed is a connection that was answered, or that has not sent a whole request, the one that has
/// been so for longest first: clients that only hold connections keep no other client out. A connection whose request
/// is being answered stays. The connections and this list are on one event loop.
final class PageConnections: Sendable {
    /// In the order in which connections are closed for new ones.
    enum Phase: Int, Sendable {
        /// The answer was written; the client has only to read it and close.
        case answered
        /// No whole request has arrived.
        case asking
        /// The handler has the request.
        case answering
    }

    private struct Entry {
        var phase: Phase
        /// Rises with each change of a phase.
        var since: UInt64
        var channel: any Channel
    }

    private struct State {
        var entries: [ObjectIdentifier: Entry] = [:]
        var changeCount: UInt64 = 0
    }

    private let countMax: Int
    private let state = Mutex(State())

    init(countMax: Int) {
        self.countMax = countMax
    }

    /// Adds a new connection, and closes another for it where the bound is reached.
    ///
    /// - Returns: Whether its request may be read; if no other could be closed, the client is told that the service
    ///   is busy.
    func admit(_ channel: any Channel) -> Bool {
        let (isAdmitted, leaving) = state.withLock { state -> (Bool, (any Channel)?) in
            var leaving: (any Channel)?
            if state.entries.count >= countMax {
                let oldest = state.entries.filter { $0.value.phase != .answering }
                    .min { Self.order($0.value) < Self.order($1.value) }
                if let oldest { leaving = state.entries.removeValue(forKey: oldest.key)?.channel }
            }
            let isAdmitted = state.entries.count < countMax
            state.changeCount += 1
            state.entries[ObjectIdentifier(channel)] = Entry(
                phase: isAdmitted ? .asking : .answered, since: state.changeCount, channel: channel)
            return (isAdmitted, leaving)
        }
        leaving?.close(promise: nil)
        return isAdmitted
    }

    func set(_ phase: Phase, of channel: any Channel) {
        state.withLock { state in
            state.changeCount += 1
            state.entries[ObjectIdentifier(channel)]?.phase = phase
            state.entries[ObjectIdentifier(channel)]?.since = state.changeCount
        }
    }

    func remove(_ channel: any Channel) {
        _ = state.withLock { $0.entries.removeValue(forKey: ObjectIdentifier(channel)) }
    }

    var all: [any Channel] { state.withLock { $0.entries.values.map(\.channel) } }

    private static func order(_ entry: Entry) -> (Int, UInt64) { (entry.phase.rawValue, entry.since) }
}
