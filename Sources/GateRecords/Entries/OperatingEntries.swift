import CanonicalJSON
package import GateVocabulary
package import OpenSSLCrypto

// What the gateway and its operators did.

extension EntryKind {
    package static let gatewayKey = EntryKind("gateway_key")
    package static let keyset = EntryKind("keyset")
    package static let review = EntryKind("review")
    package static let policy = EntryKind("policy")
    package static let policyRefused = EntryKind("policy_refused")
    package static let unknownPeer = EntryKind("unknown_peer")
    package static let explain = EntryKind("explain")
    package static let clock = EntryKind("clock")
    package static let start = EntryKind("start")
    package static let stop = EntryKind("stop")
    package static let snapshot = EntryKind("snapshot")
}

extension EntrySchema {
    /// The kinds of entries about the gateway itself.
    static let operating: [any EntryBody.Type] = [
        StartEntry.self, StopEntry.self, PolicyEntry.self, PolicyRefusedEntry.self, GatewayKeyEntry.self,
        KeysetEntry.self, UnknownPeerEntry.self, ExplainEntry.self, ClockEntry.self, ReviewEntry.self,
        SnapshotEntry.self,
    ]
}

/// An entry that is also a line of the log, because an operator has to hear of it and nothing else says so. Nothing in it is personal.
package protocol LoggedEntry: DeclaredEntry {}

/// The gateway starts, under this bundle.
package struct StartEntry: DeclaredEntry {
    package static let kind = EntryKind.start
    package static let blank = Self(policy: PolicyDigest(""), approvals: [], tzdata: "", version: "")

    package var policy: PolicyDigest
    package var approvals: [BundleApproval]
    package var tzdata: String
    package var version: String
    /// Keys that were found for the first time, and the keys that one of them took the place of.
    package var keys: [RecordedKeyChange]?
    package var pins: [ChangedPin]?

    package init(
        policy: PolicyDigest, approvals: [BundleApproval], tzdata: String, version: String,
        keys: [RecordedKeyChange]? = nil, pins: [ChangedPin]? = nil
    ) {
        (self.policy, self.approvals, self.tzdata, self.version) = (policy, approvals, tzdata, version)
        (self.keys, self.pins) = (keys, pins)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("approvals", \.approvals, "Who approved the bundle.")
        fields.entry("keys", \.keys, "Keys that were found for the first time.")
        fields.entry("pins", \.pins, "Public keys that the configuration pins since, or pins no more.")
        fields.entry("policy", \.policy, "Digest of the bundle.")
        fields.entry("tzdata", \.tzdata, "The time-zone data.", bound: .text(byteCountMax: 32))
        fields.entry("version", \.version, "The build.", bound: .name)
    }
}

/// The gateway stops.
package struct StopEntry: DeclaredEntry {
    package static let kind = EntryKind.stop
    package static let blank = Self(policy: PolicyDigest(""))

    package var policy: PolicyDigest

    package init(policy: PolicyDigest) { self.policy = policy }

    package static let fields = Fields<Self> { fields in
        fields.entry("policy", \.policy, "Digest of the bundle.")
    }
}

/// A bundle came into force.
package struct PolicyEntry: DeclaredEntry {
    package static let kind = EntryKind.policy
    package static let blank = Self(policy: PolicyDigest(""), approvals: [])

    package var policy: PolicyDigest
    package var approvals: [BundleApproval]
    package var version: Int?
    package var caller: CallerName?

    package init(
        policy: PolicyDigest, approvals: [BundleApproval], version: Int? = nil, caller: CallerName? = nil
    ) {
        (self.policy, self.approvals, self.version, self.caller) = (policy, approvals, version, caller)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("approvals", \.approvals, "Who approved the bundle.")
        fields.entry("caller", \.caller, "Who asked.", bound: .name)
        fields.entry("policy", \.policy, "Digest of the bundle.")
        fields.entry("version", \.version, "The bundle's version.")
    }
}

/// A bundle that has problems was asked for; the one in force stayed.
package struct PolicyRefusedEntry: DeclaredEntry {
    package static let kind = EntryKind.policyRefused
    package static let blank = Self(policy: PolicyDigest(""), problems: 0)

    package var policy: PolicyDigest
    package var problems: Int
    /// `nil` of a bundle that could not be read.
    package var refused: PolicyDigest?
    package var caller: CallerName?

    package init(
        policy: PolicyDigest, problems: Int, refused: PolicyDigest? = nil, caller: CallerName? = nil
    ) {
        (self.policy, self.problems, self.refused, self.caller) = (policy, problems, refused, caller)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who asked.", bound: .name)
        fields.entry("policy", \.policy, "Digest of the bundle that stayed in force.")
        fields.entry("problems", \.problems, "How many problems it has.")
        fields.entry("refused", \.refused, "Digest of the one refused; absent of one that could not be read.")
    }
}

