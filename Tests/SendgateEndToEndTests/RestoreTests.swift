import Foundation
import Testing

extension EndToEnd {
    /// An old copy of the state directory is put back beside the newest trail.
    @Suite struct RestoreTests {
        private func backUp(_ gate: GateProcess, in scratch: Scratch) throws {
            try FileManager.default.copyItem(atPath: "\(gate.folder)/state", toPath: scratch.path("backup"))
        }

        private func putBack(_ gate: GateProcess, in scratch: Scratch) throws {
            try FileManager.default.removeItem(atPath: "\(gate.folder)/state")
            try FileManager.default.copyItem(atPath: scratch.path("backup"), toPath: "\(gate.folder)/state")
        }

        private func command(_ gate: GateProcess, _ more: [String] = []) -> [String] {
            [Machine.sendgate, "restore", "--trail", "\(gate.folder)/trail", "--dev", gate.folder, "--json"]
                + more
        }

        /// Runs it and kills it when it makes a system call for the `count`-th time.
        private func restore(
            _ gate: GateProcess, killedAt call: String, _ count: Int, in scratch: Scratch
        ) throws -> Finished {
            try Finished.run(
                [
                    "/usr/bin/strace", "-f", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                    "inject=\(call):signal=KILL:when=\(count)", "--",
                ] + command(gate), in: scratch, within: 120)
        }

