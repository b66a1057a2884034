import CanonicalJSON

/// One file of the trail in the C2SP `tlog-tiles` layout, named by the part of its path after `tile/`.
///
/// One spelling each: no leading zero groups, no width of 256 (that is the full tile).
package struct TilePath: Hashable, Sendable, CustomStringConvertible {
    /// The level of the tree, or the entries under it.
    package enum Level: Hashable, Sendable {
        /// 0 to 63, hashes.
        case hashes(Int)
        /// Entry bundles.
        case entries
    }

    package var level: Level
    /// Below 10¹⁵: five groups of three digits address more entries than 64-bit milliseconds could number.
    package var index: UInt64
    /// Hashes or entries in it: 256 for a full tile, 1 to 255 for a partial one (`.p/W`).
    package var width: Int

    package init(level: Level, index: UInt64, width: Int) {
        self.level = level
        self.index = index
        self.width = width
    }

    /// What ``init(_:)`` accepts, as ECMA-262.
    package static let pattern =
        "^(?:entries|[0-9]|[1-5][0-9]|6[0-3])/(?:x(?:[1-9][0-9]{2}|0[1-9][0-9]|00[1-9])/(?:x[0-9]{3}/){0,3})?"
        + #"[0-9]{3}(?:\.p/(?:[1-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5]))?$"#

    /// - Parameter text: `<L>/<N>[.p/<W>]` or `entries/<N>[.p/<W>]`, e.g. `0/x001/x234/067` or `entries/000.p/5`.
    package init?(_ text: String) {
        var parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)[...]
        guard parts.count >= 2, parts.count <= 7, let first = parts.popFirst() else { return nil }
        if first.elementsEqual("entries".utf8) {
            level = .entries
        } else {
            guard let number = Self.number(first, digitCount: 1...2), number <= 63,
                first.count == 1 || number >= 10
            else { return nil }
            level = .hashes(Int(number))
        }

        width = 256
        if parts.count >= 2, parts[parts.endIndex - 2].suffix(2).elementsEqual(".p".utf8) {
            guard let last = parts.popLast(), let number = Self.number(last, digitCount: 1...3), number >= 1,
                number <= 255, last.first != UInt8(ascii: "0"), let stem = parts.popLast()
            else { return nil }
            width = Int(number)
            parts.append(stem.dropLast(2))
        }

        guard parts.count >= 1, parts.count <= 5 else { return nil }
        index = 0
        let last = parts.endIndex - 1
        for position in parts.indices {
            var group = parts[position]
            if position < last {
                guard group.popFirst() == UInt8(ascii: "x") else { return nil }
            }
            guard let number = Self.number(group, digitCount: 3...3) else { return nil }
            if position == parts.startIndex, position < last, number == 0 { return nil }
            index = index * 1000 + number
        }
    }

    package var description: String {
        var groups: [String] = []
        var rest = index
        repeat {
            let group = String(rest % 1000)
            groups.append(String(repeating: "0", count: 3 - group.utf8.count) + group)
            rest /= 1000
        } while rest > 0
        for position in groups.indices.dropFirst() { groups[position] = "x" + groups[position] }
        let start =
            switch level {
            case .hashes(let level): String(level)
            case .entries: "entries"
            }
        return ([start] + groups.reversed()).joined(separator: "/") + (width < 256 ? ".p/\(width)" : "")
    }

    private static func number(_ digits: Substring.UTF8View.SubSequence, digitCount: ClosedRange<Int>)
        -> UInt64?
    {
        guard digitCount.contains(digits.count) else { return nil }
        var number: UInt64 = 0
        for digit in digits {
            guard digit.isDigit else { return nil }
            number = number * 10 + UInt64(digit - UInt8(ascii: "0"))
        }
        return number
    }
}
