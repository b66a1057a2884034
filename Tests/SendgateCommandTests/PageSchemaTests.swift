import BundleModel
import CanonicalJSON
import Foundation
import PolicyFiles
import Testing

@testable import sendgate

/// What editors check a page against follows from the function that reads the page.
///
/// Run once with `SENDGATE_RECORD_SCHEMAS=1` after a wanted change, and read the difference before committing.
@Suite struct PageSchemaTests {
    private static let policies = CommandLineRun.repository.appending(path: "Policies")

    @Test(arguments: PageSchema.all.map(\.name))
    func `the schema of a page is the one that its reader declares`(_ name: String) throws {
        let page = try #require(PageSchema.all.first { $0.name == name })
        let file = Self.policies.appending(path: "schema/\(name).schema.json")
        let declared = IndentedJSON.lines(.object(page.schema)).joined(separator: "\n") + "\n"
        if ProcessInfo.processInfo.environment["SENDGATE_RECORD_SCHEMAS"] == "1" {
            try Data(declared.utf8).write(to: file)
            Issue.record("recorded \(name); run again without SENDGATE_RECORD_SCHEMAS")
        }
        let written = try String(contentsOf: file, encoding: .utf8)
        #expect(written == declared, "Policies/schema/\(name).schema.json is not what its reader takes")
    }

    @Test func `each member of a page says what it means`() {
        for page in PageSchema.all {
            let members = Self.members(of: .object(page.schema))
            #expect(members.count > 4, "\(page.name) has only \(members.count) members")
            for (name, schema) in members {
                #expect(schema["description"]?.stringValue?.isEmpty == false, "\(page.name): \(name)")
            }
        }
    }

    @Test func `the repository's pages have the shapes that their readers declare`() throws {
        let documents = try PolicyDirectory.read(at: Self.policies.path)
        var pages: Set<String> = []
        for page in PageSchema.all {
            let shape = page.shape
            let own = documents.filter { path, _ in
                page.folder.map { path.hasPrefix("\($0)/") } ?? (path == "\(page.name).yaml")
            }
            #expect(!own.isEmpty, "no page \(page.name)")
            for (path, document) in own {
                #expect(shape.violations(of: document.json) == [], "\(path)")
            }
            pages.formUnion(own.keys)
        }
        #expect(documents.keys.filter { !$0.hasSuffix(".txt") && !pages.contains($0) } == [])
    }

    @Test func `a moment in the facts of a case may be a text, wherever it stands`() throws {
        let page = try #require(PageSchema.all.first { $0.name == "cases" })
        let facts = try #require(JSONValue.object(page.schema)["$defs"]?["facts"])
        let values = Self.members(of: facts)
        let moments = values.filter { $0.schema["$ref"] == "#/$defs/moment" }.map(\.name)
        #expect(Set(moments) == ["due", "ends_at", "expires_at", "expiry", "observed_at"])
        // What counts is never below zero; a moment is a whole number like any other.
        let whole = values.filter { $0.schema["minimum"]?.integerValue.map { $0 < 0 } == true }
        #expect(whole.isEmpty, "\(whole.map(\.name)) are moments that a case has to write as numbers")
    }

    @Test func `a member that no reader takes is in no shape either`() throws {
        let documents = try PolicyDirectory.read(at: Self.policies.path)
        let page = try #require(PageSchema.all.first { $0.name == "limits" })
        var document = try #require(documents["limits.yaml"]?.json.objectValue)
        document["everythin"] = document["everything"]
        #expect(page.shape.violations(of: .object(document)).count == 1)
    }

    /// Every member of every mapping with names of its own, however deep.
    private static func members(of schema: JSONValue) -> [(name: String, schema: JSONValue)] {
        if let elements = schema.arrayValue { return elements.flatMap(members) }
        guard let object = schema.objectValue else { return [] }
        let own = object["properties"]?.objectValue.map { $0.map { (name: $0.key, schema: $0.value) } } ?? []
        return own + object.flatMap { members(of: $0.value) }
    }
}
