package import GateVocabulary
package import OpenSSLCrypto

/// A person as the trail knows them, and the key that makes their tags.
///
/// A class, because the pads of the key are hashed once for all tags while the person is held in memory.
package final class Subject: Sendable {
    package let id: SubjectID
    /// K_s: destroying it makes every tag of this person meaningless.
    package let tagKey: SecretBytes
    private let keyed = LazyHMACKey()

    package static let tagKeyByteCount = 32
    /// What a person takes of ``SecretMemory`` once they have a tag: K_s and its two hashed pads.
    package static let secretByteCount = tagKeyByteCount + HMACKey.secretByteCount

    package init(id: SubjectID, tagKey: SecretBytes) {
        self.id = id
        self.tagKey = tagKey
    }

    /// K_s with its pads hashed, which is half of a tag's work, and every send of a caller has a tag. Made with the first one,
    /// because most steps make none, and zeroed where K_s is: when the last reference to the person ends.
    var hashedTagKey: HMACKey { keyed.of(tagKey) }
}

/// What is registered of a person.
package struct RecipientRecord: Hashable, Sendable {
    package var subject: SubjectID
    package var region: RegionObservation?
    package var age: AgeFact?
    package var locale: String?
    /// IANA zone name.
    package var timeZone: String?
    package var privacy: PrivacyLevel
    package var pushEnabled: Bool
    package var quietHours: QuietHours?
    package var registeredAt: Instant
    package var updatedAt: Instant

    package init(
        subject: SubjectID, region: RegionObservation?, age: AgeFact?, locale: String?, timeZone: String?,
        privacy: PrivacyLevel, pushEnabled: Bool, quietHours: QuietHours?, registeredAt: Instant,
        updatedAt: Instant
    ) {
        self.subject = subject
        self.region = region
        self.age = age
        self.locale = locale
        self.timeZone = timeZone
        self.privacy = privacy
        self.pushEnabled = pushEnabled
        self.quietHours = quietHours
        self.registeredAt = registeredAt
        self.updatedAt = updatedAt
    }
}

/// Local wall-clock times; equal means off, start after end means across midnight.
package struct QuietHours: Hashable, Sendable {
    /// Minutes after local midnight, 0 to 1439.
    package var startMinute: Int
    package var endMinute: Int

    package init(startMinute: Int, endMinute: Int) {
        self.startMinute = startMinute
        self.endMinute = endMinute
    }
}

/// One device of a person, as the app's backend last registered it: a destination of pushes.
package struct DeviceRecord: Hashable, Sendable {
    package var subject: SubjectID
    /// tag("device", id): the key of the row.
    package var tag: Tag
    package var id: DestinationID
    package var platform: Platform
    /// Who delivers pushes in place of the platform's own service; `nil` when that does.
    package var provider: PushProvider?
    /// The app's bundle id or package name.
    package var app: String
    /// The push service's token. Resolved at hand-over, never copied into another row.
    package var token: String
    package var region: RegionObservation?
    package var timeZone: String?
    package var osPermission: OSPermission
    package var criticalAlerts: Bool
    package var isActive: Bool
    package var seenAt: Instant
    /// `nil` until a caller reports what the provider has.
    package var subscriptions: ProviderSubscriptions?

    /// Whether what is composed for the other device can be handed over for this one: by the same push service, for the same
    /// app.
    package func isPushedTo(like other: DeviceRecord) -> Bool {
        platform == other.platform && provider == other.provider && app == other.app
    }

    /// What two registrations of one token have in common: an APNs token is hexadecimal in either case, any other is
    /// compared as it is.
    package var tokenIdentity: String { platform == .ios && provider == nil ? token.lowercased() : token }

    package init(
        subject: SubjectID, tag: Tag, id: DestinationID, platform: Platform, provider: PushProvider? = nil,
        app: String, token: String,
        region: RegionObservation?, timeZone: String?, osPermission: OSPermission, criticalAlerts: Bool,
        isActive: Bool, seenAt: Instant, subscriptions: ProviderSubscriptions? = nil
    ) {
        self.subject = subject
        self.tag = tag
        self.id = id
        self.platform = platform
        self.provider = provider
        self.app = app
        self.token = token
        self.region = region
        self.timeZone = timeZone
        self.osPermission = osPermission
        self.criticalAlerts = criticalAlerts
        self.isActive = isActive
        self.seenAt = seenAt
        self.subscriptions = subscriptions
    }
}

