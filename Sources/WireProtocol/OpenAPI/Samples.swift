import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// The example answers of the reference: real values, encoded by the code that encodes real answers.
package enum Samples {
    package static let moment = Instant(milliseconds: 1_795_237_200_000)
    package static let policy = PolicyDigest(
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
    package static let sendID = SendID(high: 0x7d1c_0d52_93a1_4f0e, low: 0x8d7b_2f3f_1f0a_9c11)
    package static let messageID = MessageID(high: 0x0c9f_5a3e_6c1b_4e52, low: 0x9a1f_3f6f_3d1f_7a10)
    private static let subject = SubjectID(high: 0x9F86_D081_884C_7D65, low: 0x9A2F_EAA0_C55A_D015)
    private static let tag = Tag(high: 0x2C26_B46B_68FF_C68F, low: 0xF99B_453C_1D30_4134)
    package static let keyID = KeyID(high: 0x5b1d_9f04_77aa_4c31, low: 0x8c02_f3d1_90be_6a55)
    package static let trail = TrailReference(
        origin: "sendgate.example/trail", index: 41_873, leaf: (0..<32).map { UInt8($0) &* 7 &+ 11 })
    package static let recorded = RecordedAnswer(trail: trail)

    package static let forwarded = SendAnswer(
        id: RequestID("rem-8812736-sent"), sendID: sendID, policy: policy,
        deliveries: [
            SendAnswer.Delivery(
                destination: "d_1", outcome: .forward, reason: .allowed, detail: nil, gate: nil,
                messageID: messageID, keyID: keyID),
            SendAnswer.Delivery(
                destination: "d_2", outcome: .suppress, reason: .blockedAtOSLevel, detail: nil,
                gate: .osPermission),
        ],
        hidesRecipient: false, trail: trail)

    package static let deferred = SendAnswer(
        id: RequestID("rem-8812737-sent"), sendID: sendID, policy: policy,
        deliveries: [
            SendAnswer.Delivery(
                destination: "d_1", outcome: .defer, reason: .quietHoursDeferred, detail: nil,
                gate: .quietHours, messageID: messageID, notBefore: moment.advanced(bySeconds: 25_200))
        ],
        hidesRecipient: false, trail: trail)

    package static let refused = SendAnswer(
        id: RequestID("promo-2026-11"), sendID: sendID, policy: policy,
        deliveries: [
            SendAnswer.Delivery(
                destination: "d_1", outcome: .reject, reason: .noGDPRConsent, detail: .neverAsked,
                gate: .permission)
        ],
        hidesRecipient: false, trail: trail)

    package static let event = SendEvent(
        cursor: 912, send: sendID, event: .handedOver, destination: "d_1", at: moment, reason: nil)

    package static let status = SendStatusAnswer(
        decision: forwarded, type: TypeID("transaction.remittance_sent"), channel: .push, receivedAt: moment,
        waiting: [], events: [event])

    package static let cancelled = CancelAnswer(
        sendID: sendID, withdrawn: ["d_1"], underWay: [], gone: [], trail: trail)

    package static let reply = ReplyAnswer(
        trail: trail, effect: .withdrawn,
        confirmation: .init(
            language: "en", text: "Drop: You are unsubscribed at this number.",
            until: moment.advanced(bySeconds: 300)))
    package static let acknowledged = AcknowledgeAnswer(withdrawn: [sendID], trail: trail)

    package static let explanation = ExplainAnswer(
        policy: policy,
        request: AttestedRequest(
            caller: CallerName("marketing"), type: TypeID("promo.offer"), channel: .push, critical: false),
        deliveries: [
            {
                var facts = Facts()
                facts.now = moment
                facts.recipient = .registered
                facts.consent = ConsentFact(state: .neverAsked)
                var trace = Trace()
                for gate in Gate.allCases { trace[gate] = .pass }
                trace[.permission] = .fail(.noGDPRConsent, .neverAsked)
                trace[.deviceKey] = .notApplicable
                return ExplainAnswer.Delivery(
                    destination: "d_1", facts: facts,
                    decision: Decision(
                        outcome: .reject, reason: .noGDPRConsent, detail: .neverAsked, notBefore: nil,
                        form: .never, interruption: .passive, notes: [], trace: trace),
                    sentence:
                        Sentence.reason(.noGDPRConsent, .neverAsked).english
                )
            }()
        ])

    package static let type = TypeAnswer(
        type: TypeID("transaction.remittance_sent"), means: "Money the customer sent abroad is on its way.",
        category: .transactional, tier: .important, sensitivity: .high, isEnabled: true, disabledHint: nil,
        isMandatory: false, dischargedBy: [], isCriticalAllowed: false, isPermitted: true,
        channels: [.push: .sealed, .email: .generic], purpose: nil, ttlSeconds: 86_400,
        linkPrefixes: ["drop://"],
        params: [
            "type": "object", "additionalProperties": false, "required": ["transaction_id"],
            "properties": ["transaction_id": ["type": "string", "format": "uuid"]],
        ],
        example: [
            "id": "rem-8812736-sent", "type": "transaction.remittance_sent", "recipient": ["user": "u_42"],
            "params": ["transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"],
        ])

    package static let consent = HeldConsent(
        ConsentRecord(
            sequence: 1, subject: subject, id: "c-20261120-1", idTag: tag, purpose: .marketing,
            channel: .push,
            address: nil, state: .given, eventTime: moment, receivedAt: moment, method: .inAppToggle,
            source: CallerName("product"), jurisdiction: "DE",
            notice: ConsentRecord.NoticeReference(
                id: "promo", version: "3",
                sha256: "eecb1f49034f3bf94d6f56910ccbc6bdf7ef40b518a7ad28f93013b21246343f", language: "nb"),
            expiresAt: nil, withdraws: nil, previousHash: ""), address: nil, withdraws: nil,
        lawfulBasis: "consent (GDPR Arts. 6(1)(a) and 7)")

    package static let consents = ConsentsAnswer(
        query: ConsentsQuery(asOf: moment, knownAt: nil), records: [consent],
        standing: [
            ConsentsAnswer.Standing(
                purpose: .marketing, channel: .push, address: nil,
                consent: ConsentFact(state: .given, method: .inAppToggle), hasExpired: false)
        ])

    package static let personImported: ImportAnswer = {
        var recorded = ImportCounts()
        (recorded.recipients, recorded.devices, recorded.consents) = (1, 1, 1)
        return ImportAnswer(
            recorded: recorded, unchanged: ImportCounts(), kept: [],
            refused: [
                ImportRefusal(
                    JSONPointer(["consents", "1"]), .invalidRequest,
                    "the member is missing at `/consents/1/notice`")
            ], trail: trail)
    }()

    package static let preferencesRecorded = PreferencesRecordedAnswer(
        choices: [
            PreferencesRecordedAnswer.Choice(
                scope: "social", channel: .push, destination: "d_1",
                recorded: RecordedAnswer(trail: trail)),
            PreferencesRecordedAnswer.Choice(
                scope: "marketing", channel: .email, destination: nil,
                recorded: RecordedAnswer(trail: trail, noEffect: .alreadySo)),
        ])

    package static let transition = HeldChoice(
        PreferenceRecord(
            subject: subject, scope: "marketing", channel: .push, destination: tag, state: .userOff,
            source: .inAppSettings, at: moment, caller: CallerName("product")), at: "d_1")

    package static let preferences = PreferencesAnswer(
        rows: [
            PreferencesAnswer.Row(
                scope: "marketing", channel: .push, destination: "d_1", chosen: .userOff,
                isEffectivelyOn: false,
                why: "chosen", howToFix: "Switch marketing on for this device in the app's settings.",
                source: "in_app_settings", at: moment)
        ],
        prompts: [
            PreferencesAnswer.Prompt(
                device: "d_1", osPermission: .notDetermined, shownAt: moment, mayPrompt: false)
        ])

    package static let decision = DecisionsAnswer.Row(
        send: sendID, caller: CallerName("marketing"), type: TypeID("promo.offer"), channel: .push,
        at: moment,
        outcome: .reject, reason: .noGDPRConsent, detail: .neverAsked,
        sentence:
            Sentence.reason(.noGDPRConsent, .neverAsked).english,
        deliveries: refused.deliveries, waiting: [], events: [], trail: trail)

    package static let recipient = RecipientAnswer(
        user: UserID("u_42"),
        record: RecipientRecord(
            subject: subject,
            region: RegionCode("DE").map { RegionObservation(code: $0, source: .kyc, observedAt: moment) },
            age: .adult, locale: "nb", timeZone: "Europe/Berlin", privacy: .generic, pushEnabled: true,
            quietHours: QuietHours(startMinute: 1260, endMinute: 480), registeredAt: moment, updatedAt: moment
        ),
        devices: [
            HeldDevice(
                DeviceRecord(
                    subject: subject, tag: tag, id: DestinationID("d_1"), platform: .ios,
                    app: "no.getdrop.app",
                    token: "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad", region: nil,
                    timeZone: "Europe/Berlin", osPermission: .granted, criticalAlerts: true, isActive: true,
                    seenAt: moment, subscriptions: .init(states: [.marketing: true], observedAt: moment)),
                keys: [
                    DeviceKeyRecord(
                        key: keyID, subject: subject, device: tag, suite: DeviceKeyBody.Suite.p256.rawValue,
                        publicKey: [], state: "active", challenge: nil, createdAt: moment, changedAt: moment)
                ])
        ],
        addresses: [
            AddressRecord(
                subject: subject, tag: tag, id: DestinationID("a_1"), channel: .sms, value: "+4790000000",
                verifiedAt: moment, updatedAt: moment)
        ],
        consents: [consent], preferences: [transition],
        prompts: [
            HeldPrompt(
                PermissionPrompt(subject: subject, device: tag, shownAt: moment, answer: .granted), at: "d_1")
        ],
        drifts: [
            HeldDrift(
                DriftFinding(
                    .subscribedWhileOff, .repaired, category: .marketing, old: "subscribed",
                    new: "unsubscribed"),
                at: "d_1")
        ],
        decisions: DecisionsAnswer(rows: [decision]))

    package static let challenge = KeyChallengeAnswer(
        key: keyID,
        challenge: [
            "v": 1, "s": .string(DeviceKeyBody.Suite.p256.rawValue), "kid": .string(keyID.hexadecimal),
            "mid": .string(messageID.hexadecimal), "exp": 1_795_237_500, "ct": "BGsX0fLhLEJH",
        ],
        oldKeyChallenge: nil, expiresAt: moment.advanced(bySeconds: 300), trail: trail)

    package static let keys = KeysAnswer(keys: [
        KeyAnswer(
            key: "origin-2026", purpose: "origin", suite: "Ed25519", state: "active", createdAt: moment,
            changedAt: moment, publicKey: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
    ])

    package static let keyChanged = KeyChangedAnswer(key: "origin-2026", state: "active", trail: trail)
    package static let keyAdded = KeyChangedAnswer(
        key: "origin-9f86d081884c7d65", state: "pre_activation", trail: trail)
    package static let keyProposed = KeyChangedAnswer(
        key: "origin-2026", state: "deactivated", trail: trail, secondCallerBy: moment)
    package static let driftRun = DriftRunAnswer(
        startedAt: moment, startedBy: CallerName("product"), finishedAt: moment.advanced(bySeconds: 90),
        isDryRun: false, examinedCount: 41_874, unreadableCount: 0, recordedCount: 12, resolvedCount: 3,
        found: [.blockedAtOS: [.marked: 118], .subscribedWhileOff: [.repaired: 7]])
    package static let driftRunUnderWay = DriftRunAnswer(
        startedAt: moment, startedBy: CallerName("product"), finishedAt: nil, isDryRun: false,
        examinedCount: 500, unreadableCount: 0, recordedCount: 0, resolvedCount: 0, found: [:])
    package static let driftFindings = DriftFindingsAnswer(
        rows: [
            .init(
                subject: subject,
                finding: DriftFinding(
                    .subscribedWhileOff, .repaired, category: .marketing, old: "subscribed",
                    new: "unsubscribed"), device: "d_1", app: "no.getdrop.app",
                token: "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad")
        ], next: nil)
    package static let deviceKeysRevoked = DeviceKeysRevokedAnswer(
        examinedCount: 64, revokedCount: 3, unreadableCount: 0, next: keyID, isDryRun: false)
    package static let keysetInForce = KeysetChangedAnswer(
        version: 7, expiresAt: moment, secondCallerBy: nil, trail: trail)
    package static let keysetProposed = KeysetChangedAnswer(
        version: 7, expiresAt: moment, secondCallerBy: moment, trail: trail)
    package static let keyLag = KeyLagAnswer(key: "data-2026", rowCount: 1_204, isDone: false)
    package static let policyActivated = PolicyActivatedAnswer(policy: policy, previous: nil, trail: trail)

    package static let readiness = ReadinessAnswer(checks: [
        .init(name: "store", isPassed: true, detail: nil), .init(name: "trail", isPassed: true, detail: nil),
    ])

    package static let unready = ReadinessAnswer(checks: [
        .init(name: "store", isPassed: true, detail: nil),
        .init(
            name: "trail", isPassed: false,
            detail: "the published trail is 7 s behind; check the disk of the trail directory"),
    ])

    package static let checkpoint = """
        sendgate.example/trail
        41874
        nND/nri/U0xuHUrYSy0HtMeal2vzD9V4k/BO79C+QeI=

        — sendgate.example/trail 5b1d9f0477aa4c31

        """

    package static let keyset = """
        sendgate/keyset/v1
        sendgate.example/trail
        version 7
        issued 1795000000
        expires 1826536000
        origin 9f86d081884c7d65 active bnZ5d2Fnc3J3ZnN0ZWluaG9sZGVyZWlnZW50dW1zbmE=
        trail 0a1b2c3d4e5f6071 active c2Vjb25kIGtleSBvZiB0aGlydHktdHdvIGJ5dGVzLi4=

        — sendgate.example/authority 5b1d9f0477aa4c31

        """

    package static func problem(_ name: ProblemName) -> Problem {
        switch name {
        case .invalidRequest:
            Problem(
                name,
                violations: [
                    Violation(
                        .body(JSONPointer(["recipient", "user"])),
                        "the member is missing; expected \(TextRule.identifier.expectation)")
                ])
        case .malformedJSON:
            Problem(name, detail: "expected `,` or `}` at byte 57 (`/recipient`)")
        case .bodyTooLarge:
            Problem(
                name, detail: "the body has 65537 bytes; at most \(WireLimits.bodyByteCountMax) are accepted")
        default: Problem(name)
        }
    }
}
