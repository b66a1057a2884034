import GateSteps
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto
import GateRecords

// Records with every field set, told apart by a number.

extension RandomIdentifier {
    static func sample(_ number: Int) -> Self { Self(high: 0x5EED, low: UInt64(number)) }
}

extension Instant {
    /// 2026-03-02T21:00:00Z and some seconds.
    static func sample(_ seconds: Int64 = 0) -> Instant { Instant(seconds: 1_772_485_200 + seconds) }
}

extension RecipientRecord {
    static func sample(_ subject: SubjectID) -> RecipientRecord {
        RecipientRecord(
            subject: subject,
            region: RegionObservation(code: RegionCode("DE")!, source: .kyc, observedAt: .sample(-60)),
            age: .adult, locale: "nb", timeZone: "Europe/Berlin", privacy: .generic, pushEnabled: true,
            quietHours: QuietHours(startMinute: 1260, endMinute: 480), registeredAt: .sample(),
            updatedAt: .sample(5))
    }

    /// Nothing known beyond what is required.
    static func bare(_ subject: SubjectID) -> RecipientRecord {
        RecipientRecord(
            subject: subject, region: nil, age: nil, locale: nil, timeZone: nil, privacy: .hidden,
            pushEnabled: false, quietHours: nil, registeredAt: .sample(), updatedAt: .sample())
    }
}

extension DeviceRecord {
    static func sample(_ subject: SubjectID, _ number: Int = 1) -> DeviceRecord {
        DeviceRecord(
            subject: subject, tag: .sample(number), id: DestinationID("device-\(number)"), platform: .ios,
            provider: number == 1 ? nil : .expo, app: "no.getdrop.app", token: "token-of-device-\(number)",
            region: RegionObservation(code: RegionCode("US-CA")!, source: .sim, observedAt: .sample(-5)),
            timeZone: "America/Los_Angeles", osPermission: .provisional, criticalAlerts: true, isActive: true,
            seenAt: .sample(number == 1 ? 0 : Int64(number)))
    }
}

extension AddressRecord {
    static func sample(_ subject: SubjectID, _ number: Int = 1) -> AddressRecord {
        AddressRecord(
            subject: subject, tag: .sample(100 + number), id: DestinationID("address-\(number)"),
            channel: .sms, value: "+47 900 00 00\(number)", verifiedAt: .sample(3),
            contestedAt: .sample(2), updatedAt: .sample(4))
    }
}

extension DeviceKeyRecord {
    static func sample(_ subject: SubjectID, _ number: Int = 1, createdAt: Instant = .sample())
        -> DeviceKeyRecord
    {
        DeviceKeyRecord(
            key: .sample(200 + number), subject: subject, device: .sample(1), suite: "P256_SHA256_AES256GCM",
            publicKey: [UInt8](repeating: UInt8(number), count: 65), state: "pre_activation",
            challenge: PendingChallenge(
                expectedProof: [UInt8](repeating: 0xAA, count: 32),
                expectedOldKeyProof: [UInt8](repeating: 0xBB, count: 32), oldKey: .sample(199),
                expiresAt: .sample(300)),
            createdAt: createdAt, changedAt: .sample(1))
    }
}

extension ConsentRecord {
    static func sample(_ subject: SubjectID, _ number: Int = 1, state: State = .given) -> ConsentRecord {
        ConsentRecord(
            subject: subject, id: "consent-\(number)", idTag: .sample(300 + number), purpose: .marketing,
            channel: .sms, address: .sample(101), state: state, eventTime: .sample(Int64(number)),
            receivedAt: .sample(Int64(number) + 1), method: .doubleOptIn, source: CallerName("app-backend"),
            jurisdiction: "DE",
            notice: NoticeReference(
                id: "promo", version: "3", sha256: String(repeating: "ab", count: 32), language: "nb"),
            expiresAt: .sample(86_400), withdraws: state == .withdrawn ? .sample(300) : nil,
            previousHash: String(repeating: "cd", count: 32), entryIndex: 17)
    }
}

