package import CanonicalJSON
package import GateVocabulary
package import OpenSSLCrypto

/// What an entry records, e.g. `send`; the string is its identity. ``EntrySchema`` lists the kinds there are.
package struct EntryKind: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// One record of the trail: an envelope every kind shares, and the members of its kind.
///
/// On disk it is one canonical JSON object (RFC 8785) of at most 65,535 bytes, readable with `jq`.
package struct TrailEntry: Hashable, Sendable {
    /// The envelope's format.
    package static let version = EntryEnvelope.version
    /// The envelope's member names, in canonical order, which no kind may use for its own.
    package static let envelopeKeys = EntryEnvelope.names

    package var kind: EntryKind
    /// Counts from 0 without gaps.
    package var index: UInt64
    /// When it was recorded; never earlier than the entry before, unless it is of the kind `clock`.
    package var time: Instant
    /// What the kind adds.
    package var members: JSONObject

    /// Whether this is an operator's word that time goes on from another moment than that of the entry before.
    func stepsClock(from last: Instant) -> Bool {
        kind == .clock && (try? knownBody(ClockEntry.self))?.previous == last
    }

    /// The whole object, envelope included.
    package var object: JSONObject {
        var object = members
        object["v"] = .integer(Self.version)
        object["kind"] = .string(kind.text)
        object["index"] = .integer(Int64(index))
        object["time"] = .integer(time.milliseconds)
        return object
    }

    /// The bytes that are hashed, stored and published.
    package func encoded() throws(TrailEntryError) -> EncodedEntry {
        let bytes = CanonicalJSON.write(object)
        guard bytes.count <= EntryBundle.entryByteCountMax else {
            throw .tooLong(byteCount: bytes.count, byteCountMax: EntryBundle.entryByteCountMax)
        }
        return EncodedEntry(bytes: bytes)
    }
}

extension TrailEntry {
    package init(reading bytes: [UInt8]) throws(TrailEntryError) {
        try self.init(reading: bytes[...])
    }

    package init(reading bytes: ArraySlice<UInt8>) throws(TrailEntryError) {
        guard bytes.count <= EntryBundle.entryByteCountMax else {
            throw .tooLong(byteCount: bytes.count, byteCountMax: EntryBundle.entryByteCountMax)
        }
        let value: JSONValue
        do throws(JSONError) {
            value = try CanonicalJSON.readCanonical(bytes, limits: .entry)
        } catch {
            throw .notCanonical(error)
        }
        guard case .object(let object) = value else { throw .envelope(member: "") }
        guard object["v"]?.integerValue == Self.version else { throw .envelope(member: "v") }
        guard let kind = object["kind"]?.stringValue else { throw .envelope(member: "kind") }
        guard let index = object["index"]?.integerValue, index >= 0 else { throw .envelope(member: "index") }
        guard let time = object["time"]?.integerValue else { throw .envelope(member: "time") }
        self.kind = EntryKind(kind)
        self.index = UInt64(index)
        self.time = Instant(milliseconds: time)
        members = object.without(sortedKeys: Self.envelopeKeys)
    }
}

/// An entry's bytes and its hash in the tree.
package struct EncodedEntry: Hashable, Sendable {
    /// At most 65,535.
    package let bytes: [UInt8]
    /// SHA-256(0x00 ‖ bytes): the `leaf` a producer holds as its evidence.
    package let leafHash: SHA256Digest

    init(bytes: [UInt8]) {
        self.bytes = bytes
        leafHash = TreeHash.leaf(bytes)
    }
}

/// Bytes that are no entry.
package enum TrailEntryError: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { message }

    case tooLong(byteCount: Int, byteCountMax: Int)
    case notCanonical(JSONError)
    /// The envelope lacks this member, or it has another shape or version; empty when there is no object.
    case envelope(member: String)

    package var message: String {
        switch self {
        case .tooLong(let byteCount, let byteCountMax):
            "the entry is \(byteCount) bytes long; at most \(byteCountMax) fit a bundle"
        case .notCanonical(let error): error.message
        case .envelope(let member):
            member.isEmpty
                ? "the entry is no JSON object"
                : "the entry's `\(member)` is missing or not what version 1 has"
        }
    }
}
