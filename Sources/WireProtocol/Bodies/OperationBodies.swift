package import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// `POST /v1/receipts`: what the delivery layer or the app observed of one message.
///
/// There is no "delivered": a provider's receipt says that the provider took it, nothing more (S1).
package struct ReceiptBody: WireBody, GivenRecord {
    /// What was observed of a message after it was handed over.
    package enum Event: String, CaseIterable, Sendable, Hashable, FieldValue, ShownValue, GivenValue {
        case acceptedByProvider = "accepted_by_provider"
        /// The provider refused it for good.
        case failed
        /// The provider says the token is no longer registered.
        case tokenGone = "token_gone"
        /// The provider gave it up when its time was over.
        case expired
        /// The person saw it or acted on it.
        case userObserved = "user_observed"

        package var eventKind: SendEventKind { SendEventKind(rawValue: rawValue)! }
    }

    package var send = SendID.blank
    package var destination = DestinationID("")
    package var event = Event.acceptedByProvider
    /// What the person did, in the app's words, e.g. `opened`; only of ``Event/userObserved``.
    package var action: String?
    /// The provider's name for the error; only of ``Event/failed``, ``Event/tokenGone`` and ``Event/expired``.
    package var reason: String?
    /// When it was observed; for `token_gone`, the provider's own timestamp, which decides whether a
    /// token registered since is kept.
    package var at = Instant.unstated

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given(
            "event", \.event, "What was observed of a send at one destination.",
            .telling([
                (["accepted_by_provider"], "The provider took it, which says nothing of the person."),
                (
                    ["failed", "token_gone", "expired"],
                    "The provider refused it for good, does not know the token any more, or gave it up when its time was over."
                ),
                (["user_observed"], "The person saw it or acted on it."),
            ]))
        fields.given("send", \.send, "The `send_id`.")
        fields.given("destination", \.destination, "The device or address.")
        fields.given("at", \.at, "When it was observed.")
        fields.given(
            "reason", \.reason, "The provider's name for the error; told with the event.",
            .only(["failed", "token_gone", "expired"], .text(.providerReason)))
        fields.given(
            "action", \.action,
            "What the person did, in the app's words; told with the event. `seen`, `dismissed` and `badge_cleared` mean what they say; any other word, as the name of a button, is a tap.",
            .only(["user_observed"], .identifier))
    }

    package static let givenShape = given(as: "Receipt")
    package static let givenExample: JSONValue = [
        "send": "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11", "destination": "d_1", "event": "user_observed",
        "action": "opened", "at": "2026-11-21T05:00:00Z",
    ]
}

/// `POST /v1/replies`: what a recipient answered to a text or an e-mail.
package struct ReplyBody: WireBody, GivenRecord {
    /// The carrier's id of the message; the same is the same reply.
    package var id = RequestID("")
    /// `sms` or `email`.
    package var channel = Channel.sms
    /// Who answered, as the carrier or the mail system named it.
    package var from = ""
    package var text = ""
    package var receivedAt = Instant.unstated

    /// The number or the mailbox that ``from`` is; `nil` for a short code, a name, and what else nobody can register.
    package var sender: AddressKey? { AddressKey(channel, sender: from) }

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given(
            "channel", \.channel, "What was answered to.",
            .telling([
                (["sms"], "A text message to the number that texts came from."),
                (["email"], "An e-mail to the address that e-mails came from."),
            ]))
        fields.given("id", \.id, "The carrier's id of the message. The same is answered the same way.")
        fields.given(
            "from", \.from, "Who answered.",
            .perVariant([
                (
                    ["sms"], .text(.sender),
                    "Who answered, as the carrier names it. Any spelling of a number with its country code is that number; a short code or a name has no effect."
                ),
                (["email"], .text(.sender), "Who answered: the mailbox, or the message's `From` whole."),
            ]))
        fields.given(
            "text", \.text, "What was answered.",
            .perVariant([
                (["sms"], .text(.replyText), "The text."),
                (
                    ["email"], .text(.replyText),
                    "The first line that is no quotation; or the subject, where the body is empty."
                ),
            ]))
        fields.given("received_at", \.receivedAt, "When the carrier received it.")
    }

    package static let givenShape = given(as: "Reply")
    package static let givenExample: JSONValue = [
        "id": "SM5f1c2e", "channel": "sms", "from": "+4790000000", "text": "Stopp",
        "received_at": "2026-11-21T05:00:00Z",
    ]

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
package struct AcknowledgeBody: WireBody, GivenRecord {
    package var type = TypeID("")
    package var user = UserID("")
    /// Holds the param that the type names in `dedupe_by`; others are not looked at.
    package var params: JSONObject = [:]

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given("type", \.type, "The type that would tell it.")
        fields.given("recipient", "Whom it would be told.", "Whom.") { fields in
            fields.given("user", \.user, "Your id of the person.")
        }
        fields.given(
            "params", \.params, "With the param the type names in `dedupe_by`.",
            .shape(SendRequest.paramsShape))
    }

    package static let givenShape = given(as: "Acknowledgement", "Which event, of whom.")
    package static let givenExample: JSONValue = [
        "type": "alert.payment_processing", "recipient": ["user": "u_42"],
        "params": ["paymentId": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"],
    ]
}

