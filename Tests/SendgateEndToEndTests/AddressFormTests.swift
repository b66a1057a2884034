import Foundation
import GateTestKit
import GateVocabulary
import Testing

extension EndToEnd {
    /// The canonical forms of numbers and mailboxes, held against Google's numbering plans (PyPI's `phonenumbers`) and
    /// Python's IDNA2008 (`idna`).
    @Suite struct AddressFormTests {
        /// Numbers drawn of each kind of each region.
        private static let drawn = Soak.count(20, short: 3)

        @Test
        func `numbers and domains are one where other libraries say so, and no valid number is refused`()
            throws
        {
            let scratch = try Scratch()
            let seed = Soak.seed("numbers")
            let cases = try Finished.run(
                [Machine.python, Machine.peer("compare_numbers.py"), "\(seed)", "\(Self.drawn)"], in: scratch,
                within: 300)
            try #require(cases.ending == .exit(0), "\(cases.errors)")
            var counts: [Substring: Int] = [:]
            var differences: [String] = []
            for line in cases.output.split(separator: "\n") {
                let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
                try #require(fields.count >= 2, "\(line)")
                counts[fields[0], default: 0] += 1
                let (expected, spelling) = (String(fields[1]), String(fields[fields.count - 1]))
                let found: String?
                switch fields[0] {
                // Each valid number is its own canonical form, so no two fold together.
                case "valid", "same":
                    found = try? PhoneNumber(spelling).text
                    if PhoneNumber(sender: spelling)?.text != found {
                        differences.append("as a sender: \(line)")
                    }
                case "domain": found = Mailbox(sender: "ann@\(spelling)").map { String($0.text.dropFirst(4)) }
                default: throw HarnessError("\(line)")
                }
                if found != expected { differences.append("\(line): \(found ?? "refused")") }
            }
            #expect(
                differences.isEmpty,
                "\(differences.count) of \(counts), seed \(seed): \(differences.prefix(20))")
            #expect(
                counts["valid", default: 0] > 1_000 * Self.drawn
                    && counts["same", default: 0] > 4_000 * Self.drawn, "\(counts)")
            #expect(counts["domain", default: 0] > 20 * Self.drawn, "\(counts)")
        }

        @Test(arguments: [("+4407700900359", "+447700900359"), ("+5215512340562", "+525512340562")])
        func `STOP in another spelling ends the texts, and the trail alone says so`(
            registered: String, sender: String
        )
            throws
        {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let connection = try gate.connect()
            try gate.agreeToTexts(at: registered, in: scratch)
            let person = try connection.request("GET", "/v1/recipients/u_1")
            #expect(person.text.contains(#""value":"\#(sender)""#), "\(person)")
            let stopped = try connection.request(
                "POST", "/v1/replies",
                #"{"id": "r_1", "channel": "sms", "from": "\#(sender)", "text": "STOP", "received_at": "\#(Sample.time(secondsAgo: 1))"}"#
            )
            #expect(stopped.status == 200 && stopped.text.contains(#""effect":"withdrawn""#), "\(stopped)")
            let refused = try connection.sendExample(of: "promo.offer", as: "s_1", with: ["channel": "sms"])
            #expect(refused.status == 403 && refused.text.contains("no_gdpr_consent"), "\(refused)")
            try gate.stop()
            try expectVerifies(gate, in: scratch)
            let replayed = try Finished.run(
                [Machine.sendgate, "audit", "replay", "--from-genesis", try gate.copyOfTrail("replayed")],
                in: scratch, within: 120)
            #expect(replayed.ending == .exit(0), "\(replayed.output.suffix(2000))\(replayed.errors)")
        }
    }
}
