import NIOCore
import NIOHTTP1

/// What a server says to the opening of a stream.
package enum UnixHTTPStreamOpening: Sendable {
    case open(UnixHTTPStream)
    /// Any other status than 200, with the whole answer. No line was handled.
    case refused(UnixHTTPResponse)
}

/// The reading side of one live stream. Only the connection's event loop touches it.
final class StreamExchange {
    enum Progress {
        case goesOn
        case isOver
        case fails(UnixHTTPError.Cause)
    }

    /// The answer to the head: `nil` for 200, or a refusal in full.
    let opened: EventLoopPromise<UnixHTTPResponse?>
    var writers: [EventLoopPromise<Void>] = []
    private let answersBufferedMax: Int
    private let path: String
    private var answers = CircularBuffer<[UInt8]>()
    private var partial = ByteBuffer()
    private var searched = 0
    private var waiting: (promise: EventLoopPromise<[UInt8]?>, timer: Scheduled<Void>)?
    private var refusal: UnixHTTPResponse?
    private var isOpened = false
    /// All answers have come in order.
    private var isComplete = false
    private var failure: UnixHTTPError?

    init(_ opened: EventLoopPromise<UnixHTTPResponse?>, configuration: UnixHTTPClientConfiguration) {
        self.opened = opened
        answersBufferedMax = configuration.streamAnswersBufferedMax
        path = configuration.path
    }

    /// Reading stops until the caller asks for an answer.
    var isFull: Bool { answers.count >= answersBufferedMax }

    func read(_ part: HTTPClientResponsePart, answerByteCountMax: Int) -> Progress {
        switch part {
        case .head(let head):
            if head.status == .ok {
                isOpened = true
                opened.succeed(nil)
            } else {
                refusal = UnixHTTPResponse(
                    status: Int(head.status.code), headers: head.headers.map { ($0.name, $0.value) }, body: []
                )
            }
            return .goesOn
        case .body(var bytes):
            if refusal != nil {
                guard refusal!.body.count + bytes.readableBytes <= answerByteCountMax else {
                    return .fails(.answerTooLarge(byteCountMax: answerByteCountMax))
                }
                refusal!.body.append(contentsOf: bytes.readableBytesView)
                return .goesOn
            }
            partial.discardReadBytes()
            partial.writeBuffer(&bytes)
            return cutLines(answerByteCountMax)
        case .end:
            if let refusal {
                isOpened = true
                opened.succeed(refusal)
                return .isOver
            }
            if partial.readableBytes > 0 { return .fails(.answerMalformed) }
            isComplete = true
            if let waiting, answers.isEmpty {
                self.waiting = nil
                waiting.timer.cancel()
                waiting.promise.succeed(nil)
            }
            return .isOver
        }
    }

    private func cutLines(_ answerByteCountMax: Int) -> Progress {
        while true {
            let view = partial.readableBytesView
            guard let feed = view[(view.startIndex + searched)...].firstIndex(of: UInt8(ascii: "\n")) else {
                searched = view.count
                return view.count > answerByteCountMax
                    ? .fails(.answerTooLarge(byteCountMax: answerByteCountMax)) : .goesOn
            }
            let line = partial.readBytes(length: feed - view.startIndex)!
            partial.moveReaderIndex(forwardBy: 1)
            searched = 0
            if line.isEmpty { continue }
            if let waiting {
                self.waiting = nil
                waiting.timer.cancel()
                waiting.promise.succeed(line)
            } else {
                answers.append(line)
            }
        }
    }

    /// - Precondition: No other task waits; a stream has one reader.
    func next(_ timeoutMilliseconds: Int64) -> EventLoopFuture<[UInt8]?> {
        let loop = opened.futureResult.eventLoop
        if let answer = answers.popFirst() { return loop.makeSucceededFuture(answer) }
        if isComplete { return loop.makeSucceededFuture(nil) }
        if let failure { return loop.makeFailedFuture(failure) }
        precondition(waiting == nil, "two tasks wait for the answers of one stream")
        let promise = loop.makePromise(of: [UInt8]?.self)
        let timer = loop.assumeIsolated().scheduleTask(in: .milliseconds(timeoutMilliseconds)) {
            self.waiting = nil
            promise.fail(
                UnixHTTPError(.unanswered, .timedOut(milliseconds: timeoutMilliseconds), path: self.path))
        }
        waiting = (promise, timer)
        return promise.futureResult
    }

    /// The connection is gone. What had come is still given out.
    func end(_ error: UnixHTTPError) {
        if failure == nil { failure = error }
        if !isOpened {
            isOpened = true
            opened.fail(error)
        }
        for writer in writers { writer.fail(error) }
        writers = []
        if let waiting {
            self.waiting = nil
            waiting.timer.cancel()
            waiting.promise.fail(error)
        }
    }
}
