import GateVocabulary

/// The kinds of entry there are. A kind is added here, with its members, or it does not exist.
extension EntryKind {
    /// One send, all its destinations inside.
    package static let send = EntryKind("send")
    /// A message that waits was looked at again.
    package static let redecision = EntryKind("redecision")
    /// A message that waited was taken out without being decided again.
    package static let unsent = EntryKind("unsent")
    /// What the next hop made of a message.
    package static let delivery = EntryKind("delivery")
    package static let cancel = EntryKind("cancel")
    /// Somebody said that an event need not be told any more.
    package static let acknowledgement = EntryKind("acknowledgement")
    /// A notice that a law obliges us to send reached nobody; names the way it must go instead.
    package static let mandatoryUnreached = EntryKind("mandatory_unreached")
    /// What the delivery layer or the app observed.
    package static let receipt = EntryKind("receipt")
    /// A recipient answered a text or an e-mail.
    package static let reply = EntryKind("reply")
    package static let recipient = EntryKind("recipient")
    package static let device = EntryKind("device")
    package static let address = EntryKind("address")
    package static let permissionPrompt = EntryKind("permission_prompt")
    package static let deviceKey = EntryKind("device_key")
    /// One of the gateway's own keys came into another state, or somebody proposed to destroy it.
    package static let gatewayKey = EntryKind("gateway_key")
    /// A list of genuine keys that the authority signed was proposed, or put in force.
    package static let keyset = EntryKind("keyset")
    package static let consent = EntryKind("consent")
    package static let preference = EntryKind("preference")
    /// What the provider of notifications has a device subscribed to, as it was reported.
    package static let subscription = EntryKind("subscription")
    /// The drift audit found that two sides disagree, and what it did about it.
    package static let drift = EntryKind("drift")
    package static let erasure = EntryKind("erasure")
    /// A recipient switched notifications off; follows what they did, or stands before it where they answered a text.
    package static let switchOff = EntryKind("switch_off")
    /// The gateway found something that a person has to look at.
    package static let review = EntryKind("review")
    /// A bundle came into force.
    package static let policy = EntryKind("policy")
    /// Somebody asked for a bundle that has problems; the one in force stayed.
    package static let policyRefused = EntryKind("policy_refused")
    /// A peer that matched no caller.
    package static let unknownPeer = EntryKind("unknown_peer")
    /// Decisions about stored people were explained, aggregated.
    package static let explain = EntryKind("explain")
    /// An operator accepted a clock that had stepped; the only entry whose time may be before that of the one in front
    /// of it.
    package static let clock = EntryKind("clock")
    package static let start = EntryKind("start")
    package static let stop = EntryKind("stop")
}

