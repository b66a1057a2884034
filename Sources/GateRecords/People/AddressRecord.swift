package import CanonicalJSON
package import GateVocabulary

/// One phone number or mailbox of a person: a destination of text messages or of e-mails.
package struct AddressRecord: PersonRecord, StoredValue, ShownRecord, GivenRecord {
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
    package var numberPrefix: String?
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
        (self.subject, self.tag, self.id, self.channel, self.value) = (subject, tag, id, channel, value)
        (self.verifiedAt, self.contestedAt, self.updatedAt) = (verifiedAt, contestedAt, updatedAt)
    }
}

extension AddressRecord {
    /// Takes the one form that a number or mailbox is kept in.
    package mutating func settle(as address: RegisteredAddress) {
        value = address.value
        numberPrefix = channel == .sms ? NumberPrefix.of(value) : nil
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

// MARK: Fields

extension AddressRecord {
    package static let blank = Self(
        subject: .blank, tag: .blank, id: DestinationID(""), channel: .email, value: "", verifiedAt: nil,
        updatedAt: .unstated)

    package static let fields = Fields<Self> { fields in
        fields.name("address", \.id, tag: \.tag, "Its id.")
        fields.evidence(
            "kind", \.channel, "What it is, and so the channel it serves.", recordedAs: "channel",
            shape: .choice(["sms", "email"]),
            given: .telling([(["sms"], "A phone number."), (["email"], "An e-mail address.")]))
        fields.private(
            "value", \.value, "The number or address.",
            given: .perVariant([
                (
                    ["sms"], .text(.phoneNumber),
                    "The number with `+` and its country code. Spaces, hyphens and parentheses do not count. Texts go to the canonical form (ITU-T E.164), which every spelling of the number has in common."
                ),
                (
                    ["email"], .text(.email),
                    "The address, as it was verified and as mail is sent to it. Capitals, quotation marks around the local part, and U-labels in place of A-labels make no other mailbox; dots and `+` do."
                ),
            ]))
        fields.evidence(
            "number_prefix", \.numberPrefix, "Where a number belongs.", bound: .text(byteCountMax: 5),
            isShown: false)
        fields.whether(
            "verified", \.verifiedAt,
            "When the recipient proved it theirs. Without it nothing is sent there.",
            isAlwaysRecorded: true, moment: "verified_at", given: .shape(.nullable(.instant)))
        fields.whether(
            "contested", \.contestedAt,
            "Whether it was verified for another person since, or at the same moment. Then no security message and none of high sensitivity goes there until this recipient verifies it again.",
            isAlwaysRecorded: false)
        fields.implied("updated_at", \.updatedAt, "When it was last registered.", isShown: false)
    }

    package static let shownName = "HeldAddress"
    package static let shownMeans = "A phone number or e-mail address as it is registered."

    package static let givenShape = given(as: "Address")
    package static let givenExample: JSONValue = [
        "kind": "sms", "value": "+4790000000", "verified_at": "2026-11-01T12:00:00Z",
    ]
}

/// A number or mailbox was registered, changed or removed.
package struct AddressEntry: RecordEntry {
    package static let kind = EntryKind.address
    package static let blank = Self(.blank, subject: .blank, caller: CallerName(""), action: Code(""))

    package var subject: SubjectID
    package var caller: CallerName
    package var action: Code
    package var replaced: Tag?
    /// Of an address that is gone, or contested by another person, only the tag.
    package var record: AddressRecord
    package var isEnding: Bool

    package init(
        _ record: AddressRecord, subject: SubjectID, caller: CallerName, action: Code, replaced: Tag? = nil
    ) {
        (self.record, self.subject, self.caller, self.action) = (record, subject, caller, action)
        (self.replaced, isEnding) = (replaced, false)
    }

    /// Of an address that is gone or contested.
    package init(ending address: Tag, subject: SubjectID, caller: CallerName, action: Code) {
        self.init(.blank, subject: subject, caller: caller, action: action)
        (record.tag, isEnding) = (address, true)
    }

    package static let ending: Set<String> = ["action", "address", "caller", "subject"]
    package static let fields = Fields<Self> { fields in
        fields.entry("action", \.action, "What happened to the address.")
        fields.entry("caller", \.caller, "Who said so.", bound: .name)
        fields.entry("subject", \.subject, "Whose address it is.")
        fields.entry("replaced", \.replaced, "The address that had its name before.")
        fields.all(of: \.record)
    }
}
