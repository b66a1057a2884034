package import CanonicalJSON
package import GateVocabulary

/// `PUT /v1/recipients/{user}`: what is known of a person, wholly. What is left out is unknown again.
package struct RecipientBody: WireBody, Hashable {
    package var region: RegionCode?
    package var regionSource: RegionSource
    /// When the region was observed; `nil` means on arrival.
    package var regionObservedAt: Instant?
    package var locale: String?
    /// An IANA name by its syntax; tzdata may not know it.
    package var timeZone: String?
    package var privacy: PrivacyLevel
    package var age: AgeFact?
    package var pushEnabled: Bool
    package var quietHours: QuietHoursBody?

    package static let shape = Shape.named(
        "Recipient",
        .object(
            ObjectShape(
                "What is known of a person. Replaces what was registered; a member left out is unknown again.",
                [
                    .optional(
                        "region", .text(.region),
                        "Where the person lives. Unknown counts as the strictest law; a subdivision of which the policy says nothing is its country."
                    ),
                    .optional(
                        "region_source", .choice(of: RegionSource.self), default: "user_declared",
                        "How the region became known; policy says how long each stays fresh."),
                    .optional("region_at", .instant, "When the region was observed; now when absent."),
                    .optional("locale", .text(.locale), "The language of texts."),
                    .optional("time_zone", .text(.timeZone), "For quiet hours where a device gives none."),
                    .optional(
                        "privacy", .choice(of: PrivacyLevel.self), default: "generic",
                        "How much a lock screen may show."),
                    .optional(
                        "age", .choice(of: AgeFact.self),
                        "A minor gets no marketing; unknown gets none either."),
                    .optional("push_enabled", .boolean, default: true, "The master switch for push."),
                    .optional("quiet_hours", QuietHoursBody.shape, "In the local time of each destination."),
                ],
                rules: [.needs("region_source", "region"), .needs("region_at", "region")])))

    package static let example: JSONValue = [
        "region": "DE", "region_source": "kyc", "locale": "nb", "time_zone": "Europe/Berlin",
        "privacy": "generic", "age": "adult", "push_enabled": true,
        "quiet_hours": ["start": "21:00", "end": "08:00"],
    ]

    package init(checked members: CheckedMembers) {
        region = members.region("region")
        regionSource = members.name("region_source") ?? .userDeclared
        regionObservedAt = members.instant("region_at")
        locale = members.text("locale")
        timeZone = members.text("time_zone")
        privacy = members.name("privacy") ?? .generic
        age = members.name("age")
        pushEnabled = members.flag("push_enabled") ?? true
        quietHours = members.members("quiet_hours").map(QuietHoursBody.init(checked:))
    }
}

/// A window of local wall-clock time. Equal ends mean off; a start after the end crosses midnight.
package struct QuietHoursBody: Hashable, Sendable {
    /// Minutes after local midnight, 0 to 1439.
    package var startMinute: Int
    package var endMinute: Int

    package static let shape = Shape.named(
        "QuietHours",
        .object(
            ObjectShape(
                "A window of local time. Start equal to end is off; start after end crosses midnight.",
                [
                    .required("start", .text(.minuteOfDay), "When it begins."),
                    .required("end", .text(.minuteOfDay), "When it ends."),
                ])))

    package init(startMinute: Int, endMinute: Int) {
        self.startMinute = startMinute
        self.endMinute = endMinute
    }

    package var json: JSONObject {
        ["end": .string(Self.text(minute: endMinute)), "start": .string(Self.text(minute: startMinute))]
    }

    init(checked members: CheckedMembers) {
        startMinute = Self.minute(members.requiredText("start"))
        endMinute = Self.minute(members.requiredText("end"))
    }

    /// - Parameter text: `HH:MM`, as ``TextRule/minuteOfDay`` accepts it.
    private static func minute(_ text: String) -> Int {
        let digits = text.utf8.filter(\.isDigit).map { Int($0) - 48 }
        return (digits[0] * 10 + digits[1]) * 60 + digits[2] * 10 + digits[3]
    }

    /// `HH:MM`.
    private static func text(minute: Int) -> String {
        let (hours, minutes) = (minute / 60, minute % 60)
        return "\(hours < 10 ? "0" : "")\(hours):\(minutes < 10 ? "0" : "")\(minutes)"
    }
}

