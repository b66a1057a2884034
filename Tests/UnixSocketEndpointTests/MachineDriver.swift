import GatewayPipeline
import NIOCore
import NIOHTTP1
import WireProtocol

@testable import UnixSocketEndpoint

/// A connection's machine without a connection: takes events, answers what the machine asks, keeps what it does as text.
struct MachineDriver {
    var limits: EndpointLimits
    var machine: HTTPConnectionStateMachine
    /// Whether the shared bounds have a place for the next request.
    var admits = true
    /// Whether the shared bounds have bytes left for the next body.
    var reserves = true
    /// What ``ConnectionAction/measureOutput`` finds.
    var unwrittenByteCount = 0
    /// Places and bytes of the shared bounds that the connection has taken and not given back.
    var reservedByteCount = 0

    init(_ limits: EndpointLimits = EndpointLimits(), isDraining: Bool = false) {
        self.limits = limits
        machine = HTTPConnectionStateMachine(limits: limits, isDraining: isDraining)
    }

    /// Performs what follows from the events.
    ///
    /// - Returns: Every action, in words.
    @discardableResult mutating func take(_ events: ConnectionEvent...) -> [String] {
        events.flatMap { event in
            machine.handle(event)
            return perform()
        }
    }

    /// A request that the parser reads as a whole, and what follows at the end of the read.
    @discardableResult mutating func request(
        _ method: HTTPMethod = .POST, _ target: String = "/v1/sends", body: String = "", closes: Bool = false
    ) -> [String] {
        var actions = take(
            .received(byteCount: 100), .head(head(method, target, byteCount: body.utf8.count, closes: closes))
        )
        if !body.isEmpty { actions += take(.body(ByteBuffer(string: body))) }
        return actions + take(.end, .parsed, .readComplete)
    }

    /// An answer of the handler, delivered alone.
    @discardableResult mutating func answer(_ text: String, to sequence: UInt64) -> [String] {
        take(
            .answer(Answer(status: 200, body: Array(text.utf8)), sequence: sequence), .answersDelivered)
    }

    func head(
        _ method: HTTPMethod = .POST, _ target: String = "/v1/sends", byteCount: Int = 0,
        closes: Bool = false, expectsContinue: Bool = false
    ) -> Result<RequestFraming, RefusedHead> {
        var headers = [("Host", "gate")]
        if byteCount > 0 { headers.append(("Content-Length", "\(byteCount)")) }
        if closes { headers.append(("Connection", "close")) }
        if expectsContinue { headers.append(("Expect", "100-continue")) }
        return framing(method, target, headers)
    }

    var liveHead: Result<RequestFraming, RefusedHead> {
        framing(
            .POST, RequestFraming.streamTargets[0],
            [("Host", "gate"), ("Sendgate-Stream", "live"), ("Transfer-Encoding", "chunked")])
    }

    private func framing(
        _ method: HTTPMethod, _ target: String, _ headers: [(String, String)]
    ) -> Result<RequestFraming, RefusedHead> {
        Result { () throws(RefusedHead) in
            try RequestFraming(
                HTTPRequestHead(
                    version: .http1_1, method: method, uri: target, headers: HTTPHeaders(headers)),
                limits: limits)
        }
    }

    private mutating func perform() -> [String] {
        var performed: [String] = []
        while let action = machine.nextAction() {
            performed.append(Self.words(action))
            switch action {
            case .admitRequest: machine.handle(.admission(isGranted: admits))
            case .reserveBytes(let count):
                if reserves { reservedByteCount += count }
                machine.handle(.reservation(byteCount: count, isGranted: reserves))
            case .releaseBytes(let count): reservedByteCount -= count
            case .measureOutput:
                machine.handle(
                    .outputMeasured(
                        OutputMeasure(unwrittenByteCount: unwrittenByteCount, writtenByteCount: 0)))
            case .handle, .write, .flush, .read, .arm, .disarm, .resumeLater, .record, .endOutput, .close:
                break
            }
        }
        return performed
    }

    var stateName: String {
        switch machine.state {
        case .idle: "idle"
        case .head: "head"
        case .body: "body"
        case .stream: "stream"
        case .answering(.lastRequest): "answering the last"
        case .answering(.cutShort): "answering"
        case .lingering(let lingering):
            lingering.closesWhenWritten ? "closing when written" : "lingering"
        case .closed: "closed"
        }
    }

    static func words(_ action: ConnectionAction) -> String {
        switch action {
        case .admitRequest: "admit"
        case .handle(let request, let sequence):
            "handle \(sequence): \(request.kind == .streamLine ? "line" : "\(request.method) \(request.target)")"
                + (request.body.isEmpty ? "" : " " + String(decoding: request.body.prefix(20), as: UTF8.self))
        case .reserveBytes(let count): "reserve \(count)"
        case .releaseBytes(let count): "release \(count)"
        case .write(let part): "write " + words(part)
        case .flush: "flush"
        case .read: "read"
        case .arm(let timer): "arm \(timer)"
        case .disarm(let timer): "disarm \(timer)"
        case .measureOutput: "measure"
        case .resumeLater: "resume later"
        case .record(let incident): "record \(incident)"
        case .endOutput: "end output"
        case .close: "close"
        }
    }

    private static func words(_ part: ResponsePart) -> String {
        switch part {
        case .interim: "100"
        case .response(let answer, let isHead, let closes):
            words(answer) + (isHead ? ", head only" : "") + (closes ? ", closes" : "")
        case .streamHead(let isChunked, let closes):
            "stream head" + (isChunked ? "" : ", bare") + (closes ? ", closes" : "")
        case .line(let answer, let isChunked): "line " + words(answer) + (isChunked ? "" : ", bare")
        case .lastChunk: "last chunk"
        }
    }

    /// Its name, with the bound that it tells: `bodyTooLarge 4`.
    private static func words(_ problem: Problem) -> String {
        let bound = (problem.detail ?? "").split { !$0.isNumber }.last
        let hasBound = [.bodyTooLarge, .headersTooLarge, .requestTimeout, .tooManyLines].contains(
            problem.name)
        return "\(problem.name)" + (hasBound ? " \(bound ?? "")" : "")
    }

    private static func words(_ answer: AnswerQueue.Content) -> String {
        switch answer {
        case .answer(let answer): String(decoding: answer.body, as: UTF8.self)
        case .problem(let problem): words(problem)
        }
    }
}
