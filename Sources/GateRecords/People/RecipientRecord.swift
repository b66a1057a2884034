package import CanonicalJSON
package import GateVocabulary

/// What is registered of a person.
package struct RecipientRecord: PersonRecord, StoredValue, GivenRecord {
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
        (self.subject, self.region, self.age, self.locale) = (subject, region, age, locale)
        (self.timeZone, self.privacy, self.pushEnabled) = (timeZone, privacy, pushEnabled)
        (self.quietHours, self.registeredAt, self.updatedAt) = (quietHours, registeredAt, updatedAt)
    }
}

/// Local wall-clock times; equal means off, start after end means across midnight.
package struct QuietHours: GivenRecord, ShownRecord {
    package var start: MinuteOfDay
    package var end: MinuteOfDay

    /// Minutes after local midnight, 0 to 1439.
    package var startMinute: Int { start.minute }
    package var endMinute: Int { end.minute }

    package init(startMinute: Int, endMinute: Int) {
        (start, end) = (MinuteOfDay(startMinute), MinuteOfDay(endMinute))
    }
}

// MARK: Fields

extension RecipientRecord {
    package static let blank = Self(
        subject: .blank, region: nil, age: nil, locale: nil, timeZone: nil, privacy: .generic,
        pushEnabled: true,
        quietHours: nil, registeredAt: .unstated, updatedAt: .unstated)

    package static let fields = Fields<Self> { fields in
        fields.evidence(
            "region", \.region, "Where the person lives.",
            given: .observation(
                of: "region",
                "Where the person lives. Unknown counts as the strictest law; a subdivision of which the policy says nothing is its country.",
                from: [.userDeclared, .kyc, .device, .sim, .ip],
                "How the region became known; policy says how long each stays fresh."))
        fields.evidence(
            "age", \.age, "A minor gets no marketing; unknown gets none either.", given: .plain)
        fields.private("locale", \.locale, "The language of texts.", given: .text(.locale))
        fields.evidence(
            "time_zone", \.timeZone, "For quiet hours where a device gives none.", bound: .zone,
            given: .text(.timeZone))
        fields.evidence("privacy", \.privacy, "How much a lock screen may show.", given: .defaulted)
        fields.evidence("push_enabled", \.pushEnabled, "The master switch for push.", given: .defaulted)
        fields.evidence(
            "quiet_hours", \.quietHours, "In the local time of each destination.", given: .plain)
        fields.implied("registered_at", \.registeredAt, "When the person was registered first.")
        fields.implied("updated_at", \.updatedAt, "When the person was registered last.")
    }

    package static let givenShape = given(
        as: "Recipient",
        "What is known of a person. Replaces what was registered; a member left out is unknown again.",
        rules: [.needs("region_source", "region"), .needs("region_at", "region")])

    package static let givenExample: JSONValue = [
        "region": "DE", "region_source": "kyc", "locale": "nb", "time_zone": "Europe/Berlin",
        "privacy": "generic", "age": "adult", "push_enabled": true,
        "quiet_hours": QuietHours.givenExample,
    ]
}

extension QuietHours: EvidentValue {
    package static let blank = Self(startMinute: 0, endMinute: 0)

    package static let fields = Fields<Self> { fields in
        fields.evidence("start", \.start, "When it begins.", given: .plain)
        fields.evidence("end", \.end, "When it ends.", given: .plain)
    }

    package static let shownName = "QuietHours"
    package static let shownMeans =
        "A window of local time. Start equal to end is off; start after end crosses midnight."
    package static let givenShape = shownShape
    package static let givenExample: JSONValue = ["start": "21:00", "end": "08:00"]

}

/// A time of day as a wall clock shows it: a number of minutes in entries, `HH:MM` on the socket.
package struct MinuteOfDay: Hashable, EvidentValue {
    /// After local midnight, 0 to 1439.
    package let minute: Int
    private static let range: ClosedRange<Int64> = 0...1439

    package init(_ minute: Int) { self.minute = minute }

    package func write(row: inout RowWriter) { row.put(Int64(minute)) }
    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        Self(Int(try row.integer(in: range)))
    }

    package static let recordedShape = Shape.integer(range)
    package func write(recorded json: inout CanonicalWriter) { json.integer(Int64(minute)) }
    package static func read(recorded json: JSONValue) throws(JSONShapeError) -> Self {
        Self(try Int.read(field: json))
    }

    package static let shownShape = Shape.text(.minuteOfDay)
    package func write(shown json: inout CanonicalWriter) {
        let digits = [minute / 600, minute / 60 % 10, minute % 60 / 10, minute % 10].map { "\($0)" }
        json.text("\(digits[0])\(digits[1]):\(digits[2])\(digits[3])")
    }
    /// - Parameter json: `HH:MM`, as the rule accepts it.
    package static func read(given json: JSONValue) -> Self? {
        guard let digits = json.stringValue?.utf8.filter(\.isDigit).map({ Int($0) - 48 }), digits.count == 4
        else {
            return nil
        }
        return Self((digits[0] * 10 + digits[1]) * 60 + digits[2] * 10 + digits[3])
    }
}

/// A person was registered or changed.
package struct RecipientEntry: RecordEntry {
    package static let kind = EntryKind.recipient
    package static let blank = Self(.blank, subject: .blank, caller: CallerName(""), action: Code(""))

    package var subject: SubjectID
    package var caller: CallerName
    package var action: Code
    package var record: RecipientRecord

    package init(_ record: RecipientRecord, subject: SubjectID, caller: CallerName, action: Code) {
        (self.record, self.subject, self.caller, self.action) = (record, subject, caller, action)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("action", \.action, "Whether the person is new.")
        fields.entry("caller", \.caller, "Who said so.", bound: .name)
        fields.entry("subject", \.subject, "Who it is.")
        fields.all(of: \.record)
    }
}
