/// Base 64 with padding, in its one canonical spelling (RFC 4648 section 4).
package enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var group: UInt32 = 0
        var held = 0
        for byte in bytes {
            group = group << 8 | UInt32(byte)
            held += 1
            if held == 3 {
                for shift: UInt32 in [18, 12, 6, 0] { text.append(alphabet[Int(group >> shift & 63)]) }
                (group, held) = (0, 0)
            }
        }
        if held == 1 {
            text += [
                alphabet[Int(group >> 2)], alphabet[Int(group << 4 & 63)], UInt8(ascii: "="),
                UInt8(ascii: "="),
            ]
        } else if held == 2 {
            text += [
                alphabet[Int(group >> 10)], alphabet[Int(group >> 4 & 63)], alphabet[Int(group << 2 & 63)],
                UInt8(ascii: "="),
            ]
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// - Returns: `nil` for a missing or stray `=`, a character outside the alphabet, or bits set where the
    ///   canonical spelling has zeros.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 4 == 0 else { return nil }
        let padding = digits.reversed().prefix(2).prefix { $0 == UInt8(ascii: "=") }.count
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 4 * 3)
        var group: UInt32 = 0
        var bits = 0
        for digit in digits.dropLast(padding) {
            guard let value = value(digit) else { return nil }
            group = group << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: group >> UInt32(bits)))
                group &= (1 << UInt32(bits)) - 1
            }
        }
        // Two digits leave four spare bits and need two `=`; three leave two and need one.
        guard group == 0, bits == padding * 2 else { return nil }
        return bytes
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
