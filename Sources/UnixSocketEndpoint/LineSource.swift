import NIOCore

/// Cuts a stream's body into lines, holding at most one line more than it was given at once.
///
/// A line ends with LF. One CR right before the LF belongs to the ending (NDJSON allows both, and a tool on
/// another system may write CRLF); a CR anywhere else is part of the line, where JSON reads it as white
/// space. Lines of no bytes are skipped. The last line needs no ending. A line longer than its bound is
/// reported once, as ``Line/tooLong``, and the stream goes on after its LF.
struct LineSource {
    enum Line: Equatable {
        case text([UInt8])
        case tooLong
    }

    private let byteCountMax: Int
    private var buffer = ByteBuffer()
    /// How far behind the reader index the search for LF has got, so that a line that comes byte by byte
    /// is not searched from its start every time.
    private var searched = 0
    /// Inside a line already reported as too long.
    private var isDiscarding = false
    private(set) var isEnded = false

    init(lineByteCountMax: Int) { byteCountMax = lineByteCountMax }

    /// Bytes held.
    var bufferedByteCount: Int { buffer.readableBytes }

    mutating func append(_ bytes: ByteBuffer) {
        precondition(!isEnded, "bytes arrived after the end of a stream")
        var bytes = bytes
        if buffer.readableBytes == 0 {
            buffer = bytes
        } else {
            buffer.discardReadBytes()
            buffer.writeBuffer(&bytes)
        }
    }

    /// No more bytes will come; what is held is the last line.
    mutating func end() { isEnded = true }

    /// No more bytes will come and an unfinished last line is not a line: the stream was cut off.
    mutating func endAtLastCompleteLine() {
        isEnded = true
        let view = buffer.readableBytesView
        let complete = view.lastIndex(of: UInt8(ascii: "\n")).map { $0 - view.startIndex + 1 } ?? 0
        buffer.moveWriterIndex(to: buffer.readerIndex + complete)
        searched = min(searched, complete)
        if complete == 0 { isDiscarding = false }
    }

    /// - Returns: `nil` when no line is complete; with ``isEnded`` that means there are no more.
    mutating func next() -> Line? {
        while true {
            if let position = lineFeed() {
                let wasDiscarding = isDiscarding
                isDiscarding = false
                let line = take(position, endingByteCount: 1)
                if wasDiscarding || line == nil { continue }
                return line
            }
            if isDiscarding {
                buffer.clear()
                searched = 0
            } else if isEnded {
                let count = buffer.readableBytes
                if count == 0 { return nil }
                guard let line = take(count, endingByteCount: 0) else { continue }
                return line
            } else if buffer.readableBytes > byteCountMax + 1 {
                // One byte more than the bound may still be the CR of an ending.
                buffer.clear()
                searched = 0
                isDiscarding = true
                return .tooLong
            }
            if buffer.readableBytes == 0 || !isEnded { return nil }
        }
    }

    private mutating func lineFeed() -> Int? {
        let count = buffer.readableBytes
        guard searched < count else { return nil }
        let found = buffer.readableBytesView[(buffer.readerIndex + searched)...]
            .firstIndex(of: UInt8(ascii: "\n"))
        guard let found else {
            searched = count
            return nil
        }
        return found - buffer.readerIndex
    }

    /// Takes `count` bytes and the ending after them; `nil` for an empty line.
    private mutating func take(_ count: Int, endingByteCount: Int) -> Line? {
        searched = 0
        defer { buffer.moveReaderIndex(forwardBy: count + endingByteCount) }
        var textCount = count
        if endingByteCount == 1, count > 0,
            buffer.getInteger(at: buffer.readerIndex + count - 1, as: UInt8.self) == UInt8(ascii: "\r")
        {
            textCount -= 1
        }
        if textCount == 0 { return nil }
        if textCount > byteCountMax { return .tooLong }
        return .text(buffer.getBytes(at: buffer.readerIndex, length: textCount)!)
    }
}
