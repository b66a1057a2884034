package import CanonicalJSON
package import GateVocabulary

/// `POST /v1/receipts`: what the delivery layer or the app observed of one message.
///
/// There is no "delivered": a provider's receipt says that the provider took it, nothing more (S1).
package struct ReceiptBody: WireBody, Hashable {
    package enum Event: String, CaseIterable, Sendable, Hashable {
        case acceptedByProvider = "accepted_by_provider"
        /// The provider refused it for good.
        case failed
        /// The provider says the token is no longer registered.
        case tokenGone = "token_gone"
        /// The provider gave it up when its time was over.
        case expired
        /// The person saw it or acted on it.
        case userObserved = "user_observed"

        package var fate: SendEventKind {
            switch self {
            case .acceptedByProvider: .acceptedByProvider
            case .failed: .failed
            case .tokenGone: .tokenGone
            case .expired: .expired
            case .userObserved: .userObserved
            }
        }
    }

    package var send: SendID
    package var destination: DestinationID
    package var event: Event
    /// What the person did, in the app's words, e.g. `opened`; only of ``Event/userObserved``.
    package var action: String?
    /// The provider's name for the error; only of ``Event/failed``, ``Event/tokenGone`` and ``Event/expired``.
    package var reason: String?
    /// When it was observed; for `token_gone`, the provider's own timestamp, which decides whether a
    /// token registered since is kept.
    package var at: Instant

    package static let shape = Shape.named(
        "Receipt",
        .variants(
            VariantShape(
                "event", "What was observed of a send at one destination.",
                [
                    (
                        [Event.acceptedByProvider.rawValue],
                        ObjectShape("The provider took it, which says nothing of the person.", members)
                    ),
                    (
                        [Event.failed.rawValue, Event.tokenGone.rawValue, Event.expired.rawValue],
                        ObjectShape(
                            "The provider refused it for good, does not know the token any more, or gave it up when its time was over.",
                            members + [
                                .optional(
                                    "reason", .text(.providerReason),
                                    "The provider's name for the error; told with the event.")
                            ])
                    ),
                    (
                        [Event.userObserved.rawValue],
                        ObjectShape(
                            "The person saw it or acted on it.",
                            members + [
                                .optional(
                                    "action", .identifier,
                                    "What the person did, in the app's words; told with the event. `seen`, `dismissed` and `badge_cleared` mean what they say; any other word, as the name of a button, is a tap."
                                )
                            ])
                    ),
                ])))

    private static let members: [ObjectShape.Member] = [
        .required("send", .uuid, "The `send_id`."),
        .required("destination", .identifier, "The device or address."),
        .required("at", .instant, "When it was observed."),
    ]

    package static let example: JSONValue = [
        "send": "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11", "destination": "d_1", "event": "user_observed",
        "action": "opened", "at": "2026-11-21T05:00:00Z",
    ]

    package init(checked members: CheckedMembers) {
        send = members.required(SendID(uuidText: members.requiredText("send")), "send")
        destination = DestinationID(members.requiredText("destination"))
        event = members.required(members.name("event"), "event")
        action = members.text("action")
        reason = members.text("reason")
        at = members.required(members.instant("at"), "at")
    }
}

/// `POST /v1/replies`: what a recipient answered to a text or an e-mail.
package struct ReplyBody: WireBody, Hashable {
    /// The carrier's id of the message; the same is the same reply.
    package var id: RequestID
    /// `sms` or `email`.
    package var channel: Channel
    /// An E.164 number or an e-mail address, by ``channel``.
    package var from: String
    package var text: String
    package var receivedAt: Instant

    package static let shape = Shape.named(
        "Reply",
        .variants(
            VariantShape(
                "channel", "What was answered to.",
                [
                    (
                        ["sms"],
                        ObjectShape(
                            "A text message to the number that texts came from.",
                            [
                                .required("from", .text(.phoneNumber), "Who answered, in E.164 form."),
                                .required("text", .text(.replyText), "The text."),
                            ] + members)
                    ),
                    (
                        ["email"],
                        ObjectShape(
                            "An e-mail to the address that e-mails came from.",
                            [
                                .required("from", .text(.email), "Who answered."),
                                .required(
                                    "text", .text(.replyText),
                                    "The first line that is no quotation; or the subject, where the body is empty."
                                ),
                            ] + members)
                    ),
                ])))

    private static let members: [ObjectShape.Member] = [
        .required("id", .identifier, "The carrier's id of the message. The same is answered the same way."),
        .required("received_at", .instant, "When the carrier received it."),
    ]

    package static let example: JSONValue = [
        "id": "SM5f1c2e", "channel": "sms", "from": "+4790000000", "text": "Stopp",
        "received_at": "2026-11-21T05:00:00Z",
    ]

    package init(checked members: CheckedMembers) {
        id = RequestID(members.requiredText("id"))
        channel = members.required(members.name("channel"), "channel")
        from = members.requiredText("from")
        text = members.requiredText("text")
        receivedAt = members.required(members.instant("received_at"), "received_at")
    }

    /// Everything but the id.
    package var content: JSONObject {
        [
            "channel": .string(channel.rawValue), "from": .string(from), "text": .string(text),
            "received_at": .integer(receivedAt.milliseconds),
        ]
    }
}

