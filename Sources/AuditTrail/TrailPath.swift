/// A file of a trail, named as C2SP's tlog-tiles names it. No other path is ever opened or served.
package enum TrailPath: Hashable, Sendable {
    /// The signed tree head.
    case checkpoint
    /// Hashes at one level: `index` counts tiles, `width` is 256 for a full tile.
    case tile(level: Int, index: UInt64, width: Int)
    /// Entries with their lengths: `index` counts bundles, `width` is 256 for a full bundle.
    case entries(index: UInt64, width: Int)
    /// The head of the snapshot in force, where entries were pruned; no file of C2SP's layout.
    case snapshot
    /// A part of the lines of the snapshot of the entries before `size`.
    case segment(size: UInt64, number: Int)

    /// Hashes in a full tile, entries in a full bundle.
    package static let fullWidth = 256

    /// Levels above 0 a tile can have: 256⁷ = 2⁵⁶ exceeds every tree size a JSON integer can say.
    package static let levelMax = 7

    /// E.g. `tile/0/x001/x234/067.p/8`.
    package var text: String {
        switch self {
        case .checkpoint: "checkpoint"
        case .tile(let level, let index, let width): "tile/\(level)/" + Self.spell(index, width)
        case .entries(let index, let width): "tile/entries/" + Self.spell(index, width)
        case .snapshot: "\(Self.snapshots)/head"
        case .segment(let size, let number): "\(Self.directory(ofSnapshot: size))/\(Self.digits(number))"
        }
    }

    /// The directory of snapshots.
    package static let snapshots = "snapshot"

    /// The directory of one snapshot's segments.
    package static func directory(ofSnapshot size: UInt64) -> String { "\(snapshots)/\(size)" }

    /// Eight digits, so that the order of names is that of the segments.
    private static func digits(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 8 - digits.utf8.count)) + digits
    }

    /// - Parameter text: Exactly what ``text`` gives for some file; every other spelling is `nil`, so that
    ///   no request can climb out of the directory or reach one file by two names.
    package init?(parsing text: String) {
        // The longest path of a tree of 2⁵³ entries has 41 bytes.
        guard text.utf8.count <= 48, text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        guard let path = Self.parse(text.split(separator: "/", omittingEmptySubsequences: false)) else {
            return nil
        }
        guard path.text == text else { return nil }
        self = path
    }

    private static func parse(_ parts: [Substring]) -> TrailPath? {
        if parts == ["checkpoint"] { return .checkpoint }
        if parts.first == snapshots[...] { return snapshot(parts.dropFirst()) }
        guard parts.count >= 3, parts[0] == "tile" else { return nil }
        var numbers = Array(parts[2...])
        var width = fullWidth
        if let before = numbers.dropLast().last, before.hasSuffix(".p") {
            guard let partial = Int(numbers.removeLast()), (1..<fullWidth).contains(partial) else {
                return nil
            }
            width = partial
            numbers[numbers.count - 1] = before.dropLast(2)
        }
        var index: UInt64 = 0
        for (position, number) in numbers.enumerated() {
            let isLast = position == numbers.count - 1
            let digits = isLast ? number : number.dropFirst()
            guard isLast || number.first == "x", digits.utf8.count == 3, let group = UInt64(digits) else {
                return nil
            }
            let (scaled, overflow) = index.multipliedReportingOverflow(by: 1_000)
            guard !overflow, scaled <= .max - group else { return nil }
            index = scaled + group
        }
        if parts[1] == "entries" { return .entries(index: index, width: width) }
        guard let level = Int(parts[1]), (0...levelMax).contains(level) else { return nil }
        return .tile(level: level, index: index, width: width)
    }

    private static func snapshot(_ parts: ArraySlice<Substring>) -> TrailPath? {
        if Array(parts) == ["head"] { return .snapshot }
        guard parts.count == 2, let size = parts.first.flatMap({ UInt64($0) }),
            let number = parts.last.flatMap({ Int($0) })
        else { return nil }
        return .segment(size: size, number: number)
    }

    private static func spell(_ index: UInt64, _ width: Int) -> String {
        var text = group(index % 1_000)
        var rest = index / 1_000
        while rest > 0 {
            text = "x" + group(rest % 1_000) + "/" + text
            rest /= 1_000
        }
        return width == fullWidth ? text : text + ".p/\(width)"
    }

    private static func group(_ number: UInt64) -> String {
        let digits = String(number)
        return String(repeating: "0", count: 3 - digits.utf8.count) + digits
    }

    /// The full tile or bundle that a partial one grows into; itself when it is full.
    package var full: TrailPath {
        switch self {
        case .checkpoint, .snapshot, .segment: self
        case .tile(let level, let index, _): .tile(level: level, index: index, width: Self.fullWidth)
        case .entries(let index, _): .entries(index: index, width: Self.fullWidth)
        }
    }

    package var width: Int {
        switch self {
        case .checkpoint, .snapshot, .segment: Self.fullWidth
        case .tile(_, _, let width), .entries(_, let width): width
        }
    }

    /// The entries a tile or bundle covers.
    package var entryRange: Range<UInt64> {
        switch self {
        case .checkpoint, .snapshot, .segment: 0..<0
        case .tile(let level, let index, let width):
            Self.range(index, width, shift: UInt64(8 * level))
        case .entries(let index, let width): Self.range(index, width, shift: 0)
        }
    }

    private static func range(_ index: UInt64, _ width: Int, shift: UInt64) -> Range<UInt64> {
        // A name may say more than any tree holds; what it covers then lies beyond every tree.
        guard index < UInt64.max >> (shift + 8) else { return (.max - 1)..<(.max) }
        return (index << (shift + 8))..<((index << 8 + UInt64(width)) << shift)
    }
}

extension TrailPath: CustomStringConvertible {
    package var description: String { text }
}

/// Which tiles a tree of a given size has (C2SP tlog-tiles, "Merkle Tree" and "Partial Tiles").
package enum TileLayout {
    /// Hashes at one level of tiles: `floor(size / 256^level)`.
    package static func hashCount(level: Int, size: UInt64) -> UInt64 {
        size >> UInt64(8 * level)
    }

    /// The highest level that holds a hash; `nil` for an empty tree.
    package static func topLevel(size: UInt64) -> Int? {
        size == 0 ? nil : (63 - size.leadingZeroBitCount) / 8
    }

    /// Hashes in the partial tile at the right of a level; 0 when there is none.
    package static func partialWidth(level: Int, size: UInt64) -> Int {
        Int(hashCount(level: level, size: size) & 255)
    }

    /// The tile that holds the `index`-th hash of a level in a tree of `size`, as wide as it is there.
    package static func tile(level: Int, holding index: UInt64, size: UInt64) -> TrailPath {
        let first = index & ~255
        let width = min(256, hashCount(level: level, size: size) - first)
        return .tile(level: level, index: index >> 8, width: Int(width))
    }

    /// The bundle that holds an entry in a tree of `size`, as wide as it is there.
    package static func bundle(holding index: UInt64, size: UInt64) -> TrailPath {
        .entries(index: index >> 8, width: Int(min(256, size - (index & ~255))))
    }
}
