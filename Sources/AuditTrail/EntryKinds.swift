import CanonicalJSON
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
    /// A caller said that an event need not be told any more.
    package static let acknowledgement = EntryKind("acknowledgement")
    /// A notice that a law obliges us to send reached its recipient by no channel; names the way it must go instead.
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
    /// One of the gateway's own keys came into another state, or a caller proposed to destroy it.
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
    /// A caller asked for a bundle that has problems; the one in force stayed.
    package static let policyRefused = EntryKind("policy_refused")
    /// A peer that matched no caller.
    package static let unknownPeer = EntryKind("unknown_peer")
    /// Decisions about stored people were explained, aggregated.
    package static let explain = EntryKind("explain")
    /// An operator accepted a clock that had stepped; the only entry whose time may be before that of the one in front
    /// of it.
    package static let clock = EntryKind("clock")
    /// The entries that a backup lacked are in the store again; from here on the trail has another name.
    package static let restore = EntryKind("restore")
    package static let start = EntryKind("start")
    package static let stop = EntryKind("stop")
}

extension EntrySchema {
    /// The closed table of the trail's format, version 1 (handbook, "Audit format").
    ///
    /// Texts and params are in none of them. A person is a pseudonym (16 bytes), whatever a caller or a
    /// recipient chose is a keyed tag (16 bytes).
    package static let version1 = EntrySchema([
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
        .unsent: .members(required: [
            "cause": code, "destination": tag, "message_id": .uuid, "send_id": .uuid, "subject": tag,
        ]),
        .delivery: .members(
            required: [
                "attempts": count, "destination": tag, "message_id": .uuid, "result": code, "send_id": .uuid,
                "subject": tag,
            ], optional: ["status": .integer(100...599)]),
        .cancel: .members(required: ["caller": .name, "send_id": .uuid, "withdrawn": count]),
        .acknowledgement: .members(required: [
            "caller": .name, "event_tags": .object(eventTags), "subject": tag, "type": typeName,
            "withdrawn": count,
        ]),
        .mandatoryUnreached: .members(required: [
            "must_go_by": .text(byteCountMax: 256), "policy": digest, "send_id": .uuid,
            "subject": .nullable(tag), "type": typeName, "within": .text(byteCountMax: 256),
        ]),
        .receipt: .members(
            required: [
                "at": moment, "caller": .name, "channel": code, "destination": tag, "event": code,
                "send_id": .uuid,
            ],
            optional: [
                "act": code, "category": code, "opened_after": count, "subject": tag, "tapped": .boolean,
            ]),
        .reply: .members(
            required: [
                "at": moment, "caller": .name, "channel": code, "effect": code, "id_tag": tag,
                "subjects": .list(of: tag, countMax: 100),
            ], optional: ["confirmation": .text(byteCountMax: 35), "why": code]),
        .recipient: .members(
            required: [
                "action": code, "caller": .name, "privacy": code, "push_enabled": .boolean, "subject": tag,
            ], optional: ["age": code, "quiet_hours": quietHours, "region": region, "time_zone": zone]),
        .device: .members(
            required: ["action": code, "caller": .name, "device": tag, "subject": tag],
            optional: [
                "critical_alerts": .boolean, "os_permission": code, "platform": code, "region": region,
                "time_zone": zone, "token_changed": .boolean,
            ]),
        .address: .members(
            required: ["action": code, "address": tag, "caller": .name, "subject": tag],
            optional: [
                "channel": code, "number_prefix": .text(byteCountMax: 5), "replaced": tag,
                "verified": .boolean,
            ]),
        .permissionPrompt: .members(
            required: ["action": code, "caller": .name, "device": tag, "shown_at": moment, "subject": tag],
            optional: ["answer": code]),
        .subscription: .members(required: [
            "caller": .name, "device": tag, "observed_at": moment,
            "states": .object(
                .members(
                    required: [:],
                    optional: [
                        "marketing": .boolean, "security": .boolean, "social": .boolean,
                        "transactional": .boolean,
                    ])), "subject": tag,
        ]),
        .drift: .members(
            required: ["action": code, "caller": .name, "finding": code, "old": code, "subject": tag],
            optional: ["category": code, "device": tag, "new": code]),
        .deviceKey: .members(
            required: [
                "caller": .name, "device": tag, "key_id": tag, "state": code, "subject": tag,
                "suite": .text(byteCountMax: 64),
            ], optional: ["cause": code, "event": code, "forgotten": .boolean, "proof": code]),
        .gatewayKey: .members(
            required: ["cause": code, "event": code, "key": keyName, "purpose": code, "state": code],
            optional: ["caller": .name, "proposed_by": .name, "public_key": digest]),
        .keyset: .members(
            required: [
                "caller": .name, "digest": digest, "event": code, "expires_at": moment, "version": count,
            ], optional: ["proposed_by": .name]),
        .consent: .members(
            required: [
                "caller": .name, "channel": code, "consent": tag, "event_time": moment, "method": code,
                "previous": .text(byteCountMax: 64), "purpose": .name, "state": code, "subject": tag,
            ],
            optional: [
                "address": tag, "expires_at": moment, "jurisdiction": .text(byteCountMax: 6),
                "notice": .object(
                    .members(required: [
                        "id": .name, "language": .text(byteCountMax: 35), "sha256": digest, "version": .name,
                    ])), "withdraws": tag,
            ]),
        .preference: .members(
            required: [
                "caller": .name, "channel": code, "scope": typeName, "source": code, "state": code,
                "subject": tag,
            ], optional: ["destination": tag, "event_time": moment]),
        .erasure: .members(required: ["caller": .name, "subject": tag]),
        .switchOff: .members(
            required: ["means": code, "subject": tag], optional: ["category": code, "send_id": .uuid]),
        .review: .members(
            required: ["category": code, "cause": code, "count": count, "since": moment, "usual": count]),
        .policy: .members(
            required: ["approvals": approvals, "policy": digest],
            optional: ["caller": .name, "version": count]),
        .policyRefused: .members(
            required: ["policy": digest, "problems": count], optional: ["caller": .name, "refused": digest]),
        .unknownPeer: .members(
            required: ["count": count, "uid": uid], optional: ["gid": uid, "listener": count, "pid": count]),
        .explain: .members(required: ["caller": .name, "count": count]),
        .clock: .members(required: ["previous": moment, "uid": uid]),
        .restore: .members(required: [
            "applied": .object(restoredCounts), "backup": count, "origin": .text(byteCountMax: 320),
            "previous": .object(
                .members(required: [
                    "origin": .text(byteCountMax: 320), "root": digest, "size": count,
                ])), "skipped": .object(restoredCounts), "tail_lost": .boolean, "uid": uid,
        ]),
        .start: .members(
            required: [
                "approvals": approvals, "policy": digest, "tzdata": .text(byteCountMax: 32),
                "version": .name,
            ],
            optional: [
                "keys": .list(of: .object(foundKey), countMax: 320),
                "pins": .list(of: .object(changedPin), countMax: 400),
            ]),
        .stop: .members(required: ["policy": digest]),
    ])