/// `PUT …/devices/{device}`: one device that can be pushed to, as it is now.
package struct DeviceBody: WireBody, Hashable {
    package var platform: Platform
    package var app: String
    package var token: String
    package var osPermission: OSPermission
    package var criticalAlerts: Bool
    package var region: RegionCode?
    package var regionSource: RegionSource
    package var regionObservedAt: Instant?
    package var timeZone: String?

    package static let shape = Shape.named(
        "Device",
        .object(
            ObjectShape(
                "One device that can be pushed to. Replaces what was registered under its id.",
                [
                    .required("platform", .choice(of: Platform.self), "Which push service it listens to."),
                    .required("app", .text(.app), "The app's bundle id or package name; the push topic."),
                    .required(
                        "token", .text(.token),
                        "The push service's token. Stored encrypted, and used only at hand-over."),
                    .required(
                        "os_permission", .choice(of: OSPermission.self),
                        "What the operating system lets the app do, as the app sees it now."),
                    .optional(
                        "critical_alerts", .boolean, default: false,
                        "Whether the app has the critical-alerts entitlement and the user granted it."),
                    .optional(
                        "region", .text(.region),
                        "Where the device is; a traveller is protected by both laws."),
                    .optional(
                        "region_source", .choice(["device", "ip", "sim"]), default: "device",
                        "How the region became known."),
                    .optional("region_at", .instant, "When the region was observed; now when absent."),
                    .optional("time_zone", .text(.timeZone), "For quiet hours."),
                ],
                rules: [.needs("region_source", "region"), .needs("region_at", "region")])))

    package static let example: JSONValue = [
        "platform": "ios", "app": "no.getdrop.app",
        "token": "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad",
        "region": "DE", "region_at": "2026-11-20T09:30:00Z", "time_zone": "Europe/Berlin",
        "os_permission": "granted", "critical_alerts": true,
    ]

    package init(checked members: CheckedMembers) {
        platform = members.required(members.name("platform"), "platform")
        app = members.requiredText("app")
        token = members.requiredText("token")
        osPermission = members.required(members.name("os_permission"), "os_permission")
        criticalAlerts = members.flag("critical_alerts") ?? false
        region = members.region("region")
        regionSource = members.name("region_source") ?? .device
        regionObservedAt = members.instant("region_at")
        timeZone = members.text("time_zone")
    }
}

/// `PUT …/devices/{device}/subscriptions`: what the provider of notifications has the device subscribed to.
package struct SubscriptionsBody: WireBody, Hashable {
    /// By category; one that is not in it is not known.
    package var states: [Category: Bool]
    package var observedAt: Instant?

    /// Security is none of them: no provider's state keeps a security notice back.
    private static let categories: [Category] = [.transactional, .social, .marketing]

    package static let shape = Shape.named(
        "Subscriptions",
        .object(
            ObjectShape(
                "What the provider has a device subscribed to. Replaces what was reported before.",
                [
                    .required(
                        "categories",
                        .object(
                            ObjectShape(
                                "Whether the device is subscribed, by category; what is left out is not known.",
                                categories.map {
                                    .optional(
                                        $0.rawValue, .boolean, "Whether the device is subscribed to it.")
                                })), "What it is subscribed to."),
                    .optional(
                        "observed_at", .instant,
                        "When the provider was asked; now when absent. Never before what is on record."),
                ])))

    package static let example: JSONValue = [
        "categories": ["marketing": true, "social": false], "observed_at": "2026-11-20T09:30:00Z",
    ]

    package init(checked members: CheckedMembers) {
        states = [:]
        for category in Self.categories {
            states[category] = members.members("categories")?.flag(category.rawValue)
        }
        observedAt = members.instant("observed_at")
    }
}

