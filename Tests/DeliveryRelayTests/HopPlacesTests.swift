import GateSteps
import Testing

@testable import DeliveryRelay

/// Sixteen general places, two of which stay general, and eight of security.
struct HopPlacesTests {
    private let places = HopPlaces(.init(requestCount: 16))

    private func fill(_ lane: DeliveryLane) -> Int {
        let count = places.free(for: lane)
        places.take(count, of: lane)
        return count
    }

    private func leave(_ lane: DeliveryLane, _ count: Int) {
        for _ in 0..<count {
            places.leaveHop(lane)
            places.end(lane)
        }
    }

    @Test func `General messages leave security its places`() {
        #expect(fill(.general) == 16)
        #expect(fill(.security) == 8)
        #expect(places.free(for: .general) == 0)
        #expect(places.free(for: .security) == 0)
    }

    @Test func `A backlog of security takes the general places that become free, but for two`() {
        #expect(fill(.general) == 16)
        #expect(fill(.security) == 8)
        leave(.general, 5)
        #expect(places.free(for: .general) == 0)
        #expect(fill(.security) == 5)
        leave(.general, 11)
        #expect(fill(.general) == 2)
        #expect(fill(.security) == 9)
        #expect(places.free(for: .general) == 0)
        #expect(places.free(for: .security) == 0)
    }

    @Test func `General messages get the places back once security finds no more`() {
        #expect(fill(.security) == 22)
        leave(.security, 10)
        #expect(places.free(for: .general) == 2)
        places.take(0, of: .security)
        #expect(fill(.general) == 12)
        leave(.security, 12)
        #expect(fill(.general) == 4)
        #expect(places.free(for: .security) == 8)
    }

    @Test func `A lane waits for its results to be recorded`() {
        for _ in 0..<HopPlaces.unrecordedCountMax / 16 {
            #expect(fill(.general) == 16)
            for _ in 0..<16 { places.leaveHop(.general) }
        }
        #expect(fill(.general) == 16)
        for _ in 0..<16 { places.leaveHop(.general) }
        #expect(places.free(for: .general) == 0)
        #expect(places.free(for: .security) == 22)
        places.end(.general)
        #expect(places.free(for: .general) == 1)
    }
}
