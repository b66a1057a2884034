import Glibc

/// Why a request has no answer, and what that says about whether it was handled.
package struct UnixHTTPError: Error, Hashable, Sendable {
    /// The one thing a caller must know before it tries again.
    package enum Stage: Hashable, Sendable {
        /// The last byte never left for the server, so it cannot have handled the request.
        case neverWritten
        /// The request may have been handled, or may still be: repeat it only if repeating is safe.
        case unanswered
    }

    /// What went wrong.
    package enum Cause: Hashable, Sendable {
        case pathTooLong(byteCount: Int)
        /// `connect` failed.
        case connectFailed(errorNumber: Int32)
        case connectTimedOut(milliseconds: Int64)
        /// Another user than the configured ones listens on the path.
        case serverNotTrusted(userID: UInt32)
        /// The connection ended.
        case closed
        case systemError(errorNumber: Int32)
        case timedOut(milliseconds: Int64)
        case tooManyQueued(countMax: Int)
        case answerTooLarge(byteCountMax: Int)
        /// What came besides the answer's body: its head, interim answers, chunk extensions, trailers.
        case framingTooLarge(byteCountMax: Int)
        case answerMalformed
        case cancelled
        /// The request cannot be written as HTTP: a target or header with a space or control character.
        case requestMalformed
    }

    package var stage: Stage
    package var cause: Cause
    package var path: String

    package init(_ stage: Stage, _ cause: Cause, path: String) {
        self.stage = stage
        self.cause = cause
        self.path = path
    }
}

extension UnixHTTPError: CustomStringConvertible {
    package var description: String {
        let what =
            switch cause {
            case .pathTooLong(let count): "the socket path has \(count) bytes, 107 are allowed"
            case .connectFailed(let number): "cannot connect: \(String(cString: strerror(number)))"
            case .connectTimedOut(let milliseconds): "not connected within \(milliseconds) ms"
            case .serverNotTrusted(let user): "the server runs as user \(user), which is not configured"
            case .closed: "the server closed the connection"
            case .systemError(let number): "the connection failed: \(String(cString: strerror(number)))"
            case .timedOut(let milliseconds): "no answer within \(milliseconds) ms"
            case .tooManyQueued(let max): "\(max) requests already wait for this connection"
            case .answerTooLarge(let max): "the answer is longer than \(max) bytes"
            case .framingTooLarge(let max): "the answer's header and framing are longer than \(max) bytes"
            case .answerMalformed: "the answer is not HTTP/1.1"
            case .cancelled: "the request was cancelled"
            case .requestMalformed: "the request has a character HTTP does not allow there"
            }
        let known =
            stage == .neverWritten ? "the request was not sent" : "whether it was handled is not known"
        return "`\(path)`: \(what); \(known)"
    }

    /// The next step, for its own line.
    package var hint: String {
        switch cause {
        case .connectFailed(let number) where number == ENOENT || number == ECONNREFUSED:
            "is the gateway running, and is this its socket?"
        case .connectFailed(let number) where number == EACCES:
            "this user needs write permission on the socket and search permission on its directory"
        case .pathTooLong, .connectFailed: "check the socket's path"
        case .serverNotTrusted: "find out who listens there before anything is sent to it"
        case .requestMalformed: "percent-encode the target"
        case .closed, .systemError, .timedOut, .connectTimedOut, .tooManyQueued, .cancelled:
            stage == .neverWritten ? "try again" : "try again with the same id: a repeated id is sent once"
        case .answerTooLarge, .framingTooLarge, .answerMalformed: "is this the gateway's socket?"
        }
    }
}
