/// Bytes as a disk may give them back: every truncation, every byte changed in some ways, and then, from a seed,
/// several bytes changed, pieces moved, and bytes that were never written.
package struct DamagedBytes: Sequence {
    private let original: [UInt8]
    private let seed: UInt64
    private let randomCount: Int

    /// - Parameter randomCount: How many to make from the seed after those that are made of every byte.
    package init(of original: [UInt8], seed: UInt64, randomCount: Int = 200) {
        self.original = original
        self.seed = seed
        self.randomCount = randomCount
    }

    package func makeIterator() -> AnyIterator<[UInt8]> {
        let original = original
        var numbers = SeededNumbers(seed: seed)
        let changes: [@Sendable (UInt8) -> UInt8] = [
            { _ in 0 }, { _ in 0xFF }, { $0 ^ 1 }, { $0 ^ 0x80 }, { $0 &+ 1 },
        ]
        var cut = 0
        var position = 0
        var change = 0
        var random = 0
        return AnyIterator {
            if cut < original.count {
                defer { cut += 1 }
                return Array(original[..<cut])
            }
            if position < original.count {
                var bytes = original
                bytes[position] = changes[change](bytes[position])
                change += 1
                if change == changes.count { (position, change) = (position + 1, 0) }
                return bytes
            }
            guard random < randomCount else { return nil }
            random += 1
            return Self.random(original, &numbers)
        }
    }

    private static func random(_ original: [UInt8], _ numbers: inout SeededNumbers) -> [UInt8] {
        func below(_ bound: Int) -> Int { Int(numbers.next() % UInt64(Swift.max(bound, 1))) }
        var bytes = original
        switch below(4) {
        case 0:
            return (0..<below(original.count * 2 + 8)).map { _ in UInt8(truncatingIfNeeded: numbers.next()) }
        case 1:
            bytes.append(contentsOf: (0...below(8)).map { _ in UInt8(truncatingIfNeeded: numbers.next()) })
        case 2:
            let start = below(bytes.count)
            let piece = Array(bytes[start..<Swift.min(start + 1 + below(16), bytes.count)])
            bytes.insert(contentsOf: piece, at: below(bytes.count + 1))
        default: break
        }
        guard !bytes.isEmpty else { return bytes }
        for _ in 0...below(8) { bytes[below(bytes.count)] = UInt8(truncatingIfNeeded: numbers.next()) }
        return bytes
    }
}
