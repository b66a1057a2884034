import CanonicalJSON
import UnixHTTPClient

/// The result of one attempt.
enum AttemptResult: Sendable {
    case answer(SendAnswer)
    case failure(Failure)

    init(_ response: UnixHTTPResponse) {
        self.init(
            status: response.status, json: try? CanonicalJSON.read(response.body),
            retryAfterSeconds: response.header("Retry-After").flatMap { Int($0) })
    }

    /// A line of a stream carries its status in the body.
    init(line: [UInt8]) {
        let json = try? CanonicalJSON.read(line)
        self.init(
            status: json?["status"]?.integerValue.flatMap { Int(exactly: $0) } ?? 0, json: json,
            retryAfterSeconds: nil)
    }

    private init(status: Int, json: JSONValue?, retryAfterSeconds: Int?) {
        if status == 202 || status == 403, let answer = json.flatMap(SendAnswer.init),
            (answer.isPromised || answer.isShadow) == (status == 202)
        {
            self = .answer(answer)
            return
        }
        guard (400..<600).contains(status) else {
            self = .failure(.unreadable(status: status))
            return
        }
        var problem = SendgateProblem(status: status, json)
        problem.retryAfterSeconds = problem.retryAfterSeconds ?? retryAfterSeconds
        self = .failure(.problem(problem))
    }

    /// For an answer that refuses a whole stream, which is never a decision.
    var asFailure: Failure {
        switch self {
        case .failure(let failure): failure
        case .answer: .unreadable(status: 200)
        }
    }
}

/// Why an attempt brought no decision.
enum Failure: Sendable {
    case problem(SendgateProblem)
    case transport(UnixHTTPError)
    case unreadable(status: Int)

    var isWorthRetrying: Bool {
        switch self {
        case .problem(let problem): problem.isTemporary
        case .unreadable: false
        case .transport(let error):
            switch error.cause {
            case .pathTooLong, .serverNotTrusted, .requestMalformed, .cancelled: false
            case .connectFailed, .connectTimedOut, .closed, .systemError, .timedOut, .tooManyQueued,
                .answerTooLarge, .framingTooLarge, .answerMalformed:
                true
            }
        }
    }

    var mayHaveBeenTaken: Bool {
        if case .transport(let error) = self { return error.stage == .unanswered }
        return false
    }

    var retryAfterSeconds: Int? {
        if case .problem(let problem) = self { return problem.retryAfterSeconds }
        return nil
    }

    /// - Parameter mayHaveBeenTaken: Whether this attempt or one before it may have been handled. A later
    ///   503 says nothing about an earlier attempt that was not answered.
    func error(mayHaveBeenTaken: Bool) -> SendgateError {
        switch self {
        case .unreadable(let status): return .unreadableAnswer(status: status)
        case .problem(let problem):
            if !problem.isTemporary { return .refused(problem) }
            return mayHaveBeenTaken
                ? .unanswered("an attempt was not answered, and then: \(problem.title)") : .busy(problem)
        case .transport(let error):
            switch error.cause {
            case .serverNotTrusted(let userID): return .gatewayNotTrusted(userID: userID)
            case .cancelled: return .cancelled(mayHaveBeenTaken: mayHaveBeenTaken)
            default:
                return mayHaveBeenTaken ? .unanswered(error.description) : .unreachable(error.description)
            }
        }
    }
}
