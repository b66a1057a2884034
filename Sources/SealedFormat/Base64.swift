/// Base64 with padding (RFC 4648 section 4). One spelling per value.
package enum Base64 {
    private static let codec = Base64Codec(lastTwo: "+/", isPadded: true)

    package static func encode(_ bytes: some Collection<UInt8>) -> String { codec.encode(Array(bytes)) }

    /// - Returns: `nil` for a missing or stray `=`, a character outside the alphabet, or bits set where the
    ///   canonical spelling has zeros.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        codec.decode(Array(text.utf8)[...])
    }
}

/// Base64 with the URL alphabet and no padding (RFC 4648 section 5). One spelling per value.
package enum Base64URL {
    private static let codec = Base64Codec(lastTwo: "-_", isPadded: false)

    package static func characterCount(byteCount: Int) -> Int { codec.characterCount(byteCount: byteCount) }

    package static func encode(_ bytes: some Collection<UInt8>) -> String { codec.encode(Array(bytes)) }

    /// Appends the characters of `bytes` to `text`.
    package static func append(_ bytes: [UInt8], to text: inout [UInt8]) { codec.append(bytes, to: &text) }

    package static func decode(_ text: String) -> [UInt8]? { codec.decode(Array(text.utf8)[...]) }

    /// - Returns: `nil` for padding, for a character outside the alphabet, for an impossible length, and
    ///   for unused bits that are not zero: all of these would be a second spelling.
    package static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? { codec.decode(text) }
}

/// The spellings of RFC 4648 differ in two characters and in padding.
private struct Base64Codec: Sendable {
    private let alphabet: [UInt8]
    /// The value of every byte as a character; 255 for those outside the alphabet.
    private let values: [UInt8]
    private let isPadded: Bool

    init(lastTwo: String, isPadded: Bool) {
        alphabet = Array(
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + lastTwo).utf8)
        var values = [UInt8](repeating: 255, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        self.values = values
        self.isPadded = isPadded
    }

    func characterCount(byteCount: Int) -> Int {
        isPadded ? (byteCount + 2) / 3 * 4 : (byteCount * 4 + 2) / 3
    }

    func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        append(bytes, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    func append(_ bytes: [UInt8], to text: inout [UInt8]) {
        let start = text.count
        // What no group reaches is padding, or is not there.
        text.append(
            contentsOf: repeatElement(
                UInt8(ascii: "="), count: characterCount(byteCount: bytes.count)))
        alphabet.withUnsafeBufferPointer { alphabet in
            text.withUnsafeMutableBufferPointer { text in
                var position = start
                var index = 0
                while index + 2 < bytes.count {
                    let group = Int(bytes[index]) << 16 | Int(bytes[index + 1]) << 8 | Int(bytes[index + 2])
                    text[position] = alphabet[group >> 18]
                    text[position + 1] = alphabet[group >> 12 & 63]
                    text[position + 2] = alphabet[group >> 6 & 63]
                    text[position + 3] = alphabet[group & 63]
                    position += 4
                    index += 3
                }
                guard index < bytes.count else { return }
                let second = index + 1 < bytes.count ? Int(bytes[index + 1]) : 0
                let group = Int(bytes[index]) << 16 | second << 8
                text[position] = alphabet[group >> 18]
                text[position + 1] = alphabet[group >> 12 & 63]
                if index + 1 < bytes.count { text[position + 2] = alphabet[group >> 6 & 63] }
            }
        }
    }

    func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var digits = text
        if isPadded {
            guard text.count % 4 == 0 else { return nil }
            // Two digits need two `=`, three need one, and one digit is no byte.
            let padding = text.reversed().prefix(3).prefix { $0 == UInt8(ascii: "=") }.count
            guard padding <= 2 else { return nil }
            digits = text.dropLast(padding)
        }
        guard digits.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count * 3 / 4)
        var pending: UInt32 = 0
        var pendingBits = 0
        for character in digits {
            let value = values[Int(character)]
            guard value < 64 else { return nil }
            pending = pending << 6 | UInt32(value)
            pendingBits += 6
            if pendingBits >= 8 {
                pendingBits -= 8
                bytes.append(UInt8(truncatingIfNeeded: pending >> UInt32(pendingBits)))
                pending &= (1 << UInt32(pendingBits)) - 1
            }
        }
        return pending == 0 ? bytes : nil
    }
}
