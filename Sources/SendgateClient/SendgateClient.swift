import CanonicalJSON
import UnixHTTPClient

/// Sends through a sendgate gateway on this machine.
///
/// ```swift
/// let gate = SendgateClient(socketPath: "/run/sendgate/remittance.sock")
/// let answer = try await gate.send(
///     Send(id: "rem-8812736-sent", type: "transaction.remittance_sent", recipient: "u_42"))
/// if !answer.isPromised { log("not sent: \(answer.reason)") }
/// ```
///
/// A lost answer looks like a failure and is none: the client repeats it with the same id, and the gateway
/// sends a repeated id once. Make one client and share it; it keeps one connection, on which many sends are
/// under way at once.
public final class SendgateClient: Sendable {
    private let http: UnixHTTPClient
    private let retry: RetryPolicy
    private let timeoutMilliseconds: Int64

    /// - Parameters:
    ///   - socketPath: Absolute, at most 107 bytes.
    ///   - gatewayUserIDs: The users the gateway may run as; the kernel says who listens. Under systemd's
    ///     socket activation that is 0. `nil` trusts any process that could make the socket, which the mode of its
    ///     directory decides.
    ///   - timeoutMilliseconds: For one attempt; in a stream, for the next answer.
    public init(
        socketPath: String, gatewayUserIDs: Set<UInt32>? = nil, timeoutMilliseconds: Int64 = 10_000,
        retry: RetryPolicy = RetryPolicy()
    ) {
        http = UnixHTTPClient(
            UnixHTTPClientConfiguration(path: socketPath, serverUserIDs: gatewayUserIDs))
        self.timeoutMilliseconds = max(1, timeoutMilliseconds)
        self.retry = retry
    }

    /// Closes the connection. The client can still be used; it connects again.
    public func close() async { await http.close() }

    // MARK: One send

    /// Asks for one send and returns the gateway's decision, also when that is a refusal: look at
    /// ``SendAnswer/isPromised``.
    ///
    /// Tries again, with the same id, what was not answered, what could not be written, 429 and 503.
    public func send(_ send: Send) async throws(SendgateError) -> SendAnswer {
        let body = try send.encoded()
        var mayHaveBeenTaken = false
        var attempt = 1
        while true {
            let failure: Failure
            switch await attemptOnce(body) {
            case .answer(let answer): return answer
            case .failure(let reason): failure = reason
            }
            mayHaveBeenTaken = mayHaveBeenTaken || failure.mayHaveBeenTaken
            guard failure.isWorthRetrying,
                await pause(after: attempt, retryAfterSeconds: failure.retryAfterSeconds)
            else {
                if Task.isCancelled { throw .cancelled(mayHaveBeenTaken: mayHaveBeenTaken) }
                throw failure.error(mayHaveBeenTaken: mayHaveBeenTaken)
            }
            attempt += 1
        }
    }

    private func attemptOnce(_ body: [UInt8]) async -> AttemptResult {
        do throws(UnixHTTPError) {
            let response = try await http.request(
                "POST", "/v1/sends", headers: [("Content-Type", "application/json")], body: body,
                timeoutMilliseconds: timeoutMilliseconds)
            return AttemptResult(response)
        } catch {
            return .failure(.transport(error))
        }
    }

    /// - Returns: Whether to try again, after the wait.
    private func pause(after attempt: Int, retryAfterSeconds: Int?) async -> Bool {
        let wait = retry.wait(
            after: attempt, retryAfterSeconds: retryAfterSeconds, fraction: Double.random(in: 0...1))
        guard let wait else { return false }
        do {
            try await Task.sleep(for: .milliseconds(wait))
            return true
        } catch {
            return false
        }
    }

    // MARK: Many sends

