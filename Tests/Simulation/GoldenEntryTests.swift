import CanonicalJSON
import GateVocabulary
import Testing

@testable import AuditTrail
@testable import GateRecords

/// Entries of every kind: one with every member that the kind may have, and one with those that it must.
@Suite struct GoldenEntryTests {
    private static let time = Instant(milliseconds: 1_795_260_000_000)
    /// Their members depend on one another, so theirs are those of a history (``GoldenHistoryTests``).
    private static let decided: Set<EntryKind> = [.send, .redecision]

    @Test func `an entry of every kind is written and read as its golden file says`() throws {
        var lines: [JSONValue] = []
        for body in EntrySchema.bodies where !Self.decided.contains(body.kind) {
            for isWhole in [true, false] { lines.append(try Self.line(body, isWhole: isWhole)) }
        }
        try GoldenFile("entries.ndjson").expect(lines)
    }

    /// Reading and writing again gives the same bytes, in both ways of each.
    @Test func `the golden entries have every kind, and are written again as they are`() throws {
        var kinds: Set<EntryKind> = []
        let entries =
            try GoldenFile("entries.ndjson").values().compactMap { $0["entry"] }
            + GoldenFile("trail.ndjson").values()
        for line in entries {
            let bytes = CanonicalJSON.write(line)
            let entry = try TrailEntry(reading: bytes)
            kinds.insert(entry.kind)
            let body = try #require(EntrySchema.bodies.first { $0.kind == entry.kind })
            #expect(try Self.written(entry, as: body) == bytes)
            #expect(try entry.encoded().bytes == bytes)
            #expect(EntrySchema.version1.violation(in: entry) == nil, "\(entry.kind)")
        }
        #expect(kinds == Set(EntrySchema.bodies.map { $0.kind }))
    }

    private static func written<Body: EntryBody>(_ entry: TrailEntry, as _: Body.Type) throws -> [UInt8] {
        try entry.body(Body.self).bytes(index: entry.index, time: entry.time)
    }

    /// What is read of the members, or why they are not: the error, as it is said today.
    private static func read<Body: EntryBody>(_ members: JSONObject, as _: Body.Type) -> JSONShapeError? {
        let entry = TrailEntry(kind: Body.kind, index: 7, time: time, members: members)
        do throws(JSONShapeError) {
            _ = try entry.body(Body.self)
            return nil
        } catch {
            return error
        }
    }

    /// An entry, and what is said where one of its members is missing or another text, and where there is one too many.
    private static func line<Body: EntryBody>(_: Body.Type, isWhole: Bool) throws -> JSONValue {
        var members = JSONObject()
        for member in Body.objectShape.members where isWhole || member.isRequired {
            let value: JSONValue = try #require(ShapeSample(isWhole: isWhole).value(of: member.shape))
            members[member.name] = value
        }
        // A name that is open in the table of entries is one of a closed list where this build reads it.
        for _ in 0..<32 {
            guard let error = read(members, as: Body.self) else { break }
            let name = try #require(error.message.split(separator: "`").dropFirst().first, "\(error)")
            members = try #require(
                JSONValue.object(members).setting(error.pointer.tokens[...], to: .string(String(name)))
                    .objectValue)
        }
        let entry = TrailEntry(kind: Body.kind, index: 7, time: time, members: members)
        let violation = EntrySchema.version1.violation(in: entry)
        #expect(violation == nil, "\(Body.kind): \(violation as Any)")
        var line: JSONObject = ["entry": .object(entry.object)]
        guard isWhole else { return .object(line) }
        var errors = JSONObject()
        for member in members.members {
            var said = JSONObject()
            let slips: [(name: String, value: JSONValue?)] = [
                ("missing", nil), ("name", "zz"),
            ]
            for slip in slips {
                var changed = members
                changed[member.key] = slip.value
                said[slip.name] = read(changed, as: Body.self).map { .string($0.description) } ?? .null
            }
            errors[member.key] = .object(said)
        }
        var more = members
        more["no_such_member"] = 1
        errors["no_such_member"] = read(more, as: Body.self).map { .string($0.description) } ?? .null
        line["errors"] = .object(errors)
        return .object(line)
    }
}

/// A value of a shape: with all that may be in it, or with the least.
private struct ShapeSample {
    let isWhole: Bool

    /// One of these fits each rule for texts in entries.
    private static let texts = [
        "Europe/Oslo", "DE", "en", "2026b", "1.0.0", String(repeating: "0a", count: 16),
        "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11", String(repeating: "0a", count: 32), "/amount", "a", "a.b",
        "+47",
        "2026-11-21T05:00:00Z",
    ]

    func value(of shape: Shape) -> JSONValue? {
        switch shape {
        case .boolean: .boolean(isWhole)
        case .integer(let range):
            .integer(isWhole ? min(range.upperBound, 1_795_260_000_000) : max(range.lowerBound, 0))
        case .text(let rule): Self.texts.first(where: rule.accepts).map { .string($0) }
        case .choice(let names): (isWhole ? names.last : names.first).map { .string($0) }
        case .nullable(let shape): isWhole ? value(of: shape) : .null
        case .null: .null
        case .list(let element, let countMin, _):
            value(of: element).map {
                .array(Array(repeating: $0, count: isWhole ? max(countMin, 1) : countMin))
            }
        case .map(let keys, let values, let countMin, _):
            map(keys, values, count: isWhole ? max(countMin, 1) : countMin)
        case .object(let object): self.object(object)
        case .variants(let variants):
            (isWhole ? variants.variants.last : variants.variants.first).flatMap { object($0.shape) }
        case .named(_, let shape, _): value(of: shape)
        case .either(let shapes): shapes.first.flatMap { value(of: $0) }
        case .anything: "a"
        case .foreign: [:]
        }
    }

    private func map(_ keys: TextRule, _ values: Shape, count: Int) -> JSONValue? {
        let names = Self.texts.filter(keys.accepts).prefix(count)
        guard names.count == count, let value = value(of: values) else { return nil }
        return .object(JSONObject(names.map { ($0, value) }))
    }

    private func object(_ shape: ObjectShape) -> JSONValue? {
        var object = JSONObject()
        for member in shape.members where isWhole || member.isRequired {
            guard let value = value(of: member.shape) else { return nil }
            object[member.name] = value
        }
        return .object(object)
    }
}

extension JSONValue {
    /// The same with another value at a place.
    fileprivate func setting(_ tokens: ArraySlice<String>, to value: JSONValue) -> JSONValue {
        guard let token = tokens.first else { return value }
        switch self {
        case .object(var object):
            object[token] = (object[token] ?? .null).setting(tokens.dropFirst(), to: value)
            return .object(object)
        case .array(var elements):
            guard let index = Int(token), elements.indices.contains(index) else { return self }
            elements[index] = elements[index].setting(tokens.dropFirst(), to: value)
            return .array(elements)
        case .null, .boolean, .integer, .string: return self
        }
    }
}
