import CommandTerminal
import Foundation
import Testing

/// The files that commands write: keyrings, keysets, an authority's public half, charts.
@Suite struct OutputFileTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path("out")).sorted()
    }

    @Test func `what a killed command left unfinished stops no later one, and is no file of its name`() throws
    {
        try FileManager.default.createDirectory(
            atPath: folder.path("out"), withIntermediateDirectories: false)
        let path = folder.path("out/keyset")
        for (bytes, write) in [("first", OutputFile.create), ("second", OutputFile.replace)] {
            try "ha".write(
                toFile: path + OutputFile.unfinishedSuffix, atomically: false, encoding: .utf8)
            try write(path, Array(bytes.utf8))
            #expect(try String(contentsOfFile: path, encoding: .utf8) == bytes)
            #expect(try names() == ["keyset"])
        }
    }

    @Test func `a file that is there is not overwritten, and nothing is left beside it`() throws {
        try FileManager.default.createDirectory(
            atPath: folder.path("out"), withIntermediateDirectories: false)
        let path = folder.path("out/keyset")
        try OutputFile.create(path, with: Array("first".utf8))
        #expect {
            try OutputFile.create(path, with: Array("second".utf8))
        } throws: { error in
            (error as? CommandFailure)?.message.contains("never overwritten") == true
        }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "first")
        #expect(try names() == ["keyset"])
        #expect(throws: CommandFailure.self) {
            try OutputFile.replace(folder.path("nowhere/keyset"), with: [])
        }
    }
}
