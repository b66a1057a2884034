import CanonicalJSON
package import GateVocabulary

// What is known of a person changed.

/// A person was registered or changed.
package struct RecipientEntry: EntryBody {
    package static let kind = EntryKind.recipient
    package static let blank = Self(
        subject: .blank, caller: CallerName(""), action: Code(""), privacy: .full, pushEnabled: false)

    package var subject: SubjectID
    package var caller: CallerName
    package var action: Code
    package var privacy: PrivacyLevel
    package var pushEnabled: Bool
    package var region: RegionObservation?
    package var age: AgeFact?
    package var timeZone: String?
    package var quietHours: QuietHours?

    package init(
        subject: SubjectID, caller: CallerName, action: Code, privacy: PrivacyLevel, pushEnabled: Bool,
        region: RegionObservation? = nil, age: AgeFact? = nil, timeZone: String? = nil,
        quietHours: QuietHours? = nil
    ) {
        (self.subject, self.caller, self.action, self.privacy) = (subject, caller, action, privacy)
        (self.pushEnabled, self.region, self.age, self.timeZone) = (pushEnabled, region, age, timeZone)
        self.quietHours = quietHours
    }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("action", \.action)
        try fields.optional("age", \.age, as: .name)
        try fields.required("caller", \.caller, as: .name)
        try fields.required("privacy", \.privacy, as: .name)
        try fields.required("push_enabled", \.pushEnabled)
        try fields.optional("quiet_hours", \.quietHours)
        try fields.optional("region", \.region, as: RegionObservation.shape.open)
        try fields.required("subject", \.subject)
        try fields.optional("time_zone", \.timeZone, as: .zone)
    }
}

extension RecipientEntry {
    /// Equal times mean none; a start after the end means across midnight.
    package struct QuietHours: FieldObject, Hashable {
        package static let means = ""
        package static let blank = Self(start: 0, end: 0)

        /// Minutes after local midnight.
        package var start: Int
        package var end: Int

        package init(start: Int, end: Int) { (self.start, self.end) = (start, end) }

        package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
            try fields.required("end", \.end, as: .integer(0...1439))
            try fields.required("start", \.start, as: .integer(0...1439))
        }
    }
}

/// A device was registered, changed or removed, or its push token is not its own any more.
package struct DeviceEntry: EntryBody {
    package static let kind = EntryKind.device
    package static let blank = Self(subject: .blank, caller: CallerName(""), device: .blank, action: Code(""))

    package var subject: SubjectID
    package var caller: CallerName
    package var device: Tag
    package var action: Code
    package var platform: Platform?
    /// `nil` for the platform's own service, and of a device that is gone.
    package var provider: PushProvider?
    package var osPermission: OSPermission?
    package var criticalAlerts: Bool?
    package var region: RegionObservation?
    package var timeZone: String?
    package var isTokenChanged: Bool?

    package init(
        subject: SubjectID, caller: CallerName, device: Tag, action: Code, platform: Platform? = nil,
        provider: PushProvider? = nil, osPermission: OSPermission? = nil, criticalAlerts: Bool? = nil,
        region: RegionObservation? = nil,
        timeZone: String? = nil, isTokenChanged: Bool? = nil
    ) {
        (self.subject, self.caller, self.device, self.action) = (subject, caller, device, action)
        (self.platform, self.provider, self.osPermission) = (platform, provider, osPermission)
        self.criticalAlerts = criticalAlerts
        (self.region, self.timeZone, self.isTokenChanged) = (region, timeZone, isTokenChanged)
    }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("action", \.action)
        try fields.required("caller", \.caller, as: .name)
        try fields.optional("critical_alerts", \.criticalAlerts)
        try fields.required("device", \.device)
        try fields.optional("os_permission", \.osPermission, as: .name)
        try fields.optional("platform", \.platform, as: .name)
        try fields.optional("provider", \.provider, as: .name)
        try fields.optional("region", \.region, as: RegionObservation.shape.open)
        try fields.required("subject", \.subject)
        try fields.optional("time_zone", \.timeZone, as: .zone)
        try fields.optional("token_changed", \.isTokenChanged)
    }
}

