import CanonicalJSON
import Foundation
import GateVocabulary
import Testing
import TrailDirectory

@testable import sendgate

/// The auditor's commands on a trail that a gateway made and that was then changed by hand.
@Suite struct AuditCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A stopped gateway's trail with some decisions in it.
    private func trail() async throws -> (path: String, send: String) {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.registerSomebody()
        let sent = try await gate.send("one", "security.new_login", GatewayFixture.login)
        #expect(sent.status == 202, "\(sent.object)")
        for number in 0..<5 { _ = try await gate.send("p\(number)", "promo.offer", [:]) }
        try await gate.stop()
        return (folder.path("gate/trail"), try #require(sent.object["send_id"]?.stringValue))
    }

    @Test func `an untouched trail is consistent, well-formed and append-only`() async throws {
        let (path, _) = try await trail()
        let older = try folder.file(
            "older", try String(contentsOfFile: "\(path)/checkpoint", encoding: .utf8))
        // The trail grows after the auditor took a checkpoint home.
        try await GatewayFixture(in: folder.root).stop()
        let run = try await CommandLineRun(
            "audit", "verify", path, "--key", "\(path)/trail.pub", "--since", older)
        #expect(run.status == 0, "\(run.errors)")
        for part in ["signed by", "consistent: ", "only the members of each kind", "append-only since"] {
            #expect(run.output.contains(part), "\(run.output)")
        }
        #expect(run.errors.isEmpty)
        let key = try String(contentsOfFile: "\(path)/trail.pub", encoding: .utf8)
            .trimmingCharacters(in: .newlines)
        let json = try await CommandLineRun("audit", "verify", path, "--key", key, "--json")
        #expect(json.status == 0)
        let object = try CanonicalJSON.read(Array(json.output.dropLast().utf8), limits: .document)
        #expect(object["damaged"]?.booleanValue == false)
    }

    @Test func `one changed byte ends with 3 and names the file and the entry`() async throws {
        let (path, _) = try await trail()
        // The widest: partial bundles of earlier sizes may still lie beside it.
        func width(_ bundle: String) -> Int { bundle.split(separator: "/").last.flatMap { Int($0) } ?? 0 }
        let bundle = try #require(
            try FileManager.default.subpathsOfDirectory(atPath: "\(path)/tile/entries")
                .filter { !$0.hasSuffix(".p") }.max { width($0) < width($1) })
        let file = "\(path)/tile/entries/\(bundle)"
        var bytes = try Data(contentsOf: URL(filePath: file))
        let place = try #require(bytes.range(of: Data("promo.offer".utf8))).lowerBound
        bytes[place] = UInt8(ascii: "P")
        try bytes.write(to: URL(filePath: file))
        let run = try await CommandLineRun("audit", "verify", path, "--key", "\(path)/trail.pub")
        #expect(run.status == 3)
        #expect(run.errors.contains("sendgate: error: entry 4 in `tile/entries/\(bundle)`"), "\(run.errors)")
        #expect(run.errors.contains("entries before 4"))
        #expect(try await CommandLineRun("audit", "replay", path).status == 3)
        #expect(try await CommandLineRun("audit", "show", path, "4").status == 3)
        // What comes before the damage is still what was signed.
        #expect(try await CommandLineRun("audit", "show", path, "1").status == 0)
    }

    @Test func `a trail that was cut back is not the one an older checkpoint signed`() async throws {
        try await GatewayFixture(in: folder.root).stop()
        let path = folder.path("gate/trail")
        try FileManager.default.copyItem(atPath: path, toPath: folder.path("early"))
        try await GatewayFixture(in: folder.root).stop()
        let run = try await CommandLineRun(
            "audit", "verify", folder.path("early"), "--key", "\(path)/trail.pub", "--since",
            "\(path)/checkpoint")
        #expect(run.status == 3)
        #expect(run.errors.contains("entries are gone"))
    }

    @Test func `a stopped gateway's databases are what its trail tells, and an old copy of them is not`()
        async throws
    {
        let (path, _) = try await trail()
        let arguments = ["audit", "state", "--dev", folder.path("gate"), "--key", "\(path)/trail.pub"]
        let run = try await CommandLineRun(arguments)
        #expect(run.status == 0 && run.output.isEmpty, "\(run.output) \(run.errors)")
        #expect(run.errors.contains("what is stored is what the trail tells"), "\(run.errors)")
        let json = try await CommandLineRun(arguments + ["--json"])
        #expect(json.status == 0 && json.output.contains("differences"), "\(json.output)")
        try FileManager.default.copyItem(atPath: folder.path("gate/state"), toPath: folder.path("old"))
        let gate = try await GatewayFixture(in: folder.root)
        #expect(try await gate.send("two", "security.new_login", GatewayFixture.login).status < 300)
        try await gate.stop()
        #expect(try await CommandLineRun(arguments).status == 0)
        try FileManager.default.removeItem(atPath: folder.path("gate/state"))
        try FileManager.default.moveItem(atPath: folder.path("old"), toPath: folder.path("gate/state"))
        let old = try await CommandLineRun(arguments)
        #expect(old.status == 3 && old.output.contains("an old copy was put back"), "\(old.output)")
    }

    @Test func `databases that are gone, empty or cut off are called that by each command`() async throws {
        let (path, _) = try await trail()
        let (state, dev) = (folder.path("gate/state"), ["--dev", folder.path("gate")])
        func expect(
            check: String, checkStatus: Int32 = 3, audit: String,
            _ line: Int = #line, _ change: (URL) throws -> Void
        ) async throws {
            try FileManager.default.copyItem(atPath: state, toPath: folder.path("kept"))
            try change(URL(filePath: "\(state)/gate.db"))
            // A connection that reads leaves an index of the log behind, and a log without frames.
            func names() throws -> [String] {
                try FileManager.default.contentsOfDirectory(atPath: state).filter {
                    !$0.hasSuffix("-shm") && !$0.hasSuffix("-wal")
                }.sorted()
            }
            let left = try names()
            let checked = try await CommandLineRun(["store", "check"] + dev)
            #expect(
                checked.status == checkStatus && (checked.output + checked.errors).contains(check),
                "line \(line): \(checked.status) \(checked.output) \(checked.errors)")
            let audited = try await CommandLineRun(
                ["audit", "state", "--key", "\(path)/trail.pub"] + dev)
            #expect(
                audited.status == 1 && audited.errors.contains(audit),
                "line \(line): \(audited.status) \(audited.output) \(audited.errors)")
            #expect(try names() == left)
            try FileManager.default.removeItem(atPath: state)
            try FileManager.default.moveItem(atPath: folder.path("kept"), toPath: state)
        }
        try await expect(check: "there are no databases", checkStatus: 1, audit: "there are no databases") {
            for file in try FileManager.default.contentsOfDirectory(
                at: $0.deletingLastPathComponent(), includingPropertiesForKeys: nil)
            where file.lastPathComponent.contains(".db") { try FileManager.default.removeItem(at: file) }
        }
        try await expect(check: "the file is missing", audit: "missing or empty") {
            try FileManager.default.removeItem(at: $0)
        }
        try await expect(check: "the file is empty", audit: "missing or empty") { try Data().write(to: $0) }
        try await expect(check: "page 1 of `gate.db` is not as it was written", audit: "begin as a database")
        {
            var bytes = try Data(contentsOf: $0)
            bytes.replaceSubrange(0..<2_048, with: Data(count: 2_048))
            try bytes.write(to: $0)
        }
        try await expect(check: "`gate.db` ends after page", audit: "`gate.db` is not a sound database") {
            let bytes = try Data(contentsOf: $0)
            try bytes.prefix(bytes.count / 4_096 * 2_048).write(to: $0)
        }
        #expect(try await CommandLineRun(["store", "check"] + dev).status == 0)
    }

    @Test func `databases do not start beside the trail of a copy that went on by itself`() async throws {
        let (path, _) = try await trail()
        try FileManager.default.copyItem(atPath: folder.path("gate"), toPath: folder.path("copy"))
        for (root, id) in [(folder.root, "here"), (folder.path("copied"), "there")] {
            if id == "there" {
                try FileManager.default.createDirectory(
                    atPath: root, withIntermediateDirectories: false)
                try FileManager.default.moveItem(atPath: folder.path("copy"), toPath: root + "/gate")
            }
            let gate = try await GatewayFixture(in: root)
            #expect(try await gate.send(id, "security.new_login", GatewayFixture.login).status < 300)
            try await gate.stop()
        }
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.copyItem(atPath: folder.path("copied/gate/trail"), toPath: path)
        let error = await #expect(throws: TrailError.self) { try await GatewayFixture(in: folder.root) }
        guard case .conflict = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    /// What may be done to a copy, and the words it is told in.
    private func tampered(_ words: String, _ change: (String) throws -> Void) async throws {
        let (path, _) = try await trail()
        try change(path)
        let run = try await CommandLineRun("audit", "verify", path, "--key", "\(path)/trail.pub")
        #expect(run.status == 3, "\(run.output)\(run.errors)")
        #expect(run.errors.contains(words), "\(run.errors)")
        #expect(
            try await CommandLineRun("audit", "verify", path, "--key", "\(path)/trail.pub", "--json").status
                == 3)
    }

    @Test func `an older checkpoint put back beside newer tiles is named`() async throws {
        try await GatewayFixture(in: folder.root).stop()
        let older = try Data(contentsOf: URL(filePath: folder.path("gate/trail/checkpoint")))
        try await tampered("the checkpoint is older than its tiles") { path in
            try older.write(to: URL(filePath: "\(path)/checkpoint"))
        }
    }

    @Test func `a missing policy archive is named with the entry that needs it`() async throws {
        try await tampered("is missing, and entry 0 was decided under it") { path in
            try FileManager.default.removeItem(atPath: "\(path)/policies")
        }
    }

    @Test func `a changed policy archive is named`() async throws {
        try await tampered("has another digest, and entry 0 was decided under it") { path in
            for name in try FileManager.default.contentsOfDirectory(atPath: "\(path)/policies") {
                let file = URL(filePath: "\(path)/policies/\(name)")
                var bytes = try Data(contentsOf: file)
                bytes[bytes.count / 2] ^= 1
                chmod(file.path, 0o600)
                try bytes.write(to: file)
            }
        }
    }

    @Test func `a checkpoint that was taken away is a difference`() async throws {
        try await tampered("has no `checkpoint`") { path in
            try FileManager.default.removeItem(atPath: "\(path)/checkpoint")
        }
    }

    @Test(arguments: [
        ("folder", "is not a file of this trail"), ("link", "levels of symbolic links"),
        ("longer", "is not a file of this trail"),
    ])
    func `what no trail has in a file's place is a difference`(_ kind: String, _ words: String) async throws {
        try await tampered(words) { path in
            let bundles = "\(path)/tile/entries/000.p"
            let widest = try FileManager.default.contentsOfDirectory(atPath: bundles).compactMap { Int($0) }
                .max()
            let file = "\(bundles)/\(try #require(widest))"
            let bytes = try Data(contentsOf: URL(filePath: file))
            try FileManager.default.removeItem(atPath: file)
            switch kind {
            case "folder":
                try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
            case "link":
                try bytes.write(to: URL(filePath: "\(path)/elsewhere"))
                try FileManager.default.createSymbolicLink(
                    atPath: file, withDestinationPath: "\(path)/elsewhere")
            default: try (bytes + Data(count: 1 << 24)).write(to: URL(filePath: file))
            }
        }
    }

    @Test func `a file whose name says more than any tree holds is a difference, and no crash`() async throws
    {
        try await tampered("the checkpoint is older than its tiles") { path in
            let folder = "\(path)/tile/7/x999/x999/x999/x999/x999"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data([1]).write(to: URL(filePath: "\(folder)/999"))
        }
    }

    @Test(arguments: [
        "note.txt", "tile/0/000.bak", "tile/entries/note", "policies/old.json", ".writing/note",
        "tile/8a/000",
        "empty/", "tile/0/x00/", ".lock2",
    ])
    func `a name that no trail has is a difference`(_ name: String) async throws {
        let shown = name.hasSuffix("/") ? String(name.dropLast()) : name
        try await tampered("`\(shown)` is nothing that a trail has") { path in
            let place = URL(filePath: "\(path)/\(name)")
            if name.hasSuffix("/") {
                try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            } else {
                try FileManager.default.createDirectory(
                    at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data([1]).write(to: place)
            }
        }
    }

    @Test func `another trail's key proves nothing`() async throws {
        let (path, _) = try await trail()
        let other = try TemporaryFolder()
        try await GatewayFixture(in: other.root).stop()
        let run = try await CommandLineRun(
            "audit", "verify", path, "--key", other.path("gate/trail/trail.pub"))
        #expect(run.status == 3)
    }

    @Test func `every decision is reproduced with the policy of its day`() async throws {
        let (path, _) = try await trail()
        let run = try await CommandLineRun("audit", "replay", path, "--key", "\(path)/trail.pub")
        #expect(run.status == 0, "\(run.errors)\(run.output)")
        #expect(run.output.contains("6 entries reproduced byte for byte, 0 different"), "\(run.output)")
        // The same bundle asked as "another one" says the same of the caller it does not know.
        let same = try await CommandLineRun("audit", "replay", path, "--with", "Policies")
        #expect(same.status == 0, "\(same.output)")
    }

    @Test func `another bundle that would have decided otherwise ends with 3 and says where`() async throws {
        let (path, send) = try await trail()
        let policies = try folder.policies()
        try folder.edit(
            "Policies/types/security.new_login.yaml", "means:",
            "enabled: false\ndisabled_hint: Not now.\nmeans:")
        let run = try await CommandLineRun("audit", "replay", path, "--with", policies)
        #expect(run.status == 3, "\(run.output)\(run.errors)")
        #expect(run.output.contains("entry 3 comes out otherwise:"), "\(run.output)")
        #expect(run.output.contains("type_disabled"))
        #expect(!send.isEmpty)
    }

    @Test func `a decision without its archived policy is reported, not passed over`() async throws {
        let (path, _) = try await trail()
        try FileManager.default.removeItem(atPath: "\(path)/policies")
        let run = try await CommandLineRun("audit", "replay", path)
        #expect(run.status == 3)
        #expect(run.output.contains("no archived policy has the digest"))
    }

    @Test func `a person is told the first differences and how many there are, a program each of them`()
        async throws
    {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.registerSomebody()
        let count = ReplaySummary.toldCountMax + 3
        for number in 0..<count { _ = try await gate.send("p\(number)", "promo.offer", [:]) }
        try await gate.stop()
        let path = folder.path("gate/trail")
        try FileManager.default.removeItem(atPath: "\(path)/policies")
        let run = try await CommandLineRun("audit", "replay", path)
        let told = run.output.split(separator: "\n")
        #expect(run.status == 3)
        #expect(told.count { $0.hasPrefix("entry ") } == ReplaySummary.toldCountMax, "\(run.output)")
        #expect(told.contains("… and 3 more entries; `--json` prints every one"), "\(run.output)")
        #expect(run.output.contains("\(count) not replayable"), "\(run.output)")
        let json = try await CommandLineRun("audit", "replay", path, "--json")
        #expect(json.status == 3)
        let lines = json.output.split(separator: "\n")
        #expect(lines.count { $0.contains(#""not_replayable":"no archived"#) } == count, "\(json.output)")
    }

    @Test func `an entry is shown with its proof, and a send with all that became of it`() async throws {
        let (path, send) = try await trail()
        let entry = try await CommandLineRun("audit", "show", path, "3")
        #expect(entry.status == 0, "\(entry.errors)")
        #expect(entry.output.hasPrefix("entry 3, send, "))
        #expect(entry.errors.contains("proved: "))
        #expect(entry.errors.contains("`trail.pub` is believed"))
        // In another language the sentence is another, and nothing else is.
        let norwegian = try await CommandLineRun("audit", "show", path, "3", "--language", "nb-NO")
        let (own, english) = (norwegian.output.split(separator: "\n"), entry.output.split(separator: "\n"))
        #expect(own.indices.filter { own[$0] != english[$0] } == [1], "\(norwegian.output)")
        let french = try await CommandLineRun("audit", "show", path, "3", "--language", "fr")
        // The bundle has no French, and Norwegian is its first language.
        #expect(french.output == norwegian.output)
        let all = try await CommandLineRun(
            "audit", "show", path, send, "--json", "--key", "\(path)/trail.pub")
        #expect(all.status == 0, "\(all.errors)")
        let lines = all.output.split(separator: "\n")
        #expect(lines.count == 1)
        #expect(try CanonicalJSON.read(Array(lines[0].utf8))["send_id"]?.stringValue == send)
        let beyond = try await CommandLineRun("audit", "show", path, "1000")
        #expect(beyond.status == 1)
        let unknown = try await CommandLineRun("audit", "show", path, "00000000-0000-4000-8000-000000000000")
        #expect(unknown.status == 1)
    }

    @Test func `a folder that is no trail is told apart from a damaged one`() async throws {
        let run = try await CommandLineRun("audit", "verify", folder.root, "--key", "/dev/null")
        #expect(run.status == 1)
        #expect(run.errors.contains("has no `checkpoint`"))
    }
}
