import Foundation
import Testing

extension EndToEnd {
    /// A gateway beside another sender: a listener in shadow, one that is not, and what an officer reads.
    @Suite struct ShadowTests {
        private static let marketer: UInt32 = 4243
        private static let decoder: JSONDecoder = {
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            return decoder
        }()
        private static let backend = Production.asUser(4244, group: 4300)

        private struct Answer: Decodable {
            var outcome: String
            var reason: String
            var shadow: Bool?
            var replayed: Bool?
            var sendId: String
        }

        /// What a caller is answered.
        private func send(
            _ type: String, _ id: String, to user: String = "u_1", as caller: UInt32, over socket: String,
            sent: Bool? = nil, in scratch: Scratch
        ) throws -> (status: Int, answer: Answer) {
            let user = #""recipient": {"user": "\#(user)"}"#
            let params =
                type == "promo.offer"
                ? #"{"headline": "No fees this week", "offer_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"}"#
                : #"{"amount": {"minor": 500000, "currency": "NOK"}, "recipient_name": "Ahmad Karimi", "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"}"#
            let said = sent.map { #", "sent": \#($0)"# } ?? ""
            let body = #"{"id": "\#(id)", "type": "\#(type)", \#(user), "params": \#(params)\#(said)}"#
            let reply = try Production.curl(
                socket, as: Production.asUser(caller), "/v1/sends", ["--json", body], in: scratch)
            let answer = try step("\(id): \(reply)") {
                try Self.decoder.decode(Answer.self, from: Data(reply.body.utf8))
            }
            return (reply.status, answer)
        }

        private func put(_ target: String, _ body: String, over socket: String, in scratch: Scratch) throws {
            let method = target.hasSuffix("consents") ? "POST" : "PUT"
            let reply = try Production.curl(
                socket, as: Self.backend, target, ["--request", method, "--json", body], in: scratch)
            try #require(reply.status == 200, "\(target): \(reply)")
        }

        private func register(_ users: [String], over socket: String, in scratch: Scratch) throws {
            let digest = try Finished.run(
                ["sha256sum", "\(Machine.policies)/notices/promo.3.en.txt"], in: scratch, within: 30
            ).output.prefix(64)
            for (number, user) in users.enumerated() {
                try put("/v1/recipients/\(user)", Sample.recipient, over: socket, in: scratch)
                try put(
                    "/v1/recipients/\(user)/devices/d_1",
                    Sample.device.replacing("00aa", with: "00a\(number)"), over: socket, in: scratch)
            }
            try put(
                "/v1/recipients/\(users[0])/consents",
                """
                {"id": "c_1", "purpose": "marketing", "channel": "push", "state": "given", \
                "event_time": "\(Sample.time(secondsAgo: 20))", "method": "in_app_toggle", "jurisdiction": "DE", \
                "notice": {"id": "promo", "version": "3", "language": "en", "sha256": "\(digest)"}}
                """, over: socket, in: scratch)
        }

        private struct Report: Decodable {
            struct Line: Decodable {
                var type: String?
                var reason: String?
                var country: String?
                var sends: Int
                var stopped: Int
                var stoppedAndSent: Int
                var forwardedAndNotSent: Int
            }
            struct Stop: Decodable {
                struct Sample: Decodable { var sendId: String }
                var type: String
                var samples: [Sample]
            }
            var enforced: Int
            var total: Line
            var types: [Line]
            var reasons: [Line]
            var countries: [Line]
            var stopped: [Stop]
        }

        private func run(_ arguments: [String], in scratch: Scratch) throws -> Finished {
            try Finished.run([Machine.sendgate] + arguments, in: scratch, within: 120)
        }

        @Test func `in shadow nothing is handed over, and the report tells what would have been stopped`()
            throws
        {
            let scratch = try Scratch(isShared: true)
            let production = try Production(in: scratch)
            let layer = DeliveryLayer(in: scratch)
            try layer.up()
            let sockets = ["payments", "marketing"].reduce(into: [:]) {
                $0[$1] = scratch.path("shadow/\($1).sock")
            }
            let shadows = [("payments", Production.producerID), ("marketing", Self.marketer)].map {
                caller, user in
                """
                  - path: \(sockets[caller]!)
                    directory_mode: "0711"
                    mode: shadow
                    socket_mode: "0666"
                    caller: \(caller)
                    users: [\(user)]

                """
            }.joined()
            let text = production.template.replacing(
                "callers:\n", with: "\(shadows)callers:\n  marketing:\n    users: [\(Self.marketer)]\n")
            let gate = GateProcess(in: scratch, configuration: try production.write(text))
            try gate.start()
            #expect(gate.errors.contains("is in shadow"), "\(gate.errors)")
            try register(["u_1", "u_2"], over: production.socket, in: scratch)

            // Every send of the month, and what was answered, kept by the test alone.
            var told: [(type: String, answer: Answer, sent: Bool?)] = []
            var real: [Answer] = []
            func copy(_ type: String, _ id: String, to user: String, sent: Bool?) throws {
                let (caller, user, name) =
                    type == "promo.offer"
                    ? (Self.marketer, user, "marketing") : (Production.producerID, user, "payments")
                let (status, answer) = try send(
                    type, id, to: user, as: caller, over: sockets[name]!, sent: sent, in: scratch)
                #expect(status == 202 && answer.shadow == true, "\(id): \(answer)")
                told.append((type, answer, sent))
            }
            // One offer a day: the second is stopped on each side, and neither side's first stops the other's.
            for number in 0..<2 {
                try copy("promo.offer", "o\(number)", to: "u_1", sent: true)
                let (status, answer) = try send(
                    "promo.offer", "o\(number)", as: Self.marketer, over: production.socket, in: scratch)
                #expect(status == (number == 0 ? 202 : 403) && answer.shadow == nil, "\(answer)")
                real.append(answer)
            }
            for answers in [told.map(\.answer), real] {
                #expect(answers.map(\.outcome) == ["forward", "suppress"], "\(answers)")
                #expect(answers.map(\.reason) == ["allowed", "frequency_cap"], "\(answers)")
            }
            // Without consent, to nobody, and what goes out; some that the producer's own sender sent.
            for number in 0..<3 { try copy("promo.offer", "n\(number)", to: "u_2", sent: number == 0) }
            try copy("transaction.remittance_sent", "x", to: "u_9", sent: nil)
            for number in 0..<4 {
                try copy(
                    "transaction.remittance_sent", "r\(number)", to: "u_2", sent: number == 3 ? false : true)
            }
            let (_, remitted) = try send(
                "transaction.remittance_sent", "r0", to: "u_2", as: Production.producerID,
                over: production.socket, in: scratch)
            #expect(remitted.outcome == "forward" && remitted.replayed == nil)
            real.append(remitted)

            // Killed, it knows what it answered, in shadow and beside it.
            try layer.waitForMessages(2)
            gate.kill()
            try gate.start()
            let (_, again) = try send(
                "transaction.remittance_sent", "r1", to: "u_2", as: Production.producerID,
                over: sockets["payments"]!, sent: true, in: scratch)
            #expect(again.replayed == true && again.shadow == true)
            #expect(again.sendId == told.first { $0.answer.sendId == again.sendId }?.answer.sendId)
            // What changes people is refused there.
            let change = try Production.curl(
                sockets["payments"]!, as: Production.asProducer, "/v1/recipients/u_1",
                ["--request", "PUT", "--json", Sample.recipient], in: scratch)
            #expect(change.status == 403 && change.body.contains("other_listener"), "\(change)")
            #expect(try gate.stop() == .exit(0))

            // The delivery layer has what was forwarded beside, and nothing else.
            let record = try String(contentsOfFile: layer.record, encoding: .utf8)
            let forwarded = real.filter { $0.outcome == "forward" }.map(\.sendId)
            // What was in doubt when the gateway was killed is offered again, and answered 409.
            let taken = record.split(separator: "\n").filter { $0.contains("\"answered\": 202") }
            #expect(taken.count == forwarded.count, "\(record)")
            for send in forwarded { #expect(record.contains(send), "\(send)") }
            for send in told.map(\.answer.sendId) { #expect(!record.contains(send), "\(send)") }
            try expectVerifies(gate, in: scratch)

            try expectReport(of: told, enforced: real.count, gate, in: scratch)
        }

        /// The figures, counted a second time from what was answered.
        private func expectReport(
            of told: [(type: String, answer: Answer, sent: Bool?)], enforced: Int, _ gate: GateProcess,
            in scratch: Scratch
        ) throws {
            let key = try #require(gate.ready?.trailKey)
            let (page, base) = (scratch.path("shadow.html"), ["shadow", "report", gate.trail, "--key", key])
            let asJSON = try run(base + ["--json", "--html", page], in: scratch)
            try #require(asJSON.ending == .exit(0), "\(asJSON)")
            let report = try Self.decoder.decode(Report.self, from: Data(asJSON.output.utf8))
            func isStopped(_ answer: Answer) -> Bool { ["reject", "suppress"].contains(answer.outcome) }
            func counts(_ lines: [(type: String, answer: Answer, sent: Bool?)]) -> [Int] {
                [
                    lines.count, lines.count { isStopped($0.answer) },
                    lines.count { isStopped($0.answer) && $0.sent == true },
                    lines.count { !isStopped($0.answer) && $0.sent == false },
                ]
            }
            func counts(_ line: Report.Line) -> [Int] {
                [line.sends, line.stopped, line.stoppedAndSent, line.forwardedAndNotSent]
            }
            #expect(counts(report.total) == counts(told) && report.enforced == enforced)
            for line in report.types {
                #expect(counts(line) == counts(told.filter { $0.type == line.type }), "\(line)")
            }
            for line in report.reasons {
                #expect(counts(line) == counts(told.filter { $0.answer.reason == line.reason }), "\(line)")
            }
            #expect(report.types.count == 2 && report.reasons.count == Set(told.map(\.answer.reason)).count)
            #expect(report.countries.map(\.sends).reduce(0, +) == told.count)
            #expect(Set(report.countries.compactMap(\.country)) == ["DE", "(unknown)"])
            let samples = report.stopped.flatMap(\.samples).map(\.sendId)
            #expect(!samples.isEmpty && Set(samples).isSubset(of: Set(told.map(\.answer.sendId))))
            let csv = try run(base + ["--csv"], in: scratch)
            let rows = csv.output.split(separator: "\r\n").dropFirst().map { $0.split(separator: ",") }
            #expect(rows.compactMap { Int($0[4]) }.reduce(0, +) == told.count, "\(csv)")
            let html = try String(contentsOfFile: page, encoding: .utf8)
            #expect(html.contains("promo.offer") && !html.contains("u_2") && !html.contains("Ahmad"))
            let lines = try run(base, in: scratch)
            #expect(lines.ending == .exit(0) && lines.output.contains("would be stopped"), "\(lines)")
        }

        @Test func `without a delivery layer a file is the hop, where nothing is handed over`() throws {
            let scratch = try Scratch(isShared: true)
            let production = try Production(in: scratch)
            let file = scratch.path("state/onward.ndjson")
            let shadow = scratch.path("shadow/payments.sock")
            let listeners = """
                    mode: manage
                    socket_mode: "0666"
                  - path: \(shadow)
                    directory_mode: "0711"
                    mode: shadow
                    socket_mode: "0666"
                    caller: payments
                    users: [PRODUCER]
                """
            let text = production.template.replacing("    mode: \"0666\"", with: listeners)
                .replacing("  unix: LAYERSOCKET\n  users: [LAYER]", with: "  file: \(file)")
            // A message that waits from before would be written into the file, and count as handed over.
            let before = GateProcess(in: scratch, configuration: try production.write(production.template))
            try before.start()
            try put("/v1/recipients/u_1", Sample.recipient, over: production.socket, in: scratch)
            try put("/v1/recipients/u_1/devices/d_1", Sample.device, over: production.socket, in: scratch)
            let (_, waiting) = try send(
                "transaction.remittance_sent", "r0", as: Production.producerID, over: production.socket,
                in: scratch)
            try #require(waiting.outcome == "forward")
            #expect(try before.stop() == .exit(0))
            let early = try Finished.run(
                [Machine.sendgate, "serve", "--config", try production.write(text)], in: scratch, within: 60)
            #expect(
                early.ending == .exit(1) && early.errors.contains("1 message waits to be handed over"),
                "\(early)")
            _ = try production.write(production.template)
            try before.start()
            let cancelled = try Production.curl(
                production.socket, as: Production.asProducer, "/v1/sends/\(waiting.sendId)/cancel",
                ["--request", "POST"], in: scratch)
            #expect(cancelled.status == 200, "\(cancelled)")
            #expect(try before.stop() == .exit(0))

            let gate = GateProcess(in: scratch, configuration: try production.write(text))
            try gate.start()
            let (status, answer) = try send(
                "transaction.remittance_sent", "r1", as: Production.producerID, over: shadow, in: scratch)
            #expect(status == 202 && answer.shadow == true && answer.outcome == "forward")
            let sent = try Production.curl(
                production.socket, as: Production.asProducer, "/v1/sends",
                ["--json", Sample.remittance("r2")], in: scratch)
            #expect(sent.status == 403 && sent.body.contains("other_listener"), "\(sent)")
            #expect(try gate.stop() == .exit(0))
            #expect(!FileManager.default.fileExists(atPath: file))
            // The flag says the same, in place of a delivery layer that the file names.
            let named = text.replacing("  file: \(file)", with: "  unix: /nonexistent\n  users: [LAYER]")
            let path = try production.write(named)
            let flagged = try ChildProcess(
                [Machine.sendgate, "serve", "--config", path, "--hop", "file:\(file)", "--json"],
                environment: [:], errorPath: scratch.path("flagged.stderr"), descriptorCountMax: nil)
            #expect(try flagged.readLine(within: 60).contains("\"ready\":true"))
            flagged.signal(SIGTERM)
            #expect(try flagged.waitForEnd(within: 60) == .exit(0))
            // Where sends are handed over, it would deliver nothing.
            let real = try production.write(production.template)
            let refused = try Finished.run(
                [Machine.sendgate, "serve", "--config", real, "--hop", "file:\(file)"], in: scratch,
                within: 20)
            #expect(
                refused.ending == .exit(1) && refused.errors.contains("`hop.file` delivers nothing"),
                "\(refused)")
        }
    }
}
