import CanonicalJSON
import GateVocabulary

/// The kinds of entry there are. A kind is added here and to the table below, or it does not exist.
extension EntryKind {
    /// One send, all its destinations inside.
    package static let send = EntryKind("send")
    /// A message that waits was looked at again.
    package static let redecision = EntryKind("redecision")
    package static let unsent = EntryKind("unsent")
    package static let delivery = EntryKind("delivery")
    package static let cancel = EntryKind("cancel")
    package static let acknowledgement = EntryKind("acknowledgement")
    package static let mandatoryUnreached = EntryKind("mandatory_unreached")
    package static let receipt = EntryKind("receipt")
    package static let reply = EntryKind("reply")
    package static let recipient = EntryKind("recipient")
    package static let device = EntryKind("device")
    package static let address = EntryKind("address")
    package static let permissionPrompt = EntryKind("permission_prompt")
    package static let deviceKey = EntryKind("device_key")
    package static let gatewayKey = EntryKind("gateway_key")
    package static let keyset = EntryKind("keyset")
    package static let consent = EntryKind("consent")
    package static let preference = EntryKind("preference")
    package static let subscription = EntryKind("subscription")
    package static let drift = EntryKind("drift")
    package static let erasure = EntryKind("erasure")
    package static let switchOff = EntryKind("switch_off")
    package static let review = EntryKind("review")
    package static let policy = EntryKind("policy")
    package static let policyRefused = EntryKind("policy_refused")
    package static let unknownPeer = EntryKind("unknown_peer")
    package static let explain = EntryKind("explain")
    package static let clock = EntryKind("clock")
    package static let restore = EntryKind("restore")
    package static let start = EntryKind("start")
    package static let stop = EntryKind("stop")
}

extension EntrySchema {
    /// What the entries of each kind are read as, but for `send` and `redecision`.
    package static let bodies: [any EntryBody.Type] = [
        AcknowledgementEntry.self, AddressEntry.self, CancelEntry.self, ClockEntry.self,
        ConsentEntry.self, DeliveryEntry.self, DeviceEntry.self, DeviceKeyEntry.self, DriftEntry.self,
        ErasureEntry.self, ExplainEntry.self, GatewayKeyEntry.self, KeysetEntry.self,
        MandatoryUnreachedEntry.self, PermissionPromptEntry.self, PolicyEntry.self,
        PolicyRefusedEntry.self, PreferenceEntry.self, ReceiptEntry.self, RecipientEntry.self,
        ReplyEntry.self, RestoreEntry.self, ReviewEntry.self, StartEntry.self, StopEntry.self,
        SubscriptionEntry.self, SwitchOffEntry.self, UnknownPeerEntry.self, UnsentEntry.self,
    ]

    /// The closed table of the trail's format, version 1 (handbook, "Audit format").
    ///
    /// Texts and params are in none of them. A person is a pseudonym (16 bytes), whatever a caller or a
    /// recipient chose is a keyed tag (16 bytes).
    package static let version1 = EntrySchema(
        of: bodies,
        [
            .send: .members(
                required: [
                    "caller": .name,
                    "deliveries": .list(
                        of: .object(
                            .members(
                                required: [
                                    "decision": decision, "destination": .nullable(tag), "facts": Facts.shape,
                                ],
                                optional: ["byte_count": count, "key_id": tag, "message_id": .uuid])),
                        countMax: 20),
                    "facts": Facts.shape, "outcome": code,
                    "params_verdict": .list(of: .text(byteCountMax: 256), countMax: 32),
                    "peer": .object(.members(required: ["gid": uid, "pid": count, "uid": uid])),
                    "policy": digest, "reason": code,
                    "request": .object(
                        .members(
                            required: ["channel": code, "critical": .boolean],
                            optional: [
                                "collapse_tag": tag, "deep_link_tag": tag, "destination_tag": tag,
                                "event_tags": .object(eventTags), "fallback_for": .uuid, "id_tag": tag,
                                "locale": .text(byteCountMax: 35),
                                "ttl_seconds": count, "type": typeName, "type_byte_count": count,
                                "type_tag": tag,
                            ])),
                    "send_id": .uuid, "subject": .nullable(tag), "tzdata": .text(byteCountMax: 32),
                ],
                optional: [
                    "detail": code, "owed": .list(of: code, countMax: 5), "replaces": count,
                ]),
            .redecision: .members(required: [
                "cause": code, "decision": decision, "destination": tag, "facts": Facts.shape,
                "message_id": .uuid,
                "policy": digest,
                "request": .object(
                    .members(required: [
                        "caller": .name, "channel": code, "critical": .boolean, "type": typeName,
                    ])), "send_id": .uuid, "subject": tag,
            ]),
        ])

    private static let tag = Shape.tag
    /// What one event is marked by on each channel it may be told on.
    private static let eventTags = ObjectShape.members(
        required: [:], optional: ["email": tag, "push": tag, "sms": tag])
    private static let digest = Shape.text(.sha256)
    /// A result of a gate in a trace: `pass`, `not_applicable`, or a reason with what it is about.
    static let gateResultByteCountMax = 64
    private static let count = Shape.count
    private static let moment = Shape.anyInteger
    private static let uid = Shape.integer(0...4_294_967_295)
    /// A name out of one of the gateway's closed lists.
    private static let code = Shape.name
    /// A type of the registry, or a category.
    private static let typeName = Shape.name
    private static let decision = Shape.object(
        .members(
            required: [
                "form": code, "interruption": code, "notes": .list(of: code, countMax: 8), "outcome": code,
                "reason": code,
                "trace": .list(
                    of: .text(byteCountMax: gateResultByteCountMax),
                    countMax: Int(GateRevision.newest.gateCount)),
            ], optional: ["detail": code, "not_before": moment]))
}