extension PreferenceRecord {
    static func sample(
        _ subject: SubjectID, scope: String = "marketing", destination: Tag? = nil,
        state: PreferenceState = .userOff, at: Instant = .sample()
    ) -> PreferenceRecord {
        PreferenceRecord(
            subject: subject, scope: scope, channel: .push, destination: destination, state: state,
            source: .inAppSettings, at: at, caller: CallerName("app-backend"))
    }
}

extension SendRecord {
    static func sample(
        _ number: Int, subject: SubjectID? = nil, caller: String = "payments", at: Instant = .sample()
    ) -> SendRecord {
        SendRecord(
            id: .sample(number), caller: CallerName(caller), idHash: Tag.sample(1_000_000 + number).bytes,
            contentMAC: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 32), subject: subject,
            type: TypeID("transaction.remittance_sent"), category: .transactional, channel: .push,
            receivedAt: at, entryIndex: UInt64(number), requestID: "rem-\(number)-sent",
            destinationNames: [.sample(1): "device-1", .sample(2): "device-2"])
    }
}

extension OutboxRecord {
    static func sample(
        _ number: Int, send: SendID = .sample(1), subject: SubjectID = .sample(1),
        caller: String = "payments", category: Category = .transactional, tier: Tier = .important,
        notBefore: Instant = .sample(), body: [UInt8] = Array("{\"aps\":{}}".utf8)
    ) -> OutboxRecord {
        OutboxRecord(
            message: .sample(number), send: send, subject: subject, destination: .sample(1),
            request: AttestedRequest(
                caller: CallerName(caller), type: TypeID("transaction.remittance_sent"), channel: .push,
                critical: true),
            category: category, tier: tier, state: .ready, form: .sealed, interruption: .timeSensitive,
            key: .sample(201), headers: Array("{\"apns-priority\":\"10\"}".utf8), body: body,
            facts: Array("{}".utf8),
            traceParent: TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            decidedAt: .sample(), notBefore: notBefore, expiresAt: .sample(3600),
            attemptCount: 2, attemptedAt: .sample(1))
    }
}

extension EventRecord {
    static func sample(
        _ number: Int, caller: String = "payments", subject: SubjectID? = nil, at: Instant = .sample()
    ) -> EventRecord {
        EventRecord(
            caller: CallerName(caller), send: .sample(number), subject: subject, event: .failed,
            destination: .sample(1), at: at, reason: "Unregistered", entryIndex: 0)
    }
}

extension StoredEntry {
    static func sample(_ index: UInt64, at: Instant = .sample()) -> StoredEntry {
        StoredEntry(index: index, time: at, bytes: Array("{\"index\":\(index)}".utf8))
    }
}

extension DutyRecord {
    static func sample(
        _ number: Int, subject: SubjectID = .sample(1), state: State = .owed, dueAt: Instant = .sample()
    ) -> DutyRecord {
        DutyRecord(
            duty: .sample(number), subject: subject, state: state, send: .sample(number),
            caller: CallerName("security"), type: TypeID("privacy.breach_notice"), mustGoBy: "letter",
            within: "without undue delay", dueAt: dueAt)
    }
}

extension GateMemory {
    /// A registered person with one of everything.
    func register(_ user: String, _ number: Int = 1) throws -> SubjectID {
        let subject = try makeSubject(for: UserID(user), subject: .sample(number)).id
        try putRecipient(.sample(subject))
        try putDevice(.sample(subject))
        try putAddress(.sample(subject))
        var key = DeviceKeyRecord.sample(subject)
        key.key = .sample(10_000 + number)
        try putDeviceKey(key)
        try appendConsent(.sample(subject))
        try appendPreference(.sample(subject))
        try putPermissionPrompt(
            PermissionPrompt(subject: subject, device: .sample(1), shownAt: .sample(), answer: .granted))
        return subject
    }
}

/// Which change a commit refuses; `nil` where it writes all.
func refusedChange(_ commit: () throws -> CommitReceipt) throws -> Int? {
    do {
        _ = try commit()
        return nil
    } catch let refused as RefusedChange {
        return refused.change
    }
}
