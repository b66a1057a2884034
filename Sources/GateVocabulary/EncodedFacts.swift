import CanonicalJSON

/// Facts as canonical JSON, written once: the same bytes are in a send's entry and in its outbox row.
package struct EncodedFacts: Sendable {
    /// A place for each bit of a ``FactSet``.
    typealias Ends = InlineArray<32, UInt16>

    /// The whole object, with every known fact.
    package let bytes: [UInt8]
    /// Where each of ``Facts/names`` ends; an unknown one ends where the one before it does.
    private let ends: Ends

    package init(_ facts: borrowing Facts) {
        var ends = Ends(repeating: 1)
        // The pointers are used until the closures end. A writer that held the facts would copy them.
        bytes = withUnsafePointer(to: facts) { facts in
            CanonicalWriter.bytes { json in
                withUnsafeMutablePointer(to: &json) { json in
                    withUnsafeMutablePointer(to: &ends) { ends in
                        var writer = FactWriter(facts: facts, json: json, ends: ends)
                        Facts.show(to: &writer)
                        writer.finish()
                    }
                }
            }
        }
        self.ends = ends
    }

    /// Key and value of one fact; empty when it is unknown.
    private func member(_ index: Int) -> ArraySlice<UInt8> {
        let start = index == 0 ? 1 : Int(ends[index - 1])
        let end = Int(ends[index])
        return bytes[start < end && start > 1 ? start + 1..<end : start..<end]
    }

    /// The facts that are known.
    var known: FactSet {
        FactSet(
            rawValue: (0..<FactSet.countMax).reduce(0) { known, index in
                member(index).isEmpty ? known : known | 1 << UInt32(index)
            })
    }

    /// The facts that are the same in all of several.
    ///
    /// - Parameter several: Not empty.
    package static func shared(_ several: [EncodedFacts]) -> FactSet {
        guard several.count > 1 else { return .all }
        var shared: UInt32 = 0
        for index in 0..<FactSet.countMax {
            let first = several[0].member(index)
            if several.dropFirst().allSatisfy({ $0.member(index) == first }) { shared |= 1 << UInt32(index) }
        }
        return FactSet(rawValue: shared)
    }

    /// The object of the known facts in `set`.
    func object(of set: FactSet) -> [UInt8] {
        guard set != .all else { return bytes }
        return CanonicalWriter.bytes { json in
            json.raw("{")
            var rest = set.rawValue
            while rest != 0 {
                let member = member(rest.trailingZeroBitCount)
                rest &= rest &- 1
                guard !member.isEmpty else { continue }
                json.separate(after: UInt8(ascii: "{"))
                json.raw(member)
            }
            json.raw("}")
        }
    }
}

/// The facts of one decision. A class, so that what was decided, its entry and its answer share them without a copy.
package final class DecidedFacts: Hashable, Sendable {
    package let facts: Facts
    /// The same as JSON; `nil` where it is needed nowhere but in the entry.
    private let encoded: EncodedFacts?

    package init(_ facts: Facts, isEncoded: Bool = false) {
        encoded = isEncoded ? EncodedFacts(facts) : nil
        self.facts = facts
    }

    package static func == (left: DecidedFacts, right: DecidedFacts) -> Bool {
        left === right || left.facts == right.facts
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(facts) }

    package func encode() -> EncodedFacts { encoded ?? EncodedFacts(facts) }

    @inline(never)
    func write(to json: inout CanonicalWriter) {
        if let bytes = encoded?.bytes { json.raw(bytes[...]) } else { facts.write(field: &json) }
    }
}

/// Which facts, as a set over ``Facts/names``: one bit each, so that there are 32 at most.
package struct FactSet: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    static let countMax = UInt32.bitWidth
    package static let all = FactSet(rawValue: .max)
}

/// Writes the facts that are known as members, and notes where each ends. The list is inlined into it.
private struct FactWriter: FieldVisitor {
    let facts: UnsafePointer<Facts>
    let json: UnsafeMutablePointer<CanonicalWriter>
    let ends: UnsafeMutablePointer<EncodedFacts.Ends>
    private var index = 0

    init(
        facts: UnsafePointer<Facts>, json: UnsafeMutablePointer<CanonicalWriter>,
        ends: UnsafeMutablePointer<EncodedFacts.Ends>
    ) {
        (self.facts, self.json, self.ends) = (facts, json, ends)
        json.pointee.byte(UInt8(ascii: "{"))
    }

    @inline(__always)
    mutating func required<Value: FieldValue>(
        _: StaticString, _: WritableKeyPath<Facts, Value>, _: String
    ) { preconditionFailure("a fact that somebody must know") }

    @inline(__always)
    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Facts, Value?>, _: String
    ) {
        if let value = facts.pointee[keyPath: path] {
            json.pointee.key(name)
            value.write(field: &json.pointee)
        }
        // Far from 65,535: 21 regions, at most 20 of them of devices, have less than 2 KiB.
        ends.pointee[index] = UInt16(json.pointee.byteCount)
        index += 1
    }

    /// A place that no fact has yet is empty: it ends where the last fact does.
    mutating func finish() {
        while index < FactSet.countMax {
            ends.pointee[index] = UInt16(json.pointee.byteCount)
            index += 1
        }
        json.pointee.byte(UInt8(ascii: "}"))
    }
}

/// Some of the facts of one destination, as a field of an entry: facts that are the same at every destination stand once, the
/// others with their delivery.
enum FactsPart: FieldValue {
    /// None.
    case none
    /// All of them.
    case all(DecidedFacts)
    /// The object of some, as ``EncodedFacts/object(of:)`` gives it: one reference, because a part is taken out to be written.
    case written([UInt8])
    /// No others are known where they stand.
    indirect case read(Facts, FactSet)

    static var shape: Shape { Facts.shape }

    @inline(__always)
    func write(field json: inout CanonicalWriter) {
        switch self {
        case .none: json.raw("{}")
        case .all(let facts): facts.write(to: &json)
        case .written(let object): json.raw(object[...])
        case .read(let facts, _): json.raw(EncodedFacts(facts).bytes[...])
        }
    }

    static func read(field cursor: inout EntryCursor) throws(EntryError) -> FactsPart {
        var facts = Facts()
        let set = try facts.read(&cursor)
        return .read(facts, set)
    }

    static func read(field json: JSONValue) throws(JSONShapeError) -> FactsPart {
        let facts = try Facts.read(field: json)
        return .read(facts, EncodedFacts(facts).known)
    }
}

extension Facts {
    /// Reads an object of facts into these; an unknown one is an error.
    ///
    /// - Returns: Which were there.
    mutating func read(_ cursor: inout EntryCursor) throws(EntryError) -> FactSet {
        FactSet(rawValue: try Self.read(&cursor, into: &self))
    }
}
