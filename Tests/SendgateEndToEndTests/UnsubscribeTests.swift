import Foundation
import Testing

extension EndToEnd {
    /// The way out of marketing as somebody takes it: from the link in a message to the next message.
    @Suite struct UnsubscribeTests {
        private struct Page {
            var status: Int
            var headers: String
            var text: String
        }

        private func open(_ url: String, _ more: [String] = [], in scratch: Scratch) throws -> Page {
            let finished = try Finished.run(
                ["curl", "--silent", "--show-error", "--include"] + more + [url], in: scratch, within: 30)
            try #require(finished.ending == .exit(0), "\(finished)")
            // Swift takes CR LF for one character.
            let text = finished.output.replacingOccurrences(of: "\r\n", with: "\n")
            let end = try #require(text.range(of: "\n\n"))
            let headers = String(text[..<end.lowerBound])
            let status = headers.split(separator: " ").dropFirst().first.flatMap { Int($0) }
            return Page(status: try #require(status), headers: headers, text: String(text[end.upperBound...]))
        }

        private func sha256(_ file: String, in scratch: Scratch) throws -> String {
            let finished = try Finished.run(["sha256sum", file], in: scratch, within: 30)
            return String(finished.output.prefix(64))
        }

        /// The repository's bundle with room for more than one offer a day.
        private func bundle(in scratch: Scratch) throws -> String {
            let folder = scratch.path("policies")
            try FileManager.default.copyItem(atPath: Machine.policies, toPath: folder)
            let limits = "\(folder)/limits.yaml"
            let text = try String(contentsOfFile: limits, encoding: .utf8)
            let roomy = text.replacing("count: 1\n", with: "count: 9\n").replacing(
                "count: 2\n", with: "count: 9\n")
            try #require(roomy != text)
            try roomy.write(toFile: limits, atomically: true, encoding: .utf8)
            // What they say of caps is not so any more.
            let cases = try FileManager.default.contentsOfDirectory(atPath: "\(folder)/cases")
            for file in cases {
                try "cases: []\n".write(toFile: "\(folder)/cases/\(file)", atomically: true, encoding: .utf8)
            }
            return folder
        }

        @Test func `a tap ends marketing, a second one takes it back`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch, policies: try bundle(in: scratch))
            try gate.start()
            let pages = try #require(gate.ready?.pages)
            #expect(pages.hasPrefix("127.0.0.1:"))
            try gate.registerSomebody()
            let connection = try gate.connect()
            let notice = try sha256("\(Machine.policies)/notices/promo.3.en.txt", in: scratch)
            let now = ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: -5))
            let consent = try connection.request(
                "POST", "/v1/recipients/u_1/consents",
                """
                {"id": "c_1", "purpose": "marketing", "channel": "push", "state": "given", "event_time": "\(now)", \
                "method": "in_app_toggle", "jurisdiction": "DE", "notice": {"id": "promo", "version": "3", \
                "language": "en", "sha256": "\(notice)"}}
                """)
            try #require(consent.status == 200, "\(consent)")
            let example = try connection.request("GET", "/v1/types/promo.offer").text
            let body = try #require(
                try (JSONSerialization.jsonObject(with: Data(example.utf8)) as? [String: Any])?["example"]
                    as? [String: Any])
            func send(_ id: String) throws -> String {
                var body = body
                body["id"] = id
                body["recipient"] = ["user": "u_1"]
                let bytes = try JSONSerialization.data(withJSONObject: body)
                return try connection.request("POST", "/v1/sends", String(decoding: bytes, as: UTF8.self))
                    .text
            }
            let first = try send("s_1")
            try #require(first.contains(#""outcome":"forward""#), "\(first)")

            // The link as the delivery layer is given it.
            let onward = "\(gate.folder)/onward.ndjson"
            let deadline = Deadline(seconds: 30)
            var handedOver = ""
            while !handedOver.contains("/u/") {
                try #require(!deadline.isPast, "nothing was handed over: \(gate.errors)")
                handedOver = (try? String(contentsOfFile: onward, encoding: .utf8)) ?? ""
            }
            let link = try #require(
                handedOver.firstMatch(of: /http:\/\/127\.0\.0\.1:[0-9]+\/u\/[A-Za-z0-9_-]{76}/).map {
                    String($0.0)
                }, "\(handedOver)")
            #expect(link.hasPrefix("http://\(pages)/u/"))

            let asked = try open(link, in: scratch)
            #expect(asked.status == 200 && asked.text.contains(#"value="mute""#), "\(asked)")
            let head = try open(link, ["--head"], in: scratch)
            #expect(head.status == 200 && head.text.isEmpty)
            #expect(head.headers.contains("content-length: \(asked.text.utf8.count)"))
            // Looked at as often as one likes.
            let second = try send("s_2")
            #expect(second.contains(#""outcome":"forward""#), "\(second)")

            let muted = try open(link, ["--data", "action=mute"], in: scratch)
            let token = try #require(link.split(separator: "/").last)
            #expect(muted.status == 303 && muted.headers.contains("location: \(token)"), "\(muted)")
            let confirmed = try open(link, in: scratch)
            #expect(confirmed.text.contains(#"role="status""#) && confirmed.text.contains(#"value="undo""#))
            let refused = try send("s_3")
            #expect(refused.contains(#""reason":"no_gdpr_consent""#), "\(refused)")

            // curl follows as a browser does: to the page, by GET.
            let undone = try open(link, ["--location", "--data", "action=undo"], in: scratch)
            #expect(undone.text.contains("Undone."), "\(undone)")
            let allowed = try send("s_4")
            #expect(allowed.contains(#""outcome":"forward""#), "\(allowed)")

            // A mail program does it without showing anything, in either encoding.
            let oneClick = try open(link, ["--form", "List-Unsubscribe=One-Click"], in: scratch)
            #expect(oneClick.status == 200 && oneClick.text.contains("You are unsubscribed"), "\(oneClick)")
            let ended = try send("s_5")
            #expect(ended.contains(#""reason":"no_gdpr_consent""#), "\(ended)")

            let forged = try open(String(link.dropLast(4)) + "AAAA", in: scratch)
            let erased = try connection.request("DELETE", "/v1/recipients/u_1")
            #expect(erased.status == 200)
            let gone = try open(link, in: scratch)
            #expect(forged.status == 404 && gone.status == 404 && gone.text == forged.text)
            try gate.stop()
            // The trail tells it, and by whom.
            let entries = try TrailText(gate.trail)
            #expect(entries.count(of: #""source":"unsubscribe_link""#) == 3)
            #expect(entries.count(of: #""state":"undone""#) >= 1)
            try expectVerifies(gate, in: scratch)
        }
    }
}
