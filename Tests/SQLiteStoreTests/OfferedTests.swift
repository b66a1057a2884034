import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import Testing

@testable import SQLiteStore

@Suite struct OfferedTests {
    @Test func `nothing of who is erased stays in a row because of its other messages`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        // One that is erased, and one that is erased whose message has its result already.
        for isEnded in [false, true] {
            try store.write { step in
                for number in 1...4 { step.offerOutbox(.canary(number, of: number % 2)) }
            }
            if isEnded { for number in [2, 4] { try store.write { $0.removeOutbox(.sample(number)) } } }
            try store.write { $0.eraseSubject(.sample(0)) }
            let erased = Hexadecimal.encode(SubjectID.sample(0).bytes)
            let counts = try tamper(folder.state + "/gate.db") {
                try $0.pragma("SELECT count(*) || ' ' || sum(instr(heads, x'\(erased)')) FROM offered")
            }
            #expect(counts == "1 0")
            #expect(
                try store.read { try $0.dueOutbox(at: .sample, limit: 9, lane: .general, excluding: []) }
                    .isEmpty)
            if isEnded { try store.write { $0.postponeOutbox(.sample(1), until: .sample) } }
            for number in [1, 3] {
                let found = try store.read { try $0.outbox(MessageID.sample(number)) }
                #expect(found?.body == OutboxRecord.canary(number, of: 1).body)
                try store.write { $0.removeOutbox(.sample(number)) }
            }
            #expect(try store.read { try $0.outboxDepth().rowCount } == 0)
        }
    }

    @Test func `a row goes when its last message has ended, and says until then which have`() throws {
        let folder = try TemporaryFolder()
        var store = try openStore(folder.state)
        let count = OfferedSegment.countMax + 10
        try store.write { step in
            for number in 1...count { step.offerOutbox(.canary(number, of: 1)) }
        }
        func rowCount() throws -> String {
            try tamper(folder.state + "/gate.db") { try $0.pragma("SELECT count(*) FROM offered") }
        }
        #expect(try rowCount() == "2")
        for number in 1..<OfferedSegment.countMax {
            try store.write { $0.removeOutbox(.sample(number)) }
        }
        #expect(try rowCount() == "2")
        #expect(try store.read { try $0.outboxDepth().rowCount } == 11)
        // In one commit with its end, the end of the other's, and one that is offered and ends there.
        try store.write { step in
            step.removeOutbox(.sample(OfferedSegment.countMax))
            step.removeOutbox(.sample(count))
            step.offerOutbox(.canary(count + 1, of: 1))
            step.removeOutbox(.sample(count + 1))
        }
        #expect(try rowCount() == "1")
        store.close()
        store = try openStore(folder.state)
        let left = try store.read { try $0.outbox(of: SubjectID.sample(1)) }
        #expect(Set(left.map(\.message)) == Set((OfferedSegment.countMax + 1..<count).map { .sample($0) }))
        #expect(try rowCount() == "0")
        #expect(store.damages.isEmpty, "\(store.damages)")
    }

    @Test func `ranges hold the numbers that a set holds`() {
        var generator = SeededNumbers(seed: 20_261_123)
        for _ in 0..<200 {
            var (ranges, numbers) = (RangeSet<Int64>(), Set<Int64>())
            for _ in 0..<60 {
                if Int.random(in: 0..<12, using: &generator) == 0 {
                    let first = Int64.random(in: 0..<4, using: &generator) * 10
                    ranges.remove(contentsOf: first..<first + 10)
                    numbers = numbers.filter { !(first...first + 9).contains($0) }
                } else {
                    let number = Int64.random(in: 0..<40, using: &generator)
                    ranges.insert(contentsOf: number..<number + 1)
                    numbers.insert(number)
                }
                #expect((-1...40).allSatisfy { ranges.contains($0) == numbers.contains($0) })
                #expect(RangeSet(bytes: ranges.bytes) == ranges)
            }
        }
        // A torn pair; a number below 0, above the largest and the largest there is; two ranges that meet, that touch and that
        // stand in the wrong order; and one that ends before it begins.
        #expect(RangeSet(bytes: [UInt8](repeating: 0, count: 8)) == nil)
        let damaged: [[Int64]] = [
            [-1, 3], [0, StoredRow.countMax + 1], [0, .max], [0, 3, 3, 5], [0, 3, 4, 5], [7, 9, 0, 3],
            [3, 2],
        ]
        for bounds in damaged {
            let bytes = bounds.flatMap { bound in withUnsafeBytes(of: bound.bigEndian) { Array($0) } }
            #expect(RangeSet(bytes: bytes) == nil, "\(bounds)")
        }
    }
}