/// A number or mailbox was registered, changed or removed.
package struct AddressEntry: EntryBody {
    package static let kind = EntryKind.address
    package static let blank = Self(
        subject: .blank, caller: CallerName(""), address: .blank, action: Code(""))

    package var subject: SubjectID
    package var caller: CallerName
    package var address: Tag
    package var action: Code
    package var channel: Channel?
    package var isVerified: Bool?
    /// `true` for an address that another person verified later, or at the same moment; absent otherwise.
    package var isContested: Bool?
    package var numberPrefix: String?
    package var replaced: Tag?

    package init(
        subject: SubjectID, caller: CallerName, address: Tag, action: Code, channel: Channel? = nil,
        isVerified: Bool? = nil, isContested: Bool? = nil, numberPrefix: String? = nil, replaced: Tag? = nil
    ) {
        (self.subject, self.caller, self.address, self.action) = (subject, caller, address, action)
        (self.channel, self.isVerified, self.numberPrefix) = (channel, isVerified, numberPrefix)
        (self.isContested, self.replaced) = (isContested, replaced)
    }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("action", \.action)
        try fields.required("address", \.address)
        try fields.required("caller", \.caller, as: .name)
        try fields.optional("channel", \.channel, as: .name)
        try fields.optional("contested", \.isContested)
        try fields.optional("number_prefix", \.numberPrefix, as: .text(byteCountMax: 5))
        try fields.optional("replaced", \.replaced)
        try fields.required("subject", \.subject)
        try fields.optional("verified", \.isVerified)
    }
}

/// The prompt of the operating system was shown, or answered.
package struct PermissionPromptEntry: EntryBody {
    package static let kind = EntryKind.permissionPrompt
    package static let blank = Self(
        subject: .blank, caller: CallerName(""), device: .blank, action: Code(""),
        shownAt: Instant(milliseconds: 0))

    package var subject: SubjectID
    package var caller: CallerName
    package var device: Tag
    package var action: Code
    package var shownAt: Instant
    package var answer: Code?

    package init(
        subject: SubjectID, caller: CallerName, device: Tag, action: Code, shownAt: Instant,
        answer: Code? = nil
    ) {
        (self.subject, self.caller, self.device, self.action) = (subject, caller, device, action)
        (self.shownAt, self.answer) = (shownAt, answer)
    }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("action", \.action)
        try fields.optional("answer", \.answer)
        try fields.required("caller", \.caller, as: .name)
        try fields.required("device", \.device)
        try fields.required("shown_at", \.shownAt)
        try fields.required("subject", \.subject)
    }
}

/// A key of a device changed its state, a caller proposed to destroy it, or it was forgotten.
package struct DeviceKeyEntry: EntryBody {
    package static let kind = EntryKind.deviceKey
    package static let blank = Self(
        subject: .blank, caller: CallerName(""), device: .blank, key: .blank, state: "", suite: "")

    package var subject: SubjectID
    package var caller: CallerName
    package var device: Tag
    package var key: KeyID
    package var state: String
    package var suite: String
    package var event: Code?
    package var cause: Code?
    package var proof: Code?
    package var isForgotten: Bool?
    /// The first of the two callers who asked for the destruction.
    package var proposedBy: CallerName?
    /// Of a key that became compromised: by what the gateway refuses its public half, 64 lower-case hexadecimal digits.
    package var publicKeyMAC: String?

    package init(
        subject: SubjectID, caller: CallerName, device: Tag, key: KeyID, state: String, suite: String,
        event: Code? = nil, cause: Code? = nil, proof: Code? = nil, isForgotten: Bool? = nil,
        proposedBy: CallerName? = nil, publicKeyMAC: String? = nil
    ) {
        (self.subject, self.caller, self.device, self.key, self.state) = (subject, caller, device, key, state)
        (self.suite, self.event, self.cause, self.proof) = (suite, event, cause, proof)
        (self.isForgotten, self.proposedBy, self.publicKeyMAC) = (isForgotten, proposedBy, publicKeyMAC)
    }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("caller", \.caller, as: .name)
        try fields.optional("cause", \.cause)
        try fields.required("device", \.device)
        try fields.optional("event", \.event)
        try fields.optional("forgotten", \.isForgotten)
        try fields.required("key_id", \.key)
        try fields.optional("proof", \.proof)
        try fields.optional("proposed_by", \.proposedBy, as: .name)
        try fields.optional("public_key_mac", \.publicKeyMAC, as: .text(.sha256))
        try fields.required("state", \.state, as: .name)
        try fields.required("subject", \.subject)
        try fields.required("suite", \.suite, as: .text(byteCountMax: 64))
    }
}

