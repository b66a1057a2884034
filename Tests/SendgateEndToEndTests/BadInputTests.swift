import Foundation
import Glibc
import Testing

extension EndToEnd {
    /// Bad input: a clear answer, nothing recorded, and no other client waits for it.
    @Suite struct BadInputTests {
        /// A name, the body, and the answer.
        static let badBodies: [(name: String, body: [UInt8], status: Int, problem: String)] = [
            ("nothing at all", [], 400, "malformed_json"),
            ("half an object", Array(#"{"id": "b1", "type""#.utf8), 400, "malformed_json"),
            ("two documents", Array("\(Sample.login("b2")) {}".utf8), 400, "malformed_json"),
            (
                "a duplicate key", Array(Sample.login("b3", more: #", "id": "b3""#).utf8), 400,
                "malformed_json"
            ),
            (
                "a duplicate key deep inside",
                Array(
                    Sample.login("b4").replacing(#""device_name""#, with: #""at": "x", "device_name""#).utf8),
                400,
                "malformed_json"
            ),
            (
                "a duplicate key, spelled with an escape",
                Array(Sample.login("b5", more: #", "i\u0064": "b5""#).utf8), 400, "malformed_json"
            ),
            (
                "an unknown member", Array(Sample.login("b6", more: #", "sender": "me""#).utf8), 422,
                "invalid_request"
            ),
            (
                "a wrong type", Array(Sample.login("b7", more: #", "critical": "yes""#).utf8), 422,
                "invalid_request"
            ),
            (
                "a float", Array(Sample.login("b8", more: #", "ttl_seconds": 60.5"#).utf8), 400,
                "malformed_json"
            ),
            (
                "an integer past 2 to the 53rd",
                Array(Sample.login("b9", more: #", "ttl_seconds": 9007199254740993"#).utf8), 400,
                "malformed_json"
            ),
            ("a control character in an id", Array(Sample.login(#"b\u0001"#).utf8), 422, "invalid_request"),
            ("an array", Array("[]".utf8), 422, "invalid_request"),
            ("a NUL in an id", Array(Sample.login(#"b\u0000"#).utf8), 400, "malformed_json"),
            (
                "a NUL byte", Array(Sample.login("b10").utf8).map { $0 == UInt8(ascii: "_") ? 0 : $0 }, 400,
                "malformed_json"
            ),
            (
                "invalid UTF-8", Array(#"{"id": "b11"#.utf8) + [0xC3, 0x28] + Array(#""}"#.utf8), 400,
                "malformed_json"
            ),
            (
                "an encoded surrogate",
                Array(#"{"id": "b12"#.utf8) + [0xED, 0xA0, 0x80] + Array(#""}"#.utf8), 400,
                "malformed_json"
            ),
            ("a lone surrogate", Array(#"{"id": "\ud800"}"#.utf8), 400, "malformed_json"),
            ("UTF-16", Array(Sample.login("b13").utf8).flatMap { [$0, 0] }, 400, "malformed_json"),
            (
                "a byte order mark", [0xEF, 0xBB, 0xBF] + Array(Sample.login("b14").utf8), 400,
                "malformed_json"
            ),
            ("10,000 brackets", [UInt8](repeating: UInt8(ascii: "["), count: 10_000), 400, "malformed_json"),
            (
                "10,000 nested objects", Array(String(repeating: #"{"a":"#, count: 10_000).utf8), 400,
                "malformed_json"
            ),
            (
                "64 KiB and one byte", [UInt8](repeating: UInt8(ascii: " "), count: 65_537), 413,
                "body_too_large"
            ),
        ]

        @Test func `every bad body has its answer and leaves no entry`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let before = try Metrics(of: gate)["trail_entries"]
            for (name, body, status, problem) in Self.badBodies {
                let reply = try step(name) { try gate.connect().request("POST", "/v1/sends", bytes: body) }
                #expect(reply.status == status, "\(name): \(reply)")
                #expect(reply.problem == problem, "\(name): \(reply)")
                #expect(reply.headers["content-type"] == "application/problem+json", "\(name)")
            }
            #expect(try Metrics(of: gate)["trail_entries"] == before)
            // The largest body there may be is read: spaces around it are JSON.
            let send = Array(Sample.login("just-fits").utf8)
            let padding = [UInt8](repeating: UInt8(ascii: " "), count: 65_536 - send.count)
            #expect(try gate.connect().request("POST", "/v1/sends", bytes: send + padding).status == 202)
        }

        @Test func `everything wrong in one body is told at once, by its place`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            let body =
                #"{"id": 7, "type": "promo.offer", "recipient": {"user": ""}, "ttl_seconds": 0, "x": 1}"#
            let reply = try gate.connect().request("POST", "/v1/sends", body)
            #expect(reply.status == 422)
            for pointer in ["/id", "/recipient/user", "/ttl_seconds", "/x"] {
                #expect(reply.text.contains("\"pointer\":\"\(pointer)\""), "\(pointer): \(reply)")
            }
        }

        @Test func `bytes that are not HTTP as the gateway reads it cost one connection`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let head = "POST /v1/sends HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            let cases: [(name: String, text: String, status: Int)] = [
                (
                    "a header of more than 16 KiB",
                    "\(head)X: \(String(repeating: "x", count: 17_000))\r\n\r\n", 431
                ),
                (
                    "a thousand headers",
                    head + (0..<1000).map { "X-\($0): y\r\n" }.joined() + "\r\n", 431
                ),
                ("a length that is no number", "\(head)Content-Length: ten\r\n\r\n", 400),
                ("two lengths", "\(head)Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
                (
                    "length and chunks", "\(head)Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
                    400
                ),
                ("garbage", "\u{16}\u{3}\u{1}\u{2}\r\n\r\n", 400),
                ("a length past the bound", "\(head)Content-Length: 70000\r\n\r\n", 413),
            ]
            for (name, text, status) in cases {
                let connection = try gate.connect()
                connection.write(text)
                let reply = try step(name) { try connection.readReply() }
                #expect(reply.status == status, "\(name): \(reply)")
                #expect(try step(name) { try connection.isClosed() }, "\(name): the connection stays open")
            }
            #expect(try gate.stillAnswers("after-garbage"))
        }

        @Test func `a body that never ends is cut off by size or by time`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let head = "POST /v1/sends HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            // One says how long it is and stops in the middle,
            let silent = try gate.connect()
            silent.write("\(head)Content-Length: 1000\r\n\r\n{")
            // one goes on for ever in chunks.
            let endless = try gate.connect()
            endless.write("\(head)Transfer-Encoding: chunked\r\n\r\n")
            let chunk = "1000\r\n\(String(repeating: " ", count: 4096))\r\n"
            var written = 0
            while endless.write(chunk) == chunk.utf8.count, written < 64 << 20 { written += 4096 }
            #expect(written < 64 << 20, "64 MiB of a body were taken")
            #expect(try endless.readReply().status == 413)
            #expect(try gate.stillAnswers("meanwhile"))
            let reply = try silent.readReply()
            #expect(reply.status == 408 && reply.problem == "request_timeout", "\(reply)")
        }
    }
}

extension Alone {
    @Suite struct FloodTests {
        @Test func `a client that sends ten thousand lines and reads nothing holds up itself alone`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let deaf = try RawConnection(gate.socket(), timeoutSeconds: 2)
            deaf.write(
                "POST /v1/sends/stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
                    + "Sendgate-Stream: live\r\nTransfer-Encoding: chunked\r\n\r\n")
            var sent = 0
            for number in 0..<10_000 {
                let line = "\(Sample.login("deaf-\(number)"))\n"
                let chunk = "\(String(line.utf8.count, radix: 16))\r\n\(line)\r\n"
                // It stops being read long before the end, and then is cut off.
                guard deaf.write(chunk) == chunk.utf8.count else { break }
                sent += 1
                if sent % 1000 == 0 {
                    #expect(try gate.stillAnswers("beside-\(sent)"))
                }
            }
            #expect(sent < 10_000, "all lines were taken from a client that reads no answer")
            #expect(try gate.stillAnswers("after-the-deaf"))
            #expect(try gate.residentByteCount < 512 << 20)
            // Whatever it is sent from now on, it is closed within the time a write may stall.
            #expect(try deaf.waitUntilHungUp(within: 30))
        }

        @Test func `five thousand idle connections cost nobody an answer`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try RawConnection.allowDescriptors(5_500)
            try gate.start(descriptorCountMax: 10_000)
            try gate.registerSomebody()
            let idle = try (0..<5_000).map { _ in try gate.connect() }
            for (number, connection) in idle.enumerated() where number % 500 == 0 {
                // Half a request, too: what waits for more is not idle.
                if number % 1000 == 0 { connection.write("GET /healthz HT") }
            }
            #expect(try gate.stillAnswers("beside-5000"))
            #expect(try Metrics(of: gate)["connections_open"] ?? 0 >= 5_000)
            #expect(try gate.residentByteCount < 512 << 20)
            // One of them wakes up and is served.
            #expect(try idle[4_999].request("GET", "/healthz").status == 200)
            withExtendedLifetime(idle) {}
        }
    }
}

/// The gateway's own figures.
struct Metrics {
    private var values: [String: Int] = [:]

    init(of gate: GateProcess) throws {
        let reply = try gate.connect().request("GET", "/metrics")
        guard reply.status == 200 else { throw HarnessError("metrics: \(reply)") }
        for line in reply.text.split(separator: "\n") where !line.hasPrefix("#") {
            let words = line.split(separator: " ")
            if words.count == 2, let value = Int(words[1]), words[0].hasPrefix("sendgate_") {
                values[String(words[0].dropFirst("sendgate_".count))] = value
            }
        }
    }

    subscript(_ name: String) -> Int? { values[name] }
}
