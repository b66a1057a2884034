import CanonicalJSON

/// Where in the trail something is recorded: a producer's own piece of evidence.
package struct TrailReference: WireAnswer, Hashable {
    /// The log's name, as its checkpoints sign it.
    package var origin: String
    package var index: UInt64
    /// SHA-256(0x00 ‖ entry), 32 bytes.
    package var leaf: [UInt8]

    package init(origin: String, index: UInt64, leaf: [UInt8]) {
        self.origin = origin
        self.index = index
        self.leaf = leaf
    }

    package static let name = "TrailReference"
    package static let means = "Where in the trail this is recorded, durably, before the answer was given."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("index", answer, { Int64($0.index) }, "The entry's index.")
        fields.required(
            "leaf", answer, { DigestText(bytes: $0.leaf) }, "SHA-256 of 0x00 and the entry (RFC 6962).")
        fields.required("origin", answer, \.origin, "The log's name, as its checkpoints sign it.")
    }
}

/// SHA-256, 32 bytes, in hexadecimal digits.
private struct DigestText: AnswerValue {
    let bytes: [UInt8]

    static var answerShape: Shape { .sha256 }

    func write(answer json: inout CanonicalWriter) { json.quoted { $0.hexadecimal(bytes) } }
}
