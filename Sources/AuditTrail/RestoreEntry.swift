package import CanonicalJSON
package import GateVocabulary
import OpenSSLCrypto
import SealedFormat

/// The body of a `restore` entry: from here on the tree has another name, and what stands before it is cited.
///
/// Written once by `sendgate restore`, when every entry that a backup lacked is in the store again.
package struct RestoreEntry: Hashable, Sendable {
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
    package enum Item: String, CaseIterable, Sendable, Hashable {
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

    /// The entry's members.
    package var members: JSONObject {
        func counts(_ counts: [Item: UInt64]) -> JSONValue {
            .object(JSONObject(counts.map { ($0.key.rawValue, .integer(Int64($0.value))) }))
        }
        return [
            "applied": counts(applied), "backup": .integer(Int64(backupSize)), "origin": .string(origin),
            "previous": [
                "origin": .string(previous.origin), "root": .string(Hexadecimal.encode(previous.root.bytes)),
                "size": .integer(Int64(previous.size)),
            ],
            "skipped": counts(skipped), "tail_lost": .boolean(isTailLost), "uid": .integer(Int64(user)),
        ]
    }

    /// - Returns: `nil` for members that ``members`` never gives.
    package init?(_ members: JSONObject) {
        func counts(_ value: JSONValue?) -> [Item: UInt64]? {
            guard let object = value?.objectValue else { return nil }
            var counts: [Item: UInt64] = [:]
            for (name, value) in object {
                guard let item = Item(rawValue: name), let count = value.integerValue, count >= 0 else {
                    return nil
                }
                counts[item] = UInt64(count)
            }
            return counts
        }
        guard let origin = members["origin"]?.stringValue,
            let before = members["previous"]?.objectValue,
            let oldOrigin = before["origin"]?.stringValue, Checkpoint.isLine(origin),
            Checkpoint.isLine(oldOrigin),
            let size = before["size"]?.integerValue, size >= 0,
            let root = before["root"]?.stringValue.flatMap(Hexadecimal.decode)
                .flatMap({ SHA256Digest(bytes: $0) }),
            let backupSize = members["backup"]?.integerValue, backupSize >= 0,
            let applied = counts(members["applied"]), let skipped = counts(members["skipped"]),
            let isTailLost = members["tail_lost"]?.booleanValue,
            let user = members["uid"]?.integerValue.flatMap({ UInt32(exactly: $0) })
        else { return nil }
        self.init(
            origin: origin, previous: Checkpoint(origin: oldOrigin, size: UInt64(size), root: root),
            backupSize: UInt64(backupSize), isTailLost: isTailLost, user: user)
        self.applied = applied
        self.skipped = skipped
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
