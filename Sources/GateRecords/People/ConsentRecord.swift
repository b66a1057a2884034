package import CanonicalJSON
package import GateVocabulary
import OpenSSLCrypto

/// One record of the consent ledger (ISO/IEC TS 27560; GDPR Art. 7(1)).
package struct ConsentRecord: PersonRecord, StoredValue {
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
    package struct NoticeReference: StoredValue, RecordedValue, ShownRecord, GivenRecord {
        package var id: String
        package var version: String
        /// SHA-256 of the text shown, 64 lower-case hexadecimal digits.
        package var sha256: String
        package var language: String

        package init(id: String, version: String, sha256: String, language: String) {
            (self.id, self.version, self.sha256, self.language) = (id, version, sha256, language)
        }
    }

    package init(
        sequence: Int64 = 0, subject: SubjectID, id: String, idTag: Tag, purpose: Purpose, channel: Channel,
        address: Tag?, state: State, eventTime: Instant, statedTime: Instant? = nil, receivedAt: Instant,
        method: ConsentMethod, source: CallerName, jurisdiction: String?, notice: NoticeReference?,
        expiresAt: Instant?,
        withdraws: Tag?, previousHash: String, entryIndex: UInt64 = 0
    ) {
        (self.sequence, self.subject, self.id, self.idTag) = (sequence, subject, id, idTag)
        (self.purpose, self.channel, self.address, self.state) = (purpose, channel, address, state)
        (self.eventTime, self.statedTime, self.receivedAt) = (eventTime, statedTime, receivedAt)
        (self.method, self.source, self.jurisdiction) = (method, source, jurisdiction)
        (self.notice, self.expiresAt, self.withdraws) = (notice, expiresAt, withdraws)
        (self.previousHash, self.entryIndex) = (previousHash, entryIndex)
    }
}

extension ConsentRecord.State: EvidentValue, FieldValue {}

// MARK: Fields

extension ConsentRecord {
    package static let blank = Self(
        subject: .blank, id: "", idTag: .blank, purpose: Purpose(""), channel: .push, address: nil,
        state: .shown,
        eventTime: .unstated, receivedAt: .unstated, method: .inAppToggle, source: CallerName(""),
        jurisdiction: nil, notice: nil, expiresAt: nil, withdraws: nil, previousHash: "")

    package static let fields = Fields<Self> { fields in
        fields.joined("sequence", \.sequence, "Its position.")
        fields.name("id", \.id, tag: \.idTag, recordedAs: "consent", "The reporter's id.")
        fields.evidence("purpose", \.purpose, "What for.", bound: .name)
        fields.evidence("channel", \.channel, "Which channel.")
        fields.evidence(
            "address", \.address,
            "Which number or e-mail address; none for push, and for a withdrawal of the whole channel.",
            isShown: false)
        fields.evidence(
            "state", \.state, "What was said; `undone` takes back the withdrawal that it names.",
            shape: .choice(State.allCases.map(\.rawValue)))
        fields.evidence("event_time", \.eventTime, "When the person spoke.")
        fields.evidence(
            "stated_time", \.statedTime,
            "Of a no whose stated time was ahead of the gateway's clock, that time. It counts from `event_time`."
        )
        fields.implied("received_at", \.receivedAt, "When the gate heard of it.")
        fields.evidence(
            "method", \.method,
            "How; `shared_address` where somebody else with the same number or mailbox said no.",
            shape: .choice(ConsentMethod.recorded.map(\.rawValue)))
        fields.implied("source", \.source, "The caller that reported it.")
        fields.evidence("jurisdiction", \.jurisdiction, "Whose law.", bound: .text(byteCountMax: 6))
        fields.evidence("notice", \.notice, "What was shown.", isShown: false)
        fields.evidence("expires_at", \.expiresAt, "When it stops counting.")
        fields.evidence("withdraws", \.withdraws, "The record it withdraws.", isShown: false)
        fields.evidence(
            "previous_hash", \.previousHash, "SHA-256 of the record before; empty for the first.",
            recordedAs: "previous", bound: .text(byteCountMax: 64))
        fields.implied("entry", \.entryIndex, "The index of the entry that records it.", isShown: false)
    }
}

extension ConsentRecord.NoticeReference {
    package static let blank = Self(id: "", version: "", sha256: "", language: "")

