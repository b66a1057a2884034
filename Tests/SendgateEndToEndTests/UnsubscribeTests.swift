import Foundation
import GateTestKit
import Testing

extension EndToEnd {
    /// The way out of marketing as a recipient takes it: from the link in a message to the next message.
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

        @Test func `a browser shows every language's pages, for eyes, keyboards and screen readers`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            let connection = try gate.connect()
            var links: [String] = []
            // The languages of the bundle.
            for language in Soak.part(of: ["en", "nb", "bs", "sq"], 1, "languages of pages") {
                let person = "/v1/recipients/u_\(language)"
                let registered = try connection.request(
                    "PUT", person,
                    """
                    {"region": "DE", "region_source": "kyc", "locale": "\(language)", "privacy": "full", \
                    "time_zone": "Europe/Berlin", "age": "adult", "push_enabled": true}
                    """)
                try #require(registered.status == 200, "\(registered)")
                let device = try connection.request(
                    "PUT", "\(person)/devices/d_1",
                    """
                    {"platform": "android", "app": "no.getdrop.app", "token": "token-\(language)", "region": "DE", \
                    "time_zone": "Europe/Berlin", "os_permission": "granted", "critical_alerts": false}
                    """)
                try #require(device.status == 200, "\(device)")
                let sent = try connection.sendExample(
                    of: "social.mention", as: "s_\(language)", to: "u_\(language)", with: ["locale": language]
                )
                try #require(sent["outcome"] == "forward", "\(sent)")
                links.append("\(language)=\(try gate.newestLink(after: links.count))")
            }
            // The link of an e-mail, which is asked for first.
            let person = "/v1/recipients/u_mail"
            let notice = try sha256("\(Machine.policies)/notices/social.1.en.txt", in: scratch)
            let now = ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: -5))
            for (method, target, asked) in [
                ("PUT", person, Sample.recipient),
                (
                    "PUT", "\(person)/addresses/a_1",
                    #"{"kind": "email", "value": "ahmad@example.com", "verified_at": "\#(now)"}"#
                ),
                (
                    "POST", "\(person)/consents",
                    """
                    {"id": "c_1", "purpose": "social", "channel": "email", "address": "a_1", "state": "given", \
                    "event_time": "\(now)", "method": "in_app_toggle", "jurisdiction": "DE", "notice": {"id": "social", \
                    "version": "1", "language": "en", "sha256": "\(notice)"}}
                    """
                ),
            ] {
                let reply = try connection.request(method, target, asked)
                try #require(reply.status == 200, "\(target): \(reply)")
            }
            let sent = try connection.sendExample(
                of: "social.mention", as: "s_mail", to: "u_mail", with: ["channel": "email"])
            try #require(sent["outcome"] == "forward", "\(sent)")
            links.append("en-email=\(try gate.newestLink(after: links.count))")
            let browsed = try Finished.run(
                [Machine.python, Machine.peer("browse_pages.py"), scratch.path("browser")] + links,
                in: scratch,
                within: 300)
            #expect(browsed.ending == .exit(0), "\(browsed)")
            // Four pages of each link, and that of an unknown one, each in two widths and two schemes.
            let pageCount = (4 * links.count + 1) * 4
            #expect(
                browsed.output.contains(#""links": \#(links.count), "pages": \#(pageCount)"#), "\(browsed)")
            // Each link was muted, undone and muted again; the first was once more undone and muted, without scripts. An undo
            // that is too late records nothing, and that of the e-mail brings back a choice of another source.
            // A stopped gateway has published what it recorded.
            try gate.stop()
            let trail = try TrailText(gate.trail)
            #expect(trail.count(of: #""source":"unsubscribe_link""#) == 3 * links.count + 2 - 1)
            try expectVerifies(gate, in: scratch)
        }

        @Test func `a tap ends marketing, a second one takes it back`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
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
            func send(_ id: String, _ type: String = "promo.offer") throws -> String {
                try connection.sendExample(of: type, as: id).text
            }
            let first = try send("s_1")
            try #require(first.contains(#""outcome":"forward""#), "\(first)")

            // The link as the delivery layer is given it.
            let link = try gate.newestLink(after: 0)
            #expect(link.hasPrefix("http://\(pages)/u/"))

            let asked = try open(link, in: scratch)
            #expect(asked.status == 200 && asked.text.contains(#"value="mute""#), "\(asked)")
            let head = try open(link, ["--head"], in: scratch)
            #expect(head.status == 200 && head.text.isEmpty)
            #expect(head.headers.contains("content-length: \(asked.text.utf8.count)"))
            // Looked at as often as one likes.
            // Permitted, and one too many for a day: the gate of permission comes before that of caps.
            let second = try send("s_2")
            #expect(second.contains(#""reason":"frequency_cap""#), "\(second)")

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
            #expect(allowed.contains(#""reason":"frequency_cap""#), "\(allowed)")

            // A mail program does it without showing anything, in either encoding.
            let oneClick = try open(link, ["--form", "List-Unsubscribe=One-Click"], in: scratch)
            #expect(oneClick.status == 200 && oneClick.text.contains("You are unsubscribed"), "\(oneClick)")
            let ended = try send("s_5")
            #expect(ended.contains(#""reason":"no_gdpr_consent""#), "\(ended)")

            // What other people do is another category, with a link of its own; its cap has room.
            let mention = try send("m_1", "social.mention")
            try #require(mention.contains(#""outcome":"forward""#), "\(mention)")
            let social = try gate.newestLink(after: 1)
            #expect(social != link)
            #expect(try open(social, ["--data", "action=mute"], in: scratch).status == 303)
            let muffled = try send("m_2", "social.mention")
            #expect(muffled.contains(#""reason":"user_preference""#), "\(muffled)")
            #expect(try open(social, ["--data", "action=undo"], in: scratch).status == 303)
            let again = try send("m_3", "social.mention")
            #expect(again.contains(#""outcome":"forward""#), "\(again)")

            let forged = try open(String(link.dropLast(4)) + "AAAA", in: scratch)
            let erased = try connection.request("DELETE", "/v1/recipients/u_1")
            #expect(erased.status == 200)
            let gone = try open(link, in: scratch)
            #expect(forged.status == 404 && gone.status == 404 && gone.text == forged.text)
            try gate.stop()
            // The trail tells it, and by whom.
            let entries = try TrailText(gate.trail)
            #expect(entries.count(of: #""source":"unsubscribe_link""#) == 5)
            #expect(entries.count(of: #""state":"undone""#) >= 1)
            try expectVerifies(gate, in: scratch)
        }

        private struct LinkKeys: Decodable {
            struct Key: Decodable { var id, purpose, state: String }
            var keys: [Key]
            var active: String? { keys.first { $0.purpose == "link" && $0.state == "active" }?.id }
        }

        @Test func `a link outlives its key's rotation, also after a restart, and ends with a stolen key`()
            throws
        {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            func send(_ id: String) throws -> Reply {
                try gate.connect().sendExample(of: "social.mention", as: id)
            }
            /// The token of a message that this sends.
            func token(of id: String, after count: Int) throws -> String {
                let sent = try send(id)
                try #require(sent["outcome"] == "forward", "\(sent)")
                let link = try gate.newestLink(after: count)
                return String(try #require(link.split(separator: "/").last))
            }
            // A restart changes the port.
            func open(_ token: String, _ more: [String] = []) throws -> Page {
                let pages = try #require(gate.ready?.pages)
                return try self.open("http://\(pages)/u/\(token)", more, in: scratch)
            }
            func keys(_ arguments: [String], as caller: String? = nil) throws -> Finished {
                let finished = try Finished.run(
                    [Machine.sendgate, "keys"] + arguments + ["--socket", gate.socket(of: caller)],
                    in: scratch, within: 60)
                try #require(finished.ending == .exit(0), "\(arguments): \(finished)")
                return finished
            }
            func activeKey() throws -> String {
                let listed = try keys(["list", "--json"]).output
                let read = try JSONDecoder().decode(LinkKeys.self, from: Data(listed.utf8))
                return try #require(read.active)
            }
            /// Mutes with a link, is refused a send, and takes it back.
            func expectWorks(_ token: String, _ name: String) throws {
                #expect(try open(token).status == 200, "\(name)")
                #expect(try open(token, ["--data", "action=mute"]).status == 303, "\(name)")
                #expect(try open(token).text.contains(#"value="undo""#), "\(name)")
                #expect(try send(name)["reason"] == "user_preference", "\(name)")
                #expect(try open(token, ["--data", "action=undo"]).status == 303, "\(name)")
            }

            let old = try token(of: "s_1", after: 0)
            let oldKey = try activeKey()
            _ = try keys(["rotate", "link"], as: "keys-team")
            let newKey = try activeKey()
            #expect(newKey != oldKey)
            let new = try token(of: "s_2", after: 1)
            #expect(new != old)
            try expectWorks(old, "old")
            try expectWorks(new, "new")

            try gate.stop()
            try gate.start()
            try expectWorks(old, "old-restarted")
            #expect(try token(of: "s_3", after: 2) == new)

            let unknown = try open(String(repeating: "T", count: 76))
            #expect(unknown.status == 404)
            _ = try keys(["revoke", oldKey, "--cause", "compromised"], as: "keys-team")
            for restarts in [false, true] {
                if restarts {
                    try gate.stop()
                    try gate.start()
                }
                for more in [[], ["--data", "action=mute"], ["--data", "List-Unsubscribe=One-Click"]] {
                    let ended = try open(old, more)
                    #expect(ended.status == 404 && ended.text == unknown.text, "\(more): \(ended)")
                }
                #expect(try send("s_revoked_\(restarts)")["outcome"] == "forward")
                #expect(try open(new).status == 200)
            }
            // Three mutes of a day can be taken back, and this is the fourth.
            #expect(try open(new, ["--data", "action=mute"]).status == 303)
            #expect(try send("s_muted")["reason"] == "user_preference")
            try gate.stop()
            try expectVerifies(gate, in: scratch)
        }
    }
}

