import Testing

@testable import UnixSocketEndpoint

/// What one user, all users, and a user with a reserve may hold of the endpoint's shared bounds.
@Suite struct UsageTests {
    private let usage: EndpointUsage

    init() {
        var limits = EndpointLimits()
        limits.connections = SharedBound(total: 20, perUser: 8, reserved: 2)
        limits.inFlight = SharedBound(total: 30, perUser: 12, reserved: 3)
        limits.bufferedBytes = SharedBound(total: 4_000, perUser: 1_600, reserved: 400)
        usage = EndpointUsage(limits: limits)
    }

    private func admission(_ user: UInt32, isReserved: Bool = false) throws -> Admission {
        try #require(usage.admitConnection(ofUser: user, isReserved: isReserved))
    }

    /// How often `body` says yes.
    private func count(_ body: () -> Bool) -> Int {
        var count = 0
        while body() { count += 1 }
        return count
    }

    @Test func `connections: eight of a user, eighteen of all, twenty with the reserve`() {
        func open(_ user: UInt32, isReserved: Bool = false) -> Int {
            count { usage.admitConnection(ofUser: user, isReserved: isReserved) != nil }
        }
        #expect([open(1), open(2), open(3), open(4)] == [8, 8, 2, 0])
        #expect(open(5, isReserved: true) == 2)
        #expect(usage.connections.value == 20)
    }

    @Test func `requests: twelve of a user, twenty-seven of all, thirty with the reserve`() throws {
        let others = try (1...4).map { try admission($0) }
        let security = try admission(5, isReserved: true)
        #expect(others.map { admission in count { admission.admitRequest() } } == [12, 12, 3, 0])
        #expect(count { security.admitRequest() } == 3)
        // One place that is given back is one place.
        others[0].requestAnswered()
        #expect(!others[3].admitRequest())
        #expect(security.admitRequest())
        others[0].requestAnswered()
        security.requestAnswered()
        security.requestAnswered()
        security.requestAnswered()
        #expect(others[3].admitRequest())
    }

    @Test func `bytes of bodies: 1,600 of a user, 3,600 of all, 4,000 with the reserve`() throws {
        let others = try (1...4).map { try admission($0) }
        let security = try admission(5, isReserved: true)
        #expect(others.map { admission in count { admission.admitBytes(100) } } == [16, 16, 4, 0])
        #expect(count { security.admitBytes(100) } == 4)
        #expect(usage.bufferedBytes.value == 4_000)
        // A body that was refused holds nothing.
        #expect(!others[3].admitBytes(1))
        #expect(usage.bufferedBytes.value == 4_000)
    }

    /// What is held of one bound, by a plain count of who holds what.
    private struct Book {
        let bound: SharedBound
        var byUser: [UInt32: Int] = [:]

        mutating func take(_ amount: Int, by user: UInt32, isReserved: Bool) -> Bool {
            let sum = byUser.values.reduce(0, +) + amount
            guard byUser[user, default: 0] + amount <= bound.perUser,
                sum <= bound.total - (isReserved ? 0 : bound.reserved)
            else { return false }
            byUser[user, default: 0] += amount
            return true
        }
    }

    @Test(arguments: 0..<20)
    func `whatever is taken, refused and given back, the bounds are a plain count's`(seed: UInt64) {
        struct Held {
            var user: UInt32
            var admission: Admission
            var requestCount = 0
            var byteCount = 0
        }
        var random = SplitMix(state: seed)
        var connections = Book(bound: SharedBound(total: 20, perUser: 8, reserved: 2))
        var requests = Book(bound: SharedBound(total: 30, perUser: 12, reserved: 3))
        var bytes = Book(bound: SharedBound(total: 4_000, perUser: 1_600, reserved: 400))
        // Connections, and those that have gone while their requests are still with the handler.
        var (open, gone): ([Held], [Held]) = ([], [])
        for step in 0..<2_000 {
            let index = open.indices.randomElement(using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1:
                let user = UInt32.random(in: 1...5, using: &random)
                let admission = usage.admitConnection(ofUser: user, isReserved: user == 5)
                #expect((admission != nil) == connections.take(1, by: user, isReserved: user == 5), "\(step)")
                if let admission { open.append(Held(user: user, admission: admission)) }
            case 2:
                guard let index else { continue }
                let held = open.remove(at: index)
                held.admission.releaseBytes(held.byteCount)
                bytes.byUser[held.user]? -= held.byteCount
                held.admission.connectionClosed()
                connections.byUser[held.user]? -= 1
                if held.requestCount > 0 { gone.append(held) }
            case 3, 4:
                guard let index else { continue }
                let user = open[index].user
                let isTaken = open[index].admission.admitRequest()
                #expect(isTaken == requests.take(1, by: user, isReserved: user == 5), "\(step)")
                if isTaken { open[index].requestCount += 1 }
            case 5:
                if let index, open[index].requestCount > 0 {
                    open[index].admission.requestAnswered()
                    open[index].requestCount -= 1
                    requests.byUser[open[index].user]? -= 1
                } else if let held = gone.popLast() {
                    for _ in 0..<held.requestCount { held.admission.requestAnswered() }
                    requests.byUser[held.user]? -= held.requestCount
                }
            case 6:
                guard let index else { continue }
                let (user, amount) = (open[index].user, Int.random(in: 1...900, using: &random))
                let isTaken = open[index].admission.admitBytes(amount)
                #expect(isTaken == bytes.take(amount, by: user, isReserved: user == 5), "\(step)")
                if isTaken { open[index].byteCount += amount }
            default:
                guard let index else { continue }
                open[index].admission.releaseBytes(open[index].byteCount)
                bytes.byUser[open[index].user]? -= open[index].byteCount
                open[index].byteCount = 0
            }
            #expect(usage.connections.value == connections.byUser.values.reduce(0, +))
            #expect(usage.inFlight.value == requests.byUser.values.reduce(0, +))
            #expect(usage.bufferedBytes.value == bytes.byUser.values.reduce(0, +))
        }
    }
}