    /// Asks for many sends over one stream and returns the decision about each, in their order.
    ///
    /// A stream that breaks is opened again and the sends without an answer are repeated with the same ids,
    /// as are those answered with 429 or 503. Faster than one by one, since HTTP is paid once.
    ///
    /// - Parameter onResult: Called once per send as its final result is known, with its position.
    public func sendAll(
        _ sends: [Send], onResult: (Int, Result<SendAnswer, SendgateError>) -> Void = { _, _ in }
    ) async -> [Result<SendAnswer, SendgateError>] {
        var results = [Result<SendAnswer, SendgateError>?](repeating: nil, count: sends.count)
        var lines: [Line] = []
        for (index, send) in sends.enumerated() {
            do throws(SendgateError) {
                lines.append(Line(index: index, bytes: try send.encoded()))
            } catch {
                results[index] = .failure(error)
                onResult(index, .failure(error))
            }
        }
        var attempt = 1
        while !lines.isEmpty {
            let count = lines.count
            let round = await sendOnce(lines) { index, result in
                results[index] = result
                onResult(index, result)
            }
            lines = round.remaining
            if lines.isEmpty { break }
            if lines.count < count { attempt = 1 }
            let retryAfter = lines.compactMap { $0.failure?.retryAfterSeconds }.max()
            let isWorthRetrying = lines.allSatisfy { $0.failure?.isWorthRetrying ?? true }
            guard isWorthRetrying, await pause(after: attempt, retryAfterSeconds: retryAfter) else {
                for line in lines {
                    let failure = line.failure ?? .transport(round.breakage)
                    let result = Result<SendAnswer, SendgateError>.failure(
                        failure.error(mayHaveBeenTaken: line.mayHaveBeenTaken))
                    results[line.index] = result
                    onResult(line.index, result)
                }
                break
            }
            attempt += 1
        }
        return results.map { result in
            guard let result else { preconditionFailure("a send was given no result") }
            return result
        }
    }

    /// One send on its way through ``sendAll(_:onResult:)``.
    private struct Line: Sendable {
        var index: Int
        var bytes: [UInt8]
        var mayHaveBeenTaken = false
        /// Why it has no answer yet, as of the last attempt.
        var failure: Failure?
    }

    private struct Round {
        /// To be tried again, in their order.
        var remaining: [Line]
        /// What ended the stream, when something did.
        var breakage: UnixHTTPError
    }

    /// How many lines go out in one write: enough to make the write cheap, few enough to answer soon.
    private static let linesPerWrite = 64

    private func sendOnce(
        _ lines: [Line], settled: (Int, Result<SendAnswer, SendgateError>) -> Void
    ) async -> Round {
        let path = http.configuration.path
        var breakage = UnixHTTPError(.unanswered, .closed, path: path)
        let stream: UnixHTTPStream
        do throws(UnixHTTPError) {
            switch try await http.openStream("/v1/sends/stream") {
            case .open(let opened): stream = opened
            case .refused(let response):
                return Round(remaining: failed(lines, AttemptResult(response).asFailure), breakage: breakage)
            }
        } catch {
            // The head of a stream carries no send, so whatever became of it, no line was handled.
            breakage = UnixHTTPError(.neverWritten, error.cause, path: path)
            return Round(remaining: failed(lines, .transport(breakage)), breakage: breakage)
        }

        var remaining: [Line] = []
        var answered = 0
        let batches = stride(from: 0, to: lines.count, by: Self.linesPerWrite).map { start in
            lines[start..<min(start + Self.linesPerWrite, lines.count)].map(\.bytes)
        }
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                // A failure shows on the reading side, which knows which lines it concerns.
                do throws(UnixHTTPError) {
                    for batch in batches { try await stream.send(batch) }
                    try await stream.finish()
                } catch {}
            }
            do throws(UnixHTTPError) {
                while answered < lines.count,
                    let answer = try await stream.next(timeoutMilliseconds: timeoutMilliseconds)
                {
                    var line = lines[answered]
                    answered += 1
                    switch AttemptResult(line: answer) {
                    case .answer(let answer): settled(line.index, .success(answer))
                    case .failure(let failure):
                        if failure.isWorthRetrying {
                            line.failure = failure
                            remaining.append(line)
                        } else {
                            settled(
                                line.index, .failure(failure.error(mayHaveBeenTaken: line.mayHaveBeenTaken)))
                        }
                    }
                }
            } catch {
                breakage = error
            }
            await stream.close()
        }
        // Lines without an answer may have been read, whatever is known of the client's own writes.
        for var line in lines[answered...] {
            line.mayHaveBeenTaken = true
            line.failure = .transport(breakage)
            remaining.append(line)
        }
        return Round(remaining: remaining, breakage: breakage)
    }

    private func failed(_ lines: [Line], _ failure: Failure) -> [Line] {
        lines.map { line in
            var line = line
            line.failure = failure
            return line
        }
    }
}
