import CanonicalJSON

/// Where a request belongs in a distributed trace: the `traceparent` of W3C Trace Context, section 3.2.
///
/// The gateway is no span of the trace: it passes the field on as it came, which section 2.1 lets a party do that only forwards. `tracestate`
/// is not passed on: its values are any text, and the next hop is told nothing that was not decided.
package struct TraceParent: Hashable, Sendable {
    private let trace: (high: UInt64, low: UInt64)
    private let parent: UInt64
    private let flags: UInt8

    /// `00-` 32 digits `-` 16 digits `-` 2 digits.
    package static let characterCount = 55
    /// Bytes of ``bytes``.
    package static let byteCount = 25

    /// - Parameter text: The field's value. Of a version after 00 the members that 00 has are read, as section 4.3 asks.
    /// - Returns: `nil` for anything else: a wrong one is passed over, as section 4.3 asks, and breaks no send.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        let separators = [2, 35, 52]
        guard bytes.count >= Self.characterCount, separators.allSatisfy({ bytes[$0] == UInt8(ascii: "-") }),
            let version = Self.integer(bytes[0..<2]), version != 0xff,
            bytes.count == Self.characterCount
                || (version > 0 && bytes[Self.characterCount] == UInt8(ascii: "-")),
            let high = Self.integer(bytes[3..<19]), let low = Self.integer(bytes[19..<35]), high | low != 0,
            let parent = Self.integer(bytes[36..<52]), parent != 0, let flags = Self.integer(bytes[53..<55])
        else { return nil }
        trace = (high, low)
        self.parent = parent
        // Of a later version only the flag that 00 knows is known.
        self.flags = UInt8(version == 0 ? flags : flags & 1)
    }

    /// The trace of a request.
    ///
    /// - Parameter headers: Two fields of the name are none: section 3.2 allows one.
    package init?(in headers: [(name: String, value: String)]) {
        let fields = headers.filter { $0.name.utf8.count == 11 && $0.name.lowercased() == "traceparent" }
        guard fields.count == 1 else { return nil }
        self.init(fields[0].value)
    }

    /// - Parameter bytes: ``byteCount``, as ``bytes`` gives them.
    package init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        func word(_ start: Int) -> UInt64 { bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
        trace = (word(0), word(8))
        parent = word(16)
        flags = bytes[24]
    }

    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        for word in [trace.high, trace.low, parent] {
            withUnsafeBytes(of: word.bigEndian) { bytes += $0 }
        }
        return bytes + [flags]
    }

    /// As it stands in the field.
    package var text: String {
        "00-\(traceID)-\(Self.digits(parent, count: 16))-\(Self.digits(UInt64(flags), count: 2))"
    }

    /// 32 hexadecimal digits: what a search over the logs of several programs asks for.
    package var traceID: String { Self.digits(trace.high, count: 16) + Self.digits(trace.low, count: 16) }

    /// Whether the caller records this request, and so wants to find it (section 3.2.2.5.1).
    package var isSampled: Bool { flags & 1 != 0 }

    /// Only lower-case digits are the field's.
    private static func integer(_ digits: ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for digit in digits {
            guard digit.isLowercaseHexadecimal, let nibble = digit.hexadecimalDigit else { return nil }
            value = value << 4 | UInt64(nibble)
        }
        return value
    }

    private static func digits(_ value: UInt64, count: Int) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: count - digits.count) + digits
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.trace == right.trace && left.parent == right.parent && left.flags == right.flags
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(trace.high)
        hasher.combine(trace.low)
        hasher.combine(parent)
        hasher.combine(flags)
    }
}
