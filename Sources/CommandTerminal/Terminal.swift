package import CanonicalJSON

/// Where a command's words go: data to standard output, everything else to standard error of its ``Console``.
package enum Terminal {
    /// One line of data.
    package static func print(_ line: String) {
        Console.current.writeOutput(Array(line.utf8) + [UInt8(ascii: "\n")])
    }

    /// One JSON value as a line of data.
    package static func print(_ object: JSONObject) {
        Console.current.writeOutput(CanonicalJSON.write(object) + [UInt8(ascii: "\n")])
    }

    package static func print(_ bytes: [UInt8]) {
        Console.current.writeOutput(bytes)
    }

    /// One line that is not data.
    package static func note(_ line: String) {
        Console.current.writeErrors(Array((line + "\n").utf8))
    }

    package static func error(_ message: String, hint: String? = nil) {
        note("\(Console.current.program): error: \(printable(message))")
        if let hint { note("\(Console.current.program): hint: \(printable(hint))") }
    }

    package static func warning(_ message: String) {
        note("\(Console.current.program): warning: \(printable(message))")
    }

    /// Text that came from elsewhere, without what would move the cursor or change the colours.
    package static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        return String(
            String.UnicodeScalarView(text.unicodeScalars.map { isControl($0) ? "\u{FFFD}" : $0 }))
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar != "\n" && (scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value))
    }
}
