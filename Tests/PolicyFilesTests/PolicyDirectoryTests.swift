import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateTestKit
import GateVocabulary
import Testing

@testable import PolicyFiles
import PolicyPages

private let smallest = [
    "bundle.yaml": "name: small\nfiles:\n  - categories.yaml\n  - notices/promo.1.nb.txt\n",
    "categories.yaml": "marketing: {default: \"off\"}\n",
    "notices/promo.1.nb.txt": "Ja takk?\n",
]

private func diagnostics(of folder: ScratchFolder) -> [String] {
    diagnostics { () throws(PolicyDiagnostics) in _ = try folder.read() }
}

private func diagnostics(_ body: () throws(PolicyDiagnostics) -> Void) -> [String] {
    do throws(PolicyDiagnostics) {
        try body()
        return []
    } catch {
        return error.diagnostics.map { diagnostic in
            diagnostic.file + (diagnostic.line.map { ":\($0)" } ?? "") + ": " + diagnostic.message
        }
    }
}

@Suite struct `A folder is read as a bundle` {
    @Test func `every file becomes a document under its path`() throws {
        let folder = try ScratchFolder(smallest)
        let documents = try folder.read()
        #expect(
            documents.mapValues(\.json) == [
                "bundle.yaml": ["files": ["categories.yaml", "notices/promo.1.nb.txt"], "name": "small"],
                "categories.yaml": ["marketing": ["default": "off"]],
                "notices/promo.1.nb.txt": "Ja takk?\n",
            ])
        #expect(
            documents["categories.yaml"]?.location(of: ["marketing", "default"])
                == SourceLocation(file: "categories.yaml", line: 1, column: 13))
    }

    @Test func `comments, quotes and order do not change the canonical form, and a word does`() throws {
        let form = PolicyBundle.canonicalForm(of: try ScratchFolder(smallest).read())
        #expect(
            String(decoding: form, as: UTF8.self)
                == #"{"bundle.yaml":{"files":["categories.yaml","notices/promo.1.nb.txt"],"name":"small"},"#
                + #""categories.yaml":{"marketing":{"default":"off"}},"notices/promo.1.nb.txt":"Ja takk?\n"}"#
        )
        var other = smallest
        other["categories.yaml"] = "# Why.\n\"marketing\":\n  'default': 'off'\n"
        other["bundle.yaml"] = "files: [categories.yaml, notices/promo.1.nb.txt]\nname: small\n"
        #expect(
            PolicyBundle.canonicalForm(of: try ScratchFolder(other).read()) == form)
        other["categories.yaml"] = "marketing: {default: \"on\"}\n"
        #expect(
            PolicyBundle.canonicalForm(of: try ScratchFolder(other).read()) != form)
    }

    @Test func `a file the cover page does not list keeps the bundle from being read`() throws {
        let folder = try ScratchFolder()
        for (path, _) in try PolicyDirectory.read(at: Repository.policies) {
            let source = Repository.policies + "/" + path
            try folder.write(path, Array(try Data(contentsOf: URL(fileURLWithPath: source))))
        }
        #expect(try folder.readBundle().version >= 1)
        try folder.write("cases/stray.yaml", Array("cases: []\n".utf8))
        do throws(PolicyDiagnostics) {
            _ = try folder.readBundle()
            Issue.record("the stray page was taken in")
        } catch {
            #expect(error.diagnostics.map(\.file) == ["cases/stray.yaml"])
        }
    }

    @Test func `files that are the same are parsed once, and those with another byte, path or caller anew`()
        throws
    {
        let folder = try ScratchFolder()
        for path in try PolicyDirectory.read(at: Repository.policies).keys {
            let source = Repository.policies + "/" + path
            try folder.write(path, Array(try Data(contentsOf: URL(fileURLWithPath: source))))
        }
        let kept = KeptBundles(countMax: 2)
        func isParsed(addingDevelopmentCaller caller: CallerName? = nil) throws -> Bool {
            var isParsed = false
            let bundle = try PolicyDirectory.readBundle(
                at: folder.path,
                refusing: { _ in
                    isParsed = true
                    return []
                }, addingDevelopmentCaller: caller, keptIn: kept)
            #expect(bundle.developmentCaller == caller)
            #expect(try bundle.reviewedDigest == folder.readBundle().digest)
            return isParsed
        }
        #expect(try isParsed())
        #expect(try !isParsed())
        #expect(try isParsed(addingDevelopmentCaller: CallerName("dev")))
        #expect(try !isParsed(addingDevelopmentCaller: CallerName("dev")))
        #expect(try isParsed(addingDevelopmentCaller: CallerName("other")))
        // The first of three was dropped.
        #expect(try isParsed())
        let cover = Array(try Data(contentsOf: URL(filePath: folder.path + "/bundle.yaml")))
        try folder.write("bundle.yaml", cover + Array("# Looked at.\n".utf8))
        #expect(try isParsed())
        #expect(try !isParsed())
        // A page that cannot be read is told each time.
        try folder.write("limits.yaml", Array("limits: [".utf8))
        for _ in 0..<2 { #expect(throws: PolicyDiagnostics.self) { try isParsed() } }
        try folder.write("cases/stray.yaml", Array("cases: []\n".utf8))
        #expect(throws: PolicyDiagnostics.self) { try isParsed() }
    }

    @Test func `no cover page, no bundle`() throws {
        var files = smallest
        files["bundle.yaml"] = nil
        files["categories.yaml"] = "a: NO\n"
        #expect(diagnostics(of: try ScratchFolder(files)) == ["bundle.yaml: is missing"])
    }

    @Test func `problems of all pages come together, in the order of the files`() throws {
        var files = smallest
        files["categories.yaml"] = "a: NO\n"
        files["limits.yaml"] = "a: 1\nb: 21:00\n"
        #expect(
            diagnostics(of: try ScratchFolder(files)) == [
                "categories.yaml:1: `NO` is true or false to some readers of YAML",
                "limits.yaml:2: `21:00` is a number to base 60 to some readers of YAML",
            ])
    }

    @Test func `links are refused, whatever they point at`() throws {
        let outside = try ScratchFolder(["secret.yaml": "a: 1\n"])
        let folder = try ScratchFolder(smallest)
        try folder.link("types", to: outside.path)
        try folder.link("limits.yaml", to: outside.path + "/secret.yaml")
        #expect(
            diagnostics(of: folder) == [
                "limits.yaml: is a symbolic link, and a bundle holds files only",
                "types: is a symbolic link, and a bundle holds files only",
            ])
    }

    @Test func `the folder itself may be reached through a link`() throws {
        let folder = try ScratchFolder(smallest)
        let elsewhere = try ScratchFolder()
        try elsewhere.link("current", to: folder.path)
        defer { withExtendedLifetime((folder, elsewhere)) {} }
        let link = elsewhere.path + "/current"
        #expect(try PolicyDirectory.read(at: link).count == smallest.count)
    }

    @Test func `a pipe is refused without waiting for its writer`() throws {
        let folder = try ScratchFolder(smallest)
        #expect(mkfifo(folder.path + "/limits.yaml", 0o600) == 0)
        #expect(
            diagnostics(of: folder) == [
                "limits.yaml: is neither a file nor a folder, and a bundle holds files only"
            ])
    }

    @Test func `a file nothing in a bundle is called like is refused, hidden ones too`() throws {
        let folder = try ScratchFolder(smallest)
        try folder.write("categories.yaml~", [])
        try folder.write(".categories.yaml.swp", [])
        try folder.write("read me.txt", [])
        #expect(diagnostics(of: folder).filter { $0.contains("has a name that nothing") }.count == 3)
    }

    @Test func `help for editors is not part of the bundle`() throws {
        let folder = try ScratchFolder(smallest)
        try folder.write("schema/type.schema.json", Array("{not even JSON".utf8))
        #expect(try folder.read().count == smallest.count)
    }

    @Test func `folders end somewhere`() throws {
        let folder = try ScratchFolder(smallest)
        try folder.write("a/b/c/d/e.yaml", Array("a: 1\n".utf8))
        #expect(diagnostics(of: folder) == ["a/b/c/d: is a folder more than 4 levels down"])
    }

    @Test func `a path that is no folder says so`() throws {
        #expect(
            diagnostics { () throws(PolicyDiagnostics) in
                _ = try PolicyDirectory.read(at: "/nonexistent/policies")
            }
                == ["/nonexistent/policies: cannot be read: No such file or directory"])
        let folder = try ScratchFolder(smallest)
        defer { withExtendedLifetime(folder) {} }
        let page = folder.path + "/bundle.yaml"
        #expect(
            diagnostics { () throws(PolicyDiagnostics) in _ = try PolicyDirectory.read(at: page) }
                == ["\(page): cannot be read: Not a directory"])
    }

    @Test func `a page that is too long is refused without being read whole`() throws {
        let folder = try ScratchFolder(smallest)
        try folder.write("categories.yaml", [UInt8](repeating: UInt8(ascii: "#"), count: 10_000_000))
        #expect(diagnostics(of: folder) == ["categories.yaml: is longer than 262144 bytes"])
    }

    @Test func `a bundle that is too long is refused`() throws {
        let folder = try ScratchFolder(smallest)
        let page = [UInt8](repeating: UInt8(ascii: "#"), count: PolicyFileLimits.fileByteCountMax)
        for number in 0...256 { try folder.write("types/t\(number).yaml", page) }
        #expect(
            diagnostics(of: folder).contains { $0.hasSuffix("makes the bundle longer than 67108864 bytes") }
        )
    }

    @Test func `a folder of too many files is not taken for a bundle`() throws {
        let folder = try ScratchFolder(smallest)
        for number in 0...PolicyFileLimits.fileCountMax { try folder.write("types/\(number).yaml", []) }
        #expect(diagnostics(of: folder) == ["bundle.yaml: lies in a folder of more than 20000 files"])
    }
}

