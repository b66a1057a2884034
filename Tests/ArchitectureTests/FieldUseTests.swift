import Foundation
import Testing

/// What a caller or an author fills in is read by something that acts on it.
///
/// Every stored property of a request body and of a bundle's model is looked for in the sources that are neither: a name
/// that only its own reader writes is a field that is read and dropped.
@Suite struct FieldUseTests {
    private static let root = LayerTests.root.appending(path: "Sources")
    private static let declaring = ["WireProtocol/Bodies", "BundleModel/Bundle"]

    /// What only people read: why a rule is so, what it rests on, when it was looked at, and what a regime is called.
    private static let forPeople: Set<String> = ["because", "law", "reviewed", "regimes"]

    private struct Source {
        var path: String
        var text: String
        /// The checks of a bundle act on what they read: they refuse it.
        var declares: Bool {
            FieldUseTests.declaring.contains { path.contains($0) } && !path.contains("/BundleChecker")
        }
    }

    private static let sources: [Source] = {
        let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)!
        var sources: [Source] = []
        for case let url as URL in files where url.pathExtension == "swift" {
            let text = try! String(contentsOf: url, encoding: .utf8)
            // Comments use nothing.
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map {
                line -> Substring in
                guard let comment = line.range(of: "//") else { return line }
                return line[..<comment.lowerBound]
            }
            sources.append(Source(path: url.path, text: lines.joined(separator: "\n")))
        }
        return sources
    }()

    /// `package var name: …` and `package let name: …`, computed ones aside.
    private static func properties(in text: String) -> [String] {
        text.matches(
            of: /(?m)^ +package (?:internal\(set\) )?(?:var|let) ([a-zA-Z]+): [^{\n]*$/
        ).map { String($0.1) }
    }

    @Test func `every field of a body and of a page is read by what acts on it`() {
        let acting = Self.sources.filter { !$0.declares }.map(\.text).joined(separator: "\n")
        let used = Set(acting.matches(of: /[.\\]([a-zA-Z]+)/).map { String($0.1) })
        var fields = 0
        for source in Self.sources where source.declares {
            for name in Self.properties(in: source.text) {
                fields += 1
                #expect(
                    used.contains(name) || Self.forPeople.contains(name),
                    "\(source.path): `\(name)` is read from a document and used by nothing")
            }
        }
        #expect(fields > 150, "only \(fields) fields were found")
    }

    @Test func `no route reads a body and looks away`() throws {
        var reading = 0
        for source in Self.sources where source.path.contains("GatewayPipeline/Routes/Routes+") {
            for route in source.text.components(separatedBy: "Route(\n").dropFirst()
            where route.firstMatch(of: /body: \.(?:json|optional|unread)\(/) != nil {
                reading += 1
                let name = route.firstMatch(of: /"(\w+)"/).map { String($0.1) } ?? route
                #expect(route.firstMatch(of: /(?:request|\$0)\.body/) != nil, "\(name) ignores its body")
            }
        }
        #expect(reading > 12, "only \(reading) routes read a body")
    }
}
