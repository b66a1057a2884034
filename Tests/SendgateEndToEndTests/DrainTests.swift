import Foundation
import GateTestKit
import Glibc
import Testing

extension EndToEnd {
    @Suite struct DrainTests {
        @Test func `SIGTERM answers what is under way, loses nothing and ends with 0`() throws {
            let scratch = try Scratch()
            let layer = DeliveryLayer(in: scratch)
            try layer.up()
            let gate = GateProcess(in: scratch, layer.hop)
            try gate.start()
            let flood = try Flood(gate, in: scratch, seed: Soak.seed("drain"))
            let client = try gate.connect()
            client.write(
                "POST /v1/sends/stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
                    + "Sendgate-Stream: live\r\nTransfer-Encoding: chunked\r\n\r\n")
            let lines = (0..<200).map { "\(Sample.login("drain-\($0)", to: "u_0"))\n" }.joined()
            client.write("\(String(lines.utf8.count, radix: 16))\r\n\(lines)\r\n")
            // Its first answer is there, so its others are under way.
            let stream = try client.readHead()
            #expect(stream.status == 200)
            var answers = [UInt8]()
            answers += try #require(try client.readChunk())
            gate.signal(SIGTERM)
            while let chunk = try client.readChunk() { answers += chunk }
            #expect(try gate.waitForEnd(within: 30) == .exit(0), "\(gate.errors)")

            // The stream ended in order, and every line that was taken has its answer.
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            let answered = try answers.split(separator: UInt8(ascii: "\n")).map {
                try decoder.decode(LineAnswer.self, from: Data($0))
            }
            #expect(!answered.isEmpty && answered.count <= 200)
            for (number, answer) in answered.enumerated() {
                #expect(answer.status == 202 || answer.status == 503, "line \(number): \(answer)")
                if answer.status == 202 { #expect(answer.id == "drain-\(number)") }
            }
            // Whatever the others were told is in the trail, and they get the rest after the restart.
            try gate.start()
            // The stream's own sends are no ids of the flood; their entries are counted apart.
            let taken = answered.filter { $0.status == 202 }.compactMap(\.sendId)
            #expect(!taken.isEmpty)
            try flood.finish()
            try gate.waitUntilGone(taken)
            #expect(try gate.stop() == .exit(0))
            let evidence = try Evidence.check(
                gate, journal: flood.journal, record: layer.record, foreign: taken.count, in: scratch)
            #expect(evidence.isSound, "\(evidence)")
            #expect(evidence["entries of stop"] == 2 && evidence["entries of start"] == 2, "\(evidence)")
        }

        private struct LineAnswer: Decodable {
            var status: Int
            var id: String?
            var sendId: String?
        }

        @Test func `SIGINT is an orderly stop too and a client that idles does not hold it up`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            let idle = try gate.connect()
            #expect(try idle.request("GET", "/healthz").status == 200)
            gate.signal(SIGINT)
            #expect(try gate.waitForEnd(within: 30) == .exit(0))
            #expect(try idle.isClosed())
        }
    }
}