    package static let fields = Fields<Self> { fields in
        fields.evidence("id", \.id, "Its name.", bound: .name, given: .text(.noticePart))
        fields.evidence("version", \.version, "Its version.", bound: .name, given: .text(.noticePart))
        fields.evidence(
            "sha256", \.sha256, "SHA-256 of the text as shown.", bound: .text(.sha256), shape: .sha256,
            given: .shape(.sha256))
        fields.evidence(
            "language", \.language, "Its language.", bound: .text(byteCountMax: 35), given: .text(.locale))
    }

    package static let shownName = "NoticeReference"
    package static let shownMeans = "The text that was shown."

    package static let givenShape = given(
        as: "ConsentNotice",
        "A text of the bundle's `notices/`. A notice the bundle does not know, or another digest, is 422.")
    package static let givenExample: JSONValue = [
        "id": "promo", "version": "3",
        "sha256": "eecb1f49034f3bf94d6f56910ccbc6bdf7ef40b518a7ad28f93013b21246343f", "language": "nb",
    ]
}

/// A record of the ledger as its owner is shown it, with the names of what it is about.
package struct HeldConsent: ShownRecord {
    /// A notice, with its words where the archive was asked.
    package struct Notice: ShownRecord {
        package var notice: ConsentRecord.NoticeReference
        package var text: String?

        package static let fields = Fields<Self> { fields in
            fields.all(of: \.notice)
            fields.joined("text", \.text, "Its words, from the archive; in `GET …/consents` only.")
        }

        package static let shownName = "ShownNotice"
        package static let shownMeans = "The text that was shown."
    }

    package var consent: ConsentRecord
    package var address: String?
    package var withdraws: String?
    package var notice: Notice?
    /// On what a send may rest because of it; `nil` when on nothing.
    package var lawfulBasis: String?

    package init(
        _ consent: ConsentRecord, address: String?, withdraws: String?, lawfulBasis: String?,
        noticeText: String? = nil
    ) {
        (self.consent, self.address, self.withdraws) = (consent, address, withdraws)
        notice = consent.notice.map { Notice(notice: $0, text: noticeText) }
        self.lawfulBasis = lawfulBasis
    }

    package static let fields = Fields<Self> { fields in
        fields.all(of: \.consent)
        fields.joined(
            "address", \.address,
            "Which number or e-mail address; none for push, and for a withdrawal of the whole channel.")
        fields.joined("withdraws", \.withdraws, "The record it withdraws.")
        fields.joined("notice", \.notice, "What was shown.")
        fields.joined("lawful_basis", \.lawfulBasis, "What a send may rest on because of a given consent.")
    }

    package static let shownName = "ConsentRecord"
    package static let shownMeans = "One record of the ledger. Nothing in it is ever changed."
}

/// A consent was given, refused or withdrawn, its notice was shown, or a withdrawal was taken back.
package struct ConsentEntry: RecordEntry {
    package static let kind = EntryKind.consent
    package static let blank = Self(.blank, subject: .blank, caller: CallerName(""))

    package var subject: SubjectID
    package var caller: CallerName
    package var record: ConsentRecord

    package init(_ record: ConsentRecord, subject: SubjectID, caller: CallerName) {
        (self.record, self.subject, self.caller) = (record, subject, caller)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who said so.", bound: .name)
        fields.entry("subject", \.subject, "Who spoke.")
        fields.all(of: \.record)
    }
}

extension ConsentRecord {
    /// Chains the ledger: SHA-256 over the canonical form of the record, lower-case hexadecimal. Everything that
    /// proves a consent is under it: what was shown, under whose law, until when.
    package var chainHash: String {
        var object: JSONObject = [
            "sequence": .integer(sequence), "consent": .string(idTag.hexadecimal),
            "purpose": .string(purpose.text), "channel": .string(channel.rawValue),
            "state": .string(state.rawValue), "event_time": .integer(eventTime.milliseconds),
            "received_at": .integer(receivedAt.milliseconds), "method": .string(method.rawValue),
            "source": .string(source.text), "previous": .string(previousHash),
        ]
        if let address { object["address"] = .string(address.hexadecimal) }
        if let jurisdiction { object["jurisdiction"] = .string(jurisdiction) }
        if let statedTime { object["stated_time"] = .integer(statedTime.milliseconds) }
        if let expiresAt { object["expires_at"] = .integer(expiresAt.milliseconds) }
        if let withdraws { object["withdraws"] = .string(withdraws.hexadecimal) }
        if let notice {
            object["notice"] = [
                "id": .string(notice.id), "version": .string(notice.version),
                "sha256": .string(notice.sha256), "language": .string(notice.language),
            ]
        }
        return Hexadecimal.encode(SHA256.digest(CanonicalJSON.write(.object(object))).bytes)
    }
}
