import OpenSSLCrypto
import AuditTrail
import CanonicalJSON
import GateVocabulary
import WireProtocol

extension StepContext {
    /// Writes one entry of a kind other than a send; its members are the closed table's (handbook, "Audit format").
    @discardableResult
    func record(_ kind: EntryKind, at time: Instant, _ members: JSONObject) throws -> EntryReference {
        try record(at: time) { index, time in
            try TrailEntry(kind: kind, index: index, time: time, members: members).encoded().bytes
        }
    }
}

extension TrailReference {
    /// Where an entry that was written earlier stands.
    init(entry bytes: [UInt8], index: UInt64, origin: String) {
        self.init(origin: origin, index: index, leaf: TreeHash.leaf(bytes).bytes)
    }
}
