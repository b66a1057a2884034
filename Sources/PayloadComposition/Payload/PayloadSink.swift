import CanonicalJSON
import GateVocabulary

/// Where a payload is written to: as bytes, or as their number alone.
///
/// What goes nowhere is weighed as well, and its length comes from the code that would write it: bodies and sealed contents
/// are written by functions that are generic over the sink. So a way to write that only one of the sinks has does not compile
/// where a payload would use it, and a member that is written is counted by the same line.
protocol PayloadSink: ~Copyable {
    /// Bytes so far.
    var byteCount: Int { get }
    mutating func object(_ members: (inout Self) -> Void)
    mutating func quoted(_ parts: (inout Self) -> Void)
    mutating func member(_ key: StaticString, _ value: (inout Self) -> Void)
    mutating func member(_ key: StaticString, _ value: String?)
    mutating func member(_ key: StaticString, _ value: CountedText?)
    mutating func member(_ key: StaticString, _ value: Int64?)
    mutating func member(_ key: StaticString, _ value: Bool?)
    mutating func member(_ key: StaticString, _ value: Instant?)
    mutating func member(_ key: StaticString, name value: (some RawRepresentable<String>)?)
    mutating func member(_ key: StaticString, hexadecimal id: RandomIdentifier<some IdentifierKind>?)
    mutating func member(_ key: StaticString, uuid id: RandomIdentifier<some IdentifierKind>?)
    mutating func member(_ key: StaticString, _ object: JSONObject, only names: [String])
    mutating func value(_ object: JSONObject)
    mutating func name(_ name: String)
    mutating func integer(_ value: Int64)
    mutating func characters(_ text: String)
    mutating func characters(_ text: CountedText)
    mutating func raw(_ literal: StaticString)
}

extension CanonicalWriter: PayloadSink {
    // By itself: the writer's own can fail, as whatever it is handed can.
    mutating func object(_ members: (inout CanonicalWriter) -> Void) {
        byte(UInt8(ascii: "{"))
        members(&self)
        byte(UInt8(ascii: "}"))
    }

    mutating func member(_ key: StaticString, _ value: CountedText?) { member(key, value?.text) }

    mutating func characters(_ text: CountedText) { characters(text.text) }
}

/// Counts the bytes that a ``CanonicalWriter`` would write.
struct ByteCounter: PayloadSink {
    private(set) var byteCount = 0
    /// Whether the next member is the first of its object, which has no comma before it.
    private var isFirst = false

    mutating func object(_ members: (inout ByteCounter) -> Void) {
        byteCount += 1
        isFirst = true
        members(&self)
        isFirst = false
        byteCount += 1
    }

    mutating func quoted(_ parts: (inout ByteCounter) -> Void) {
        byteCount += 1
        parts(&self)
        byteCount += 1
    }

    /// - Parameter valueByteCount: Of a value that is counted at once.
    private mutating func member(_ keyByteCount: Int, _ valueByteCount: Int) {
        // Two quotation marks and a colon.
        byteCount += (isFirst ? 3 : 4) + keyByteCount + valueByteCount
        isFirst = false
    }

    mutating func member(_ key: StaticString, _ value: (inout ByteCounter) -> Void) {
        member(key.utf8CodeUnitCount, 0)
        value(&self)
    }

    mutating func member(_ key: StaticString, _ value: String?) {
        guard let value else { return }
        member(key.utf8CodeUnitCount, 2 + CanonicalWriter.byteCount(ofCharacters: value))
    }

    mutating func member(_ key: StaticString, _ value: CountedText?) {
        guard let value else { return }
        member(key.utf8CodeUnitCount, 2 + value.byteCount)
    }

    mutating func member(_ key: StaticString, _ value: Int64?) {
        guard let value else { return }
        member(key.utf8CodeUnitCount, Self.byteCount(of: value))
    }

    mutating func member(_ key: StaticString, _ value: Bool?) {
        guard let value else { return }
        member(key.utf8CodeUnitCount, value ? 4 : 5)
    }

    mutating func member(_ key: StaticString, _ value: Instant?) { member(key, value?.milliseconds) }

    mutating func member(_ key: StaticString, name value: (some RawRepresentable<String>)?) {
        guard let value else { return }
        member(key.utf8CodeUnitCount, 2 + value.rawValue.utf8.count)
    }

    mutating func member(_ key: StaticString, hexadecimal id: RandomIdentifier<some IdentifierKind>?) {
        if id != nil { member(key.utf8CodeUnitCount, 2 + 32) }
    }

    mutating func member(_ key: StaticString, uuid id: RandomIdentifier<some IdentifierKind>?) {
        if id != nil { member(key.utf8CodeUnitCount, 2 + 36) }
    }

    mutating func member(_ key: StaticString, _ object: JSONObject, only names: [String]) {
        var isAbsent = true
        for name in names {
            guard let value = object[name] else { continue }
            // The brace before the first one; a colon in each, and a comma or the other brace after it.
            if isAbsent { member(key.utf8CodeUnitCount, 1) }
            isAbsent = false
            text(name)
            self.value(value)
            byteCount += 2
        }
    }

    mutating func value(_ object: JSONObject) {
        // A colon and a comma for each member but the last, and the two braces.
        byteCount += object.isEmpty ? 2 : 1 + 2 * object.count
        for (key, value) in object {
            text(key)
            self.value(value)
        }
    }

    private mutating func value(_ value: JSONValue) {
        switch value {
        case .null: byteCount += 4
        case .boolean(let value): byteCount += value ? 4 : 5
        case .integer(let value): integer(value)
        case .string(let value): text(value)
        case .array(let elements):
            byteCount += elements.isEmpty ? 2 : 1 + elements.count
            for element in elements { self.value(element) }
        case .object(let object): self.value(object)
        }
    }

    private mutating func text(_ text: String) {
        byteCount += 2
        characters(text)
    }

    mutating func name(_ name: String) { byteCount += 2 + name.utf8.count }

    mutating func integer(_ value: Int64) { byteCount += Self.byteCount(of: value) }

    mutating func characters(_ text: String) { byteCount += CanonicalWriter.byteCount(ofCharacters: text) }

    mutating func characters(_ text: CountedText) { byteCount += text.byteCount }

    mutating func raw(_ literal: StaticString) { byteCount += literal.utf8CodeUnitCount }

    private static func byteCount(of number: Int64) -> Int {
        var rest = number.magnitude
        var byteCount = number < 0 ? 2 : 1
        while rest >= 10 {
            rest /= 10
            byteCount += 1
        }
        return byteCount
    }
}
