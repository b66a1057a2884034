import Foundation
import Testing

/// The tests' own ground: an edit of a "copy" must never reach what was copied.
@Suite struct TemporaryFolderTests {
    @Test func `a write through a link is refused and changes nothing outside`() throws {
        let outside = try TemporaryFolder()
        let kept = try outside.file("page.yaml", "version: 1\n")
        let folder = try TemporaryFolder()
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("Policies"), withDestinationPath: outside.root)
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("page.yaml"), withDestinationPath: kept)
        #expect(throws: TemporaryFolder.WouldLeave.self) {
            try folder.edit("Policies/page.yaml", "version: 1", "version: 2")
        }
        #expect(throws: TemporaryFolder.WouldLeave.self) {
            try folder.edit("page.yaml", "version: 1", "version: 2")
        }
        #expect(try String(contentsOfFile: kept, encoding: .utf8) == "version: 1\n")
    }

    @Test func `a copy of the bundle holds files of its own`() throws {
        let folder = try TemporaryFolder()
        let copy = try folder.policies()
        let page = "\(copy)/bundle.yaml"
        #expect(
            try FileManager.default.attributesOfItem(atPath: copy)[.type] as? FileAttributeType
                == .typeDirectory)
        let original = "\(CommandLineRun.policies)/bundle.yaml"
        let before = try String(contentsOfFile: original, encoding: .utf8)
        try folder.edit("Policies/bundle.yaml", "version: ", "version: 9")
        #expect(try String(contentsOfFile: original, encoding: .utf8) == before)
        #expect(try String(contentsOfFile: page, encoding: .utf8) != before)
    }
}
