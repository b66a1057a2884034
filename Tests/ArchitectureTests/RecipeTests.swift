import Foundation
import Testing

/// The handbook's recipes name files, and things in them. Both must be there.
@Suite struct RecipeTests {
    private static let root = URL(fileURLWithPath: #filePath).appendingPathComponent("../../..").standardized

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// The numbered steps of every recipe, each with the words it has in code font.
    private static func steps() throws -> [(recipe: String, codes: [String])] {
        let page = try text("Sources/sendgate/Sendgate.docc/Contributing.md")
        let section = page.components(separatedBy: "\n## ").first { $0.hasPrefix("Recipes\n") } ?? ""
        return section.components(separatedBy: "\n### ").dropFirst().flatMap { recipe in
            let name = String(recipe.prefix { $0 != "\n" })
            return recipe.matches(of: /(?m)^\d\. (?:.*\n?)(?: {3}.*\n?)*/).map { step in
                // A block is an example, which `RecipeRunTests` follows, and so is the new file or the line before it.
                let prose = step.output.replacing(/(?s)(?:`[^`\n]+`:\n {3})?```.*?\n {3}```/, with: "")
                return (name, prose.matches(of: /`([^`]+)`/).map { String($0.output.1) })
            }
        }
    }

    private static func isPath(_ code: String) -> Bool {
        ["Sources/", "Tests/", "Policies/"].contains { code.hasPrefix($0) }
    }

    @Test func `every file that a recipe names is there`() throws {
        var count = 0
        for step in try Self.steps() {
            for path in step.codes where Self.isPath(path) {
                count += 1
                #expect(
                    FileManager.default.fileExists(atPath: Self.root.appendingPathComponent(path).path),
                    "\(step.recipe): \(path)")
            }
        }
        #expect(count > 35, "only \(count) files were found")
    }

    @Test func `every thing that a recipe names stands in one of the files of its step`() throws {
        let folders = [
            "AuditTrailTests", "CompliancePolicyTests", "GateRecordsTests", "GatewayPipelineTests",
            "PolicyFilesTests", "SendgateCommandTests",
        ]
        let suites = try folders.flatMap {
            try FileManager.default.contentsOfDirectory(
                atPath: Self.root.appendingPathComponent("Tests/\($0)").path)
        }
        var count = 0
        for step in try Self.steps() {
            let files = try step.codes.filter { Self.isPath($0) && !$0.hasSuffix("/") }.map(Self.text)
            for code in step.codes where !Self.isPath(code) && !code.contains(" ") {
                count += 1
                #expect(
                    files.contains { $0.contains(code) } || suites.contains("\(code).swift"),
                    "\(step.recipe): `\(code)`")
            }
        }
        #expect(count > 10, "only \(count) names were found")
    }

    @Test func `there is a recipe for each thing that is added often`() throws {
        let recipes = Set(try Self.steps().map(\.recipe))
        #expect(
            recipes == [
                "A type of notification", "A route", "A reason, or a detail of one", "A fact",
                "A value that no record has yet", "A gate", "A kind of entry", "A command",
            ])
    }
}