/// A consent was given, refused or withdrawn, its notice was shown, or a withdrawal was taken back.
package struct ConsentEntry: EntryBody {
    package static let kind = EntryKind.consent
    package static let blank = Self(
        subject: .blank, caller: CallerName(""), consent: .blank, purpose: Purpose(""), channel: .push,
        state: Code(""), eventTime: Instant(milliseconds: 0), method: .inAppToggle, previous: "")

    package var subject: SubjectID
    package var caller: CallerName
    package var consent: Tag
    package var purpose: Purpose
    package var channel: Channel
    package var address: Tag?
    package var state: Code
    package var eventTime: Instant
    package var method: ConsentMethod
    package var jurisdiction: String?
    package var notice: Notice?
    package var expiresAt: Instant?
    /// The time that a clock ahead of the gateway's stated for a no; its `event_time` is then the entry's time.
    package var statedTime: Instant?
    package var withdraws: Tag?
    package var previous: String

    package init(
        subject: SubjectID, caller: CallerName, consent: Tag, purpose: Purpose, channel: Channel,
        address: Tag? = nil, state: Code, eventTime: Instant, method: ConsentMethod,
        jurisdiction: String? = nil, notice: Notice? = nil, expiresAt: Instant? = nil,
        statedTime: Instant? = nil, withdraws: Tag? = nil, previous: String
    ) {
        (self.subject, self.caller, self.consent, self.purpose) = (subject, caller, consent, purpose)
        (self.channel, self.address, self.state, self.eventTime) = (channel, address, state, eventTime)
        (self.method, self.jurisdiction, self.notice) = (method, jurisdiction, notice)
        (self.expiresAt, self.statedTime, self.withdraws) = (expiresAt, statedTime, withdraws)
        self.previous = previous
    }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.optional("address", \.address)
        try fields.required("caller", \.caller, as: .name)
        try fields.required("channel", \.channel, as: .name)
        try fields.required("consent", \.consent)
        try fields.required("event_time", \.eventTime)
        try fields.optional("expires_at", \.expiresAt)
        try fields.optional("jurisdiction", \.jurisdiction, as: .text(byteCountMax: 6))
        try fields.required("method", \.method, as: .name)
        try fields.optional("notice", \.notice)
        try fields.required("previous", \.previous, as: .text(byteCountMax: 64))
        try fields.required("purpose", \.purpose, as: .name)
        try fields.required("state", \.state)
        try fields.optional("stated_time", \.statedTime)
        try fields.required("subject", \.subject)
        try fields.optional("withdraws", \.withdraws)
    }
}

extension ConsentEntry {
    /// The notice that a person was shown.
    package struct Notice: FieldObject, Hashable {
        package static let means = ""
        package static let blank = Self(id: "", version: "", sha256: "", language: "")

        package var id: String
        package var version: String
        /// SHA-256 of the text shown, 64 lower-case hexadecimal digits.
        package var sha256: String
        package var language: String

        package init(id: String, version: String, sha256: String, language: String) {
            (self.id, self.version, self.sha256, self.language) = (id, version, sha256, language)
        }

        package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
            try fields.required("id", \.id, as: .name)
            try fields.required("language", \.language, as: .text(byteCountMax: 35))
            try fields.required("sha256", \.sha256, as: .text(.sha256))
            try fields.required("version", \.version, as: .name)
        }
    }
}

