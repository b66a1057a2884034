import Dispatch
import Glibc
import Synchronization
import Testing

@testable import UnixHTTPClient

@Suite struct UnixHTTPClientTests {
    private func client(
        _ path: String, _ change: (inout UnixHTTPClientConfiguration) -> Void = { _ in }
    ) -> UnixHTTPClient {
        var configuration = UnixHTTPClientConfiguration(path: path)
        change(&configuration)
        return UnixHTTPClient(configuration)
    }

    /// The body of an answer, as text.
    private func text(_ client: UnixHTTPClient, _ method: String = "GET") async throws -> String {
        let reply = try await client.request(method, "/", timeoutMilliseconds: 60_000)
        return String(decoding: reply.body, as: UTF8.self)
    }

    private func nextLine(_ stream: UnixHTTPStream) async throws -> String? {
        try await stream.next(timeoutMilliseconds: 60_000).map { String(decoding: $0, as: UTF8.self) }
    }

    private func failure(_ body: () async throws(UnixHTTPError) -> Void) async -> UnixHTTPError? {
        do {
            try await body()
            return nil
        } catch {
            return error
        }
    }

    @Test func `a request goes out as HTTP and its answer comes back whole`() async throws {
        let seen = Mutex("")
        try await withServer { connection, _ in
            let request = connection.readRequest(body: "hello")
            seen.withLock { $0 = request ?? "" }
            connection.answer("world", status: 202, headers: "X-One: 1\r\n")
            _ = connection.readRequest()
        } _: { path, _ in
            let client = client(path)
            let reply = try await client.request(
                "POST", "/v1/sends", headers: [("X-Trace", "t")], body: Array("hello".utf8),
                timeoutMilliseconds: 60_000)
            #expect(reply.status == 202)
            #expect(reply.header("x-one") == "1")
            #expect(reply.body == Array("world".utf8))
            let request = seen.withLock { $0 }
            #expect(request.hasPrefix("POST /v1/sends HTTP/1.1\r\n"))
            #expect(request.contains("Host: localhost\r\n"))
            #expect(request.contains("Content-Length: 5\r\n"))
            #expect(request.contains("X-Trace: t\r\n"))
            await client.close()
        }
    }

    @Test func `one connection serves many requests, several at once and in order`() async throws {
        try await withServer { connection, _ in
            // The answers wait until eight requests have come, so they must have been under way together.
            var targets: [Substring] = []
            while targets.count < 8, let request = connection.readRequest() {
                targets.append(request.split(separator: " ")[1])
            }
            for target in targets { connection.answer(String(target)) }
            while let request = connection.readRequest() {
                connection.answer(String(request.split(separator: " ")[1]))
            }
        } _: { path, server in
            let client = client(path)
            try await withThrowingTaskGroup(of: Bool.self) { tasks in
                for index in 0..<8 {
                    tasks.addTask {
                        let reply = try await client.request("GET", "/\(index)", timeoutMilliseconds: 60_000)
                        return reply.body == Array("/\(index)".utf8)
                    }
                }
                for try await isRight in tasks { #expect(isRight) }
            }
            for index in 0..<5 {
                let reply = try await client.request("GET", "/again\(index)", timeoutMilliseconds: 60_000)
                #expect(reply.body == Array("/again\(index)".utf8))
            }
            #expect(server.connectionCount == 1)
            await client.close()
        }
    }

    @Test func `no more requests are on the wire than allowed`() async throws {
        try await withServer { connection, _ in
            // Two come, and only after an answer the third.
            _ = connection.readRequest()
            _ = connection.readRequest()
            connection.answer("1")
            connection.answer("2")
            while connection.readRequest() != nil { connection.answer("n") }
        } _: { path, _ in
            let client = client(path) { $0.pipelinedRequestsMax = 2 }
            let connection = try await UnixHTTPConnection.connect(client.configuration)
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for _ in 0..<10 {
                    tasks.addTask {
                        let reply = try await connection.request("GET", "/", timeoutMilliseconds: 60_000)
                        #expect(reply.status == 200)
                    }
                }
                try await tasks.waitForAll()
            }
            await connection.close()
        }
    }