/// One phone number or mailbox of a person: a destination of text messages or of e-mails.
package struct AddressRecord: Hashable, Sendable {
    package var subject: SubjectID
    /// tag("address", channel ‖ 0x00 ‖ canonical form): the key of the row. A number or mailbox is itself, whatever it is
    /// called and however it is written. See ``GateVocabulary/AddressKey``.
    package var tag: Tag
    package var id: DestinationID
    /// `sms` or `email`.
    package var channel: Channel
    /// What messages are handed over to: a number in its canonical form, a mailbox in the spelling that was verified. See
    /// ``GateVocabulary/RegisteredAddress``.
    package var value: String
    /// Where a number belongs; see ``GateVocabulary/NumberPrefix``. `nil` for a mailbox.
    package let numberPrefix: String?
    package var verifiedAt: Instant?
    /// The newest verification by another person that this one is not newer than; `nil` while this person holds the address.
    /// Whose it was is not kept, and it stays when that person gives the address up (decision SG-0044).
    package var contestedAt: Instant?
    package var updatedAt: Instant

    /// - Parameter numberPrefix: That of the value, unless the value is not known.
    package init(
        subject: SubjectID, tag: Tag, id: DestinationID, channel: Channel, value: String,
        numberPrefix: String? = nil, verifiedAt: Instant?, contestedAt: Instant? = nil, updatedAt: Instant
    ) {
        self.numberPrefix = numberPrefix ?? (channel == .sms ? NumberPrefix.of(value) : nil)
        self.subject = subject
        self.tag = tag
        self.id = id
        self.channel = channel
        self.value = value
        self.verifiedAt = verifiedAt
        self.contestedAt = contestedAt
        self.updatedAt = updatedAt
    }
}

extension AddressKey {
    /// What an address of a person is, whatever the person calls it.
    package init(_ address: AddressRecord) { self.init(address.channel, registered: address.value) }
}

extension [AddressRecord] {
    /// The one of a person's addresses that is this number or mailbox.
    package subscript(address: AddressKey) -> AddressRecord? { first { AddressKey($0) == address } }
}

/// One public key of one device and what became of it.
package struct DeviceKeyRecord: Hashable, Sendable {
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
    package struct PendingChallenge: Hashable, Sendable {
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
            self.expectedProof = expectedProof
            self.expectedOldKeyProof = expectedOldKeyProof
            self.oldKey = oldKey
            self.expiresAt = expiresAt
            self.triesLeft = triesLeft
        }
    }

    package init(
        key: KeyID, subject: SubjectID, device: Tag, suite: String, publicKey: [UInt8], state: String,
        challenge: PendingChallenge?, createdAt: Instant, changedAt: Instant
    ) {
        self.key = key
        self.subject = subject
        self.device = device
        self.suite = suite
        self.publicKey = publicKey
        self.state = state
        self.challenge = challenge
        self.createdAt = createdAt
        self.changedAt = changedAt
    }
}

