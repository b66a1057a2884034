import CanonicalJSON
package import GateVocabulary

/// One public key of one device and what became of it.
package struct DeviceKeyRecord: PersonRecord, StoredValue, ShownRecord {
    package var key: KeyID
    package var subject: SubjectID
    package var device: Tag
    /// `P256_SHA256_AES256GCM` or `X25519_SHA256_CHACHA20POLY1305`.
    package var suite: String
    /// 65 bytes for P-256 (uncompressed point), 32 for X25519.
    package var publicKey: [UInt8]
    /// NIST SP 800-57 state by name: `pre_activation active suspended deactivated compromised destroyed`.
    package var state: String
    /// While possession is unproved: what the proof must equal, and until when. Kept encrypted.
    package var challenge: PendingChallenge?
    package var createdAt: Instant
    package var changedAt: Instant

    /// Whether the challenge may be answered now. A clock that stands before the registration must not lengthen its time.
    package func isOpen(_ challenge: PendingChallenge, at now: Instant) -> Bool {
        createdAt <= now && now <= challenge.expiresAt
    }

    /// What the gateway keeps of a challenge until the device answers or its time is over.
    package struct PendingChallenge: Record {
        /// HMAC-SHA256(nonce, "sendgate/possession/v1\0" ‖ info): 32 bytes. The nonce itself is not kept.
        package var expectedProof: [UInt8]
        /// What the device's earlier active key must answer, when there is one.
        package var expectedOldKeyProof: [UInt8]?
        package var oldKey: KeyID?
        package var expiresAt: Instant
        /// Wrong proofs still forgiven; the challenge is void at 0.
        package var triesLeft: Int

        /// A phone that mixed up two challenges may answer again; guessing 32 bytes is hopeless either way.
        package static let tryCountMax = 5

        package init(
            expectedProof: [UInt8], expectedOldKeyProof: [UInt8]?, oldKey: KeyID?, expiresAt: Instant,
            triesLeft: Int = tryCountMax
        ) {
            (self.expectedProof, self.expectedOldKeyProof) = (expectedProof, expectedOldKeyProof)
            (self.oldKey, self.expiresAt, self.triesLeft) = (oldKey, expiresAt, triesLeft)
        }
    }

    package init(
        key: KeyID, subject: SubjectID, device: Tag, suite: String, publicKey: [UInt8], state: String,
        challenge: PendingChallenge?, createdAt: Instant, changedAt: Instant
    ) {
        (self.key, self.subject, self.device, self.suite) = (key, subject, device, suite)
        (self.publicKey, self.state, self.challenge) = (publicKey, state, challenge)
        (self.createdAt, self.changedAt) = (createdAt, changedAt)
    }
}

// MARK: Fields

extension DeviceKeyRecord {
    package static let blank = Self(
        key: .blank, subject: .blank, device: .blank, suite: "", publicKey: [], state: "", challenge: nil,
        createdAt: .unstated, changedAt: .unstated)

    package static let fields = Fields<Self> { fields in
        fields.evidence("key_id", \.key, "Its id.")
        fields.evidence("device", \.device, "Whose key it is.", isShown: false)
        fields.evidence("suite", \.suite, "Its HPKE suite.", bound: .text(byteCountMax: 64))
        fields.evidence("state", \.state, "Its state (NIST SP 800-57).", bound: .name)
        fields.implied("created_at", \.createdAt, "When it was registered.")
        fields.implied("changed_at", \.changedAt, "When its state last changed.", isShown: false)
        fields.secret("public_key", \.publicKey, "What messages are sealed to.")
        fields.secret(
            "challenge", \.challenge, "What the device must answer to prove that it has the private half.")
    }

    package static let shownName = "HeldKey"
    package static let shownMeans = "A device's public key."
}

extension DeviceKeyRecord.PendingChallenge: StoredValue {
    package static let blank = Self(
        expectedProof: [], expectedOldKeyProof: nil, oldKey: nil, expiresAt: .unstated, triesLeft: 0)

    package static let fields = Fields<Self> { fields in
        fields.secret("expected_proof", \.expectedProof, "What the proof must equal.")
        fields.secret(
            "expected_old_key_proof", \.expectedOldKeyProof, "What the earlier key's proof must equal.")
        fields.secret("old_key", \.oldKey, "The device's earlier active key.")
        fields.secret("expires_at", \.expiresAt, "Until when it may be answered.")
        fields.secret("tries_left", \.triesLeft, "Wrong proofs still forgiven.")
    }
}

/// A key of a device changed its state, a caller proposed to destroy it, or it was forgotten.
package struct DeviceKeyEntry: RecordEntry {
    package static let kind = EntryKind.deviceKey
    package static let blank = Self(.blank, subject: .blank, caller: CallerName(""))

    package var subject: SubjectID
    package var caller: CallerName
    package var record: DeviceKeyRecord
    package var event: Code?
    package var cause: Code?
    package var proof: Code?
    package var isForgotten: Bool?
    /// The first of the two callers who asked for the destruction.
    package var proposedBy: CallerName?
    /// Of a key that became compromised: by what the gateway refuses its public half, 64 lower-case hexadecimal digits.
    package var publicKeyMAC: String?

    package init(
        _ record: DeviceKeyRecord, subject: SubjectID, caller: CallerName, event: Code? = nil,
        cause: Code? = nil,
        proof: Code? = nil, isForgotten: Bool? = nil, proposedBy: CallerName? = nil,
        publicKeyMAC: String? = nil
    ) {
        (self.record, self.subject, self.caller) = (record, subject, caller)
        (self.event, self.cause, self.proof, self.isForgotten) = (event, cause, proof, isForgotten)
        (self.proposedBy, self.publicKeyMAC) = (proposedBy, publicKeyMAC)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who said so.", bound: .name)
        fields.entry("subject", \.subject, "Whose key it is.")
        fields.entry("event", \.event, "What happened to the key.")
        fields.entry("cause", \.cause, "Why; absent where a caller said no more.")
        fields.entry("proof", \.proof, "Whether the device proved that it has the private half.")
        fields.entry("forgotten", \.isForgotten, "Whether the key gave its place to a newer one.")
        fields.entry(
            "proposed_by", \.proposedBy, "The first of the two callers of a destruction.", bound: .name)
        fields.entry(
            "public_key_mac", \.publicKeyMAC, "By what the public half of a compromised key is refused.",
            bound: .text(.sha256))
        fields.all(of: \.record)
    }
}