/// `POST /v1/sends/acknowledge`: one event of one person that need not be told any more.
package struct AcknowledgeBody: WireBody, Hashable {
    package var type: TypeID
    package var user: UserID
    /// Holds the param that the type names in `dedupe_by`; others are not looked at.
    package var params: JSONObject

    package static let shape = Shape.named(
        "Acknowledgement",
        .object(
            ObjectShape(
                "Which event, of whom.",
                [
                    .required("type", .identifier, "The type that would tell it."),
                    .required(
                        "recipient",
                        .object(
                            ObjectShape("Whom.", [.required("user", .identifier, "Your id of the person.")])),
                        "Whom it would be told."),
                    .required("params", SendMembers.params, "With the param the type names in `dedupe_by`."),
                ])))

    package static let example: JSONValue = [
        "type": "alert.payment_processing", "recipient": ["user": "u_42"],
        "params": ["paymentId": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"],
    ]

    package init(checked members: CheckedMembers) {
        type = TypeID(members.requiredText("type"))
        user = UserID(members.required(members.members("recipient"), "recipient").requiredText("user"))
        params = members.required(members.object["params"]?.objectValue, "params")
    }
}

/// `POST /v1/keys/{key}/revoke`: why, because the two ends differ.
package struct KeyRevokeBody: WireBody, Hashable {
    package enum Cause: String, CaseIterable, Sendable, Hashable {
        /// The private half may be known to somebody: state `compromised`, at once.
        case compromised
        /// The device is gone: state `deactivated`.
        case lost
        /// No longer needed: state `deactivated`.
        case retired
    }

    package var cause: Cause
    package var isDryRun: Bool

    package static let shape = Shape.named(
        "KeyRevocation",
        .object(
            ObjectShape(
                "Why a key is revoked. The next decision already refuses it.",
                [
                    .required(
                        "cause", .choice(of: Cause.self),
                        "`compromised` marks everything it opened as doubtful: state `compromised`. `lost` and `retired` end its use: state `deactivated`."
                    ), .dryRun,
                ])))

    package static let example: JSONValue = ["cause": "compromised"]

    package init(checked members: CheckedMembers) {
        cause = members.required(members.name("cause"), "cause")
        isDryRun = members.flag("dry_run") ?? false
    }
}

/// `POST /v1/drift`: begins an audit over all recipients.
package struct DriftRunBody: WireBody, Hashable {
    package var isDryRun: Bool

    package static let shape = Shape.named(
        "DriftRunOrder", .object(ObjectShape("Which audit is begun.", [.dryRun])))

    package static let example: JSONValue = ["dry_run": true]

    package init(checked members: CheckedMembers) { isDryRun = members.flag("dry_run") ?? false }
}

/// `POST /v1/device-keys/revoke`: one piece of the revocation of many device keys.
package struct DeviceKeysRevokeBody: WireBody, Hashable {
    package var cause: KeyRevokeBody.Cause
    /// Keys registered before this moment.
    package var registeredBefore: Instant
    /// Only keys of this app's devices.
    package var app: String?
    package var suite: DeviceKeyBody.Suite?
    /// Where the piece before this one ended; `nil` for the first.
    package var after: KeyID?
    package var isDryRun: Bool

    package static let shape = Shape.named(
        "DeviceKeysRevocation",
        .object(
            ObjectShape(
                "Which device keys are revoked, and why. Asked again with `next` until there is none.",
                [
                    .required(
                        "cause", .choice(of: KeyRevokeBody.Cause.self),
                        "`compromised`: never trusted again. `lost` and `retired` end its use."),
                    .required(
                        "registered_before", .instant,
                        "Keys registered before this moment, which is not in the future: what is registered meanwhile stays."
                    ),
                    .optional("app", .text(.app), "Only keys of devices with this app."),
                    .optional("suite", .choice(of: DeviceKeyBody.Suite.self), "Only keys of this suite."),
                    .optional("after", .keyID, "`next` of the answer before."), .dryRun,
                ])))

    package static let example: JSONValue = [
        "cause": "compromised", "registered_before": "2026-11-21T12:00:00Z", "app": "no.getdrop.app",
    ]

    package init(checked members: CheckedMembers) {
        cause = members.required(members.name("cause"), "cause")
        registeredBefore = members.required(members.instant("registered_before"), "registered_before")
        app = members.text("app")
        suite = members.name("suite")
        after = members.text("after").flatMap { KeyID(hexadecimal: $0) }
        isDryRun = members.flag("dry_run") ?? false
    }
}

extension ObjectShape.Member {
    fileprivate static let dryRun = Self.optional(
        "dry_run", .boolean, "Says what would become of it, and changes nothing.")
}

/// `POST /v1/keys/{key}/{promote,suspend,resume,destroy}`
package struct KeyChangeBody: WireBody, Hashable {
    package var isDryRun: Bool

    package static let shape = Shape.named(
        "KeyChange", .object(ObjectShape("How to change a key's state.", [.dryRun])))

    package static let example: JSONValue = ["dry_run": true]

    package init(checked members: CheckedMembers) { isDryRun = members.flag("dry_run") ?? false }
}

/// `POST /v1/keys`: a new key of the gateway's own, made by the gateway.
package struct KeyAddBody: WireBody, Hashable {
    package var purpose: KeyPurpose
    package var isDryRun: Bool

    package static let shape = Shape.named(
        "KeyAddition",
        .object(
            ObjectShape(
                "What the new key is for. It waits as `pre_activation` until it is promoted.",
                [
                    .required(
                        "purpose", .choice(of: KeyPurpose.self),
                        "`root`, `origin`, `trail`, `data` or `link`. `index` never changes, `policy` and `authority` keys are kept elsewhere: 409."
                    ), .dryRun,
                ])))

    package static let example: JSONValue = ["purpose": "origin"]

    package init(checked members: CheckedMembers) {
        purpose = members.required(members.name("purpose"), "purpose")
        isDryRun = members.flag("dry_run") ?? false
    }
}

/// `PUT /v1/keyset`: the public keys that are genuine, as the authority signed them.
package struct KeysetBody: WireBody, Hashable {
    /// The C2SP signed note, byte for byte.
    package var note: String

    package static let shape = Shape.named(
        "KeysetNote",
        .object(
            ObjectShape(
                "What `sendgate keys authority sign` wrote.",
                [
                    .required(
                        "note", .text(.signedNote),
                        "The signed note with its line breaks, byte for byte.")
                ])))

    package static let example: JSONValue = ["note": .string(Samples.keyset)]

    package init(checked members: CheckedMembers) { note = members.required(members.text("note"), "note") }
}

/// `POST /v1/policy/activate`: put the configured bundle in force, if it is still the one that was reviewed.
package struct PolicyActivateBody: WireBody, Hashable {
    /// What the caller reviewed. Another digest on the gateway's disk is 409, and nothing changes.
    package var digest: PolicyDigest

    package static let shape = Shape.named(
        "PolicyActivation",
        .object(
            ObjectShape(
                "Which bundle to put in force.",
                [
                    .required(
                        "digest", .sha256,
                        "The digest of the bundle that was reviewed, as `sendgate policy show` prints it. The gateway reads its configured folder and refuses with 409 when it holds another."
                    )
                ])))

    package static let example: JSONValue = [
        "digest": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    ]

    package init(checked members: CheckedMembers) {
        digest = PolicyDigest(members.requiredText("digest"))
    }
}

/// Where a route takes nothing: no body, or `{}`.
package struct EmptyBody: WireBody, Hashable {
    package static let shape = Shape.named(
        "Empty", .object(ObjectShape("Nothing; the body may be left out.", [])))

    package static let example: JSONValue = [:]

    package init(checked members: CheckedMembers) {}
}

extension WireBody {
    /// Reads a body that may be left out (``RouteDescription/Body/optionalJSON(_:)``): nothing stands for `{}`.
    package static func readOptional(_ bytes: [UInt8]) -> Result<Self, BodyError> {
        bytes.isEmpty ? read(Array("{}".utf8)) : read(bytes)
    }
}
