package import CanonicalJSON
package import GateVocabulary

/// One device of a person, as the app's backend last registered it: a destination of pushes.
package struct DeviceRecord: PersonRecord, StoredValue, GivenRecord {
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
        (self.subject, self.tag, self.id, self.platform) = (subject, tag, id, platform)
        (self.provider, self.app, self.token, self.region) = (provider, app, token, region)
        (self.timeZone, self.osPermission, self.criticalAlerts) = (timeZone, osPermission, criticalAlerts)
        (self.isActive, self.seenAt, self.subscriptions) = (isActive, seenAt, subscriptions)
    }
}

// MARK: Fields

extension DeviceRecord {
    package static let blank = Self(
        subject: .blank, tag: .blank, id: DestinationID(""), platform: .ios, app: "", token: "", region: nil,
        timeZone: nil, osPermission: .notDetermined, criticalAlerts: false, isActive: true, seenAt: .unstated)

    package static let fields = Fields<Self> { fields in
        fields.name("device", \.id, tag: \.tag, "What the app's backend calls it.")
        fields.evidence(
            "platform", \.platform,
            "What it is; without a `provider` also which push service it listens to. What is sealed to it differs by it.",
            given: .telling([
                (
                    ["ios"],
                    "An iPhone or iPad, which APNs pushes to. Replaces what was registered under its id."
                ),
                (
                    ["android"],
                    "An Android device, which FCM pushes to. Replaces what was registered under its id."
                ),
            ]))
        fields.evidence(
            "provider", \.provider,
            "Who delivers pushes in place of the platform's own service. Without it APNs or FCM does.",
            given: .overriding(
                ["expo"],
                object:
                    "A device of an app that gets its pushes from Expo's push service. Replaces what was registered under its id."
            ))
        fields.private(
            "app", \.app, "The app's bundle id or package name; the push topic.", given: .text(.app))
        fields.private(
            "token", \.token, "The push token. Stored encrypted, and used only at hand-over.",
            given: .perVariant([
                (
                    ["ios"], .text(.apnsToken),
                    "The APNs device token. Stored encrypted, in lower case, and used only at hand-over."
                ),
                (
                    ["android"], .text(.fcmToken),
                    "The FCM registration token. Stored encrypted, and used only at hand-over."
                ),
                (
                    ["expo"], .text(.expoToken),
                    "What `getExpoPushTokenAsync` gives the app. Stored encrypted, and used only at hand-over."
                ),
            ]))
        fields.evidence(
            "region", \.region, "Where the device is; a traveller is protected by both laws.",
            given: .observation(
                of: "region", "Where the device is; a traveller is protected by both laws.",
                from: [.device, .ip, .sim],
                "How the region became known."))
        fields.evidence(
            "time_zone", \.timeZone, "For quiet hours.", bound: .zone, given: .text(.timeZone))
        fields.evidence(
            "os_permission", \.osPermission,
            "What the operating system lets the app do, as the app sees it now.",
            given: .plain)
        fields.evidence(
            "critical_alerts", \.criticalAlerts,
            "Whether the app has the critical-alerts entitlement and the user granted it.", given: .defaulted)
        fields.implied("active", \.isActive, "Whether it is pushed to.")
        fields.implied("seen_at", \.seenAt, "When it was last registered.")
        fields.implied("subscriptions", \.subscriptions, "What the provider has it subscribed to.")
    }

    // MARK: In a body

    package static let givenShape = given(
        as: "Device", rules: [.needs("region_source", "region"), .needs("region_at", "region")])

    package static let givenExample: JSONValue = [
        "platform": "ios", "app": "no.getdrop.app",
        "token": "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad",
        "region": "DE", "region_at": "2026-11-20T09:30:00Z", "time_zone": "Europe/Berlin",
        "os_permission": "granted", "critical_alerts": true,
    ]

    /// One token has one spelling, so that it leads to one device.
    package mutating func settle() { token = tokenIdentity }
}

/// A device and its keys, as their owner is shown them.
package struct HeldDevice: ShownRecord {
    package var device: DeviceRecord
    package var keys: [DeviceKeyRecord]

    package init(_ device: DeviceRecord, keys: [DeviceKeyRecord]) {
        (self.device, self.keys) = (device, keys)
    }

    package static let fields = Fields<Self> { fields in
        fields.all(of: \.device)
        fields.joined("keys", \.keys, "Its keys.")
    }

    package static let shownName = "HeldDevice"
    package static let shownMeans = "A device as it is registered."
}

