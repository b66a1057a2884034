/// Base64 with the URL alphabet and no padding (RFC 4648 section 5). One spelling per value.
package enum Base64URL {
    package static func characterCount(byteCount: Int) -> Int { (byteCount * 4 + 2) / 3 }

    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        append(bytes, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends the characters of `bytes` to `text`.
    package static func append(_ bytes: [UInt8], to text: inout [UInt8]) {
        let start = text.count
        text.append(contentsOf: repeatElement(0, count: characterCount(byteCount: bytes.count)))
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

    package static func decode(_ text: String) -> [UInt8]? {
        decode(Array(text.utf8)[...])
    }

    /// - Returns: `nil` for padding, for a character outside the alphabet, for an impossible length, and
    ///   for unused bits that are not zero: all of these would be a second spelling.
    package static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        var pending: UInt32 = 0
        var pendingBits = 0
        for character in text {
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

    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The value of every byte as a character; 255 for those outside the alphabet.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 255, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()
}
