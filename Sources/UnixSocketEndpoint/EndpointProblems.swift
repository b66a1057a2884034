import WireProtocol

/// What the endpoint refuses itself, before a request reaches its handler.
extension Problem {
    /// 400: not HTTP/1.1, or framing that contradicts itself.
    static let malformedRequest = Problem(
        .malformedRequest,
        detail:
            "send HTTP/1.1 as RFC 9112 has it: one `Host`, one framing of the body, no folded header lines")

    /// 413: the body, or one line, is over its bound in bytes.
    static func bodyTooLarge(byteCountMax most: Int) -> Problem {
        Problem(.bodyTooLarge, detail: "at most \(most) bytes are accepted")
    }

    /// 431: the header section is over its bound in bytes.
    static func headersTooLarge(byteCountMax most: Int) -> Problem {
        Problem(.headersTooLarge, detail: "at most \(most) bytes are accepted")
    }

    /// 408: the request was not complete within its time.
    static func requestTimeout(milliseconds: Int64) -> Problem {
        Problem(.requestTimeout, detail: "the request was not complete after \(milliseconds) ms")
    }

    /// 429: too many requests of this peer, or in all, are under way.
    static let tooManyInFlight = Problem(
        .tooManyInFlight, detail: "wait for answers before asking for more")

    /// 503: the gateway is draining and takes nothing new.
    static let draining = Problem(.draining, detail: "send the same id again when the gateway is back")

    /// 422: a stream has more lines than its bound.
    static func tooManyLines(lineCountMax most: Int) -> Problem {
        Problem(.tooManyLines, detail: "at most \(most) lines are accepted")
    }
}
