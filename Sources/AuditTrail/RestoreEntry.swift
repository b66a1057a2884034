package import CanonicalJSON
package import GateVocabulary
package import OpenSSLCrypto
import SealedFormat

/// The body of a `restore` entry: from here on the tree has another name, and what stands before it is cited.
///
/// Written once by `sendgate restore`, when every entry that a backup lacked is in the store again.
package struct RestoreEntry: EntryBody {
    package static let kind = EntryKind.restore
    package static let blank = Self(
        origin: "", previous: .blank, backupSize: 0, isTailLost: false, user: 0)

    /// The name of the trail from this entry on.
    package var origin: String
    /// The tree before this entry: its name, size and root. The size is this entry's index.
    package var previous: Checkpoint
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
        origin: String, previous: Checkpoint, backupSize: UInt64, isTailLost: Bool, user: UInt32
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
        self = try Self.read(knownIn: members)
        guard Checkpoint.isLine(origin), Checkpoint.isLine(previous.origin) else {
            throw JSONShapeError(JSONPointer(["origin"]), "expected a line of text")
        }
    }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("applied", \.applied)
        try fields.required("backup", \.backupSize)
        try fields.required("origin", \.origin, as: .text(byteCountMax: 320))
        try fields.required("previous", \.previous)
        try fields.required("skipped", \.skipped)
        try fields.required("tail_lost", \.isTailLost)
        try fields.required("uid", \.user)
    }
}

/// The name, the size and the root of a tree, as an entry has them.
extension Checkpoint: FieldObject {
    package static let means = ""
    package static let blank = Checkpoint(origin: "-", size: 0, root: TreeHash.empty)

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("origin", \.origin, as: .text(byteCountMax: 320))
        try fields.required("root", \.root)
        try fields.required("size", \.size)
    }
}

/// 64 lower-case hexadecimal digits.
extension SHA256Digest: FieldValue {
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

/// The names that one trail has had: the configured one, and one more for each restore.
package enum TrailName {
    private static let mark = "/restored-"

    /// The name after a restore at a moment: `gate.example.com/prod/restored-20261121T120000Z`.
    package static func restored(_ gateway: String, at now: Instant) -> String {
        let time = now.rfc3339.prefix(19).filter { $0 != "-" && $0 != ":" }
        return gateway + mark + time + "Z"
    }

    /// The configured name that a name began with.
    package static func gateway(of origin: String) -> String {
        guard let mark = origin.firstRange(of: mark) else { return origin }
        return String(origin[..<mark.lowerBound])
    }

    /// Whether a name is that of a gateway's trail, before or after a restore.
    package static func isName(_ origin: String, of gateway: String) -> Bool {
        CodeUnits.equal(Self.gateway(of: origin), gateway)
    }
}

extension TrailTrust {
    /// The same public keys under another name of the trail.
    package func renamed(_ origin: String) -> TrailTrust {
        TrailTrust(
            origin: origin,
            keys: keys.compactMap { key in
                key.algorithm == .cosignature
                    ? key : NoteVerifierKey(name: origin, algorithm: key.algorithm, publicKey: key.publicKey)
            })
    }
}
