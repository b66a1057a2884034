import CanonicalJSON
import GateVocabulary

/// Decisions and identifiers as bytes without a tree in between; the spelling is that of their JSON.
enum EntryWriting {
    static func append(_ decision: borrowing Decision, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "{"))
        if let detail = decision.detail {
            bytes.append(contentsOf: "\"detail\":".utf8)
            bytes.appendPlain(detail.rawValue)
            bytes.append(UInt8(ascii: ","))
        }
        bytes.append(contentsOf: "\"form\":".utf8)
        bytes.appendPlain(decision.form.rawValue)
        bytes.append(contentsOf: ",\"interruption\":".utf8)
        bytes.appendPlain(decision.interruption.rawValue)
        if let notBefore = decision.notBefore {
            bytes.append(contentsOf: ",\"not_before\":".utf8)
            CanonicalJSON.append(notBefore.milliseconds, to: &bytes)
        }
        bytes.append(contentsOf: ",\"notes\":[".utf8)
        var isFirst = true
        for (note, name) in DecisionNotes.names where decision.notes.contains(note) {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            bytes.appendPlain(name)
        }
        bytes.append(contentsOf: "],\"outcome\":".utf8)
        bytes.appendPlain(decision.outcome.name)
        bytes.append(contentsOf: ",\"reason\":".utf8)
        bytes.appendPlain(decision.reason.rawValue)
        bytes.append(contentsOf: ",\"trace\":[".utf8)
        for index in UInt8(0)..<UInt8(13) {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            append(decision.trace[Gate(rawValue: index)!], to: &bytes)
        }
        bytes.append(contentsOf: "]}".utf8)
    }

    private static func append(_ result: GateResult, to bytes: inout [UInt8]) {
        switch result.verdict {
        case .pass: bytes.append(contentsOf: "\"pass\"".utf8)
        case .notApplicable: bytes.append(contentsOf: "\"not_applicable\"".utf8)
        case .fail:
            guard let reason = result.reason else { preconditionFailure("a gate failed without a reason") }
            bytes.append(UInt8(ascii: "\""))
            bytes.append(contentsOf: reason.rawValue.utf8)
            if let detail = result.detail {
                bytes.append(UInt8(ascii: ":"))
                bytes.append(contentsOf: detail.rawValue.utf8)
            }
            bytes.append(UInt8(ascii: "\""))
        }
    }

    /// The bytes two decisions are compared by.
    static func bytes(of decision: Decision) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(384)
        append(decision, to: &bytes)
        return bytes
    }
}

/// Appends members in the order they are given, which must be the canonical one; a test holds that.
struct MemberWriter {
    private(set) var bytes: [UInt8]
    private var isFirst = true

    init(byteCapacity: Int) {
        bytes = []
        bytes.reserveCapacity(byteCapacity)
        bytes.append(UInt8(ascii: "{"))
    }

    mutating func end() -> [UInt8] {
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    /// - Parameter key: Without characters that need an escape.
    mutating func member(_ key: StaticString, _ write: (inout [UInt8]) -> Void) {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        bytes.append(UInt8(ascii: "\""))
        // A static string's bytes live as long as the program, and its count is theirs.
        bytes.append(contentsOf: UnsafeBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount))
        bytes.append(contentsOf: "\":".utf8)
        write(&bytes)
    }

    mutating func integer(_ key: StaticString, _ value: Int64) {
        member(key) { CanonicalJSON.append(value, to: &$0) }
    }

    /// Any text; escaped as needed.
    mutating func text(_ key: StaticString, _ value: String) {
        member(key) { CanonicalJSON.append(value, to: &$0) }
    }

    mutating func hexadecimal(_ key: StaticString, _ id: (some RandomIdentifier)?) {
        guard let id else { return }
        member(key) { $0.appendPlain(id.hexadecimal) }
    }

    mutating func uuid(_ key: StaticString, _ id: (some RandomIdentifier)?) {
        guard let id else { return }
        member(key) { $0.appendPlain(id.uuidText) }
    }
}