/// Who approved a bundle, as which role.
package struct BundleApproval: Record, RecordedElement {
    package static let blank = Self(key: "", role: Code(""))
    /// Three roles with up to 64 keys each.
    package static let countMax = 192

    package var key: String
    package var role: Code
    /// Ed25519 over the role's statement about the bundle, 64 bytes in base64; entries of earlier builds lack it.
    package var signature: String?

    package init(key: String, role: Code, signature: String? = nil) {
        (self.key, self.role, self.signature) = (key, role, signature)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("key", \.key, "By which key.", bound: .text(byteCountMax: 255))
        fields.entry("role", \.role, "As which role.")
        fields.entry(
            "signature", \.signature, "Ed25519 over the role's statement, in base64.",
            bound: .text(byteCountMax: 88))
    }
}

/// A key of the gateway's own in the state that it came into, and what brought it there.
package struct RecordedKeyChange: Record, RecordedElement {
    package static let blank = Self(
        key: "", purpose: Code(""), event: Code(""), state: Code(""), cause: Code(""))
    package static let countMax = 320

    package var key: String
    package var purpose: Code
    package var event: Code
    package var state: Code
    package var cause: Code
    package var publicKey: String?

    package init(
        key: String, purpose: Code, event: Code, state: Code, cause: Code, publicKey: String? = nil
    ) {
        (self.key, self.purpose, self.event, self.state, self.cause) = (key, purpose, event, state, cause)
        self.publicKey = publicKey
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("cause", \.cause, "Why.")
        fields.entry("event", \.event, "What happened to it.")
        fields.entry("key", \.key, "Its id.", bound: .keyName)
        fields.entry("public_key", \.publicKey, "SHA-256 of its public half.", bound: .text(.sha256))
        fields.entry("purpose", \.purpose, "What it is for.")
        fields.entry("state", \.state, "The state that it came into.")
    }
}

/// A public key that the configuration pins, or pins no more.
package struct ChangedPin: Record, RecordedElement {
    package static let blank = Self(key: "", purpose: Code(""), event: Code(""))
    /// Up to 64 of each of three roles, and four authorities, that came or went.
    package static let countMax = 400

    package var key: String
    package var purpose: Code
    /// `pin` or `unpin`.
    package var event: Code
    /// `nil` of an authority.
    package var role: Code?

    package init(key: String, purpose: Code, event: Code, role: Code? = nil) {
        (self.key, self.purpose, self.event, self.role) = (key, purpose, event, role)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("event", \.event, "Whether it is pinned or not any more.")
        fields.entry("key", \.key, "Which key.", bound: .text(byteCountMax: 255))
        fields.entry("purpose", \.purpose, "What it is for.")
        fields.entry("role", \.role, "As which role; absent of an authority.")
    }
}

/// One of the gateway's own keys came into another state, or a caller proposed to destroy or promote it.
package struct GatewayKeyEntry: LoggedEntry {
    package static let kind = EntryKind.gatewayKey
    package static let blank = Self(change: .blank)

    package var change: RecordedKeyChange
    package var caller: CallerName?
    package var proposedBy: CallerName?

    package init(change: RecordedKeyChange, caller: CallerName? = nil, proposedBy: CallerName? = nil) {
        (self.change, self.caller, self.proposedBy) = (change, caller, proposedBy)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who asked.", bound: .name)
        fields.entry(
            "proposed_by", \.proposedBy, "The first of the two callers.", bound: .name)
        fields.all(of: \.change)
    }
}

/// A list of genuine keys that the authority signed was proposed, or put in force.
package struct KeysetEntry: LoggedEntry {
    package static let kind = EntryKind.keyset
    package static let proposed = Code("propose")
    package static let adopted = Code("adopt")
    package static let blank = Self(
        caller: CallerName(""), digest: "", event: Code(""), expiresAt: Instant(milliseconds: 0), version: 0)

    package var caller: CallerName
    /// SHA-256 of the signed note.
    package var digest: String
    /// ``proposed`` or ``adopted``.
    package var event: Code
    package var expiresAt: Instant
    package var version: Int
    package var proposedBy: CallerName?

    package init(
        caller: CallerName, digest: String, event: Code, expiresAt: Instant, version: Int,
        proposedBy: CallerName? = nil
    ) {
        (self.caller, self.digest, self.event, self.expiresAt) = (caller, digest, event, expiresAt)
        (self.version, self.proposedBy) = (version, proposedBy)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who asked.", bound: .name)
        fields.entry("digest", \.digest, "SHA-256 of the signed note.", bound: .text(.sha256))
        fields.entry("event", \.event, "Whether it was proposed or put in force.")
        fields.entry("expires_at", \.expiresAt, "From when it says nothing.")
        fields.entry("proposed_by", \.proposedBy, "The first of the two callers.", bound: .name)
        fields.entry("version", \.version, "Rises with every keyset.")
    }
}