@Suite struct `An archived bundle` {
    @Test func `is read back to the same documents and the same digest`() throws {
        let bundle = try PolicyDirectory.readBundle(at: Repository.policies)
        let again = try PolicyArchive.read(bundle.canonicalJSON, filedUnder: bundle.digest)
        #expect(again.documents == bundle.documents)
        #expect(again.documents["types/transaction.failed.yaml"]?.location == nil)
        #expect(again.canonicalJSON == bundle.canonicalJSON)
        #expect(again.digest == bundle.digest)
    }

    @Test func `under another digest is refused before it is parsed`() throws {
        let bundle = try PolicyDirectory.readBundle(at: Repository.policies)
        var bytes = bundle.canonicalJSON
        bytes[bytes.count / 2] ^= 1
        do throws(PolicyArchiveError) {
            _ = try PolicyArchive.read(bytes, filedUnder: bundle.digest)
            Issue.record("a changed archive was taken")
        } catch {
            guard case .digestMismatch(bundle.digest, _) = error else {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test(arguments: [
        // printf %s '…' | sha256sum
        ("{\"a\": 1}", "f9d86028c6e0d64e225186f96acb69338b2c59764df79162107f5c4bb34d1310"),
        ("[]", "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"),
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("{\"b\":1,\"a\":2}", "a1d46c3cdb4e5795c8d637f80daeb578ebb1a9a65dc1ed5f11f51794c3c89f3a"),
    ])
    func `in any other spelling is refused`(text: String, digest: String) {
        do throws(PolicyArchiveError) {
            _ = try PolicyArchive.read(Array(text.utf8), filedUnder: PolicyDigest(digest))
            Issue.record("`\(text)` was taken for an archive")
        } catch {
            guard case .notCanonical = error else {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test func `of no known form says what this build misses`() {
        // printf %s '{}' | sha256sum
        let digest = PolicyDigest("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")
        do throws(PolicyArchiveError) {
            _ = try PolicyArchive.read(Array("{}".utf8), filedUnder: digest)
            Issue.record("an empty archive was taken")
        } catch {
            guard case .refused(let diagnostics) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(diagnostics.diagnostics.contains { $0.file == "bundle.yaml" })
        }
    }
}