/// `PUT …/addresses/{address}`: one phone number or e-mail address.
package struct AddressBody: WireBody, Hashable {
    /// `sms` or `email`.
    package var channel: Channel
    /// An E.164 number or an e-mail address, by ``channel``.
    package var value: String
    /// When the recipient proved it theirs; nothing is sent to an address nobody has proved.
    package var verifiedAt: Instant?

    private static let verifiedAt = ObjectShape.Member.optional(
        "verified_at", .nullable(.instant),
        "When the recipient proved it theirs. Without it nothing is sent there.")

    package static let shape = Shape.named(
        "Address",
        .variants(
            VariantShape(
                "kind", "What it is, and so the channel it serves.",
                [
                    (
                        ["sms"],
                        ObjectShape(
                            "A phone number.",
                            [
                                .required("value", .text(.phoneNumber), "The number in E.164 form."),
                                verifiedAt,
                            ])
                    ),
                    (
                        ["email"],
                        ObjectShape(
                            "An e-mail address.",
                            [.required("value", .text(.email), "The address."), verifiedAt])
                    ),
                ])))

    package static let example: JSONValue = [
        "kind": "sms", "value": "+4790000000", "verified_at": "2026-11-01T12:00:00Z",
    ]

    package init(checked members: CheckedMembers) {
        channel = members.required(members.name("kind"), "kind")
        value = members.requiredText("value")
        verifiedAt = members.instant("verified_at")
    }
}

/// `POST …/devices/{device}/keys`: a public key whose private half never leaves the device.
package struct DeviceKeyBody: WireBody, Hashable {
    package enum Suite: String, CaseIterable, Sendable, Hashable {
        case p256 = "P256_SHA256_AES256GCM"
        case x25519 = "X25519_SHA256_CHACHA20POLY1305"
    }

    package var suite: Suite
    /// 65 bytes for P-256 (an uncompressed point, not yet proved to lie on the curve), 32 for X25519.
    package var publicKey: [UInt8]

    package static let shape = Shape.named(
        "DeviceKey",
        .variants(
            VariantShape(
                "suite", "The HPKE suite (RFC 9180).",
                [
                    (
                        [Suite.p256.rawValue],
                        ObjectShape(
                            "A P-256 key, which Secure Enclave and Android Keystore can hold.",
                            [
                                .required(
                                    "public_key", .text(.base64urlP256Point),
                                    "The uncompressed point, 65 bytes in base64url without padding.")
                            ])
                    ),
                    (
                        [Suite.x25519.rawValue],
                        ObjectShape(
                            "An X25519 key.",
                            [
                                .required(
                                    "public_key", .text(.base64urlX25519Key),
                                    "The public key, 32 bytes in base64url without padding.")
                            ])
                    ),
                ])))

    package static let example: JSONValue = [
        "suite": "P256_SHA256_AES256GCM",
        "public_key":
            "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
    ]

    package init(checked members: CheckedMembers) {
        suite = members.required(members.name("suite"), "suite")
        publicKey = members.required(members.base64url("public_key"), "public_key")
    }
}

/// `POST …/keys/{key_id}/confirm`: the device shows that it opened the challenge, without showing the nonce.
package struct KeyConfirmBody: WireBody, Hashable {
    /// HMAC-SHA256(nonce, "sendgate/possession/v1\0" ‖ info), 32 bytes.
    package var proof: [UInt8]
    /// The same from the device's earlier active key, when it has one.
    package var oldKeyProof: [UInt8]?

    package static let shape = Shape.named(
        "KeyConfirmation",
        .object(
            ObjectShape(
                "Proof that the device holds the private key: HMAC-SHA256 under the challenge's nonce, never the nonce itself.",
                [
                    .required("proof", .text(.base64url32), "From the new key's challenge."),
                    .optional(
                        "old_key_proof", .text(.base64url32),
                        "From the old key's challenge, when the device already has an active key."),
                ])))

    package static let example: JSONValue = ["proof": "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA"]

    package init(checked members: CheckedMembers) {
        proof = members.required(members.base64url("proof"), "proof")
        oldKeyProof = members.base64url("old_key_proof")
    }
}
