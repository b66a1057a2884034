import Foundation
import Testing

extension Alone {
    /// The courier between the real gateway, and Apple and Twilio as stand-ins that answer after a while.
    @Suite struct CourierKillTests {
        private static let (pushCount, textCount) = (1_000, 200)
        /// After so many sends the courier is killed, and after so many both processes.
        private static let (courierKilledAt, bothKilledAt) = (400, 800)

        private struct Told: Encodable {
            var pushes: [String] = []
            var texts: [String] = []
        }

        private struct Answer: Decodable {
            struct Delivery: Decodable {
                var messageID: String
                enum CodingKeys: String, CodingKey { case messageID = "message_id" }
            }
            var sendID: String
            var deliveries: [Delivery]
            enum CodingKeys: String, CodingKey {
                case sendID = "send_id"
                case deliveries
            }
        }

        private struct Found: Decodable {
            var differences: [String]
            var counts: [String: Int]
        }

        private static func peer(_ name: String) -> String {
            "\(Machine.repository)/Tests/CourierProvidersTests/peers/\(name)"
        }

        /// Starts both stand-ins, and a courier that reaches them.
        private func courier(
            in scratch: Scratch, _ apple: inout ChildProcess?, _ twilio: inout ChildProcess?
        ) throws -> CourierProcess {
            let keys = scratch.path("keys")
            try FileManager.default.createDirectory(atPath: keys, withIntermediateDirectories: false)
            let made = try Finished.run(
                [Machine.python, Self.peer("push_keys.py"), keys], in: scratch, within: 60)
            try #require(made.ending == .exit(0), "\(made.errors)")
            let pushes = try ChildProcess(
                [Machine.python, Self.peer("push_service.py"), keys, "--delay", "80"],
                errorPath: scratch.path("apple.stderr"))
            let texts = try ChildProcess(
                [
                    Machine.python, Self.peer("text_service.py"), "\(keys)/good.pem", "\(keys)/good.pem",
                    #"[{"status": 201, "body": {"sid": "SM1", "status": "queued"}, "delay": 80}]"#,
                    scratch.path("texts"),
                ], errorPath: scratch.path("twilio.stderr"))
            let (applePort, twilioPort) = (
                try pushes.readLine(within: 30), try texts.readLine(within: 30)
            )
            (apple, twilio) = (pushes, texts)
            try FileManager.default.createDirectory(
                atPath: scratch.path("courier"), withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700])
            try scratch.write("secret", "s3cret\n")
            try scratch.write(
                "courier/courier.yaml",
                """
                apps:
                  no.getdrop.app:
                    apns:
                      key_id: KEYIDKEYID
                      team_id: TEAMIDTEAM
                      key: \(keys)/apns.p8
                      environment: sandbox
                      topics: [no.getdrop.app]
                      trust: \(keys)/ca.pem
                      endpoint: "localhost:\(applePort)"
                sms:
                  twilio:
                    account: AC00000000000000000000000000000001
                    secret: \(scratch.path("secret"))
                    from: "+4790000000"
                    status_callback: https://hooks.example.com/statuses
                  trust: \(keys)/ca.pem
                  endpoint: "https://localhost:\(twilioPort)"
                """)
            return try CourierProcess(in: scratch)
        }

