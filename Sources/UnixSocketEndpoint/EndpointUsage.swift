import Synchronization

/// A count that several event loops raise and lower, and that never passes the ceiling it is given.
final class Gauge: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .relaxed) }

    func add(_ amount: Int, upTo ceiling: Int) -> Bool {
        let sum = count.add(amount, ordering: .relaxed).newValue
        if sum <= ceiling { return true }
        count.subtract(amount, ordering: .relaxed)
        return false
    }

    func remove(_ amount: Int) {
        let left = count.subtract(amount, ordering: .relaxed).newValue
        precondition(left >= 0, "more was given back to the endpoint's usage than was taken: \(left)")
    }
}

/// What one user's connections hold together.
final class UserUsage: Sendable {
    let userID: UInt32
    let connections = Gauge()
    let inFlight = Gauge()
    let bufferedBytes = Gauge()

    init(userID: UInt32) { self.userID = userID }
}

/// What all connections hold together, and each user's part of it. Admission asks here; nothing waits here.
final class EndpointUsage: Sendable {
    let connections = Gauge()
    let inFlight = Gauge()
    let bufferedBytes = Gauge()
    private let limits: EndpointLimits
    /// Only users with an open connection have an element, so it has at most as many as connections.
    private let users = Mutex<[UInt32: UserUsage]>([:])

    init(limits: EndpointLimits) { self.limits = limits }

    /// - Returns: `nil` when the user or the endpoint has as many connections as it may.
    func admitConnection(ofUser userID: UInt32, isReserved: Bool) -> Admission? {
        users.withLock { users in
            let user = users[userID] ?? UserUsage(userID: userID)
            guard user.connections.add(1, upTo: limits.connections.perUser) else { return nil }
            guard connections.add(1, upTo: limits.connections.ceiling(forReserved: isReserved)) else {
                user.connections.remove(1)
                return nil
            }
            users[userID] = user
            return Admission(usage: self, user: user, limits: limits, isReserved: isReserved)
        }
    }

    fileprivate func connectionClosed(of user: UserUsage) {
        users.withLock { users in
            user.connections.remove(1)
            connections.remove(1)
            // A user whose requests are still with the handler stays, so that reconnecting does not start
            // the count anew; the element goes when the user's next connection closes.
            if user.connections.value == 0, user.inFlight.value == 0 { users[user.userID] = nil }
        }
    }
}

/// One open connection's right to use the shared bounds.
struct Admission: Sendable {
    private let usage: EndpointUsage
    private let user: UserUsage
    private let inFlight: SharedBound
    private let bufferedBytes: SharedBound
    private let isReserved: Bool

    fileprivate init(usage: EndpointUsage, user: UserUsage, limits: EndpointLimits, isReserved: Bool) {
        self.usage = usage
        self.user = user
        self.inFlight = limits.inFlight
        self.bufferedBytes = limits.bufferedBytes
        self.isReserved = isReserved
    }

    /// Takes one place for a request; ``requestAnswered()`` gives it back.
    func admitRequest() -> Bool {
        guard user.inFlight.add(1, upTo: inFlight.perUser) else { return false }
        if usage.inFlight.add(1, upTo: inFlight.ceiling(forReserved: isReserved)) { return true }
        user.inFlight.remove(1)
        return false
    }

    func requestAnswered() {
        user.inFlight.remove(1)
        usage.inFlight.remove(1)
    }

    /// Takes bytes of the bound for a body; ``releaseBytes(_:)`` gives them back.
    func admitBytes(_ byteCount: Int) -> Bool {
        guard user.bufferedBytes.add(byteCount, upTo: bufferedBytes.perUser) else { return false }
        if usage.bufferedBytes.add(byteCount, upTo: bufferedBytes.ceiling(forReserved: isReserved)) {
            return true
        }
        user.bufferedBytes.remove(byteCount)
        return false
    }

    func releaseBytes(_ byteCount: Int) {
        guard byteCount > 0 else { return }
        user.bufferedBytes.remove(byteCount)
        usage.bufferedBytes.remove(byteCount)
    }

    func connectionClosed() { usage.connectionClosed(of: user) }
}
