import Foundation
import GateTestKit
import Testing

extension EndToEnd {
    /// A state directory of a released version that is brought up to date by a process that is killed.
    ///
    /// `sendgate clock accept` opens the state directory as `serve` does, and takes any clock: these directories were recorded at a
    /// moment that may lie ahead of the machine's.
    @Suite struct MigrationKillTests {
        private static let fixtures = "\(Machine.repository)/Tests/Fixtures/States"
        private static let versions =
            try! FileManager.default.contentsOfDirectory(atPath: fixtures).sorted()
        /// The calls that change a file, and the files of the database that is brought up to date.
        private static let calls = ["pwrite64", "fdatasync", "ftruncate", "unlink"]
        private static let files = ["gate.db", "gate.db-wal"]

        /// A kept directory, and where it was killed.
        private struct Copy {
            let scratch: Scratch
            var gate: String { scratch.path("gate") }

            init(of version: String) throws {
                scratch = try Scratch()
                let unpacked = try Finished.run(
                    ["/bin/tar", "-xmzf", "\(fixtures)/\(version)/gate.tar.gz", "-C", scratch.folder],
                    in: scratch, within: 30)
                #expect(unpacked.ending == .exit(0), "\(unpacked)")
            }

            func run(_ arguments: [String], wrapper: [String] = []) throws -> Finished {
                try Finished.run(wrapper + [Machine.sendgate] + arguments, in: scratch, within: 60)
            }

            /// Brings it up to date under strace.
            ///
            /// - Parameter options: Of strace, besides the calls and files that it looks at.
            func migrate(_ options: [String]) throws -> Finished {
                try run(
                    ["clock", "accept", "--dev", gate],
                    wrapper: ["/usr/bin/strace", "-f", "-e", "trace=\(calls.joined(separator: ","))"]
                        + files.flatMap { ["-P", "\(gate)/state/\($0)"] } + options + ["--"])
            }

            /// The version in the database's first page, by a reader that is not ours.
            func version() throws -> Int {
                let asked = try Finished.run(
                    [
                        Machine.python, "-c",
                        "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('PRAGMA user_version').fetchone()[0])",
                        "\(gate)/state/gate.db",
                    ], in: scratch, within: 30)
                return try #require(Int(asked.output.trimmingCharacters(in: .newlines)), "\(asked)")
            }
        }

        @Test(arguments: versions)
        func `a kept state directory is brought up to date over a kill at any write`(version: String) throws {
            let whole = try Copy(of: version)
            let found = try whole.version()
            let counted = try whole.migrate(["-o", whole.scratch.path("calls")])
            #expect(counted.ending == .exit(0), "\(counted)")
            let newest = try whole.version()
            let lines = try String(contentsOfFile: whole.scratch.path("calls"), encoding: .utf8)
                .split(separator: "\n")
            // strace counts each call by itself.
            let moments = Self.calls.flatMap { name in
                (0..<lines.count { $0.contains(" \(name)(") }).map { "\(name):signal=KILL:when=\($0 + 1)" }
            }
            #expect(!moments.isEmpty)

            var left: Set<Int> = []
            for moment in Soak.part(of: moments, 8, "calls of a migration at which it is killed") {
                let copy = try Copy(of: version)
                let killed = try copy.migrate(["-o", "/dev/null", "-e", "inject=\(moment)"])
                #expect(killed.ending == .signal(SIGKILL), "\(moment): \(killed)")
                let copyOfKilled = copy.scratch.path("killed")
                try FileManager.default.copyItem(atPath: copy.gate, toPath: copyOfKilled)

                for step in [["clock", "accept"], ["audit", "state"]] {
                    let ran = try copy.run(step + ["--dev", copy.gate])
                    #expect(ran.ending == .exit(0), "\(step) after \(moment): \(ran)")
                }
                #expect(try copy.version() == newest)
                // Looked at last: a foreign reader moves the log into the file.
                try FileManager.default.removeItem(atPath: copy.gate)
                try FileManager.default.moveItem(atPath: copyOfKilled, toPath: copy.gate)
                left.insert(try copy.version())
            }
            // Both are there in a whole run of a version that has a step to go.
            #expect(
                left.isSubset(of: [found, newest]) && (!Soak.isWhole || left == [found, newest]), "\(left)")

            let gate = GateProcess(in: whole.scratch)
            try gate.start()
            #expect(try gate.connect().request("GET", "/v1/recipients/u_42").status == 200)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
        }
    }
}
