package import CanonicalJSON
package import GateVocabulary

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
    /// Largest entry in bytes: an entry bundle has two bytes for its length (C2SP tlog-tiles, "Log entries").
    package static let byteCountMax = 65_535
    /// The envelope's member names, in canonical order, which no kind may use for its own.
    package static let envelopeKeys = EntryEnvelope.names

    package var kind: EntryKind
    /// Counts from 0 without gaps.
    package var index: UInt64
    /// When it was recorded; never earlier than the entry before, unless it is of the kind `clock`.
    package var time: Instant
    /// What the kind adds.
    package var members: JSONObject

    /// The whole object, envelope included.
    package var object: JSONObject {
        var object = members
        object["v"] = .integer(Self.version)
        object["kind"] = .string(kind.text)
        object["index"] = .integer(Int64(index))
        object["time"] = .integer(time.milliseconds)
        return object
    }
}

extension TrailEntry {
    package init(reading bytes: [UInt8]) throws(TrailEntryError) {
        try self.init(reading: bytes[...])
    }

    package init(reading bytes: ArraySlice<UInt8>) throws(TrailEntryError) {
        guard bytes.count <= Self.byteCountMax else {
            throw .tooLong(byteCount: bytes.count, byteCountMax: Self.byteCountMax)
        }
        let value: JSONValue
        do throws(JSONError) {
            value = try CanonicalJSON.readCanonical(bytes, limits: .entry)
        } catch {
            throw .notCanonical(error)
        }
        guard case .object(let object) = value else { throw .envelope(member: "") }
        guard let format = object["v"]?.integerValue, format >= Self.version else {
            throw .envelope(member: "v")
        }
        guard format == Self.version else { throw .newerFormat(format) }
        guard let kind = object["kind"]?.stringValue else { throw .envelope(member: "kind") }
        guard let index = object["index"]?.integerValue, index >= 0 else { throw .envelope(member: "index") }
        guard let time = object["time"]?.integerValue else { throw .envelope(member: "time") }
        self.kind = EntryKind(kind)
        self.index = UInt64(index)
        self.time = Instant(milliseconds: time)
        members = object.without(sortedKeys: Self.envelopeKeys)
    }
}

extension TrailEntry {
    /// - Throws: Where an entry is too long for a bundle.
    static func checked(_ entry: [UInt8]) throws(TrailEntryError) -> [UInt8] {
        guard entry.count <= byteCountMax else {
            throw .tooLong(byteCount: entry.count, byteCountMax: byteCountMax)
        }
        return entry
    }
}

/// Bytes that are no entry.
package enum TrailEntryError: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { message }

    case tooLong(byteCount: Int, byteCountMax: Int)
    case notCanonical(JSONError)
    /// The envelope lacks this member, or it has another shape or version; empty when there is no object.
    case envelope(member: String)
    /// The envelope says a later format.
    case newerFormat(Int64)

    package var message: String {
        switch self {
        case .tooLong(let byteCount, let byteCountMax):
            "the entry is \(byteCount) bytes long; at most \(byteCountMax) fit a bundle"
        case .notCanonical(let error): error.message
        case .envelope(let member):
            member.isEmpty
                ? "the entry is no JSON object"
                : "the entry's `\(member)` is missing or not what version 1 has"
        case .newerFormat(let format):
            "a newer sendgate wrote it, in format \(format) where this build reads \(TrailEntry.version)"
        }
    }
}
