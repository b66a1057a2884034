@testable import AuditTrail
@testable import GateRecords
import CanonicalJSON
import GateVocabulary
import Testing

/// Which ids of a trail may stand in it once only.
@Suite struct IssuedIDsTests {
    private static let start: Int64 = 1_700_000_000_000
    private static let day: Int64 = 86_400_000

    private static func uuid(_ digit: Character) -> JSONValue {
        .string("01a20bd3-f140-70bc-9384-ca8495bf38b\(digit)")
    }

    /// - Parameter drawn: The last digit of its two drawn ids.
    private static func send(
        _ index: UInt64, reason: String = "allowed", drawn: Character, request: String, after: Int64 = 0
    ) -> TrailEntry {
        TrailEntry(
            kind: .send, index: index, time: Instant(milliseconds: start + after),
            members: [
                "send_id": uuid(drawn), "deliveries": [["message_id": uuid(drawn)]],
                "reason": .string(reason), "caller": "payments",
                "request": ["id_tag": .string(String(repeating: request, count: 32))],
            ])
    }

    private static func clock(_ index: UInt64, after: Int64) -> TrailEntry {
        TrailEntry(
            kind: .clock, index: index, time: Instant(milliseconds: start + after),
            members: ["previous": .integer(start), "uid": 1000])
    }

    private func breaks(in entries: [TrailEntry]) -> [String] {
        var issued = IssuedIDs()
        return entries.compactMap { issued.follow($0) }.map { "\($0.index) \($0.member)" }
    }

    @Test(arguments: [
        ("allowed", ["1 id_tag"]), ("invalid_params", []), ("unknown_type", []),
        ("reason_of_a_newer_build", []),
    ])
    func `an id is bound by a reason that is known to bind it, and by no other`(
        _ reason: String, _ expected: [String]
    ) {
        #expect(
            breaks(in: [
                Self.send(0, reason: reason, drawn: "1", request: "a"),
                Self.send(1, drawn: "2", request: "a"),
            ]) == expected)
    }

    @Test(arguments: [-400 * day, -day, 0, day, 400 * day])
    func `a clock that is put right lets callers' ids be given again, and none that was drawn`(_ step: Int64)
    {
        let entries = [
            Self.send(0, drawn: "1", request: "a"), Self.clock(1, after: step),
            Self.send(2, drawn: "2", request: "a", after: step + 1),
            Self.send(3, drawn: "1", request: "b", after: step + 2),
        ]
        #expect(breaks(in: entries) == ["3 send_id"])
    }

    @Test func `ids are remembered for their window by the clock of each part of the trail`() {
        let window = IssuedIDs.windowMilliseconds
        let year = 365 * Self.day
        let entries = [
            Self.send(0, drawn: "1", request: "a"), Self.clock(1, after: -year),
            // The window of the first entry is over here, and after the next one nothing is left of it.
            Self.send(2, drawn: "2", request: "b", after: window + 1 - year),
            Self.send(3, drawn: "3", request: "c", after: 2 * window + 2 - year),
            Self.send(4, drawn: "1", request: "d", after: 2 * window + 3 - year),
            Self.send(5, drawn: "2", request: "e", after: 2 * window + 4 - year),
        ]
        #expect(breaks(in: entries) == ["5 send_id"])
    }
}
