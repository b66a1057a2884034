import NIOCore

/// A request whose head has come and whose body is coming. Holds no more than its bounds allow.
struct RequestAssembly {
    enum Refusal: Error, Equatable {
        case tooLong(byteCountMax: Int)
        case tooManyLines(lineCountMax: Int)
    }

    let framing: RequestFraming
    private let byteCountMax: Int
    private let lineCountMax: Int
    private var batch = ByteBuffer()
    private var lineFeedCount = 0
    private var endsWithLineFeed = true
    private let lineByteCountMax: Int

    /// The body of a single request.
    private(set) var body: [UInt8] = []
    private(set) var byteCount = 0
    /// What the connection has taken of the shared bound for this body.
    var reservedByteCount = 0

    init(_ framing: RequestFraming, limits: EndpointLimits) {
        self.framing = framing
        byteCountMax = framing.bodyByteCountMax(limits)
        lineCountMax = limits.batchLineCountMax
        lineByteCountMax = limits.requestByteCountMax
    }

    /// Reserves memory for a declared length, which the framing has checked against its bound.
    mutating func expect(byteCount: Int) {
        if framing.route == .single { body.reserveCapacity(byteCount) }
    }

    mutating func append(_ bytes: ByteBuffer) throws(Refusal) {
        byteCount += bytes.readableBytes
        if byteCount > byteCountMax { throw .tooLong(byteCountMax: byteCountMax) }
        guard framing.route != .single else {
            body.append(contentsOf: bytes.readableBytesView)
            return
        }
        for byte in bytes.readableBytesView where byte == UInt8(ascii: "\n") { lineFeedCount += 1 }
        endsWithLineFeed = bytes.readableBytesView.last == UInt8(ascii: "\n")
        if lineFeedCount + (endsWithLineFeed ? 0 : 1) > lineCountMax {
            throw .tooManyLines(lineCountMax: lineCountMax)
        }
        var bytes = bytes
        batch.writeBuffer(&bytes)
    }

    /// The lines of a batch, all of them.
    var lines: LineSource {
        var source = LineSource(lineByteCountMax: lineByteCountMax)
        source.append(batch)
        source.end()
        return source
    }
}