        private func consent(_ id: String, _ state: String, in scratch: Scratch) throws -> String {
            let hashed = try Finished.run(
                ["sha256sum", "\(Machine.policies)/notices/promo.3.en.txt"], in: scratch, within: 30)
            let notice = hashed.output.prefix(64)
            let now = ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: -1))
            return """
                {"id": "\(id)", "purpose": "marketing", "channel": "push", "state": "\(state)", "event_time": "\(now)", \
                "method": "in_app_toggle", "jurisdiction": "DE", "notice": {"id": "promo", "version": "3", \
                "language": "en", "sha256": "\(notice)"}}
                """
        }

        private func offer(_ id: String, _ connection: RawConnection) throws -> Reply {
            try connection.sendExample(of: "promo.offer", as: id)
        }

        private func files(_ folder: String) throws -> [String: Data] {
            var found: [String: Data] = [:]
            for name in try FileTree.files(in: folder) {
                found[name] = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)"))
            }
            return found
        }

        @Test
        func `what was withdrawn, erased and sent since the backup stays so, and nothing goes out twice`()
            throws
        {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            var connection = try gate.connect()
            let person = "/v1/recipients/u_1"
            for (method, target, body) in [
                ("POST", "\(person)/consents", try consent("c_1", "given", in: scratch)),
                ("PUT", "/v1/recipients/u_2", Sample.recipient),
            ] {
                let reply = try connection.request(method, target, body)
                try #require(reply.status == 200, "\(reply)")
            }
            try gate.stop()
            try backUp(gate, in: scratch)

            try gate.start()
            connection = try gate.connect()
            let withdrawn = try connection.request(
                "POST", "\(person)/consents/c_1/withdraw", "{}")
            try #require(withdrawn.status == 200, "\(withdrawn)")
            let erased = try connection.request("DELETE", "/v1/recipients/u_2")
            try #require(erased.status == 200, "\(erased)")
            let first = try connection.request("POST", "/v1/sends", Sample.login("since"))
            try #require(first.status == 202, "\(first)")
            try gate.stop()
            let old = try gate.copyOfTrail("old")
            let sentCount = try String(contentsOfFile: "\(gate.folder)/onward.ndjson", encoding: .utf8)
                .split(separator: "\n").count
            try putBack(gate, in: scratch)

            // The old copy alone does not start, and a look at it writes nothing.
            #expect(try gate.startExpectingEnd() == .exit(1))
            #expect(gate.errors.contains("an old copy of them was put in place"), "\(gate.errors)")
            let looked = try Finished.run(command(gate, ["--dry-run"]), in: scratch, within: 60)
            #expect(looked.ending == .exit(0), "\(looked.errors)")
            #expect(looked.output.contains("\"restored\":false"), "\(looked.output)")
            #expect(try files("\(gate.folder)/trail") == files(old))
            let restored = try Finished.run(command(gate), in: scratch, within: 60)
            #expect(restored.ending == .exit(0), "\(restored.errors)")
            #expect(
                restored.output.contains("\"withdrawals\":1") && restored.output.contains("\"erasures\":1"),
                "\(restored.output)")

            try gate.start()
            connection = try gate.connect()
            let refused = try offer("after", connection)
            #expect(refused["detail"] == "withdrawn", "\(refused)")
            #expect(try connection.request("GET", "/v1/recipients/u_2").status == 404)
            let again = try connection.request("POST", "/v1/sends", Sample.login("since"))
            #expect(again.status == 202 && again["send_id"] == first["send_id"], "\(again)")
            let other = try connection.request("POST", "/v1/sends", Sample.remittance("since"))
            #expect(other.status == 409, "\(other)")
            try gate.stop()
            let count = try String(contentsOfFile: "\(gate.folder)/onward.ndjson", encoding: .utf8)
                .split(separator: "\n").count
            #expect(count == sentCount, "a message went out twice")

            try expectVerifies(gate, in: scratch)
            let key = try #require(gate.ready?.trailKey)
            let since = try Finished.run(
                [
                    Machine.sendgate, "audit", "verify", gate.trail, "--key", key, "--since",
                    "\(old)/checkpoint",
                ], in: scratch, within: 60)
            #expect(since.ending == .exit(0), "\(since.output)\(since.errors)")
            #expect(since.output.contains("append-only since the external checkpoint"), "\(since.output)")
            let nothing = try Finished.run(command(gate), in: scratch, within: 60)
            #expect(nothing.ending == .exit(0) && nothing.output.contains("\"restored\":false"), "\(nothing)")
        }

        /// Sends of three commits of a restore: two pieces as a stream, and one by itself before, between and behind them.
        ///
        /// - Returns: The id that the gateway gave each single send, and all that it gave those of the streams.
        private func sendAll(_ gate: GateProcess) throws -> (single: [String], streamed: Set<Substring>) {
            let connection = try gate.connect()
            var single: [String] = []
            var streamed: Set<Substring> = []
            func sendOne(_ id: String) throws {
                let reply = try connection.request("POST", "/v1/sends", Sample.login(id))
                single.append(try #require(reply["send_id"], "\(reply)"))
            }
            try sendOne("early")
            for (piece, between) in [("a", "middle"), ("b", "late")] {
                let lines = (0..<600).map { Sample.login("\(piece)\($0)") }
                let reply = try connection.request(
                    "POST", "/v1/sends/stream", lines.joined(separator: "\n"), type: "application/x-ndjson")
                try #require(reply.status == 200, "\(reply)")
                streamed.formUnion(reply.text.matches(of: /"send_id":"([0-9a-f-]+)"/).map(\.output.1))
                try sendOne(between)
            }
            try #require(streamed.count == 1_200)
            return (single, streamed)
        }

        /// The first two synchronizations are of the opening. A commit is kept once its own has ended, so with the fourth each run
        /// keeps one commit more, or two.
        @Test func `a restore that is killed at its commits goes on when it is run again`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            try gate.stop()
            try backUp(gate, in: scratch)
            try gate.start()
            let before = try sendAll(gate)
            try gate.stop()
            try putBack(gate, in: scratch)
            var killCount = 0
            while killCount < 20 {
                let run = try restore(gate, killedAt: "fdatasync", 4, in: scratch)
                if run.output.contains("\"restored\":") { break }
                try #require(run.ending == .signal(SIGKILL), "\(run)")
                killCount += 1
                // The first leaves a part of the entries in the store, which no gateway may go on from.
                guard killCount == 1 else { continue }
                #expect(try gate.startExpectingEnd() == .exit(1))
                #expect(gate.errors.contains("a restore was begun"), "\(gate.errors)")
            }
            #expect((3..<20).contains(killCount))
            try gate.start()
            let after = try sendAll(gate)
            #expect(after.single == before.single)
            #expect(after.streamed == before.streamed)
            try gate.stop()
            let messages = try String(contentsOfFile: "\(gate.folder)/onward.ndjson", encoding: .utf8)
                .matches(of: /"message_id":"([0-9a-f-]+)"/).map(\.output.1)
            #expect(!messages.isEmpty && Set(messages).count == messages.count, "a message went out twice")
            try expectVerifies(gate, in: scratch)
        }

        /// Everything is in the store by then, and the tree is not yet published under its new name.
        @Test func `a restore that is killed while it publishes is ended by the next start`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            try gate.stop()
            try backUp(gate, in: scratch)
            try gate.start()
            let reply = try gate.connect().request("POST", "/v1/sends", Sample.login("since"))
            let before = try #require(reply["send_id"], "\(reply)")
            try gate.stop()
            try putBack(gate, in: scratch)
            let checkpoint = "\(gate.trail)/checkpoint"
            let old = try Data(contentsOf: URL(fileURLWithPath: checkpoint))
            let run = try restore(gate, killedAt: "fsync", 3, in: scratch)
            #expect(run.ending == .signal(SIGKILL), "\(run)")
            #expect(try Data(contentsOf: URL(fileURLWithPath: checkpoint)) == old)
            try gate.start()
            let again = try gate.connect().request("POST", "/v1/sends", Sample.login("since"))
            #expect(again["send_id"] == before, "\(again)")
            try gate.stop()
            let published = try String(contentsOfFile: checkpoint, encoding: .utf8)
            #expect(published.split(separator: "\n").first?.contains("/restored-") == true, "\(published)")
            try expectVerifies(gate, in: scratch)
        }

        @Test func `a damaged trail and the trail of another gateway are refused, and nothing is touched`()
            throws
        {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            let other = GateProcess(in: scratch, folder: "other")
            for one in [gate, other] {
                try one.start()
                try one.registerSomebody()
                try one.stop()
            }
            try backUp(gate, in: scratch)
            try gate.start()
            #expect(try gate.stillAnswers("more"))
            try gate.stop()
            try putBack(gate, in: scratch)
            let trail = "\(gate.folder)/trail"
            let state = try files("\(gate.folder)/state")

            let bundle = try #require(
                FileTree.files(in: trail).filter { $0.hasPrefix("tile/entries/") }
                    .max { $0.compare($1, options: .numeric) == .orderedAscending })
            let whole = try Data(contentsOf: URL(fileURLWithPath: "\(trail)/\(bundle)"))
            var spoiled = whole
            spoiled[spoiled.count / 2] ^= 1
            chmod("\(trail)/\(bundle)", 0o600)
            try spoiled.write(to: URL(fileURLWithPath: "\(trail)/\(bundle)"))
            let damaged = try Finished.run(command(gate), in: scratch, within: 60)
            #expect(damaged.ending == .exit(3), "\(damaged)")
            #expect(try files("\(gate.folder)/state")["gate.db"] == state["gate.db"])

            try FileManager.default.removeItem(atPath: trail)
            try FileManager.default.copyItem(atPath: "\(other.folder)/trail", toPath: trail)
            let foreign = try Finished.run(command(gate), in: scratch, within: 60)
            #expect(foreign.ending == .exit(1) && foreign.errors.contains("holds the trail"), "\(foreign)")
            #expect(try files("\(gate.folder)/state")["gate.db"] == state["gate.db"])
        }
    }
}
