import CanonicalJSON
import Foundation
import GateTestKit
import GateVocabulary
import Testing

/// A file of `Tests/Fixtures/Golden`: one JSON value a line, in canonical JSON. It pins bytes that other processes, trails and
/// auditors hold, so that a change of how they are declared or written shows.
///
/// Run once with `SENDGATE_RECORD_GOLDEN=1` after a wanted change, and read the difference before committing.
struct GoldenFile {
    private static let folder = Repository.root + "/Tests/Fixtures/Golden/"
    private let path: String

    init(_ name: String) { path = Self.folder + name }

    /// The values that the file has.
    func values() throws -> [JSONValue] {
        try lines().map { try CanonicalJSON.read(Array($0.utf8)) }
    }

    private func lines() throws -> [String] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map { String($0) }
    }

    func expect(_ values: [JSONValue]) throws {
        let actual = values.map { String(decoding: CanonicalJSON.write($0), as: UTF8.self) }
        if ProcessInfo.processInfo.environment["SENDGATE_RECORD_GOLDEN"] == "1" {
            try FileManager.default.createDirectory(
                atPath: Self.folder, withIntermediateDirectories: true)
            try (actual.joined(separator: "\n") + "\n").write(toFile: path, atomically: true, encoding: .utf8)
            Issue.record("recorded \(path); run again without SENDGATE_RECORD_GOLDEN")
            return
        }
        let golden = try lines()
        #expect(actual.count == golden.count, "\(path)")
        for (number, (actual, golden)) in zip(actual, golden).enumerated() where actual != golden {
            Issue.record("line \(number + 1) of \(path) is\n\(golden)\nand now\n\(actual)")
            return
        }
    }
}
