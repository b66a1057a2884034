import NIOCore
import Testing

@testable import UnixSocketEndpoint

@Suite struct LineSourceTests {
    /// Feeds `text` in pieces of `step` bytes and collects what comes out.
    private func lines(of text: String, step: Int, max: Int = 8) -> [String] {
        var source = LineSource(lineByteCountMax: max)
        var lines: [String] = []
        func drain() {
            while let line = source.next() {
                switch line {
                case .text(let bytes): lines.append(String(decoding: bytes, as: UTF8.self))
                case .tooLong: lines.append("<too long>")
                }
            }
        }
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: step) {
            source.append(ByteBuffer(bytes: bytes[start..<min(start + step, bytes.count)]))
            drain()
            #expect(source.bufferedByteCount <= max + 1, "more than a line is held between reads")
        }
        source.end()
        drain()
        #expect(source.next() == nil)
        return lines
    }

    @Test(arguments: [
        ("two lines", "a\nb\n", ["a", "b"]),
        ("a last line without its ending", "a\nb", ["a", "b"]),
        ("CRLF endings", "a\r\nb\r\n", ["a", "b"]),
        ("empty lines are skipped", "\n\r\n\na\n\n", ["a"]),
        ("a CR inside a line stays", "a\rb\n", ["a\rb"]),
        ("a CR at the end of the stream stays", "a\r", ["a\r"]),
        ("only one CR belongs to the ending", "a\r\r\n", ["a\r"]),
        ("exactly as long as allowed", "12345678\n12345678", ["12345678", "12345678"]),
        ("exactly as long as allowed, CRLF", "12345678\r\n1\n", ["12345678", "1"]),
        ("one byte too long", "123456789\nb\n", ["<too long>", "b"]),
        ("one byte too long, CRLF", "123456789\r\nb\n", ["<too long>", "b"]),
        ("far too long, told once", "12345678901234567890123456789\nb\n", ["<too long>", "b"]),
        ("too long at the end", "a\n123456789", ["a", "<too long>"]),
        ("too long twice", "1234567890\n1234567890\nb", ["<too long>", "<too long>", "b"]),
        ("nothing", "", []),
    ])
    func `lines are the same however the bytes arrive`(name: String, text: String, expected: [String]) {
        for step in 1...max(1, text.utf8.count) {
            #expect(lines(of: text, step: step) == expected, "\(name)")
        }
    }

    @Test func `a stream that was cut off has no unfinished last line`() {
        var source = LineSource(lineByteCountMax: 8)
        source.append(ByteBuffer(string: "a\nb\nunfin"))
        #expect(source.next() == .text(Array("a".utf8)))
        source.endAtLastCompleteLine()
        #expect(source.next() == .text(Array("b".utf8)))
        #expect(source.next() == nil)
        #expect(source.bufferedByteCount == 0)
    }

    @Test func `a stream cut off inside a line that is too long just ends`() {
        var source = LineSource(lineByteCountMax: 4)
        source.append(ByteBuffer(string: "123456789"))
        #expect(source.next() == .tooLong)
        source.append(ByteBuffer(string: "more"))
        source.endAtLastCompleteLine()
        #expect(source.next() == nil)
    }
}
