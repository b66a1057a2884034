import BundleModel
import CanonicalJSON
import Foundation
import GateTestKit
import GateVocabulary
import PolicyFiles
import Testing

/// The handbook's pages for producers, app teams and newcomers name what the repository's bundle has, and all of it.
@Suite struct HandbookPageTests {
    private static let handbook = URL(fileURLWithPath: Repository.root + "/Sources/sendgate/Sendgate.docc")

    private static func text(of page: String) throws -> String {
        try String(contentsOf: handbook.appendingPathComponent("\(page).md"), encoding: .utf8)
    }

    /// Lines of a page, without its blocks of code.
    private static func lines(of page: String) throws -> [String] {
        var isCode = false
        return try text(of: page).split(separator: "\n").map(String.init).filter { line in
            if line.hasPrefix("```") { isCode.toggle() }
            return !isCode && !line.hasPrefix("```")
        }
    }

    /// The lines from a heading that ends with `end` up to the next one of its level or above.
    private static func section(_ end: String, in lines: [String]) throws -> [String] {
        let start = try #require(
            lines.firstIndex { $0.hasPrefix("#") && $0.hasSuffix(end) }, "no section \(end)")
        let level = lines[start].prefix { $0 == "#" }.count
        return Array(
            lines[(start + 1)...].prefix { line in
                let depth = line.prefix { $0 == "#" }.count
                return depth == 0 || depth > level
            })
    }

    private static func names(in text: some Sequence<String>) -> [String] {
        text.flatMap { $0.matches(of: /`([^`]+)`/).map { String($0.1) } }
    }

    /// The cells of one column of every table under a heading, without heads.
    private static func column(_ index: Int, of lines: [String]) -> [String] {
        var cells: [String] = []
        for (place, line) in lines.enumerated() where line.hasPrefix("| ") && !line.hasPrefix("| ---") {
            if place + 1 < lines.count, lines[place + 1].hasPrefix("| ---") { continue }
            let row = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
            if row.count > index {
                cells.append(row[row.startIndex + index].trimmingCharacters(in: .whitespaces))
            }
        }
        return cells
    }

    @Test(arguments: ["S0", "S1", "S2", "S3", "S4"])
    func `whoever moves here from a source finds each of its types, and none that is not there`(
        source: String
    )
        throws
    {
        let documents = try PolicyDirectory.read(at: Repository.policies)
        let page = try Self.lines(of: "MovingHere")
        let section = try Self.section("(\(source))", in: page)
        let own = try documents.filter { $0.key.hasPrefix("types/") }.compactMap { _, node -> String? in
            let named = try #require(node.json["source"]?.stringValue)
            return named.contains(source) ? node.json["type"]?.stringValue : nil
        }
        #expect(own.count >= 11, "\(source) has only \(own.count) types")
        let types = try Self.section("Types", in: section)
        let told = Self.names(in: Self.column(1, of: types))
        #expect(Set(told) == Set(own), "\(Set(told).symmetricDifference(own).sorted())")
        #expect(told.count == Set(told).count, "a type stands in two rows")

        let refused = Self.names(in: Self.column(1, of: try Self.section("What is refused", in: section)))
        #expect(!refused.isEmpty)
        for reason in refused { #expect(Reason(rawValue: reason) != nil, "`\(reason)` is no reason") }
    }

    @Test func `every type that the page names is in the bundle`() throws {
        let bundle = try PolicyDirectory.readBundle(at: Repository.policies)
        let types = Set(bundle.types.keys.map { "\($0)" })
        let families = Set(types.compactMap { $0.contains(".") ? $0.split(separator: ".").first : nil })
        for name in Self.names(in: try Self.lines(of: "MovingHere")) {
            guard let first = name.split(separator: ".").first, name.contains("."), families.contains(first),
                !name.hasSuffix(".yaml"), !name.hasSuffix(".txt")
            else { continue }
            #expect(types.contains(name), "`\(name)` is no type")
        }
    }

    @Test func `app teams are told of every channel, category and sound`() throws {
        let documents = try PolicyDirectory.read(at: Repository.policies)
        let pages = documents.filter { $0.key.hasPrefix("types/") }.map(\.value.json)
        func values(_ member: String) -> Set<String> { Set(pages.compactMap { $0[member]?.stringValue }) }
        let lines = try Self.lines(of: "ForApps")

        let channels = Self.names(in: Self.column(0, of: try Self.section("Android channels", in: lines)))
        let constant = ["passive", "active", "time_sensitive", "critical"].map { "sendgate_\($0)" }
        #expect(Set(channels) == values("android_channel").union(constant))
        let categories = Self.names(in: Self.column(0, of: try Self.section("iOS categories", in: lines)))
        #expect(Set(categories) == values("apns_category"))
        // The apps' code creates each of them.
        let android = try Self.text(of: "Android")
        #expect(channels.filter { !android.contains("\"\($0)\" to IMPORTANCE_") } == [])
        let iOS = try Self.text(of: "IOSExtension")
        #expect(categories.filter { !iOS.contains("\"\($0)\": ") } == [])
        let sounds = Self.names(in: try Self.section("Sounds", in: lines))
        #expect(Set(sounds) == values("sound"))
    }
}