/// A choice was made.
package struct PreferenceEntry: EntryBody {
    package static let kind = EntryKind.preference
    package static let blank = Self(
        subject: .blank, caller: CallerName(""), scope: "", channel: .push, state: .default,
        source: .inAppSettings)

    package var subject: SubjectID
    package var caller: CallerName
    package var scope: String
    package var channel: Channel
    package var destination: Tag?
    package var state: PreferenceState
    package var source: PreferenceSource
    /// `nil` where it is the time of the entry.
    package var eventTime: Instant?

    package init(
        subject: SubjectID, caller: CallerName, scope: String, channel: Channel, destination: Tag? = nil,
        state: PreferenceState, source: PreferenceSource, eventTime: Instant? = nil
    ) {
        (self.subject, self.caller, self.scope, self.channel) = (subject, caller, scope, channel)
        (self.destination, self.state, self.source, self.eventTime) = (destination, state, source, eventTime)
    }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("caller", \.caller, as: .name)
        try fields.required("channel", \.channel, as: .name)
        try fields.optional("destination", \.destination)
        try fields.optional("event_time", \.eventTime)
        try fields.required("scope", \.scope, as: .name)
        try fields.required("source", \.source, as: .name)
        try fields.required("state", \.state, as: .name)
        try fields.required("subject", \.subject)
    }
}

/// What the provider of notifications has a device subscribed to, as it was reported.
package struct SubscriptionEntry: EntryBody {
    package static let kind = EntryKind.subscription
    package static let blank = Self(
        subject: .blank, caller: CallerName(""), device: .blank, states: [:],
        observedAt: Instant(milliseconds: 0))

    package var subject: SubjectID
    package var caller: CallerName
    package var device: Tag
    package var states: [Category: Bool]
    package var observedAt: Instant

    package init(
        subject: SubjectID, caller: CallerName, device: Tag, states: [Category: Bool], observedAt: Instant
    ) {
        (self.subject, self.caller, self.device, self.states) = (subject, caller, device, states)
        self.observedAt = observedAt
    }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("caller", \.caller, as: .name)
        try fields.required("device", \.device)
        try fields.required("observed_at", \.observedAt)
        try fields.required("states", \.states)
        try fields.required("subject", \.subject)
    }
}

/// The drift audit found that two sides disagree, and what it did about it.
package struct DriftEntry: EntryBody {
    package static let kind = EntryKind.drift
    package static let blank = Self(
        subject: .blank, caller: CallerName(""), finding: .zoneMissing, action: .marked, old: "")

    package var subject: SubjectID
    package var caller: CallerName
    package var finding: DriftKind
    package var action: DriftAction
    package var device: Tag?
    package var category: Code?
    package var old: String
    package var new: String?

    package init(
        subject: SubjectID, caller: CallerName, finding: DriftKind, action: DriftAction, device: Tag? = nil,
        category: Code? = nil, old: String, new: String? = nil
    ) {
        (self.subject, self.caller, self.finding, self.action) = (subject, caller, finding, action)
        (self.device, self.category, self.old, self.new) = (device, category, old, new)
    }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("action", \.action, as: .name)
        try fields.required("caller", \.caller, as: .name)
        try fields.optional("category", \.category)
        try fields.optional("device", \.device)
        try fields.required("finding", \.finding, as: .name)
        try fields.optional("new", \.new, as: .name)
        try fields.required("old", \.old, as: .name)
        try fields.required("subject", \.subject)
    }
}

/// A person was forgotten.
package struct ErasureEntry: EntryBody {
    package static let kind = EntryKind.erasure
    package static let blank = Self(subject: .blank, caller: CallerName(""))

    package var subject: SubjectID
    package var caller: CallerName

    package init(subject: SubjectID, caller: CallerName) { (self.subject, self.caller) = (subject, caller) }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("caller", \.caller, as: .name)
        try fields.required("subject", \.subject)
    }
}

extension Shape {
    /// An IANA zone name that tzdata knows.
    fileprivate static let zone = Shape.text(byteCountMax: 64)
}
