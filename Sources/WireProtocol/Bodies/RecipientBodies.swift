package import CanonicalJSON
import GateRecords
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

    package static let shape = declared(
        "Recipient",
        "What is known of a person. Replaces what was registered; a member left out is unknown again.",
        rules: [.needs("region_source", "region"), .needs("region_at", "region")])

    package static let example: JSONValue = [
        "region": "DE", "region_source": "kyc", "locale": "nb", "time_zone": "Europe/Berlin",
        "privacy": "generic", "age": "adult", "push_enabled": true,
        "quiet_hours": QuietHoursBody.example,
    ]

    package init(from fields: BodyFields) {
        region = fields.optional(
            "region",
            "Where the person lives. Unknown counts as the strictest law; a subdivision of which the policy says nothing is its country."
        )
        regionSource = fields.optional(
            "region_source", default: .userDeclared,
            "How the region became known; policy says how long each stays fresh.")
        regionObservedAt = fields.optional("region_at", "When the region was observed; now when absent.")
        locale = fields.optional("locale", as: .text(.locale), "The language of texts.")
        timeZone = fields.optional(
            "time_zone", as: .text(.timeZone), "For quiet hours where a device gives none.")
        privacy = fields.optional("privacy", default: .generic, "How much a lock screen may show.")
        age = fields.optional("age", "A minor gets no marketing; unknown gets none either.")
        pushEnabled = fields.optional("push_enabled", default: true, "The master switch for push.")
        quietHours = fields.optional("quiet_hours", "In the local time of each destination.")
    }
}

