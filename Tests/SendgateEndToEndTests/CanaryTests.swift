import Foundation
import Testing

extension EndToEnd {
    @Suite struct CanaryTests {
        private struct Done: Decodable {
            /// What every marker holds: letters, and the digits of telephone numbers.
            var texts: [String]
            /// How many sends came to which reason, by what was to become of them.
            var states: [String: [String: Int]]
        }

        /// What must have become of some of each person's sends.
        private static let reached = [
            "forwarded": "allowed", "waiting": "allowed", "failed": "allowed", "refused": "no_gdpr_consent",
            "deferred": "quiet_hours_deferred", "digested": "digested", "cancelled": "withdrawn",
            "erased": "quiet_hours_deferred",
        ]

        @Test
        func `nothing a caller or a recipient chose lies readable anywhere, whatever became of it`() throws {
            let scratch = try Scratch()
            let layer = DeliveryLayer(in: scratch, ["--by-destination"])
            try layer.up()
            let gate = GateProcess(in: scratch, layer.hop + ["--log-level", "trace"])
            try gate.start()
            let canary = try ChildProcess(
                [Machine.python, Machine.peer("canary.py"), gate.folder, layer.record, "2000"],
                errorPath: scratch.path("canary.stderr"))
            let line = try canary.readLine(within: 120)
            let done = try JSONDecoder().decode(Done.self, from: Data(line.utf8))
            #expect(done.texts.count == 2 && done.texts.allSatisfy { $0.utf8.count >= 12 }, "\(line)")
            for (state, reason) in Self.reached {
                #expect(done.states[state]?[reason] ?? 0 > 0, "\(state): \(line)")
            }
            // Two thousand and what else was forwarded, to push, e-mail and text.
            try layer.waitForMessages(2_020, within: 120)

            let places = [gate.folder, scratch.path("gate.stderr.1")]
            // While it runs, so that write-ahead logs and whatever it holds open are there.
            let open = try Self.openFiles(of: gate.processID)
            #expect(open.contains { $0.hasSuffix("gate.db-wal") }, "\(open)")
            let metrics = try scratch.write("metrics", try gate.connect().request("GET", "/metrics").text)
            let running = try Self.search(for: done.texts, in: places + open + [metrics], scratch)
            #expect(running.finds.isEmpty, "\(running.finds)")
            let entries = try TrailText(gate.trail)
            for part in [
                #""kind":"erasure""#, #""kind":"cancel""#, #""result":"handed_over""#,
                #""result":"refused_by_hop""#, #""kind":"receipt""#, #""kind":"permission_prompt""#,
            ] {
                #expect(entries.count(of: part) > 0, "nothing is there of \(part)")
            }
            #expect(try gate.stop() == .exit(0))
            let stopped = try Self.search(for: done.texts, in: places, scratch)
            #expect(stopped.finds.isEmpty, "after the stop: \(stopped.finds)")

            // The search is not blind: not in these places, not for these texts, and not on any channel.
            #expect(running.fileCount > 20 && running.byteCount > 5 << 20, "\(running)")
            let known = try Self.search(for: ["transaction.remittance_sent"], in: places, scratch).finds
            #expect(known.contains { $0.file.contains("/trail/tile/entries/") }, "\(known)")
            #expect(known.contains { $0.file.contains("/state/gate.db") }, "\(known)")
            let delivered = try Self.search(for: done.texts, in: [layer.record], scratch).finds
            #expect(Set(delivered.filter { $0.form == "plain" }.map(\.text)) == Set(done.texts))
        }

        @Test func `the search finds a text in every form it may be written in`() throws {
            let scratch = try Scratch()
            let text = "Kontroll~?~>Abc"
            let planted = scratch.path("planted")
            let made = try Finished.run(
                [Machine.python, Machine.peer("find_canaries.py"), "--plant", planted, text], in: scratch,
                within: 30)
            #expect(made.ending == .exit(0), "\(made.errors)")
            let found = try Self.search(for: [text], in: [planted], scratch).finds
            let forms = [
                "plain", "lower", "upper", "reversed", "hex", "hex-upper", "utf-16-le", "utf-16-be",
                "base64-0",
                "base64-1", "base64-2", "base64url-0", "base64url-1", "base64url-2", "percent",
                "percent-upper", "json", "json-upper", "gzip plain",
            ]
            #expect(try FileTree.files(in: planted) == forms.sorted())
            for form in forms {
                #expect(found.contains { $0.file == "\(planted)/\(form)" && $0.form == form }, "\(form)")
            }
            // And nothing where nothing is.
            let nothing = try scratch.write("nothing", "Kontroll~?~>Ab c")
            #expect(try Self.search(for: [text], in: [nothing], scratch).finds.isEmpty)
        }

        private struct Found {
            struct Find: Decodable {
                var file: String
                var text: String
                var form: String
            }
            struct Total: Decodable {
                var files: Int
                var bytes: Int
            }
            var finds: [Find]
            var fileCount: Int
            var byteCount: Int
        }

        private static func search(
            for texts: [String], in places: [String], _ scratch: Scratch
        ) throws -> Found {
            let finished = try Finished.run(
                [Machine.python, Machine.peer("find_canaries.py")] + texts + ["--"] + places, in: scratch,
                within: 60)
            guard finished.ending == .exit(0) else { throw HarnessError("no search: \(finished.errors)") }
            let lines = finished.output.split(separator: "\n").map { Data($0.utf8) }
            let total = try JSONDecoder().decode(Found.Total.self, from: try #require(lines.last))
            return Found(
                finds: try lines.dropLast().map { try JSONDecoder().decode(Found.Find.self, from: $0) },
                fileCount: total.files, byteCount: total.bytes)
        }

        /// Regular files a process holds open, deleted ones included.
        private static func openFiles(of process: pid_t) throws -> [String] {
            let folder = "/proc/\(process)/fd"
            return try FileManager.default.contentsOfDirectory(atPath: folder).compactMap { name in
                var target = [UInt8](repeating: 0, count: 4096)
                let count = target.withUnsafeMutableBytes {
                    readlink(
                        "\(folder)/\(name)", $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
                }
                // A descriptor that was closed meanwhile leads nowhere.
                guard count > 0 else { return nil }
                let path = String(decoding: target[..<count], as: UTF8.self)
                guard path.hasPrefix("/"), !path.hasPrefix("/dev/"), !path.hasPrefix("/proc/") else {
                    return nil
                }
                return path.hasSuffix(" (deleted)") ? "\(folder)/\(name)" : path
            }
        }
    }
}
