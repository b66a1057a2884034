import Foundation
import Testing

/// Every long form of a test is run by a part of `make soak`.
@Suite struct SoakTests {
    private static let tests = LayerTests.root.appending(path: "Tests")

    /// The suites that the table `SOAK` of `run_tests.py` names, without their modules.
    private static func listed() throws -> Set<String> {
        let script = try String(contentsOf: tests.appending(path: "run_tests.py"), encoding: .utf8)
        let table = try #require(script.firstMatch(of: /(?m)^SOAK = \{$(?s:.*?)^\}$/)).output
        // The histories are named by their numbers.
        let names = table.matches(of: /"([A-Z]\w*)"/).map { "\($0.output.1)History" }
        return Set(table.matches(of: /[.\/](\w+Tests)"/).map { String($0.output.1) } + names)
    }

    /// The suites that ask how long to be.
    private static func asking() throws -> Set<String> {
        let files = try #require(FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil))
        var found: Set<String> = []
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            for place in text.matches(of: /\bSoak\.(?:isWhole|count\(|part\()/) {
                let before = text[..<place.range.lowerBound]
                guard let suite = before.matches(of: /@Suite(?:\([^)]*\))? struct (\w+)/).last else {
                    continue
                }
                found.insert(String(suite.output.1))
            }
        }
        return found
    }

    @Test func `a suite with a whole form is in a part of the soak`() throws {
        let (asking, listed) = try (Self.asking(), Self.listed())
        #expect(asking.count > 5)
        #expect(asking.subtracting(listed) == [], "add them to `SOAK` in Tests/run_tests.py")
        // The histories share what asks, which stands below the last of them.
        let alike = Set(listed.filter { $0.hasSuffix("History") })
        #expect(listed.subtracting(alike).subtracting(asking) == [], "they have no whole form")
    }
}
