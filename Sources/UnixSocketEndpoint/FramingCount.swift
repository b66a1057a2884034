/// The bytes of one request that are not its body: the head, chunk-size lines with their extensions, line ends, trailers, and
/// what the parser skips without a word, such as blank lines before a request and white space around a value.
///
/// The parser says which bytes were body and nothing of the others, so they are what it was given less what it gave back. Where
/// a request ends within a piece of the input, the rest of that piece is not counted, because it may belong to either side:
/// the count is never too high, and too low by at most one piece (``InboundMeter/pieceByteCountMax``) at each end.
struct FramingCount: Equatable {
    private(set) var byteCount = 0
    /// Since the last byte of the body.
    private(set) var runByteCount = 0
    private(set) var bodyByteCount = 0

    /// Framing bytes that a stream may have for each byte of its body. The shortest chunk, of one byte, has five (RFC 9112
    /// section 7.1), so plain chunks of any size pass.
    static let perBodyByteMax = 8

    /// Adds a piece of the input, of which the parser gave `bodyByteCount` bytes back as body.
    mutating func add(byteCount: Int, bodyByteCount: Int) {
        self.byteCount += byteCount - bodyByteCount
        self.bodyByteCount += bodyByteCount
        runByteCount = bodyByteCount > 0 ? 0 : runByteCount + byteCount
    }

    /// Whether a request that is handled as one has more than its head may have.
    func isTooLong(_ limits: EndpointLimits) -> Bool { byteCount > Self.byteCountMax(limits) }

    /// Whether a stream has more in one place than a head may have, or more in all than its body explains.
    func isTooLongForStream(_ limits: EndpointLimits) -> Bool {
        let max = Self.byteCountMax(limits)
        return runByteCount > max || byteCount > max + Self.perBodyByteMax * bodyByteCount
    }

    /// The empty line that ends a head does not count towards its bound.
    private static func byteCountMax(_ limits: EndpointLimits) -> Int { limits.headerByteCountMax + 2 }
}
