import BundleModel

/// The text of one file of a bundle, known to be readable the same way by everybody.
///
/// Valid UTF-8 without a byte order mark, lines end in LF, and no character in it is invisible or
/// reorders its neighbours: what a reviewer saw is what the gateway reads.
struct SourceText {
    let file: String
    let bytes: [UInt8]
    let text: String
    /// The offset of the first byte of every line.
    private let lineStarts: [Int]

    /// - Parameter allowsTab: Off for YAML, where a tab looks like indentation and is none.
    init(_ bytes: [UInt8], file: String, allowsTab: Bool) throws(PolicyDiagnostics) {
        let byteCountMax = PolicyFileLimits.byteCountMax(of: file)
        guard bytes.count <= byteCountMax else {
            throw PolicyDiagnostics([
                PolicyDiagnostic(
                    file: file,
                    message: "is longer than \(byteCountMax) bytes",
                    hint: "one idea per file; split it")
            ])
        }
        self.file = file
        self.bytes = bytes
        var starts = [0]
        for (offset, byte) in bytes.enumerated() where byte == UInt8(ascii: "\n") {
            starts.append(offset + 1)
        }
        lineStarts = starts
        guard let text = String(validating: bytes, as: UTF8.self) else {
            self.text = ""
            let place = location(ofByte: Self.firstInvalidByte(of: bytes))
            throw PolicyDiagnostics([
                PolicyDiagnostic(
                    file: file, at: place, "is not UTF-8 from here on", hint: "save the file as UTF-8")
            ])
        }
        self.text = text
        let diagnostics = unreadable(allowsTab: allowsTab)
        guard diagnostics.isEmpty else { throw PolicyDiagnostics(diagnostics) }
    }

    var isEmpty: Bool { bytes.isEmpty }

    /// The byte at a place that libyaml named, which counts lines from 1 and columns in Unicode scalars
    /// from 1; `nil` past the end.
    func byte(line: Int, column: Int) -> UInt8? {
        guard lineStarts.indices.contains(line - 1) else { return nil }
        var offset = lineStarts[line - 1]
        var left = column - 1
        while left > 0, offset < bytes.count {
            offset += 1
            while offset < bytes.count, bytes[offset] & 0xC0 == 0x80 { offset += 1 }
            left -= 1
        }
        return offset < bytes.count ? bytes[offset] : nil
    }

    /// The bytes of a line, counted from 1, without its end.
    func line(_ number: Int) -> ArraySlice<UInt8>? {
        guard lineStarts.indices.contains(number - 1) else { return nil }
        let end = number < lineStarts.count ? lineStarts[number] - 1 : bytes.count
        return bytes[lineStarts[number - 1]..<end]
    }

    var lineCount: Int { lineStarts.count }

    func location(ofByte offset: Int) -> SourceLocation {
        var low = 0
        var high = lineStarts.count - 1
        while low < high {
            let middle = (low + high + 1) / 2
            if lineStarts[middle] <= offset { low = middle } else { high = middle - 1 }
        }
        let before = bytes[lineStarts[low]..<min(offset, bytes.count)]
        let column = before.reduce(1) { $1 & 0xC0 == 0x80 ? $0 : $0 + 1 }
        return SourceLocation(file: file, line: low + 1, column: column)
    }

    // MARK: Characters that no page should have

    private static func firstInvalidByte(of bytes: [UInt8]) -> Int {
        var decoder = Unicode.UTF8.ForwardParser()
        var input = bytes.makeIterator()
        var offset = 0
        while true {
            switch decoder.parseScalar(from: &input) {
            case .valid(let scalar): offset += scalar.count
            case .emptyInput, .error: return min(offset, max(bytes.count - 1, 0))
            }
        }
    }

    /// What is wrong with a character wherever it stands; `nil` for one that may be there.
    ///
    /// The list is what libyaml and YAML 1.2 would break lines at differently (NEL, LS, PS), what C
    /// libraries stop at (NUL), the other controls, and the marks that reorder text on a screen
    /// (CVE-2021-42574, "Trojan Source").
    static func fault(of scalar: Unicode.Scalar) -> String? {
        switch scalar.value {
        case 0x0A: nil
        case 0x09: "a tab"
        case 0x0D: "a carriage return"
        case 0x00...0x1F, 0x7F, 0x80...0x84, 0x86...0x9F: "a control character"
        case 0x85, 0x2028, 0x2029: "a line separator that not every reader takes for one"
        case 0x202A...0x202E, 0x2066...0x2069: "a mark that reorders the text on a screen"
        case 0xFEFF: "a byte order mark"
        default: nil
        }
    }

    private static func hint(for scalar: Unicode.Scalar) -> String {
        switch scalar.value {
        case 0x09: "use spaces"
        case 0x0D: "end lines with LF alone"
        case 0xFEFF: "save the file without it"
        default: "remove it"
        }
    }

    /// The first of every kind of character that may not be there.
    private func unreadable(allowsTab: Bool) -> [PolicyDiagnostic] {
        // Nearly every file is plain text throughout, and this pass finds that out eight times faster
        // than looking at scalars.
        let isSuspect: (UInt8) -> Bool = { byte in
            (byte < 0x20 && byte != 0x0A) || byte == 0x7F || byte == 0xC2 || byte == 0xE2 || byte == 0xEF
        }
        guard bytes.contains(where: isSuspect) else { return [] }
        var diagnostics: [PolicyDiagnostic] = []
        var told: Set<String> = []
        var offset = 0
        for scalar in text.unicodeScalars {
            defer { offset += UTF8.width(scalar) }
            guard scalar.value < 0x20 || scalar.value >= 0x7F, let fault = Self.fault(of: scalar) else {
                continue
            }
            if allowsTab, scalar.value == 0x09 { continue }
            guard told.insert(fault).inserted else { continue }
            diagnostics.append(
                PolicyDiagnostic(
                    file: file, at: location(ofByte: offset),
                    "has \(fault) (U+\(String(scalar.value, radix: 16, uppercase: true).leftPadded))",
                    hint: Self.hint(for: scalar)))
        }
        return diagnostics
    }
}

extension String {
    /// At least four digits, as Unicode writes a code point.
    fileprivate var leftPadded: String { String(repeating: "0", count: Swift.max(0, 4 - count)) + self }
}
