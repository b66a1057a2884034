import Foundation
import Testing

extension EndToEnd {
    /// An audit of everybody, through the binary, ended in the middle.
    @Suite struct DriftTests {
        private static let personCount = 600

        @Test func `an audit that is killed goes on where it stood, and everybody is told once`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            var connection = try gate.connect()
            for number in 0..<Self.personCount {
                let person = "/v1/recipients/u_\(number)"
                let registered = try connection.request("PUT", person, #"{"region": "DE"}"#)
                try #require(registered.status == 200, "\(registered)")
                let device = try connection.request(
                    "PUT", "\(person)/devices/d_1",
                    """
                    {"platform": "android", "app": "no.getdrop.app", "token": "token-\(number)", \
                    "os_permission": "\(number.isMultiple(of: 2) ? "denied" : "granted")"}
                    """)
                try #require(device.status == 200, "\(device)")
                if number % 3 == 0 {
                    let reported = try connection.request(
                        "PUT", "\(person)/devices/d_1/subscriptions", #"{"categories": {"marketing": true}}"#)
                    try #require(reported.status == 200, "\(reported)")
                }
            }
            func sendgate(_ arguments: String...) throws -> Finished {
                try Finished.run(
                    [Machine.sendgate, "drift"] + arguments + ["--socket", gate.socket()], in: scratch,
                    within: 60)
            }
            // Before the first audit, none is under way, and none has an age.
            let unaudited = try connection.request("GET", "/metrics").text
            #expect(unaudited.contains("\nsendgate_drift_run_under_way 0\n"))
            #expect(!unaudited.contains("\nsendgate_drift_run_age_seconds "))
            let begun = try sendgate("run", "--no-wait", "--json")
            #expect(begun.ending == .exit(0) && begun.output.contains(#""started_by":"dev""#), "\(begun)")
            let deadline = Deadline(seconds: 30)
            while true {
                let now = try connection.request("GET", "/v1/drift").text
                if !now.contains(#""examined":0,"#) {
                    // Five hundred in a second: it is on its way.
                    #expect(!now.contains("finished_at"), "\(now)")
                    break
                }
                try #require(!deadline.isPast, "\(now)")
            }
            gate.kill()
            try gate.start()
            connection = try gate.connect()
            let ended = try sendgate("run")
            #expect(ended.ending == .exit(0), "\(ended)")
            #expect(
                ended.output.contains("\(Self.personCount) recipients examined, 0 unreadable"), "\(ended)")
            #expect(ended.output.contains(/300 +blocked_at_os +marked/), "\(ended)")
            #expect(ended.output.contains(/200 +subscribed_while_off +repaired/), "\(ended)")
            #expect(ended.output.contains("500 entries were written"), "\(ended)")
            let orders = try sendgate("list", "--orders")
            let lines = orders.output.split(separator: "\n")
            #expect(lines.count == 200 && lines.allSatisfy { $0.contains(#""token":"token-"#) }, "\(orders)")
            let shown = try sendgate("show")
            #expect(shown.output == ended.output, "\(shown)")
            let again = try sendgate("run")
            #expect(again.output.contains("0 entries were written"), "\(again)")
            let metrics = try connection.request("GET", "/metrics").text
            #expect(metrics.contains("\nsendgate_drift_run_under_way 0\n"))

            try gate.stop()
            let entries = try TrailText(gate.trail)
            #expect(entries.count(of: #""kind":"drift""#) == 500)
            try expectVerifies(gate, in: scratch)
            let replayed = try Finished.run(
                [Machine.sendgate, "audit", "replay", "--from-genesis", try gate.copyOfTrail("replayed")],
                in: scratch, within: 60)
            #expect(replayed.ending == .exit(0), "\(replayed)")
        }
    }
}
