import Testing

@testable import UnixSocketEndpoint

/// What one user, everybody, and whoever has a reserve may hold of the endpoint's shared bounds.
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
}
