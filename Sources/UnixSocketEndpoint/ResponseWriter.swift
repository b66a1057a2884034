import GateVocabulary
import GatewayPipeline
import Glibc
import NIOCore
import WireProtocol

/// Turns answers into HTTP/1.1 bytes, appended to one buffer per flush.
///
/// SwiftNIO's own encoder goes through a pipeline part and several writes per answer; this is one buffer
/// for as many answers as are ready.
struct ResponseWriter {
    private(set) var buffer: ByteBuffer
    /// Where the size of the chunk being filled stands; neighbouring lines share a chunk.
    private var chunkSizeIndex: Int?

    init(allocator: ByteBufferAllocator) { buffer = allocator.buffer(capacity: 1_024) }

    var byteCount: Int { buffer.readableBytes }

    /// Ends the open chunk, gives the bytes away and starts anew.
    mutating func take() -> ByteBuffer {
        closeChunk()
        let taken = buffer
        // The channel holds `taken` until it is written, so this allocates only while bytes are under way.
        buffer.clear(minimumCapacity: 1_024)
        return taken
    }

    mutating func writeInterim() {
        closeChunk()
        buffer.writeStaticString("HTTP/1.1 100 Continue\r\n\r\n")
    }

    mutating func writeResponse(_ answer: Answer, date: HTTPDate, isHead: Bool, closes: Bool) {
        closeChunk()
        writeStatusLine(answer.status, date)
        if !answer.contentType.isEmpty { writeHeader("Content-Type", answer.contentType) }
        let allowsBody = answer.status >= 200 && answer.status != 204 && answer.status != 304
        let body = allowsBody ? answer.body : []
        if allowsBody {
            buffer.writeStaticString("Content-Length: ")
            writeDecimal(body.count)
            buffer.writeStaticString("\r\n")
        }
        for header in answer.headers { writeHeader(header.name, header.value) }
        if closes { buffer.writeStaticString("Connection: close\r\n") }
        buffer.writeStaticString("\r\n")
        if !isHead { buffer.writeBytes(body) }
    }

    mutating func writeStreamHead(date: HTTPDate, isChunked: Bool, closes: Bool) {
        closeChunk()
        writeStatusLine(200, date)
        writeHeader("Content-Type", "application/x-ndjson")
        if isChunked { buffer.writeStaticString("Transfer-Encoding: chunked\r\n") }
        if closes { buffer.writeStaticString("Connection: close\r\n") }
        buffer.writeStaticString("\r\n")
    }

    mutating func writeLine(_ answer: Answer, isChunked: Bool) {
        if isChunked && chunkSizeIndex == nil {
            chunkSizeIndex = buffer.writerIndex
            buffer.writeStaticString("00000000\r\n")
        }
        // An answer is one line. A raw line feed in JSON can only be white space between tokens, so a space
        // in its place changes nothing but keeps the next answer in its own line.
        let body = answer.body
        if body.contains(UInt8(ascii: "\n")) {
            buffer.writeBytes(body.lazy.map { $0 == UInt8(ascii: "\n") ? UInt8(ascii: " ") : $0 })
        } else {
            buffer.writeBytes(body)
        }
        buffer.writeInteger(UInt8(ascii: "\n"))
    }

    mutating func writeStreamEnd() {
        closeChunk()
        buffer.writeStaticString("0\r\n\r\n")
    }

    private mutating func closeChunk() {
        guard let index = chunkSizeIndex else { return }
        chunkSizeIndex = nil
        let size = buffer.writerIndex - index - 10
        // Leading zeros are allowed in a chunk size (RFC 9112 section 7.1: 1*HEXDIG).
        for digit in 0..<8 {
            let value = UInt8(truncatingIfNeeded: size >> (28 - 4 * digit)) & 15
            let character = value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
            buffer.setInteger(character, at: index + digit)
        }
        buffer.writeStaticString("\r\n")
    }

    private mutating func writeStatusLine(_ status: Int, _ date: HTTPDate) {
        buffer.writeStaticString("HTTP/1.1 ")
        writeDecimal(status)
        buffer.writeStaticString(" ")
        buffer.writeStaticString(Self.phrase(status))
        buffer.writeStaticString("\r\nDate: ")
        buffer.writeBytes(date.bytes)
        buffer.writeStaticString("\r\n")
    }

    /// A line end inside a name or value would let its author write headers of their own.
    private mutating func writeHeader(_ name: String, _ value: String) {
        writeFieldText(name)
        buffer.writeStaticString(": ")
        writeFieldText(value)
        buffer.writeStaticString("\r\n")
    }

    private mutating func writeFieldText(_ text: String) {
        if text.utf8.contains(where: { $0 < 32 || $0 == 127 }) {
            buffer.writeBytes(text.utf8.map { $0 < 32 || $0 == 127 ? UInt8(ascii: " ") : $0 })
        } else {
            buffer.writeString(text)
        }
    }

    private mutating func writeDecimal(_ number: Int) {
        if number < 10 {
            buffer.writeInteger(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number))
        } else {
            writeDecimal(number / 10)
            buffer.writeInteger(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
        }
    }

    /// The phrase is for people who read a capture; clients go by the number (RFC 9112 section 4).
    private static func phrase(_ status: Int) -> StaticString {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 422: "Unprocessable Content"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 503: "Service Unavailable"
        default: ""
        }
    }
}

/// The `Date` of an answer (RFC 9110 section 6.6.1), made once a sweep rather than once an answer.
struct HTTPDate {
    /// E.g. `Sun, 06 Nov 1994 08:49:37 GMT`, always 29 bytes.
    let bytes: [UInt8]

    static func now() -> HTTPDate { HTTPDate(unixSeconds: Int(time(nil))) }

    init(unixSeconds: Int) { bytes = Array(Instant(milliseconds: Int64(unixSeconds) * 1000).httpDate.utf8) }
}