    private static let tag = Shape.tag
    /// What one event is marked by on each channel it may be told on.
    private static let eventTags = ObjectShape.members(
        required: [:], optional: ["email": tag, "push": tag, "sms": tag])
    private static let digest = Shape.text(.sha256)
    /// A key of the gateway's own that the start found for the first time, or one that another took the place of.
    private static let foundKey = ObjectShape.members(
        required: ["cause": code, "event": code, "key": keyName, "purpose": code, "state": code],
        optional: ["public_key": digest])
    /// A public key that the configuration pins, or pins no more: up to 64 of each of three roles, and four authorities.
    private static let changedPin = ObjectShape.members(
        required: ["event": code, "key": .text(byteCountMax: 255), "purpose": code],
        optional: ["role": code])
    private static let restoredCounts = ObjectShape.members(
        required: [:],
        optional: [
            "addresses": count, "consents": count, "device_keys": count, "devices": count,
            "erasures": count, "gateway_keys": count, "messages": count, "others": count,
            "policies": count, "preferences": count, "recipients": count, "sends": count,
            "withdrawals": count,
        ])
    /// A result of a gate in a trace: `pass`, `not_applicable`, or a reason with what it is about.
    static let gateResultByteCountMax = 64
    /// The id of a key of the gateway's own: `[dev-]purpose-16 hex digits`.
    private static let keyName = Shape.text(byteCountMax: 64)
    /// Who approved the bundle, as which role; empty for a bundle without an approval. Three roles with up to 64 keys each.
    private static let approvals = Shape.list(
        of: .object(.members(required: ["key": .text(byteCountMax: 255), "role": code])), countMax: 192)
    private static let count = Shape.count
    private static let moment = Shape.anyInteger
    /// An IANA zone name that tzdata knows.
    private static let zone = Shape.text(byteCountMax: 64)
    /// Minutes after local midnight.
    private static let quietHours = Shape.object(
        .members(required: ["end": .integer(0...1439), "start": .integer(0...1439)]))
    private static let uid = Shape.integer(0...4_294_967_295)
    /// A name out of one of our own closed lists.
    private static let code = Shape.name
    /// A type of the registry, or a category.
    private static let typeName = Shape.name
    private static let region = Shape.object(
        .members(required: [
            "code": .text(byteCountMax: 6), "observed_at": moment, "source": code,
        ]))
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
