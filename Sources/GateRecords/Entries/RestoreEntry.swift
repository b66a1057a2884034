package import CanonicalJSON
package import GateVocabulary
package import OpenSSLCrypto

/// The body of a `restore` entry: from here on the tree has another name, and what stands before it is cited.
///
/// Written once by `sendgate restore`, when every entry that a backup lacked is in the store again.
package struct RestoreEntry: DeclaredEntry {
    package static let kind = EntryKind.restore
    package static let blank = Self(
        origin: "", previous: .blank, backupSize: 0, isTailLost: false, user: 0)

    /// The name of the trail from this entry on.
    package var origin: String
    /// The tree before this entry: its name, size and root. The size is this entry's index.
    package var previous: TreeHead
    /// How many entries the backup had.
    package var backupSize: UInt64
    /// What was brought back, and what could not be, by ``Item``; none is 0.
    package var applied: [Item: UInt64]
    package var skipped: [Item: UInt64]
    /// Whether entries beyond ``previous`` were lost, so that the gateway itself withdrew what may have been withdrawn in them.
    package var isTailLost: Bool
    /// The Unix user who asked.
    package var user: UInt32

    /// What is counted.
    package enum Item: String, CaseIterable, FieldValue {
        case addresses, consents, devices
        case deviceKeys = "device_keys"
        case erasures
        case gatewayKeys = "gateway_keys"
        case messages, others, policies, preferences, recipients, sends, withdrawals
    }

    package init(
        origin: String, previous: TreeHead, backupSize: UInt64, isTailLost: Bool, user: UInt32
    ) {
        self.origin = origin
        self.previous = previous
        self.backupSize = backupSize
        applied = [:]
        skipped = [:]
        self.isTailLost = isTailLost
        self.user = user
    }

    /// - Parameter members: Of an entry; of a restore that is under way, with others beside them.
    package init(_ members: JSONObject) throws(JSONShapeError) {
        self = try Self.read(members, isPassingOver: true)
        guard TreeHead.isLine(origin), TreeHead.isLine(previous.origin) else {
            throw JSONShapeError(JSONPointer(["origin"]), "expected a line of text")
        }
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("applied", \.applied, "What was brought back.")
        fields.entry("backup", \.backupSize, "How many entries the backup had.")
        fields.entry(
            "origin", \.origin, "The name of the trail from here on.", bound: .text(byteCountMax: 320))
        fields.entry("previous", \.previous, "The tree before this entry.")
        fields.entry("skipped", \.skipped, "What could not be brought back.")
        fields.entry("tail_lost", \.isTailLost, "Whether entries beyond the tree before were lost.")
        fields.entry("uid", \.user, "The Unix user who asked.")
    }
}

/// The name, the size and the root of a tree.
package struct TreeHead: Record, RecordedValue {
    package static let blank = Self(origin: "", size: 0, root: SHA256.digest([] as [UInt8]))

    package var origin: String
    package var size: UInt64
    package var root: SHA256Digest

    package init(origin: String, size: UInt64, root: SHA256Digest) {
        (self.origin, self.size, self.root) = (origin, size, root)
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.size == right.size && left.root == right.root && CodeUnits.equal(left.origin, right.origin)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(size)
        hasher.combine(root)
    }

    /// Whether a text may be the name of a trail, which is a line of its checkpoint.
    package static func isLine(_ text: String) -> Bool {
        !text.utf8.isEmpty && text.utf8.allSatisfy { $0 >= 0x20 }
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("origin", \.origin, "Its name.", bound: .text(byteCountMax: 320))
        fields.entry("root", \.root, "Its root.")
        fields.entry("size", \.size, "How many entries it has.")
    }
}

/// 64 lower-case hexadecimal digits.
extension SHA256Digest: FieldValue, RecordedValue {
    package static var shape: Shape { .text(.sha256) }

    package func write(field json: inout CanonicalWriter) { json.quoted { $0.hexadecimal(bytes) } }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> SHA256Digest {
        guard let digest = Self(hexadecimal: try cursor.text(byteCountMax: 64)) else {
            throw cursor.failure("64 lower-case hexadecimal digits")
        }
        return digest
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> SHA256Digest {
        guard let digest = Self(hexadecimal: try JSONShape.text(json, .root)) else {
            throw JSONShapeError(.root, "expected 64 lower-case hexadecimal digits")
        }
        return digest
    }

    private init?(hexadecimal: String) {
        guard let bytes = Hexadecimal.decode(hexadecimal) else { return nil }
        self.init(bytes: bytes)
    }
}