/// One record of the consent ledger (ISO/IEC TS 27560; GDPR Art. 7(1)).
package struct ConsentRecord: Hashable, Sendable {
    /// What the record says of the consent.
    package enum State: String, CaseIterable, Sendable, Hashable {
        case given
        case refused
        case withdrawn
        /// The notice was shown: evidence, and no word of the person's.
        case shown
        /// A withdrawal was taken back at once: the ledger counts as if it had never been said.
        case undone
    }
    /// Position in the ledger, from 1; 0 before it is appended.
    package var sequence: Int64
    package var subject: SubjectID
    /// The caller's id for this record, kept encrypted; its tag is the key.
    package var id: String
    package var idTag: Tag
    package var purpose: Purpose
    package var channel: Channel
    /// The tag of the number or mailbox for SMS and e-mail; `nil` for push, and for a withdrawal of the whole channel.
    package var address: Tag?
    package var state: State
    /// When the person spoke, and never after ``receivedAt``.
    package var eventTime: Instant
    /// The time that was stated of a no, where a clock ahead of the gateway's made it a later one than ``receivedAt``.
    package var statedTime: Instant?
    /// When the gate heard of it.
    package var receivedAt: Instant
    package var method: ConsentMethod
    /// The caller that reported it.
    package var source: CallerName
    package var jurisdiction: String?
    package var notice: NoticeReference?
    package var expiresAt: Instant?
    /// For a withdrawal: the record it withdraws; `nil` where none was given. For ``State/undone``: the withdrawal.
    package var withdraws: Tag?
    /// SHA-256 over the canonical form of the previous record of this subject, hex; empty for the first.
    package var previousHash: String
    /// The entry that records it.
    package var entryIndex: UInt64

    /// How old an event may be without `consents.import`: 24 hours, in milliseconds.
    package static let freshMilliseconds: Int64 = 86_400_000

    /// The text that the person was shown, by its id and digest.
    package struct NoticeReference: Hashable, Sendable {
        package var id: String
        package var version: String
        /// SHA-256 of the text shown, 64 lower-case hexadecimal digits.
        package var sha256: String
        package var language: String

        package init(id: String, version: String, sha256: String, language: String) {
            self.id = id
            self.version = version
            self.sha256 = sha256
            self.language = language
        }
    }

    package init(
        sequence: Int64 = 0, subject: SubjectID, id: String, idTag: Tag, purpose: Purpose, channel: Channel,
        address: Tag?, state: State, eventTime: Instant, statedTime: Instant? = nil, receivedAt: Instant,
        method: ConsentMethod, source: CallerName, jurisdiction: String?, notice: NoticeReference?,
        expiresAt: Instant?,
        withdraws: Tag?, previousHash: String, entryIndex: UInt64 = 0
    ) {
        self.sequence = sequence
        self.subject = subject
        self.id = id
        self.idTag = idTag
        self.purpose = purpose
        self.channel = channel
        self.address = address
        self.state = state
        self.eventTime = eventTime
        self.statedTime = statedTime
        self.receivedAt = receivedAt
        self.method = method
        self.source = source
        self.jurisdiction = jurisdiction
        self.notice = notice
        self.expiresAt = expiresAt
        self.withdraws = withdraws
        self.previousHash = previousHash
        self.entryIndex = entryIndex
    }
}

/// One transition of one preference.
package struct PreferenceRecord: Hashable, Sendable {
    package var subject: SubjectID
    /// A category's name, or the id of a type that is `mutable_alone`.
    package var scope: String
    package var channel: Channel
    /// `nil` for the account, else the destination's tag.
    package var destination: Tag?
    package var state: PreferenceState
    package var source: PreferenceSource
    package var at: Instant
    /// The caller that reported it.
    package var caller: CallerName

    package init(
        subject: SubjectID, scope: String, channel: Channel, destination: Tag?, state: PreferenceState,
        source: PreferenceSource, at: Instant, caller: CallerName
    ) {
        self.subject = subject
        self.scope = scope
        self.channel = channel
        self.destination = destination
        self.state = state
        self.source = source
        self.at = at
        self.caller = caller
    }
}

/// The operating system's permission prompt was shown; it must never be shown twice.
package struct PermissionPrompt: Hashable, Sendable {
    package var subject: SubjectID
    package var device: Tag
    package var shownAt: Instant
    /// `nil` when not known yet.
    package var answer: Choice?

    /// How the prompt was answered.
    package enum Choice: String, CaseIterable, Sendable, Hashable {
        case granted
        case denied
    }

    package init(subject: SubjectID, device: Tag, shownAt: Instant, answer: Choice?) {
        self.subject = subject
        self.device = device
        self.shownAt = shownAt
        self.answer = answer
    }
}
