import Foundation
import Testing

extension EndToEnd {
    /// A word that takes consent back, as a carrier reports it, through the binary.
    @Suite struct ReplyTests {
        @Test func `a word ends the texts to a number, and no file has the number`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            var connection = try gate.connect()
            let number = "+4793141592"
            try gate.agreeToTexts(at: number, in: scratch)
            func send(_ id: String) throws -> (status: Int, text: String) {
                let answer = try connection.sendExample(of: "promo.offer", as: id, with: ["channel": "sms"])
                return (answer.status, answer.text)
            }
            let receivedAt = Sample.time(secondsAgo: 1)
            func reply(_ id: String, _ text: String) throws -> String {
                let answer = try connection.request(
                    "POST", "/v1/replies",
                    """
                    {"id": "\(id)", "channel": "sms", "from": "\(number)", "text": "\(text)", \
                    "received_at": "\(receivedAt)"}
                    """)
                try #require(answer.status == 200, "\(answer)")
                return answer.text
            }
            let first = try send("s_1")
            // By night an offer is dropped, which is decided after permission.
            try #require(first.status == 202 || first.text.contains("quiet_hours_dropped"), "\(first)")

            let stopped = try reply("SM1", "Ｓｔｏｐ!")
            #expect(stopped.contains(#""confirmation":{"language":"en","text":"Drop: "#), "\(stopped)")
            #expect(stopped.contains(#""effect":"withdrawn""#) && !stopped.contains("replayed"), "\(stopped)")
            let refused = try send("s_2")
            #expect(refused.status == 403 && refused.text.contains("no_gdpr_consent"), "\(refused)")
            #expect(try reply("SM2", "START").contains(#""why":"not_a_withdrawal""#))
            #expect(try send("s_3").text.contains("no_gdpr_consent"))
            try gate.stop()

            // A carrier that tries again after a restart is told the same, and nothing is recorded again.
            try gate.start()
            connection = try gate.connect()
            let again = try reply("SM1", "Ｓｔｏｐ!")
            #expect(
                again.contains(#""effect":"withdrawn""#) && again.contains(#""replayed":true"#), "\(again)")
            #expect(try send("s_4").text.contains("no_gdpr_consent"))
            try gate.stop()

            let entries = try TrailText(gate.trail)
            #expect(entries.count(of: #""kind":"reply""#) == 2)
            // A number is nowhere as it is spelled: the text to it was handed over by then, which is the next hop's.
            let clear = try Finished.run(
                [
                    "grep", "--recursive", "--binary-files=text", "--fixed-strings", "--files-with-matches",
                    String(number.dropFirst()), "\(gate.folder)/state", gate.trail,
                ], in: scratch, within: 30)
            #expect(clear.ending == .exit(1) && clear.output.isEmpty, "\(clear.output)\(clear.errors)")
            try expectVerifies(gate, in: scratch)
            let replayed = try Finished.run(
                [Machine.sendgate, "audit", "replay", "--from-genesis", try gate.copyOfTrail("replayed")],
                in: scratch, within: 120)
            #expect(replayed.ending == .exit(0), "\(replayed.output.suffix(2000))\(replayed.errors)")
        }
    }
}