extension EntrySchema {
    /// The closed table of the trail's format, version 1 (handbook, "Audit format").
    ///
    /// Texts and params are in none of them. A person is a pseudonym (16 bytes), whatever a caller or a
    /// recipient chose is a keyed tag (16 bytes).
    package static let version1 = EntrySchema([
        .send: EntryMembers(
            required: [
                "caller": .name,
                "deliveries": .array(
                    of: .object(
                        EntryMembers(
                            required: ["decision": decision, "destination": .nullable(tag), "facts": facts],
                            optional: ["byte_count": count, "key_id": tag, "message_id": .uuid])),
                    countMax: 20),
                "facts": facts, "outcome": code,
                "params_verdict": .array(of: .text(byteCountMax: 256), countMax: 32),
                "peer": .object(EntryMembers(required: ["gid": uid, "pid": count, "uid": uid])),
                "policy": digest, "reason": code,
                "request": .object(
                    EntryMembers(
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
                "detail": code, "owed": .array(of: code, countMax: 5), "replaces": count,
            ]),
        .redecision: EntryMembers(required: [
            "cause": code, "decision": decision, "destination": tag, "facts": facts, "message_id": .uuid,
            "policy": digest,
            "request": .object(
                EntryMembers(required: [
                    "caller": .name, "channel": code, "critical": .boolean, "type": typeName,
                ])), "send_id": .uuid, "subject": tag,
        ]),
        .unsent: EntryMembers(required: [
            "cause": code, "destination": tag, "message_id": .uuid, "send_id": .uuid, "subject": tag,
        ]),
        .delivery: EntryMembers(
            required: [
                "attempts": count, "destination": tag, "message_id": .uuid, "result": code, "send_id": .uuid,
                "subject": tag,
            ], optional: ["status": .integer(100...599)]),
        .cancel: EntryMembers(required: ["caller": .name, "send_id": .uuid, "withdrawn": count]),
        .acknowledgement: EntryMembers(required: [
            "caller": .name, "event_tags": .object(eventTags), "subject": tag, "type": typeName,
            "withdrawn": count,
        ]),
        .mandatoryUnreached: EntryMembers(required: [
            "must_go_by": .text(byteCountMax: 256), "policy": digest, "send_id": .uuid,
            "subject": .nullable(tag), "type": typeName, "within": .text(byteCountMax: 256),
        ]),
        .receipt: EntryMembers(
            required: [
                "at": moment, "caller": .name, "channel": code, "destination": tag, "event": code,
                "send_id": .uuid,
            ],
            optional: [
                "act": code, "category": code, "opened_after": count, "subject": tag, "tapped": .boolean,
            ]),
        .reply: EntryMembers(
            required: [
                "at": moment, "caller": .name, "channel": code, "effect": code, "id_tag": tag,
                "subjects": .array(of: tag, countMax: 100),
            ], optional: ["confirmation": .text(byteCountMax: 35), "why": code]),
        .recipient: EntryMembers(
            required: [
                "action": code, "caller": .name, "privacy": code, "push_enabled": .boolean, "subject": tag,
            ], optional: ["age": code, "quiet_hours": quietHours, "region": region, "time_zone": zone]),
        .device: EntryMembers(
            required: ["action": code, "caller": .name, "device": tag, "subject": tag],
            optional: [
                "critical_alerts": .boolean, "os_permission": code, "platform": code, "region": region,
                "time_zone": zone,
            ]),
        .address: EntryMembers(
            required: ["action": code, "address": tag, "caller": .name, "subject": tag],
            optional: [
                "channel": code, "number_prefix": .text(byteCountMax: 5), "replaced": tag,
                "verified": .boolean,
            ]),
        .permissionPrompt: EntryMembers(
            required: ["action": code, "caller": .name, "device": tag, "shown_at": moment, "subject": tag],
            optional: ["answer": code]),
        .subscription: EntryMembers(required: [
            "caller": .name, "device": tag, "observed_at": moment,
            "states": .object(
                EntryMembers(
                    required: [:],
                    optional: [
                        "marketing": .boolean, "security": .boolean, "social": .boolean,
                        "transactional": .boolean,
                    ])), "subject": tag,
        ]),
        .drift: EntryMembers(
            required: ["action": code, "caller": .name, "finding": code, "old": code, "subject": tag],
            optional: ["category": code, "device": tag, "new": code]),
        .deviceKey: EntryMembers(
            required: [
                "caller": .name, "device": tag, "key_id": tag, "state": code, "subject": tag,
                "suite": .text(byteCountMax: 64),
            ], optional: ["cause": code, "event": code, "forgotten": .boolean, "proof": code]),
        .gatewayKey: EntryMembers(
            required: ["cause": code, "event": code, "key": keyName, "purpose": code, "state": code],
            optional: ["caller": .name, "proposed_by": .name, "public_key": digest]),
        .keyset: EntryMembers(
            required: [
                "caller": .name, "digest": digest, "event": code, "expires_at": moment, "version": count,
            ], optional: ["proposed_by": .name]),
        .consent: EntryMembers(
            required: [
                "caller": .name, "channel": code, "consent": tag, "event_time": moment, "method": code,
                "previous": .text(byteCountMax: 64), "purpose": .name, "state": code, "subject": tag,
            ],
            optional: [
                "address": tag, "expires_at": moment, "jurisdiction": .text(byteCountMax: 6),
                "notice": .object(
                    EntryMembers(required: [
                        "id": .name, "language": .text(byteCountMax: 35), "sha256": digest, "version": .name,
                    ])), "withdraws": tag,
            ]),
        .preference: EntryMembers(
            required: [
                "caller": .name, "channel": code, "scope": typeName, "source": code, "state": code,
                "subject": tag,
            ], optional: ["destination": tag, "event_time": moment]),
        .erasure: EntryMembers(required: ["caller": .name, "subject": tag]),
        .switchOff: EntryMembers(
            required: ["means": code, "subject": tag], optional: ["category": code, "send_id": .uuid]),
        .review: EntryMembers(
            required: ["category": code, "cause": code, "count": count, "since": moment, "usual": count]),
        .policy: EntryMembers(
            required: ["approvals": approvals, "policy": digest],
            optional: ["caller": .name, "version": count]),
        .policyRefused: EntryMembers(
            required: ["policy": digest, "problems": count], optional: ["caller": .name, "refused": digest]),
        .unknownPeer: EntryMembers(
            required: ["count": count, "uid": uid], optional: ["gid": uid, "listener": count, "pid": count]),
        .explain: EntryMembers(required: ["caller": .name, "count": count]),
        .clock: EntryMembers(required: ["previous": moment, "uid": uid]),
        .start: EntryMembers(
            required: [
                "approvals": approvals, "policy": digest, "tzdata": .text(byteCountMax: 32),
                "version": .name,
            ], optional: ["keys": .array(of: .object(foundKey), countMax: 320)]),
        .stop: EntryMembers(required: ["policy": digest]),
    ])

    /// A pseudonym, a key id or a keyed tag.
    private static let tag = EntryShape.hexadecimal(byteCount: 16)
    /// What one event is marked by on each channel it may be told on.
    private static let eventTags = EntryMembers(
        required: [:], optional: ["email": tag, "push": tag, "sms": tag])
    private static let digest = EntryShape.hexadecimal(byteCount: 32)
    /// A key of the gateway's own that the start found for the first time, or one that another took the place of.
    private static let foundKey = EntryMembers(
        required: ["cause": code, "event": code, "key": keyName, "purpose": code, "state": code],
        optional: ["public_key": digest])
    /// The id of a key of the gateway's own: `[dev-]purpose-16 hex digits`.
    private static let keyName = EntryShape.text(byteCountMax: 64)
    /// Who approved the bundle, as which role; empty when nobody did. Three roles with up to 64 keys each.
    private static let approvals = EntryShape.array(
        of: .object(EntryMembers(required: ["key": .text(byteCountMax: 255), "role": code])), countMax: 192)
    private static let count = EntryShape.integer(0...9_007_199_254_740_991)
    private static let moment = EntryShape.integer(-9_007_199_254_740_991...9_007_199_254_740_991)
    /// An IANA zone name that tzdata knows.
    private static let zone = EntryShape.text(byteCountMax: 64)
    /// Minutes after local midnight.
    private static let quietHours = EntryShape.object(
        EntryMembers(required: ["end": .integer(0...1439), "start": .integer(0...1439)]))
    private static let uid = EntryShape.integer(0...4_294_967_295)
    /// A name out of one of our own closed lists.
    private static let code = EntryShape.name
    /// A type of the registry, or a category.
    private static let typeName = EntryShape.name
    private static let region = EntryShape.object(
        EntryMembers(required: [
            "code": .text(byteCountMax: 6), "observed_at": moment, "source": code,
        ]))
    private static let consentFact = EntryShape.object(
        EntryMembers(required: ["state": code], optional: ["expires_at": moment, "method": code]))

    private static let decision = EntryShape.object(
        EntryMembers(
            required: [
                "form": code, "interruption": code, "notes": .array(of: code, countMax: 8), "outcome": code,
                "reason": code, "trace": .array(of: .text(byteCountMax: 64), countMax: 13),
            ], optional: ["detail": code, "not_before": moment]))

    private static let facts = EntryShape.object(
        EntryMembers(optional: [
            "account_preference": code, "account_region": region, "account_type_preference": code,
            "age": code, "category_count": count, "consent": consentFact, "critical_alerts": .boolean,
            "destination": code, "destination_preference": code, "destination_type_preference": code,
            "device_key": code, "device_regions": .array(of: region, countMax: 64), "due": moment,
            "everything_count": count,
            "expiry": moment, "fallback": code, "now": moment, "os_permission": code, "params": code,
            "own_request": consentFact, "platform": code, "privacy": code, "purpose_consent": consentFact,
            "push_enabled": .boolean,
            "quiet_hours": .object(EntryMembers(required: ["state": code], optional: ["ends_at": moment])),
            "recipient": code, "repetition": code,
            "sizes": .object(EntryMembers(optional: ["full": count, "generic": count, "sealed": count])),
            "type_count": count, "withheld": .boolean,
        ]))
}