    @Test func `chunked answers and interim answers are understood`() async throws {
        try await withServer { connection, _ in
            _ = connection.readRequest()
            connection.write(
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.write("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
            _ = connection.readRequest()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
            _ = connection.readRequest()
            connection.answer("last")
        } _: { path, _ in
            let client = client(path)
            let first = try await text(client)
            #expect(first == "abcde")
            // The answer to HEAD has a length and no body.
            #expect(try await text(client, "HEAD") == "")
            #expect(try await text(client) == "last")
        }
    }

    @Test func `nobody listening is never written, with the reason`() async throws {
        let missing = await failure { () throws(UnixHTTPError) in
            _ = try await client("/tmp/no-such-directory/gate.sock").request(
                "GET", "/", timeoutMilliseconds: 1_000)
        }
        #expect(missing?.stage == .neverWritten)
        #expect(missing?.cause == .connectFailed(errorNumber: ENOENT))
        #expect(missing?.hint == "is the gateway running, and is this its socket?")
        let long = await failure { () throws(UnixHTTPError) in
            _ = try await client("/" + String(repeating: "a", count: 107)).request(
                "GET", "/", timeoutMilliseconds: 1_000)
        }
        #expect(long?.cause == .pathTooLong(byteCount: 108))
    }

    @Test func `a server of another user gets not one byte`() async throws {
        let received = Mutex<String?>("unset")
        try await withServer { connection, _ in
            let request = connection.readRequest()
            received.withLock { $0 = request }
        } _: { path, _ in
            let wrong = await failure { () throws(UnixHTTPError) in
                _ = try await client(path) { $0.serverUserIDs = [getuid() + 1] }.request(
                    "GET", "/secret", timeoutMilliseconds: 60_000)
            }
            #expect(wrong?.stage == .neverWritten)
            #expect(wrong?.cause == .serverNotTrusted(userID: getuid()))
            while received.withLock({ $0 == "unset" }) { await Task.yield() }
            #expect(received.withLock { $0 } == nil)
        }
        try await withServer { connection, _ in
            _ = connection.readRequest()
            connection.answer("ok")
        } _: { path, _ in
            let right = client(path) { $0.serverUserIDs = [getuid()] }
            let answer = try await text(right)
            #expect(answer == "ok")
        }
    }

    @Test(arguments: ["nothing", "half a head", "half a body"])
    func `a request that was read and not answered may have been handled`(how: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readRequest(body: "x")
            if how == "half a head" { connection.write("HTTP/1.1 200 OK\r\nContent-") }
            if how == "half a body" { connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab") }
        } _: { path, server in
            let client = client(path)
            let error = await failure { () throws(UnixHTTPError) in
                _ = try await client.request(
                    "POST", "/", body: Array("x".utf8), timeoutMilliseconds: 60_000)
            }
            #expect(error?.stage == .unanswered)
            // It is not repeated on its own: only the caller knows whether that is safe.
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a connection the server closed while idle is replaced`() async throws {
        try await withServer { connection, number in
            _ = connection.readRequest()
            connection.answer("\(number)")
        } _: { path, server in
            let client = client(path)
            for index in 0..<3 {
                // The close races with the next request: it is either seen before, or the request counts as
                // unanswered, which this test may not treat as a failure of the client.
                while true {
                    do throws(UnixHTTPError) {
                        let reply = try await client.request("GET", "/", timeoutMilliseconds: 60_000)
                        #expect(reply.status == 200)
                        break
                    } catch {
                        #expect(error.stage == .unanswered || index > 0)
                    }
                }
            }
            #expect(server.connectionCount >= 3)
        }
    }

    @Test func `an answer that says close is kept`() async throws {
        try await withServer { connection, number in
            _ = connection.readRequest()
            connection.answer("\(number)", headers: "Connection: close\r\n")
            // Stays open: the client must not use it again all the same.
            _ = connection.readRequest()
        } _: { path, server in
            let client = client(path)
            for number in 0..<3 {
                let reply = try await client.request("GET", "/", timeoutMilliseconds: 60_000)
                #expect(reply.body == Array("\(number)".utf8))
            }
            #expect(server.connectionCount == 3)
        }
    }

    @Test func `what waits its turn when the connection breaks was never written`() async throws {
        try await withServer { connection, _ in
            _ = connection.readRequest()
        } _: { path, _ in
            var configuration = UnixHTTPClientConfiguration(path: path)
            configuration.pipelinedRequestsMax = 1
            let connection = try await UnixHTTPConnection.connect(configuration)
            let errors = await withTaskGroup(of: UnixHTTPError?.self) { tasks in
                for _ in 0..<3 {
                    tasks.addTask {
                        await failure { () throws(UnixHTTPError) in
                            _ = try await connection.request("GET", "/", timeoutMilliseconds: 60_000)
                        }
                    }
                }
                return await tasks.reduce(into: [UnixHTTPError?]()) { $0.append($1) }
            }
            #expect(errors.count { $0?.stage == .unanswered } == 1)
            #expect(errors.count { $0?.stage == .neverWritten } == 2)
            #expect(await !connection.isReusable())
        }
    }

    @Test func `a late answer fails its request and is not taken for another's`() async throws {
        try await withServer { connection, number in
            _ = connection.readRequest()
            if number == 0 {
                // Only after the client has given the connection up.
                _ = connection.readRequest()
            } else {
                connection.answer("second")
            }
        } _: { path, _ in
            let client = client(path)
            let late = await failure { () throws(UnixHTTPError) in
                _ = try await client.request("GET", "/", timeoutMilliseconds: 50)
            }
            #expect(late?.stage == .unanswered)
            #expect(late?.cause == .timedOut(milliseconds: 50))
            let second = try await text(client)
            #expect(second == "second")
        }
    }

    @Test func `a cancelled request lets go, and the others keep their answers`() async throws {
        let release = DispatchSemaphoreBox()
        try await withServer { connection, _ in
            _ = connection.readRequest()
            _ = connection.readRequest()
            release.wait()
            connection.answer("first")
            connection.answer("second")
            _ = connection.readRequest()
        } _: { path, _ in
            let connection = try await UnixHTTPConnection.connect(UnixHTTPClientConfiguration(path: path))
            let first = Task { try await connection.request("GET", "/1", timeoutMilliseconds: 60_000) }
            let second = Task { try await connection.request("GET", "/2", timeoutMilliseconds: 60_000) }
            first.cancel()
            let error = await #expect(throws: UnixHTTPError.self) { _ = try await first.value }
            #expect(error?.cause == .cancelled)
            if error?.stage == .neverWritten {
                // It was cancelled before it left; the server waits for a second request.
                _ = try? await connection.request("GET", "/3", timeoutMilliseconds: 1)
            }
            release.signal()
            if error?.stage == .unanswered {
                let reply = try await second.value
                #expect(reply.body == Array("second".utf8))
            } else {
                second.cancel()
            }
            await connection.close()
        }
    }

    @Test(arguments: [
        "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 banana\r\n\r\n",
    ])
    func `an answer that is not HTTP is an error, not a crash`(answer: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readRequest()
            connection.write(answer)
            _ = connection.readRequest()
        } _: { path, _ in
            let error = await failure { () throws(UnixHTTPError) in
                _ = try await client(path).request("GET", "/", timeoutMilliseconds: 60_000)
            }
            #expect(error?.stage == .unanswered)
            #expect(error?.cause == .answerMalformed)
        }
    }

    /// What a server may send besides an answer's body without end: how it begins, and what goes on.
    @Test(arguments: [
        ("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n5;x=", "y"),
        ("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0;x=", "y"),
        ("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", "y"),
        ("HTTP/1.1 200 X\r\nX:", " "), ("", "HTTP/1.1 100 X\r\n\r\n"), ("", "HTTP/1.1 103 X\r\nX: y\r\n\r\n"),
    ])
    func `an answer's framing is bounded, whatever it is made of`(start: String, piece: String) async throws {
        let written = Atomic<Int>(0)
        try await withServer { connection, _ in
            _ = connection.readRequest()
            connection.write(start)
            let kilobytes = String(repeating: piece, count: 1_024)
            // The write fails once the client has gone.
            while connection.writes(kilobytes) { written.add(kilobytes.utf8.count, ordering: .relaxed) }
        } _: { path, _ in
            let client = client(path)
            let error = await failure { () throws(UnixHTTPError) in
                _ = try await client.request("GET", "/", timeoutMilliseconds: 60_000)
            }
            #expect(error?.stage == .unanswered)
            // A header that the parser refuses by its own bound is no HTTP to the client.
            let causes: [UnixHTTPError.Cause?] = [
                .framingTooLarge(byteCountMax: 16 * 1024), .answerMalformed,
            ]
            #expect(causes.contains(error?.cause), "\(String(describing: error))")
            await client.close()
        }
        // What the kernel holds of a connection, and the bound.
        #expect(written.load(ordering: .relaxed) < 4 << 20)
    }

    @Test func `an endless answer is cut off at its bound`() async throws {
        try await withServer { connection, _ in
            _ = connection.readRequest()
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            let piece = "2000\r\n" + String(repeating: "x", count: 0x2000) + "\r\n"
            for _ in 0..<1_000 { connection.write(piece) }
        } _: { path, _ in
            let error = await failure { () throws(UnixHTTPError) in
                _ = try await client(path) { $0.answerByteCountMax = 100_000 }.request(
                    "GET", "/", timeoutMilliseconds: 60_000)
            }
            #expect(error?.cause == .answerTooLarge(byteCountMax: 100_000))
            #expect(error?.stage == .unanswered)
        }
    }

    @Test(arguments: [
        ("GET", "/a b", [("X", "y")]), ("GET", "/a\r\nX: y", []), ("GET /", "/", []), ("GET", "", []),
        ("GET", "/", [("X", "a\r\nY: b")]), ("GET", "/", [("X Y", "a")]), ("GET", "/", [("", "a")]),
    ])
    func `nothing a caller passes can break out of its place`(
        method: String, target: String, headers: [(String, String)]
    ) async throws {
        try await withServer { connection, _ in
            _ = connection.readRequest()
        } _: { path, _ in
            let error = await failure { () throws(UnixHTTPError) in
                _ = try await client(path).request(
                    method, target, headers: headers.map { (name: $0.0, value: $0.1) },
                    timeoutMilliseconds: 1_000)
            }
            #expect(error == UnixHTTPError(.neverWritten, .requestMalformed, path: path))
        }
    }

    // MARK: Streams

    @Test func `a live stream carries lines out and answers in`() async throws {
        let seen = Mutex("")
        try await withServer { connection, _ in
            let head = connection.readRequest() ?? ""
            seen.withLock { $0 = head }
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            _ = connection.read(until: "one\ntwo\n\r\n")
            connection.write("5\r\nfirst\r\n1\r\n\n\r\n")
            _ = connection.read(until: "0\r\n\r\n")
            connection.write("7\r\nsecond\n\r\n0\r\n\r\n")
        } _: { path, _ in
            guard case .open(let stream) = try await client(path).openStream("/v1/sends/stream") else {
                Issue.record("the stream was refused")
                return
            }
            try await stream.send([Array("one".utf8), Array("two".utf8)])
            #expect(try await nextLine(stream) == "first")
            try await stream.finish()
            #expect(try await nextLine(stream) == "second")
            #expect(try await nextLine(stream) == nil)
            let head = seen.withLock { $0.lowercased() }
            #expect(head.contains("sendgate-stream: live\r\n"))
            #expect(head.contains("transfer-encoding: chunked\r\n"))
            #expect(head.contains("content-type: application/x-ndjson\r\n"))
        }
    }

    @Test func `a refused stream gives the whole refusal`() async throws {
        try await withServer { connection, _ in
            _ = connection.readRequest()
            connection.answer("busy", status: 429, headers: "Retry-After: 2\r\n")
        } _: { path, _ in
            guard case .refused(let reply) = try await client(path).openStream("/v1/sends/stream") else {
                Issue.record("the stream was opened")
                return
            }
            #expect(reply.status == 429)
            #expect(reply.header("Retry-After") == "2")
            #expect(reply.body == Array("busy".utf8))
        }
    }

    @Test func `a broken stream gives what had come and then says it is broken`() async throws {
        try await withServer { connection, _ in
            _ = connection.readRequest()
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst\n\r\n")
        } _: { path, _ in
            guard case .open(let stream) = try await client(path).openStream("/v1/sends/stream") else {
                Issue.record("the stream was refused")
                return
            }
            #expect(try await nextLine(stream) == "first")
            let error = await failure { () throws(UnixHTTPError) in
                _ = try await stream.next(timeoutMilliseconds: 60_000)
            }
            #expect(error?.stage == .unanswered)
        }
    }

    @Test func `a reader that does not read holds the server back`() async throws {
        let written = Atomic<Int>(0)
        let total = 6_000
        try await withServer { [total] connection, _ in
            _ = connection.readRequest()
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            let line = String(repeating: "x", count: 999) + "\n"
            for _ in 0..<total {
                connection.write("3e8\r\n\(line)\r\n")
                written.add(1, ordering: .relaxed)
            }
            connection.write("0\r\n\r\n")
        } _: { path, _ in
            guard
                case .open(let stream) = try await client(path, { $0.streamAnswersBufferedMax = 16 })
                    .openStream("/v1/sends/stream")
            else {
                Issue.record("the stream was refused")
                return
            }
            #expect(try await nextLine(stream)?.count == 999)
            // Wait until the server has stopped moving: two looks in a row see the same.
            var last = -1
            while last != written.load(ordering: .relaxed) {
                last = written.load(ordering: .relaxed)
                for _ in 0..<2_000 { await Task.yield() }
            }
            #expect(last < total / 2)
            var count = 1
            while try await stream.next(timeoutMilliseconds: 60_000) != nil { count += 1 }
            #expect(count == total)
        }
    }
}

/// Lets a test hold up its server's thread.
final class DispatchSemaphoreBox: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func signal() { semaphore.signal() }
    func wait() { semaphore.wait() }
}
