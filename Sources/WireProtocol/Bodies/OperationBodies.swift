package import CanonicalJSON
import GateRecords
package import GateVocabulary

/// `POST /v1/receipts`: what the delivery layer or the app observed of one message.
///
/// There is no "delivered": a provider's receipt says that the provider took it, nothing more (S1).
package struct ReceiptBody: WireBody, Hashable {
    /// What was observed of a message after it was handed over.
    package enum Event: String, CaseIterable, Sendable, Hashable, ShapedBodyValue {
        case acceptedByProvider = "accepted_by_provider"
        /// The provider refused it for good.
        case failed
        /// The provider says the token is no longer registered.
        case tokenGone = "token_gone"
        /// The provider gave it up when its time was over.
        case expired
        /// The person saw it or acted on it.
        case userObserved = "user_observed"

        package var eventKind: SendEventKind {
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

    package static let shape = declared("Receipt")

    package static let example: JSONValue = [
        "send": "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11", "destination": "d_1", "event": "user_observed",
        "action": "opened", "at": "2026-11-21T05:00:00Z",
    ]

    package init(from fields: BodyFields) {
        event = fields.variant(
            "event", "What was observed of a send at one destination.",
            [
                ([.acceptedByProvider], "The provider took it, which says nothing of the person."),
                (
                    [.failed, .tokenGone, .expired],
                    "The provider refused it for good, does not know the token any more, or gave it up when its time was over."
                ),
                ([.userObserved], "The person saw it or acted on it."),
            ])
        send = fields.required("send", "The `send_id`.")
        destination = fields.required("destination", "The device or address.")
        at = fields.required("at", "When it was observed.")
        reason = fields.only(Event.failed, .tokenGone, .expired).optional(
            "reason", as: .text(.providerReason), "The provider's name for the error; told with the event.")
        action = fields.only(Event.userObserved).optional(
            "action", as: .identifier,
            "What the person did, in the app's words; told with the event. `seen`, `dismissed` and `badge_cleared` mean what they say; any other word, as the name of a button, is a tap."
        )
    }
}

/// `POST /v1/replies`: what a recipient answered to a text or an e-mail.
package struct ReplyBody: WireBody, Hashable {
    /// The carrier's id of the message; the same is the same reply.
    package var id: RequestID
    /// `sms` or `email`.
    package var channel: Channel
    /// Who answered, as the carrier or the mail system named it.
    package var from: String
    /// The number or the mailbox that ``from`` is; `nil` for a short code, a name, and what else nobody can register.
    package var sender: AddressKey?
    package var text: String
    package var receivedAt: Instant

    package static let shape = declared("Reply")

    package static let example: JSONValue = [
        "id": "SM5f1c2e", "channel": "sms", "from": "+4790000000", "text": "Stopp",
        "received_at": "2026-11-21T05:00:00Z",
    ]

    package init(from fields: BodyFields) {
        channel = fields.variant(
            "channel", "What was answered to.",
            [
                ([.sms], "A text message to the number that texts came from."),
                ([.email], "An e-mail to the address that e-mails came from."),
            ])
        let (sms, email) = (fields.only(Channel.sms), fields.only(Channel.email))
        id = fields.required("id", "The carrier's id of the message. The same is answered the same way.")
        from = fields.required(
            "from",
            oneOf: [
                (
                    sms, .text(.sender),
                    "Who answered, as the carrier names it. Any spelling of a number with its country code is that number; a short code or a name has no effect."
                ),
                (
                    email, .text(.sender),
                    "Who answered: the mailbox, or the message's `From` whole."
                ),
            ])
        sender = AddressKey(channel, sender: from)
        text = fields.required(
            "text",
            oneOf: [
                (sms, .text(.replyText), "The text."),
                (
                    email, .text(.replyText),
                    "The first line that is no quotation; or the subject, where the body is empty."
                ),
            ])
        receivedAt = fields.required("received_at", "When the carrier received it.")
    }

    /// Everything but the id. A sender in another spelling is the same sender.
    package var content: JSONObject {
        [
            "channel": .string(channel.rawValue), "from": .string(sender?.value ?? from),
            "text": .string(text),
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

    private struct Recipient: BodyObject {
        let user: UserID

        static let shape = declared(nil, "Whom.")
        static let example: JSONValue = ["user": "u_42"]

        init(from fields: BodyFields) { user = fields.required("user", "Your id of the person.") }
    }

    package static let shape = declared("Acknowledgement", "Which event, of whom.")

    package static let example: JSONValue = [
        "type": "alert.payment_processing", "recipient": ["user": "u_42"],
        "params": ["paymentId": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"],
    ]

    package init(from fields: BodyFields) {
        type = fields.required("type", "The type that would tell it.")
        let recipient: Recipient = fields.required("recipient", "Whom it would be told.")
        user = recipient.user
        params = fields.required(
            "params", as: SendContent.paramsShape, "With the param the type names in `dedupe_by`.")
    }
}

/// `POST /v1/keys/{key}/revoke`: why, because the two ends differ.
package struct KeyRevokeBody: WireBody, Hashable {
    /// Why the key is revoked, which chooses its next state.
    package enum Cause: String, CaseIterable, Sendable, Hashable, ShapedBodyValue {
        /// The private half may be known to an attacker: state `compromised`, at once.
        case compromised
        /// The device is gone: state `deactivated`.
        case lost
        /// No longer needed: state `deactivated`.
        case retired
    }

    package var cause: Cause
    package var isDryRun: Bool

    package static let shape = declared(
        "KeyRevocation", "Why a key is revoked. The next decision already refuses it.")

    package static let example: JSONValue = ["cause": "compromised"]

    package init(from fields: BodyFields) {
        cause = fields.required(
            "cause",
            "`compromised` marks everything it opened as doubtful: state `compromised`. `lost` and `retired` end its use: state `deactivated`."
        )
        isDryRun = fields.dryRun
    }
}

/// `POST /v1/drift`: begins an audit over all recipients.
package struct DriftRunBody: WireBody, Hashable {
    package var isDryRun: Bool

    package static let shape = declared(
        "DriftRunOrder", "Which audit is begun.")

    package static let example: JSONValue = ["dry_run": true]

    package init(from fields: BodyFields) { isDryRun = fields.dryRun }
}

/// `POST /v1/device-keys/revoke`: one piece of the revocation of many device keys.
package struct DeviceKeysRevokeBody: WireBody, Hashable {
    package var cause: KeyRevokeBody.Cause
    /// Keys registered before this moment.
    package var registeredBefore: Instant
    /// Only this person's keys.
    package var user: UserID?
    /// Only keys of this device of the person.
    package var device: DestinationID?
    /// Only keys of this app's devices.
    package var app: String?
    package var suite: DeviceKeyBody.Suite?
    /// Where the piece before this one ended; `nil` for the first.
    package var after: KeyID?
    package var isDryRun: Bool

    private struct Owner: BodyObject {
        let user: UserID
        let device: DestinationID?

        static let shape = declared(nil, "Whose keys.")
        static let example: JSONValue = ["user": "u_42", "device": "d_1"]

        init(from fields: BodyFields) {
            user = fields.required("user", "Your id of the person.")
            device = fields.optional("device", "One device of theirs; every device when absent.")
        }
    }

    package static let shape = declared(
        "DeviceKeysRevocation",
        "Which device keys are revoked, and why. Asked again with `next` until there is none.")

    package static let example: JSONValue = [
        "cause": "compromised", "registered_before": "2026-11-21T05:00:00Z", "app": "no.getdrop.app",
    ]

    package init(from fields: BodyFields) {
        cause = fields.required(
            "cause", "`compromised`: never trusted again. `lost` and `retired` end its use.")
        registeredBefore = fields.required(
            "registered_before",
            "Keys registered before this moment, which is not in the future: what is registered meanwhile stays."
        )
        let owner: Owner? = fields.optional("recipient", "Only keys of this person.")
        user = owner?.user
        device = owner?.device
        app = fields.optional("app", as: .text(.app), "Only keys of devices with this app.")
        suite = fields.optional("suite", "Only keys of this suite.")
        after = fields.optional("after", "`next` of the answer before.")
        isDryRun = fields.dryRun
    }
}

extension BodyFields {
    fileprivate var dryRun: Bool {
        optional("dry_run", "Says what would become of it, and changes nothing.") ?? false
    }
}

/// `POST /v1/keys/{key}/{promote,suspend,resume,destroy}`
package struct KeyChangeBody: WireBody, Hashable {
    package var isDryRun: Bool

    package static let shape = declared(
        "KeyChange", "How to change a key's state.")

    package static let example: JSONValue = ["dry_run": true]

    package init(from fields: BodyFields) { isDryRun = fields.dryRun }
}

/// `POST /v1/keys`: a new key of the gateway's own, made by the gateway.
package struct KeyAddBody: WireBody, Hashable {
    package var purpose: KeyPurpose
    /// The key in use as the caller saw it, or the last one where none was; `nil` where any may be.
    package var replaces: String?
    package var isDryRun: Bool

    package static let shape = declared(
        "KeyAddition", "What the new key is for. It waits as `pre_activation` until it is promoted.")

    package static let example: JSONValue = ["purpose": "origin"]

    package init(from fields: BodyFields) {
        purpose = fields.required(
            "purpose",
            "`root`, `origin`, `trail`, `data` or `link`. `index` never changes, `policy` and `authority` keys are kept elsewhere: 409."
        )
        replaces = fields.optional(
            "replaces", as: .text(.identifier),
            "The key that is in use now or, where none is, the newest one that does not wait. Where that is another by then, no key is made: 409. So a rotation that is begun twice is made once."
        )
        isDryRun = fields.dryRun
    }
}

/// `PUT /v1/keyset`: the public keys that are genuine, as the authority signed them.
package struct KeysetBody: WireBody, Hashable {
    /// The C2SP signed note, byte for byte.
    package var note: String

    package static let shape = declared(
        "KeysetNote", "What `sendgate keys authority sign` wrote.")

    package static let example: JSONValue = ["note": .string(Samples.keyset)]

    package init(from fields: BodyFields) {
        note = fields.required(
            "note", as: .text(.signedNote), "The signed note with its line breaks, byte for byte.")
    }
}

/// `POST /v1/policy/activate`: put the configured bundle in force, if it is still the one that was reviewed.
package struct PolicyActivateBody: WireBody, Hashable {
    /// What the caller reviewed. Another digest on the gateway's disk is 409, and nothing changes.
    package var digest: PolicyDigest

    package static let shape = declared(
        "PolicyActivation", "Which bundle to put in force.")

    package static let example: JSONValue = [
        "digest": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    ]

    package init(from fields: BodyFields) {
        digest = fields.required(
            "digest",
            "The digest of the bundle that was reviewed, as `sendgate policy show` prints it. The gateway reads its configured folder and refuses with 409 when it holds another."
        )
    }
}

/// Where a route takes nothing: no body, or `{}`.
package struct EmptyBody: WireBody, Hashable {
    package static let shape = declared(
        "Empty", "Nothing; the body may be left out.")

    package static let example: JSONValue = [:]

    package init(from _: BodyFields) {}
}

extension WireBody {
    /// Reads a body that may be left out (``RouteDescription/Body/optionalJSON(_:)``): nothing stands for `{}`.
    package static func readOptional(_ bytes: [UInt8]) -> Result<Self, BodyError> {
        bytes.isEmpty ? read(Array("{}".utf8)) : read(bytes)
    }
}