/// `POST /v1/keys/{key}/revoke`: why, because the two ends differ.
package struct KeyRevokeBody: WireBody, GivenRecord {
    /// Why the key is revoked, which chooses its next state.
    package enum Cause: String, CaseIterable, Sendable, Hashable, FieldValue, ShownValue, GivenValue {
        /// The private half may be known to an attacker: state `compromised`, at once.
        case compromised
        /// The device is gone: state `deactivated`.
        case lost
        /// No longer needed: state `deactivated`.
        case retired
    }

    package var cause = Cause.compromised
    package var isDryRun = false

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given(
            "cause", \.cause,
            "`compromised` marks everything it opened as doubtful: state `compromised`. `lost` and `retired` end its use: state `deactivated`."
        )
        fields.dryRun(\.isDryRun)
    }

    package static let givenShape = given(
        as: "KeyRevocation", "Why a key is revoked. The next decision already refuses it.")
    package static let givenExample: JSONValue = ["cause": "compromised"]
}

/// `POST /v1/drift`: begins an audit over all recipients.
package struct DriftRunBody: WireBody, GivenRecord {
    package var isDryRun = false

    package static let blank = Self()
    package static let fields = Fields<Self> { $0.dryRun(\.isDryRun) }
    package static let givenShape = given(as: "DriftRunOrder", "Which audit is begun.")
    package static let givenExample: JSONValue = ["dry_run": true]
}

/// `POST /v1/device-keys/revoke`: one piece of the revocation of many device keys.
package struct DeviceKeysRevokeBody: WireBody, GivenRecord {
    package var cause = KeyRevokeBody.Cause.compromised
    /// Keys registered before this moment.
    package var registeredBefore = Instant.unstated
    /// Only this person's keys.
    package var user: UserID?
    /// Only keys of this device of the person.
    package var device: DestinationID?
    /// Only keys of this app's devices.
    package var app: String?
    package var suite: DeviceKeyBody.Suite?
    /// Where the piece before this one ended; `nil` for the first.
    package var after: KeyID?
    package var isDryRun = false

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given(
            "cause", \.cause, "`compromised`: never trusted again. `lost` and `retired` end its use.")
        fields.given(
            "registered_before", \.registeredBefore,
            "Keys registered before this moment, which is not in the future: what is registered meanwhile stays."
        )
        fields.given("recipient", "Only keys of this person.", isOptional: true, "Whose keys.") { fields in
            fields.given("user", \.user, "Your id of the person.", .required)
            fields.given("device", \.device, "One device of theirs; every device when absent.")
        }
        fields.given("app", \.app, "Only keys of devices with this app.", .text(.app))
        fields.given("suite", \.suite, "Only keys of this suite.")
        fields.given("after", \.after, "`next` of the answer before.")
        fields.dryRun(\.isDryRun)
    }

    package static let givenShape = given(
        as: "DeviceKeysRevocation",
        "Which device keys are revoked, and why. Asked again with `next` until there is none.")
    package static let givenExample: JSONValue = [
        "cause": "compromised", "registered_before": "2026-11-21T05:00:00Z", "app": "no.getdrop.app",
    ]
}