/// A window of local wall-clock time. Equal ends mean off; a start after the end crosses midnight.
package struct QuietHoursBody: BodyObject, Hashable {
    /// Minutes after local midnight, 0 to 1439.
    package var startMinute: Int
    package var endMinute: Int

    package static let shape = declared(
        "QuietHours", "A window of local time. Start equal to end is off; start after end crosses midnight.")

    package static let example: JSONValue = ["start": "21:00", "end": "08:00"]

    package init(from fields: BodyFields) {
        startMinute = Self.minute(fields.required("start", as: .text(.minuteOfDay), "When it begins."))
        endMinute = Self.minute(fields.required("end", as: .text(.minuteOfDay), "When it ends."))
    }

    package init(startMinute: Int, endMinute: Int) {
        self.startMinute = startMinute
        self.endMinute = endMinute
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

/// Shown to a person as it was registered.
extension QuietHoursBody: AnswerValue {
    package static var answerShape: Shape { shape }

    package func write(answer json: inout CanonicalWriter) {
        json.object { json in
            json.member("end", Self.text(minute: endMinute))
            json.member("start", Self.text(minute: startMinute))
        }
    }
}

/// `PUT …/devices/{device}`: one device that can be pushed to, as it is now.
package struct DeviceBody: WireBody, Hashable {
    package var platform: Platform
    /// `nil` for the platform's own service.
    package var provider: PushProvider?
    package var app: String
    /// In the one spelling that it is kept, compared and handed over in.
    package var token: String
    package var osPermission: OSPermission
    package var criticalAlerts: Bool
    package var region: RegionCode?
    package var regionSource: RegionSource
    package var regionObservedAt: Instant?
    package var timeZone: String?

    package static let shape = declared(
        "Device", rules: [.needs("region_source", "region"), .needs("region_at", "region")])

    package static let example: JSONValue = [
        "platform": "ios", "app": "no.getdrop.app",
        "token": "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad",
        "region": "DE", "region_at": "2026-11-20T09:30:00Z", "time_zone": "Europe/Berlin",
        "os_permission": "granted", "critical_alerts": true,
    ]

    package init(from fields: BodyFields) {
        platform = fields.variant(
            "platform",
            "What it is; without a `provider` also which push service it listens to. What is sealed to it differs by it.",
            [
                (
                    [.ios],
                    "An iPhone or iPad, which APNs pushes to. Replaces what was registered under its id."
                ),
                (
                    [.android],
                    "An Android device, which FCM pushes to. Replaces what was registered under its id."
                ),
            ])
        provider = fields.override(
            "provider",
            "Who delivers pushes in place of the platform's own service. Without it APNs or FCM does.",
            [.expo],
            object:
                "A device of an app that gets its pushes from Expo's push service. Replaces what was registered under its id."
        )
        app = fields.required(
            "app", as: .text(.app), "The app's bundle id or package name; the push topic.")
        let token: String = fields.required(
            "token",
            oneOf: [
                (
                    fields.only(Platform.ios), .text(.apnsToken),
                    "The APNs device token. Stored encrypted, in lower case, and used only at hand-over."
                ),
                (
                    fields.only(Platform.android), .text(.fcmToken),
                    "The FCM registration token. Stored encrypted, and used only at hand-over."
                ),
                (
                    fields.only(PushProvider.expo), .text(.expoToken),
                    "What `getExpoPushTokenAsync` gives the app. Stored encrypted, and used only at hand-over."
                ),
            ])
        // One token has one spelling, so that it leads to one device.
        self.token = platform == .ios && provider == nil ? token.lowercased() : token
        osPermission = fields.required(
            "os_permission", "What the operating system lets the app do, as the app sees it now.")
        criticalAlerts = fields.optional(
            "critical_alerts", default: false,
            "Whether the app has the critical-alerts entitlement and the user granted it.")
        region = fields.optional(
            "region", "Where the device is; a traveller is protected by both laws.")
        regionSource = fields.optional(
            "region_source", as: .choice([RegionSource.device, .ip, .sim].map(\.rawValue)), default: .device,
            "How the region became known.")
        regionObservedAt = fields.optional("region_at", "When the region was observed; now when absent.")
        timeZone = fields.optional("time_zone", as: .text(.timeZone), "For quiet hours.")
    }
}

/// `PUT …/devices/{device}/subscriptions`: what the provider of notifications has the device subscribed to.
package struct SubscriptionsBody: WireBody, Hashable {
    /// By category; one that is not in it is not known.
    package var states: [Category: Bool]
    package var observedAt: Instant?

    /// Security is none of them: no provider's state keeps a security notice back.
    private static let categories: [Category] = [.transactional, .social, .marketing]

    private struct Categories: BodyObject {
        let states: [Category: Bool]

        static let shape = declared(
            nil, "Whether the device is subscribed, by category; what is left out is not known.")
        static let example: JSONValue = ["marketing": true, "social": false]

        init(from fields: BodyFields) {
            var states: [Category: Bool] = [:]
            for category in SubscriptionsBody.categories {
                states[category] = fields.optional(
                    category.rawValue, "Whether the device is subscribed to it.")
            }
            self.states = states
        }
    }

    package static let shape = declared(
        "Subscriptions", "What the provider has a device subscribed to. Replaces what was reported before.")

    package static let example: JSONValue = [
        "categories": Categories.example, "observed_at": "2026-11-20T09:30:00Z",
    ]

    package init(from fields: BodyFields) {
        let categories: Categories = fields.required("categories", "What it is subscribed to.")
        states = categories.states
        observedAt = fields.optional(
            "observed_at",
            "When the provider was asked; now when absent. Never before what is on record.")
    }
}

/// `PUT …/addresses/{address}`: one phone number or e-mail address.
package struct AddressBody: WireBody, Hashable {
    /// `sms` or `email`.
    package var channel: Channel
    /// A phone number or an e-mail address, by ``channel``, as it was written: registering it makes a
    /// ``GateVocabulary/RegisteredAddress`` of it, or says what is wrong with it.
    package var value: String
    /// When the recipient proved it theirs; nothing is sent to an address without a proof.
    package var verifiedAt: Instant?

    package static let shape = declared("Address")

    package static let example: JSONValue = [
        "kind": "sms", "value": "+4790000000", "verified_at": "2026-11-01T12:00:00Z",
    ]

    package init(from fields: BodyFields) {
        channel = fields.variant(
            "kind", "What it is, and so the channel it serves.",
            [([.sms], "A phone number."), ([.email], "An e-mail address.")])
        value = fields.required(
            "value",
            oneOf: [
                (
                    fields.only(Channel.sms), .text(.phoneNumber),
                    "The number with `+` and its country code. Spaces, hyphens and parentheses do not count. Texts go to the canonical form (ITU-T E.164), which every spelling of the number has in common."
                ),
                (
                    fields.only(Channel.email), .text(.email),
                    "The address, as it was verified and as mail is sent to it. Capitals, quotation marks around the local part, and U-labels in place of A-labels make no other mailbox; dots and `+` do."
                ),
            ])
        verifiedAt = fields.optional(
            "verified_at", as: .nullable(.instant),
            "When the recipient proved it theirs. Without it nothing is sent there.")
    }
}

/// `POST …/devices/{device}/keys`: a public key whose private half never leaves the device.
package struct DeviceKeyBody: WireBody, Hashable {
    /// The HPKE suite that the key is for (RFC 9180).
    package enum Suite: String, CaseIterable, Sendable, Hashable, ShapedBodyValue {
        case p256 = "P256_SHA256_AES256GCM"
        case x25519 = "X25519_SHA256_CHACHA20POLY1305"
    }

    package var suite: Suite
    /// 65 bytes for P-256 (an uncompressed point, not yet proved to lie on the curve), 32 for X25519.
    package var publicKey: [UInt8]

    package static let shape = declared("DeviceKey")

    package static let example: JSONValue = [
        "suite": "P256_SHA256_AES256GCM",
        "public_key":
            "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
    ]

    package init(from fields: BodyFields) {
        suite = fields.variant(
            "suite", "The HPKE suite (RFC 9180).",
            [
                ([.p256], "A P-256 key, which Secure Enclave and Android Keystore can hold."),
                ([.x25519], "An X25519 key."),
            ])
        publicKey = fields.required(
            "public_key",
            oneOf: [
                (
                    fields.only(Suite.p256), .text(.base64urlP256Point),
                    "The uncompressed point, 65 bytes in base64url without padding."
                ),
                (
                    fields.only(Suite.x25519), .text(.base64urlX25519Key),
                    "The public key, 32 bytes in base64url without padding."
                ),
            ])
    }
}

/// `POST …/keys/{key_id}/confirm`: the device shows that it opened the challenge, without showing the nonce.
package struct KeyConfirmBody: WireBody, Hashable {
    /// HMAC-SHA256(nonce, "sendgate/possession/v1\0" ‖ info), 32 bytes.
    package var proof: [UInt8]
    /// The same from the device's earlier active key, when it has one.
    package var oldKeyProof: [UInt8]?

    package static let shape = declared(
        "KeyConfirmation",
        "Proof that the device holds the private key: HMAC-SHA256 under the challenge's nonce, never the nonce itself."
    )

    package static let example: JSONValue = ["proof": "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA"]

    package init(from fields: BodyFields) {
        proof = fields.required("proof", as: .text(.base64url32), "From the new key's challenge.")
        oldKeyProof = fields.optional(
            "old_key_proof", as: .text(.base64url32),
            "From the old key's challenge, when the device already has an active key.")
    }
}
