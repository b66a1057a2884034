import CanonicalJSON
import Dispatch
import Foundation
import GateTestKit
import GateVocabulary
import PolicyFiles
import PolicyPages
import Synchronization
import Testing

@testable import BundleModel
@testable import CompliancePolicy
@testable import PolicyProof
@testable import PolicyStatutes

/// What `policy diff` names: every value that was edited, decisions or none.
@Suite struct PolicyEditTests {
    private let pages: [String: JSONValue]

    init() throws { pages = try BundleMutantTests.repository.get().documents }

    @Test func `an edit is named with page, path and both values, and one line more is one edit`() throws {
        func edits(_ file: String, _ old: JSONValue, _ new: JSONValue) -> [String] {
            PolicyEdit.between(old, new, in: file).map(\.sentence)
        }
        #expect(edits("a.yaml", ["ttl": ["hours": 12]], ["ttl": ["hours": 12]]) == [])
        #expect(
            edits("a.yaml", ["ttl": ["hours": 12]], ["ttl": ["hours": 11]]) == [
                "a.yaml: ttl.hours was 12, now 11"
            ])
        #expect(edits("a.yaml", ["b": true], [:]) == ["a.yaml: b is gone: true"])
        #expect(edits("a.yaml", ["x", "y", "z"], ["x", "n", "y", "z"]) == [#"a.yaml: 1 is new: "n""#])
        #expect(edits("a.yaml", ["x", "y", "z"], ["x", "z"]) == [#"a.yaml: 1 is gone: "y""#])
        #expect(edits("a.yaml", ["x", "y"], ["x", ["y"]]) == [#"a.yaml: 1 was "y", now ["y"]"#])
        #expect(edits("n.txt", "May we?", "We may.") == [#"n.txt was "May we?", now "We may.""#])
    }

    /// A place of a page where a scalar stands.
    private struct Place: Sendable {
        var file: String
        var path: [String]
        var value: JSONValue
    }

    private func scalars() -> [Place] {
        var found: [Place] = []
        func visit(_ value: JSONValue, _ file: String, _ path: [String]) {
            switch value {
            case .object(let members): for (key, value) in members { visit(value, file, path + [key]) }
            case .array(let elements):
                for (index, element) in elements.enumerated() { visit(element, file, path + [String(index)]) }
            default: found.append(Place(file: file, path: path, value: value))
            }
        }
        for (file, page) in pages.sorted(by: { $0.key < $1.key }) { visit(page, file, []) }
        return found
    }

    /// Another value of the same kind mostly, sometimes of another.
    private static func edited(_ value: JSONValue, _ numbers: inout SeededNumbers) -> JSONValue {
        let other = Int64(numbers.next() % 100_000)
        switch (value, numbers.next() % 8) {
        case (_, 0): return value == .null ? .integer(other) : .null
        case (.boolean(let boolean), _): return .boolean(!boolean)
        case (.integer(let integer), _): return .integer(integer == other ? other + 1 : other)
        case (.string(let text), 1): return .string(text + " ")
        case (.string(let text), 2) where text.count > 1: return .string(String(text.dropLast()))
        case (.string(let text), _): return .string("\(text) \(other)")
        default: return .integer(other)
        }
    }

    private static func replacing(
        _ page: JSONValue, _ path: ArraySlice<String>, _ value: JSONValue
    ) -> JSONValue {
        guard let key = path.first else { return value }
        if case .array(var elements) = page, let index = Int(key) {
            elements[index] = replacing(elements[index], path.dropFirst(), value)
            return .array(elements)
        }
        var object = page.objectValue ?? JSONObject()
        object[key] = replacing(object[key] ?? .null, path.dropFirst(), value)
        return .object(object)
    }

    /// TTLs, texts, notices, grants: every page is drawn from alike, and of a page every scalar. Trees are compared and nothing is
    /// read: that the reader and the check take a million edits would be an hour.
    @Test func `of edits of one scalar each, a million in a whole run, every one is named exactly`() throws {
        let places = scalars()
        #expect(places.count > 5_000)
        for part in ["ttl", "grants", "notices/", "messages/", "because"] {
            #expect(
                places.contains { $0.file.contains(part) || $0.path.contains(part) }, "no scalar of \(part)")
        }
        let byFile = Dictionary(grouping: places, by: \.file).sorted { $0.key < $1.key }.map(\.value)
        let pages = pages
        let misses = Mutex<[String]>([])
        let threadCount = 8
        let seed = Soak.seed("edits of trees")
        let editCount = Soak.count(1_000_000, short: 80_000)
        DispatchQueue.concurrentPerform(iterations: threadCount) { thread in
            var numbers = SeededNumbers(seed: seed &* 31 &+ UInt64(thread))
            for _ in 0..<(editCount / threadCount) {
                let own = byFile[Int(numbers.next() % UInt64(byFile.count))]
                let place = own[Int(numbers.next() % UInt64(own.count))]
                let value = Self.edited(place.value, &numbers)
                let old = pages[place.file] ?? .null
                let found = PolicyEdit.between(
                    old, Self.replacing(old, place.path[...], value), in: place.file)
                let isNamed =
                    found.count == 1 && found[0].file == place.file && found[0].path == place.path
                    && found[0].before == place.value && found[0].after == value
                if !isNamed { misses.withLock { $0.append("\(place) to \(value): \(found)") } }
            }
        }
        #expect(misses.withLock { $0.count } == 0, "\(misses.withLock { $0.prefix(5) })")
    }

    // MARK: Through the reader

    /// A scalar as it stands on a page of the repository.
    private struct Token: Sendable {
        var file: String
        var path: [String]
        var bytes: Range<Int>
        var value: JSONValue
    }

    /// Every scalar that stands on one line of its page, found where the reader says it is. A folded text of several lines
    /// has no such place, and a notice is one text as a whole.
    private static func tokens(_ pages: [String: [UInt8]], _ nodes: [String: PolicyNode]) -> [Token] {
        var found: [Token] = []
        for (file, bytes) in pages.sorted(by: { $0.key < $1.key }) {
            guard let root = nodes[file] else { continue }
            guard file.hasSuffix(".yaml") else {
                found.append(Token(file: file, path: [], bytes: 0..<bytes.count, value: root.json))
                continue
            }
            let text = String(decoding: bytes, as: UTF8.self)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            func visit(_ node: PolicyNode, _ path: [String]) {
                switch node.value {
                case .mapping(let members): for member in members { visit(member.value, path + [member.key]) }
                case .list(let elements):
                    for (index, element) in elements.enumerated() { visit(element, path + [String(index)]) }
                default:
                    guard let place = node.location, place.line <= lines.count,
                        let token = token(
                            in: lines[place.line - 1].dropFirst(place.column - 1), of: node.json)
                    else { return }
                    let start = text.utf8.distance(from: text.startIndex, to: token.startIndex)
                    found.append(
                        Token(
                            file: file, path: path, bytes: start..<(start + token.utf8.count),
                            value: node.json))
                }
            }
            visit(root, [])
        }
        return found
    }

    /// The beginning of a line's rest that says a value; `nil` where the line says only a part of it.
    private static func token(in rest: Substring, of value: JSONValue) -> Substring? {
        let plain =
            switch value {
            case .string(let text): text
            case .integer(let integer): String(integer)
            case .boolean(let boolean): String(boolean)
            default: "null"
            }
        for written in ["\"\(plain)\"", plain] where !plain.isEmpty && rest.hasPrefix(written) {
            let end = rest[rest.index(rest.startIndex, offsetBy: written.count)...].first
            if end == nil || end == " " || end == "," || end == "]" || end == "}" {
                return rest.prefix(written.count)
            }
        }
        return nil
    }

    /// Some ten a second of one processor. The million above compares trees and never reads; here the
    /// edit is made in the bytes of the page, the page is read by the reader of folders, the bundle is put together and
    /// checked as `policy check` does it, and the two bundles are compared as `policy diff` does it.
    private static let readCount = Soak.count(700, short: 60)

    @Test func `a page edited at one random scalar is refused, or the difference names the edit`() throws {
        let nodes = try Repository.pages()
        let pages = try Dictionary(
            uniqueKeysWithValues: nodes.keys.map { file in
                (file, try Array(Data(contentsOf: URL(filePath: "\(Repository.policies)/\(file)"))))
            })
        let tokens = Self.tokens(pages, nodes)
        #expect(tokens.count > 4_000)
        for part in ["ttl", "grants", "notices/", "messages/", "because", "from", "discharge_within"] {
            #expect(
                tokens.contains { $0.file.contains(part) || $0.path.contains(part) }, "no scalar of \(part)")
        }
        let byFile = Dictionary(grouping: tokens, by: \.file).sorted { $0.key < $1.key }.map(\.value)
        let before = try PolicyBundle.read(documents: nodes).get()
        let policy = CompiledPolicy(before)
        let told = Mutex<(lost: [String], refused: Int, named: Int, decided: Int)>(([], 0, 0, 0))
        let threadCount = 4
        let seed = Soak.seed("edits of pages")
        DispatchQueue.concurrentPerform(iterations: threadCount) { thread in
            var numbers = SeededNumbers(seed: seed &* 31 &+ UInt64(thread))
            for round in 0..<(Self.readCount / threadCount) {
                let own = byFile[Int(numbers.next() % UInt64(byFile.count))]
                let token = own[Int(numbers.next() % UInt64(own.count))]
                let value = Self.edited(token.value, &numbers)
                var bytes = pages[token.file] ?? []
                let isText = !token.file.hasSuffix(".yaml")
                bytes.replaceSubrange(
                    token.bytes,
                    with: isText ? Array((value.stringValue ?? "x").utf8) : CanonicalJSON.write(value))
                func lose(_ why: String) {
                    told.withLock { $0.lost.append("\(token.file) \(token.path) to \(value): \(why)") }
                }
                var edited = nodes
                do throws(PolicyDiagnostics) {
                    edited[token.file] =
                        isText
                        ? try PolicyPage.readText(bytes, file: token.file)
                        : try PolicyPage.read(bytes, file: token.file)
                } catch {
                    told.withLock { $0.refused += 1 }
                    continue
                }
                guard case .success(let after) = PolicyBundle.read(documents: edited) else {
                    told.withLock { $0.refused += 1 }
                    continue
                }
                let edits = PolicyEdit.all(from: before.documents, to: after.documents)
                // A notice of the same bytes in the end is none.
                guard edited[token.file]?.json != nodes[token.file]?.json else { continue }
                if edits.count != 1 || edits[0].file != token.file || edits[0].path != token.path {
                    lose("\(edits)")
                }
                if after.digest == before.digest { lose("both have one digest") }
                // The whole difference for some: it decides some thousand sends by each.
                let isWhole = round % Soak.count(25, short: 10) == 0
                if isWhole {
                    let difference = PolicyDifference(from: policy, to: CompiledPolicy(after))
                    if difference.edits != edits { lose("\(difference.edits)") }
                }
                told.withLock {
                    $0.named += 1
                    $0.decided += isWhole ? 1 : 0
                }
            }
        }
        let (lost, refused, named, decided) = told.withLock { $0 }
        #expect(lost == [])
        let enough = Self.readCount / 10
        #expect(refused > enough && named > enough && decided > 0, "\(refused), \(named), \(decided)")
    }
}