extension FieldDeclarations where Object: Record {
    fileprivate mutating func dryRun(_ path: WritableKeyPath<Object, Bool>) {
        given("dry_run", path, "Says what would become of it, and changes nothing.", .leftOut)
    }
}

/// `POST /v1/keys/{key}/{promote,suspend,resume,destroy}`
package struct KeyChangeBody: WireBody, GivenRecord {
    package var isDryRun = false

    package static let blank = Self()
    package static let fields = Fields<Self> { $0.dryRun(\.isDryRun) }
    package static let givenShape = given(as: "KeyChange", "How to change a key's state.")
    package static let givenExample: JSONValue = ["dry_run": true]
}

/// `POST /v1/keys`: a new key of the gateway's own, made by the gateway.
package struct KeyAddBody: WireBody, GivenRecord {
    package var purpose = KeyPurpose.origin
    /// The key in use as the caller saw it, or the last one where none was; `nil` where any may be.
    package var replaces: String?
    package var isDryRun = false

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given(
            "purpose", \.purpose,
            "`root`, `origin`, `trail`, `data` or `link`. `index` never changes, `policy` and `authority` keys are kept elsewhere: 409."
        )
        fields.given(
            "replaces", \.replaces,
            "The key that is in use now or, where none is, the newest one that does not wait. Where that is another by then, no key is made: 409. So a rotation that is begun twice is made once.",
            .text(.identifier))
        fields.dryRun(\.isDryRun)
    }

    package static let givenShape = given(
        as: "KeyAddition", "What the new key is for. It waits as `pre_activation` until it is promoted.")
    package static let givenExample: JSONValue = ["purpose": "origin"]
}

/// `PUT /v1/keyset`: the public keys that are genuine, as the authority signed them.
package struct KeysetBody: WireBody, GivenRecord {
    /// The C2SP signed note, byte for byte.
    package var note = ""

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given(
            "note", \.note, "The signed note with its line breaks, byte for byte.", .text(.signedNote))
    }

    package static let givenShape = given(as: "KeysetNote", "What `sendgate keys authority sign` wrote.")
    package static let givenExample: JSONValue = ["note": .string(Samples.keyset)]
}

/// `POST /v1/policy/activate`: put the configured bundle in force, if it is still the one that was reviewed.
package struct PolicyActivateBody: WireBody, GivenRecord {
    /// What the caller reviewed. Another digest on the gateway's disk is 409, and nothing changes.
    package var digest = PolicyDigest("")

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given(
            "digest", \.digest,
            "The digest of the bundle that was reviewed, as `sendgate policy show` prints it. The gateway reads its configured folder and refuses with 409 when it holds another."
        )
    }

    package static let givenShape = given(as: "PolicyActivation", "Which bundle to put in force.")
    package static let givenExample: JSONValue = [
        "digest": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    ]
}

/// Where a route takes nothing: no body, or `{}`.
package struct EmptyBody: WireBody, GivenRecord {
    package static let blank = Self()
    package static let fields = Fields<Self> { _ in }
    package static let givenShape = given(as: "Empty", "Nothing; the body may be left out.")
    package static let givenExample: JSONValue = [:]
}

extension WireBody {
    /// Reads a body that may be left out (``RouteDescription/Body/optionalJSON(_:)``): nothing stands for `{}`.
    package static func readOptional(_ bytes: [UInt8]) -> Result<Self, BodyError> {
        bytes.isEmpty ? read(Array("{}".utf8)) : read(bytes)
    }
}