extension Alone {
    /// Pages that any client may ask, beside a producer.
    @Suite struct PageFloodTests {
        private struct Report: Decodable {
            struct Sends: Decodable {
                var sends: Int
                var p99Ms: Double
            }
            var flooded: Sends
            var pages: [String: Int]
            var servedPerSecond: Int
        }

        @Test func `a flood of the pages takes no answer from a producer`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let sent = try gate.connect().sendExample(of: "social.mention", as: "s_1")
            try #require(sent["outcome"] == "forward", "\(sent)")
            let flood = try Finished.run(
                [
                    Machine.python, Machine.peer("flood_pages.py"), gate.folder,
                    try gate.newestLink(after: 0),
                ], in: scratch, within: 120)
            #expect(flood.ending == .exit(0), "\(flood)")
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            let line = try #require(flood.output.split(separator: "\n").last)
            let report = try decoder.decode(Report.self, from: Data(line.utf8))
            #expect(report.flooded.sends == 250 && report.flooded.p99Ms < 1_000, "\(line)")
            // Both what is served and what is turned away were under way: 100 a second, and 200 at once; and ten a second of
            // the genuine link, in each of the six seconds that the five of the flood fall into.
            for status in ["200", "303", "404", "503"] { #expect(report.pages[status] ?? 0 > 0, "\(line)") }
            #expect(report.servedPerSecond <= 100 + 200 / 5 + 6 * 10 / 5 + 5, "\(line)")
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            try expectVerifies(gate, in: scratch)
        }
    }
}

extension GateProcess {
    /// The link of the newest message that went to the delivery layer, once there is another than so many.
    func newestLink(after count: Int) throws -> String {
        let deadline = Deadline(seconds: 30)
        while true {
            let file = "\(folder)/onward.ndjson"
            let handedOver =
                FileManager.default.fileExists(atPath: file)
                ? try String(contentsOfFile: file, encoding: .utf8) : ""
            let links = handedOver.matches(of: /http:\/\/127\.0\.0\.1:[0-9]+\/u\/[A-Za-z0-9_-]{76}/)
            if links.count > count, let newest = links.last { return String(newest.0) }
            try #require(!deadline.isPast, "nothing was handed over: \(errors)")
        }
    }
}
