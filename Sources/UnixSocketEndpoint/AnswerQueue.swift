import GatewayPipeline
import NIOCore
import WireProtocol

/// What the connection still has to write, in the order the requests came.
///
/// Every request, every line of a stream and every piece of framing between them has a place, so one
/// rule orders them all: what stands first and is ready is written.
struct AnswerQueue {
    /// How the handler's answer is framed.
    enum Frame: Equatable {
        case response(ResponseFrame)
        /// One line of a chunked response.
        case chunkedLine
        /// One line of a response that ends when the connection does (HTTP/1.0).
        case bareLine
    }

    struct ResponseFrame: Equatable {
        /// The answer to HEAD has the headers of a GET and no body.
        var isHead: Bool
        var closes: Bool
    }

    /// Where an answer's content comes from.
    enum Content {
        case answer(Answer)
        /// The endpoint's own refusal, which the handler words when it is written.
        case problem(Problem)
    }

    enum Place {
        /// `isWrite`: the request may change something.
        case waiting(Frame, isWrite: Bool)
        case ready(Frame, Content)
        /// `HTTP/1.1 100 Continue`.
        case interim
        /// The head of a stream's response.
        case streamHead(isChunked: Bool, closes: Bool)
        /// The last chunk.
        case streamEnd(isChunked: Bool, closes: Bool)
        /// The stream broke off: the connection closes without the last chunk, so that no client takes the
        /// answers for complete.
        case streamAborted
    }

    private var places = CircularBuffer<Place>(initialCapacity: 8)
    /// The sequence number of the first place.
    private var first: UInt64 = 0

    var count: Int { places.count }
    var isEmpty: Bool { places.isEmpty }
    private(set) var waitingCount = 0
    /// Requests among those waited for that may change something.
    private(set) var waitingWriteCount = 0

    /// - Returns: The sequence number to give to ``answer(_:with:)``.
    mutating func appendWaiting(_ frame: Frame, isWrite: Bool) -> UInt64 {
        places.append(.waiting(frame, isWrite: isWrite))
        waitingCount += 1
        if isWrite { waitingWriteCount += 1 }
        return first + UInt64(places.count - 1)
    }

    mutating func append(_ place: Place) { places.append(place) }

    mutating func answer(_ sequence: UInt64, with answer: Answer) {
        let index = places.index(places.startIndex, offsetBy: Int(sequence - first))
        guard case .waiting(let frame, let isWrite) = places[index] else {
            preconditionFailure("answer \(sequence) was given twice to one connection")
        }
        places[index] = .ready(frame, .answer(answer))
        waitingCount -= 1
        if isWrite { waitingWriteCount -= 1 }
    }

    /// Takes the first place if it can be written.
    mutating func popReady() -> Place? {
        guard let place = places.first else { return nil }
        if case .waiting = place { return nil }
        places.removeFirst()
        first += 1
        return place
    }

    mutating func removeAll() {
        first += UInt64(places.count)
        places.removeAll()
        waitingCount = 0
        waitingWriteCount = 0
    }
}