/// A device was registered, changed or removed, or its push token is not its own any more.
package struct DeviceEntry: RecordEntry {
    package static let kind = EntryKind.device
    package static let blank = Self(.blank, subject: .blank, caller: CallerName(""), action: Code(""))

    package var subject: SubjectID
    package var caller: CallerName
    package var action: Code
    package var isTokenChanged: Bool?
    /// Of a device that is gone only the tag.
    package var record: DeviceRecord
    package var isEnding: Bool

    package init(
        _ record: DeviceRecord, subject: SubjectID, caller: CallerName, action: Code,
        isTokenChanged: Bool? = nil
    ) {
        (self.record, self.subject, self.caller, self.action) = (record, subject, caller, action)
        (self.isTokenChanged, isEnding) = (isTokenChanged, false)
    }

    /// Of a device that is gone.
    package init(ending device: Tag, subject: SubjectID, caller: CallerName, action: Code) {
        self.init(.blank, subject: subject, caller: caller, action: action)
        (record.tag, isEnding) = (device, true)
    }

    package static let ending: Set<String> = ["action", "caller", "device", "subject"]
    package static let fields = Fields<Self> { fields in
        fields.entry("action", \.action, "What happened to the device.")
        fields.entry("caller", \.caller, "Who said so.", bound: .name)
        fields.entry("subject", \.subject, "Whose device it is.")
        fields.entry("token_changed", \.isTokenChanged, "Whether the push token is another one than before.")
        fields.all(of: \.record)
    }
}

/// What the provider of notifications has a device subscribed to, as the caller that asked it reported.
package struct ProviderSubscriptions: StoredValue, ShownRecord, GivenRecord {
    /// Whether the device is subscribed, by category; a category that is not in it was not reported.
    package var states: [Category: Bool]
    package var observedAt: Instant

    package init(states: [Category: Bool], observedAt: Instant) {
        (self.states, self.observedAt) = (states, observedAt)
    }
}

extension ProviderSubscriptions {
    package static let blank = Self(states: [:], observedAt: .unstated)

    package static let fields = Fields<Self> { fields in
        fields.evidence(
            "categories", \.states, "Whether it is subscribed, by category; what is left out is not known.",
            recordedAs: "states",
            shape: .map(keys: .identifier, values: .boolean, countMax: Category.allCases.count),
            given: .shape(givenCategories))
        fields.evidence(
            "observed_at", \.observedAt,
            "When the provider was asked; now when a caller leaves it out. Never before what is on record.",
            given: .leftOut)
    }

    /// Security is none of them: no provider's state keeps a security notice back.
    private static let givenCategories = Shape.object(
        ObjectShape(
            "Whether the device is subscribed, by category; what is left out is not known.",
            [Category.transactional, .social, .marketing].map {
                .optional($0.rawValue, .boolean, "Whether the device is subscribed to it.")
            }))

    package static let shownName = "HeldSubscriptions"
    package static let shownMeans = "What the provider of notifications has a device subscribed to."

    package static let givenShape = given(
        as: "Subscriptions",
        "What the provider has a device subscribed to. Replaces what was reported before.")
    package static let givenExample: JSONValue = [
        "categories": ["marketing": true, "social": false], "observed_at": "2026-11-20T09:30:00Z",
    ]
}

/// What the provider of notifications has a device subscribed to, as it was reported.
package struct SubscriptionEntry: RecordEntry {
    package static let kind = EntryKind.subscription
    package static let blank = Self(.blank, of: .blank, subject: .blank, caller: CallerName(""))

    package var subject: SubjectID
    package var caller: CallerName
    package var device: Tag
    package var record: ProviderSubscriptions

    package init(_ record: ProviderSubscriptions, of device: Tag, subject: SubjectID, caller: CallerName) {
        (self.record, self.device, self.subject, self.caller) = (record, device, subject, caller)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who said so.", bound: .name)
        fields.entry("device", \.device, "Which device.")
        fields.entry("subject", \.subject, "Whose device it is.")
        fields.all(of: \.record)
    }
}
