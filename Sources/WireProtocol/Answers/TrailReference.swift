import CanonicalJSON
package import GateRecords

/// Where in the trail something is recorded: a producer's own piece of evidence.
package struct TrailReference: ShownRecord {
    /// The log's name, as its checkpoints sign it.
    package var origin: String
    package var index: UInt64
    /// SHA-256(0x00 ‖ entry), 32 bytes.
    package var leaf: [UInt8]

    package init(origin: String, index: UInt64, leaf: [UInt8]) {
        (self.origin, self.index, self.leaf) = (origin, index, leaf)
    }

    package static let shownName = "TrailReference"
    package static let shownMeans =
        "Where in the trail this is recorded, durably, before the answer was given."

    package static let fields = Fields<Self> { fields in
        fields.joined("index", \.index, "The entry's index.")
        fields.joined("leaf", "SHA-256 of 0x00 and the entry (RFC 6962).") { DigestText(bytes: $0.leaf) }
        fields.joined("origin", \.origin, "The log's name, as its checkpoints sign it.")
    }
}

/// SHA-256, 32 bytes, in hexadecimal digits.
private struct DigestText: ShownValue {
    let bytes: [UInt8]

    static var shownShape: Shape { .sha256 }

    func write(shown json: inout CanonicalWriter) { json.quoted { $0.hexadecimal(bytes) } }
}