/// A peer that matched no caller.
package struct UnknownPeerEntry: LoggedEntry {
    package static let kind = EntryKind.unknownPeer
    package static let blank = Self(user: 0, count: 0)

    package var user: UInt32
    package var count: Int
    package var group: UInt32?
    package var process: Int?
    package var listener: Int?

    package init(user: UInt32, count: Int, group: UInt32? = nil, process: Int? = nil, listener: Int? = nil) {
        (self.user, self.count, self.group, self.process) = (user, count, group, process)
        self.listener = listener
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("count", \.count, "How often.")
        fields.entry("gid", \.group, "Its group.")
        fields.entry("listener", \.listener, "At which socket.")
        fields.entry("pid", \.process, "Its process.")
        fields.entry("uid", \.user, "The Unix user.")
    }
}

/// Decisions about stored people were explained, aggregated.
package struct ExplainEntry: DeclaredEntry {
    package static let kind = EntryKind.explain
    package static let blank = Self(caller: CallerName(""), count: 0)

    package var caller: CallerName
    package var count: Int

    package init(caller: CallerName, count: Int) { (self.caller, self.count) = (caller, count) }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who asked.", bound: .name)
        fields.entry("count", \.count, "How many decisions.")
    }
}

/// An operator accepted a clock that had stepped; the only entry whose time may be before that of the one in front
/// of it.
package struct ClockEntry: DeclaredEntry {
    package static let kind = EntryKind.clock
    package static let blank = Self(previous: Instant(milliseconds: 0), user: 0)

    /// The time of the entry before.
    package var previous: Instant
    package var user: UInt32

    package init(previous: Instant, user: UInt32) { (self.previous, self.user) = (previous, user) }

    package static let fields = Fields<Self> { fields in
        fields.entry("previous", \.previous, "The time of the entry before.")
        fields.entry("uid", \.user, "The Unix user who accepted it.")
    }
}

/// The gateway found something that a person has to look at.
package struct ReviewEntry: DeclaredEntry {
    package static let kind = EntryKind.review
    package static let blank = Self(
        category: Code(""), cause: Code(""), count: 0, since: Instant(milliseconds: 0), usual: 0)

    package var category: Code
    package var cause: Code
    package var count: Int64
    package var since: Instant
    package var usual: Int64

    package init(category: Code, cause: Code, count: Int64, since: Instant, usual: Int64) {
        (self.category, self.cause, self.count, self.since) = (category, cause, count, since)
        self.usual = usual
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("category", \.category, "The category of the send.")
        fields.entry("cause", \.cause, "Why.")
        fields.entry("count", \.count, "How many did, on that day until then.")
        fields.entry("since", \.since, "The beginning of the day.")
        fields.entry("usual", \.usual, "A day's mean of the seven before, rounded up.")
    }
}

/// The entries that stay of those before ``size`` were written into a snapshot, and the bundles of the others may go once a
/// checkpoint covers this entry (decision SG-0076).
package struct SnapshotEntry: DeclaredEntry {
    package static let kind = EntryKind.snapshot
    package static let blank = Self(
        size: 0, root: SHA256.digest([] as [UInt8]), digest: "", byteCount: 0, lineCount: 0, keepDays: 0,
        lookBackDays: 0)

    /// The index of the first entry that is kept whatever its kind; a multiple of 256.
    package var size: UInt64
    /// The root of the tree of that size.
    package var root: SHA256Digest
    /// SHA-256 of the snapshot's lines, hexadecimal.
    package var digest: String
    package var byteCount: UInt64
    /// Each is one of the entries before ``size``.
    package var lineCount: UInt64
    /// How long entries are kept, as configured.
    package var keepDays: Int
    /// How far back an entry may rest on others that are gone.
    package var lookBackDays: Int

    package init(
        size: UInt64, root: SHA256Digest, digest: String, byteCount: UInt64, lineCount: UInt64, keepDays: Int,
        lookBackDays: Int
    ) {
        (self.size, self.root, self.digest) = (size, root, digest)
        (self.byteCount, self.lineCount) = (byteCount, lineCount)
        (self.keepDays, self.lookBackDays) = (keepDays, lookBackDays)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("bytes", \.byteCount, "How many bytes its lines have.")
        fields.entry("digest", \.digest, "SHA-256 of its lines.", bound: .text(.sha256))
        fields.entry("keep_days", \.keepDays, "How long entries are kept.")
        fields.entry("lines", \.lineCount, "How many entries it keeps.")
        fields.entry("look_back_days", \.lookBackDays, "How far back an entry may rest on others.")
        fields.entry("root", \.root, "The root of the tree before it.")
        fields.entry("size", \.size, "The index of the first entry that is kept whatever its kind.")
    }
}

extension Shape {
    /// The id of a key of the gateway's own: `[dev-]purpose-16 hex digits`.
    fileprivate static let keyName = Shape.text(byteCountMax: 64)
}
