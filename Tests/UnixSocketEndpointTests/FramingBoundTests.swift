import Testing

@testable import UnixSocketEndpoint

/// Bytes that are neither a head within its bound nor a body have a bound of their own, wherever a client puts them.
@Suite struct FramingBoundTests {
    private static let chunkedHead = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    private static let batchHead =
        "POST \(RequestFraming.streamTargets[0]) HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

    /// A place for bytes without end, with what goes before it and one piece of it.
    enum Place: String, CaseIterable {
        case extensionOfAChunk, extensionOfManyChunks, zerosOfAChunkSize, extensionOfTheLastChunk, trailer
        case blankLines, spaceBeforeAValue, extensionInABatch

        var start: String {
            switch self {
            case .extensionOfAChunk: FramingBoundTests.chunkedHead + "5;x="
            case .extensionOfManyChunks: FramingBoundTests.chunkedHead
            case .zerosOfAChunkSize: FramingBoundTests.chunkedHead + "0"
            case .extensionOfTheLastChunk: FramingBoundTests.chunkedHead + "5\r\nhello\r\n0;x="
            case .trailer: FramingBoundTests.chunkedHead + "0\r\nX: "
            case .blankLines: "\r\n"
            case .spaceBeforeAValue: "GET / HTTP/1.1\r\nHost: a\r\nX:"
            case .extensionInABatch: FramingBoundTests.batchHead + "3\r\n{}\n\r\n3;x="
            }
        }

        var piece: String {
            switch self {
            case .extensionOfAChunk, .extensionOfTheLastChunk, .trailer, .extensionInABatch:
                String(repeating: "y", count: 1_000)
            case .extensionOfManyChunks: "1;\(String(repeating: "y", count: 990))\r\nx\r\n"
            case .zerosOfAChunkSize: String(repeating: "0", count: 1_000)
            case .blankLines: String(repeating: "\r\n", count: 500)
            case .spaceBeforeAValue: String(repeating: " ", count: 1_000)
            }
        }
    }

    @Test(arguments: Place.allCases)
    func `framing past its bound is 431 and closed, wherever it stands`(place: Place) async throws {
        try await withEndpoint { path, endpoint in
            let client = try RawClient(path)
            try client.send(place.start)
            // 40 KB: more than the bound and what a piece may hide at each end of it.
            for _ in 0..<40 { try client.send(place.piece) }
            let response = try await client.receiveResponse()
            #expect(response.status == 431, "\(place)")
            #expect(try await client.receiveToEnd() == "")
            #expect(endpoint.metrics()[.requests] == 0)
        }
    }

    @Test(arguments: [1, 3, 100, 8_192])
    func `plain chunks of every size are taken`(size: Int) async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            let line = "{\"id\":\"\(String(repeating: "x", count: 190))\"}\n"
            let body = String(repeating: line, count: 100)
            var bytes = Self.batchHead
            var rest = Substring(body)
            while !rest.isEmpty {
                let piece = rest.prefix(size)
                rest = rest.dropFirst(size)
                bytes += "\(String(piece.utf8.count, radix: 16))\r\n\(piece)\r\n"
            }
            try client.send(bytes + "0\r\n\r\n")
            let response = try await client.receiveResponse()
            #expect(response.status == 200)
            #expect(response.lines.count == 100)
        }
    }

    @Test func `a live stream's framing is bounded in one place, and by its lines in all`() async throws {
        try await withEndpoint { path, endpoint in
            let client = try RawClient(path)
            try client.send(liveHead + chunk("one\n"))
            _ = try await client.receiveHead()
            #expect(try await client.receiveChunk() == "one\n")
            let piece = String(repeating: "y", count: 1_000)
            try client.send("4;x=")
            for _ in 0..<40 { try client.send(piece) }
            // Cut off, not ended in order: no last chunk.
            #expect(try await client.receiveToEnd() == "")
            #expect(endpoint.metrics()[.streamLines] == 1)
        }
        try await withEndpoint { path, endpoint in
            let client = try RawClient(path)
            try client.send(liveHead)
            _ = try await client.receiveHead()
            // Each place is within its bound.
            let lines = "1;\(String(repeating: "y", count: 4_000))\r\n\n\r\n"
            for _ in 0..<20 { try client.send(lines) }
            #expect(try await client.receiveToEnd() == "")
            #expect(endpoint.metrics()[.streamLines] == 0)
        }
    }

    @Test(arguments: ["4;x=", "ff\r\no", "0\r\nX-Trailer: "])
    func `a live stream that drips ends by the read time-out, one byte a second`(beginning: String)
        async throws
    {
        let clock = SteppedClock()
        try await withEndpoint(limits: .test, clock: clock) { path, endpoint in
            let client = try RawClient(path)
            let start = liveHead + chunk("one\n")
            try client.send(start + beginning)
            var byteCount = (start + beginning).utf8.count
            await endpoint.hasRead(byteCount: byteCount)
            for _ in 0..<16 where endpoint.metrics()[.readTimeouts] == 0 {
                clock.advance(milliseconds: 1_000)
                try client.send("y")
                byteCount += 1
                await endpoint.hasRead(byteCount: byteCount)
            }
            await eventually { endpoint.metrics()[.readTimeouts] == 1 }
            #expect(endpoint.metrics()[.idleTimeouts] == 0)
        }
    }

    @Test func `each line of a live stream has the whole time, and a pause between lines is none`()
        async throws
    {
        let clock = SteppedClock()
        try await withEndpoint(limits: .test, clock: clock) { path, endpoint in
            let client = try RawClient(path)
            try client.send(liveHead)
            var byteCount = liveHead.utf8.count
            _ = try await client.receiveHead()
            for count in 0..<5 {
                // The chunk's own end comes by itself, after its line was answered.
                try client.send("4\r\nab")
                byteCount += 5
                await endpoint.hasRead(byteCount: byteCount)
                clock.advance(milliseconds: 9_000)
                await clock.isSeen(by: endpoint)
                try client.send("\(count)\n")
                byteCount += 2
                #expect(try await client.receiveChunk() == "ab\(count)\n")
                try client.send("\r\n")
                byteCount += 2
                await endpoint.hasRead(byteCount: byteCount)
                clock.advance(milliseconds: 30_000)
                await clock.isSeen(by: endpoint)
            }
            #expect(endpoint.metrics()[.readTimeouts] == 0 && endpoint.metrics()[.idleTimeouts] == 0)
            try client.send("0\r\n\r\n")
            #expect(try await client.receiveChunk() == nil)
        }
    }
}