        @Test
        func
            `a courier and a gateway killed amid pushes and texts lose none, and double none that was not in doubt`()
            throws
        {
            let scratch = try Scratch()
            var (apple, twilio): (ChildProcess?, ChildProcess?)
            let courier = try courier(in: scratch, &apple, &twilio)
            try courier.waitUntilReady()
            let gate = GateProcess(in: scratch, ["--hop", "unix:\(courier.socket)"])
            try gate.start()
            try gate.registerSomebody()
            var connection = try gate.connect()
            let number = try connection.request(
                "PUT", "/v1/recipients/u_1/addresses/n_1",
                #"{"kind": "sms", "value": "+4790000000", "verified_at": "\#(Sample.time(secondsAgo: 30))"}"#)
            try #require(number.status == 200, "\(number)")

            // When the courier is killed amid pushes and texts, and later both processes are.
            var (told, sends) = (Told(), [String]())
            func send(_ body: String) throws -> Answer {
                let reply = try connection.request("POST", "/v1/sends", body)
                try #require(reply.status == 202, "\(reply)")
                let answer = try JSONDecoder().decode(Answer.self, from: Data(reply.body))
                sends.append(answer.sendID)
                return answer
            }
            for index in 0..<Self.pushCount {
                if index == Self.courierKilledAt {
                    courier.kill()
                    try courier.relaunch()
                } else if index == Self.bothKilledAt {
                    courier.kill()
                    gate.kill()
                    try gate.start()
                    connection = try gate.connect()
                    try courier.relaunch()
                }
                let push = try send(Sample.login("p-\(index)"))
                told.pushes += push.deliveries.map(\.messageID)
                if index.isMultiple(of: Self.pushCount / Self.textCount) {
                    let text = try send(Sample.login("t-\(index)", channel: "sms"))
                    told.texts.append(text.sendID)
                }
            }
            try gate.waitUntilGone(sends, within: 180)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")

            // Then the trail, Apple and Twilio agree.
            try apple?.write(line: #"{"log": true}"#)
            let pushes = try #require(try apple?.readLine(within: 30))
            twilio?.kill()
            let checked = try Finished.run(
                [
                    Machine.python, Machine.peer("check_courier.py"), try gate.copyOfTrail("copy"),
                    try scratch.write("pushes", pushes), scratch.path("texts"),
                    try scratch.write(
                        "told", String(decoding: JSONEncoder().encode(told), as: UTF8.self)),
                ], in: scratch, within: 60)
            let found = try step("\(checked.ending) \(checked.errors)") {
                try JSONDecoder().decode(Found.self, from: Data(checked.output.utf8))
            }
            #expect(found.differences == [])
            #expect(found.counts["pushes"] == Self.pushCount && found.counts["texts"] == Self.textCount)
            // The kills met messages under way.
            #expect((found.counts["pushes tried again"] ?? 0) > 0, "\(found.counts)")
            #expect((found.counts["texts in doubt"] ?? 0) > 0, "\(found.counts)")
            try expectVerifies(gate, in: scratch)
        }

        @Test func `a gateway that is killed alone records what the courier was told, and what was in doubt`()
            throws
        {
            let scratch = try Scratch()
            var (apple, twilio): (ChildProcess?, ChildProcess?)
            let courier = try courier(in: scratch, &apple, &twilio)
            try courier.waitUntilReady()
            let gate = GateProcess(in: scratch, ["--hop", "unix:\(courier.socket)"])
            try gate.start()
            try gate.registerSomebody()
            var connection = try gate.connect()
            var sends: [String] = []
            for index in 1...200 {
                let reply = try connection.request("POST", "/v1/sends", Sample.login("k-\(index)"))
                try #require(reply.status == 202, "\(reply)")
                sends.append(try JSONDecoder().decode(Answer.self, from: Data(reply.body)).sendID)
                // Apple answers after 80 ms, so the courier is told what no gateway hears.
                guard index.isMultiple(of: 40) else { continue }
                gate.kill()
                try gate.start()
                connection = try gate.connect()
            }
            try gate.waitUntilGone(sends, within: 120)
            var doubtCount = 0
            for send in sends {
                let reply = try connection.request("GET", "/v1/sends/\(send)")
                let text = String(decoding: reply.body, as: UTF8.self)
                #expect(text.contains(#""event":"accepted_by_provider""#), "\(text)")
                if text.contains(#""event":"in_doubt""#), text.contains(#""reason":"interrupted""#) {
                    doubtCount += 1
                }
            }
            #expect(doubtCount > 0)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            _ = (apple, twilio)
            try expectVerifies(gate, in: scratch)
        }
    }
}
