import CanonicalJSON
import Dispatch
import GateTestKit
import GateVocabulary
import Synchronization
import Testing

@testable import CompliancePolicy

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

    /// TTLs, texts, notices, grants: every page is drawn from alike, and of a page every scalar.
    @Test func `of a million edits of one scalar each, every one is named exactly`() throws {
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
        DispatchQueue.concurrentPerform(iterations: threadCount) { thread in
            var numbers = SeededNumbers(seed: 0x5EED + UInt64(thread))
            for _ in 0..<(1_000_000 / threadCount) {
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

    @Test func `a bundle edited at one random scalar is refused, or its difference names the edit`() throws {
        let places = scalars()
        let repository = try BundleMutantTests.repository.get()
        let before = try repository.read().get()
        let lost = Mutex<[String]>([])
        let taken = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            var numbers = SeededNumbers(seed: 0xED17 + UInt64(thread))
            for _ in 0..<75 {
                let place = places[Int(numbers.next() % UInt64(places.count))]
                let value = Self.edited(place.value, &numbers)
                var bundle = repository
                bundle.documents[place.file] = Self.replacing(
                    repository.documents[place.file] ?? .null, place.path[...], value)
                guard case .success(let after) = bundle.read() else { continue }
                taken.withLock { $0 += 1 }
                let edits = PolicyEdit.all(from: before.documents, to: after.documents)
                if edits.count != 1 || edits[0].path != place.path || after.digest == before.digest {
                    lost.withLock { $0.append("\(place) to \(value): \(edits)") }
                }
            }
        }
        #expect(lost.withLock { $0 } == [])
        #expect(taken.withLock { $0 } > 20)
    }
}
