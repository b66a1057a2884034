import Glibc

/// The text of a file, piece by piece: never more of it in memory than one record needs.
struct ImportText: ~Copyable {
    private let descriptor: Int32
    private var decoder: TextDecoder?
    private let declared: TextEncoding
    private(set) var isAtEnd = false
    /// Decoded and not used up.
    private(set) var bytes: [UInt8] = []
    /// Where the next record begins in ``bytes``.
    private(set) var start = 0
    /// Lines that were used up.
    private(set) var lineCount = 0

    init(descriptor: consuming Int32, encoding: TextEncoding) {
        self.descriptor = descriptor
        declared = encoding
    }

    deinit { close(descriptor) }

    /// Reads on until a whole record certainly lies in ``bytes``, or the file ends.
    mutating func fill() throws(ImportFileError) {
        while !isAtEnd, bytes.count - start <= ImportLimits.recordByteCountMax {
            if start > 0 {
                bytes.removeFirst(start)
                start = 0
            }
            try readOn()
        }
    }

    private mutating func readOn() throws(ImportFileError) {
        var piece = [UInt8](repeating: 0, count: ImportLimits.readByteCount)
        let count = piece.withUnsafeMutableBytes { read(descriptor, $0.baseAddress!, $0.count) }
        if count < 0, errno == EINTR { return }
        guard count >= 0 else { throw .unreadable(String(cString: strerror(errno))) }
        isAtEnd = count == 0
        var content = piece[..<count]
        if decoder == nil {
            let marked = TextEncoding.marked(content)
            decoder = TextDecoder(marked?.encoding ?? declared)
            content = content.dropFirst(marked?.byteCount ?? 0)
        }
        try decoder?.decode(content, isLast: isAtEnd, into: &bytes)
    }

    /// Uses up everything before a place in ``bytes``.
    mutating func advance(to end: Int) {
        for place in start..<end where bytes[place] == UInt8(ascii: "\n") { lineCount += 1 }
        start = end
    }

    /// Uses up the line that begins here, however long it is.
    mutating func skipLine() throws(ImportFileError) {
        while true {
            try fill()
            if let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) { return advance(to: end + 1) }
            advance(to: bytes.count)
            if isAtEnd { return }
        }
    }

    var isEmpty: Bool { isAtEnd && start == bytes.count }
}

/// One record of a file.
package struct ImportRecord: Sendable {
    /// The line where it begins, from 1.
    package let line: Int
    package let content: Result<ImportRow, RecordProblem>
}

/// What a record holds, or where a line holds it.
package enum ImportRow: Sendable {
    /// In the order of the header.
    case fields([String])
    /// One line of JSON.
    case json([UInt8])
}

/// Why one record is passed over.
package struct RecordProblem: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { detail }

    /// A stable name beside those of the gateway's problems.
    package var reason: String
    package var detail: String

    package init(_ reason: String, _ detail: String) { (self.reason, self.detail) = (reason, detail) }
}
