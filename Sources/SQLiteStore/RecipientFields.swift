import GateVocabulary
import GatewayPipeline
import GateRecords

// How a person's state lies in its sealed column.

extension RecipientState: SealedRow {
    /// Bytes of one state at most, before they are sealed: 20 devices with as many keys as are kept, 20 addresses and every
    /// consent and choice at each of them take less than half of it.
    static let byteCountMax = 1 << 20

    static let table = "person"
    static let layouts: ClosedRange<UInt8> = 4...4
    var fieldByteCount: Int { 1024 }

    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ person: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        let consentCount = try fields.integer(person?.consentCount, in: 0...StoredRow.countMax)
        let choiceCount = try fields.integer(person?.choiceCount, in: 0...StoredRow.countMax)
        return Self(
            fields.subject(person?.subject), record: try fields.optional(person?.record),
            devices: try fields.list(person?.devices), addresses: try fields.list(person?.addresses),
            keys: try fields.list(person?.keys),
            consentsInForce: try fields.required(person?.consentsInForce),
            preferences: try fields.list(person?.preferences), prompts: try fields.list(person?.prompts),
            drifts: try fields.list(person?.drifts), consentCount: consentCount, choiceCount: choiceCount)
    }
}

extension RecipientRecord: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ record: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            subject: fields.subject(record?.subject), region: try fields.optional(record?.region),
            age: try fields.optional(record?.age), locale: try fields.optional(record?.locale),
            timeZone: try fields.optional(record?.timeZone), privacy: try fields.required(record?.privacy),
            pushEnabled: try fields.required(record?.pushEnabled),
            quietHours: try fields.optional(record?.quietHours),
            registeredAt: try fields.required(record?.registeredAt),
            updatedAt: try fields.required(record?.updatedAt))
    }
}

extension RegionObservation: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ region: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            code: try fields.region(region?.code), source: try fields.required(region?.source),
            observedAt: try fields.required(region?.observedAt))
    }
}

extension QuietHours: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ hours: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            startMinute: try fields.integer(hours?.startMinute, in: 0...1439),
            endMinute: try fields.integer(hours?.endMinute, in: 0...1439))
    }
}

extension DeviceRecord: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ device: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            subject: fields.subject(device?.subject), tag: try fields.required(device?.tag),
            id: try fields.required(device?.id), platform: try fields.required(device?.platform),
            provider: try fields.optional(device?.provider), app: try fields.required(device?.app),
            token: try fields.required(device?.token),
            region: try fields.optional(device?.region), timeZone: try fields.optional(device?.timeZone),
            osPermission: try fields.required(device?.osPermission),
            criticalAlerts: try fields.required(device?.criticalAlerts),
            isActive: try fields.required(device?.isActive), seenAt: try fields.required(device?.seenAt),
            subscriptions: try fields.optional(device?.subscriptions))
    }
}

extension ProviderSubscriptions: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ subscriptions: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            states: try fields.dictionary(subscriptions?.states) { $0.key.code < $1.key.code },
            observedAt: try fields.required(subscriptions?.observedAt))
    }
}

extension AddressRecord: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ address: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            subject: fields.subject(address?.subject), tag: try fields.required(address?.tag),
            id: try fields.required(address?.id), channel: try fields.required(address?.channel),
            value: try fields.required(address?.value), numberPrefix: address?.numberPrefix,
            verifiedAt: try fields.optional(address?.verifiedAt),
            contestedAt: try fields.optional(address?.contestedAt),
            updatedAt: try fields.required(address?.updatedAt))
    }
}

extension DeviceKeyRecord: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ record: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        let key = try fields.required(record?.key)
        let device = try fields.required(record?.device)
        let suite = try fields.required(record?.suite)
        let publicKey = try fields.required(record?.publicKey)
        let state = try fields.required(record?.state)
        let createdAt = try fields.required(record?.createdAt)
        let changedAt = try fields.required(record?.changedAt)
        return Self(
            key: key, subject: fields.subject(record?.subject), device: device, suite: suite,
            publicKey: publicKey, state: state, challenge: try fields.optional(record?.challenge),
            createdAt: createdAt, changedAt: changedAt)
    }
}

extension DeviceKeyRecord.PendingChallenge: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ challenge: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            expectedProof: try fields.required(challenge?.expectedProof),
            expectedOldKeyProof: try fields.optional(challenge?.expectedOldKeyProof),
            oldKey: try fields.optional(challenge?.oldKey),
            expiresAt: try fields.required(challenge?.expiresAt),
            triesLeft: try fields.integer(challenge?.triesLeft, in: 0...Int64(Int32.max)))
    }
}

extension ConsentsInForce: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ consents: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        // In the order of the ledger.
        Self(
            try fields.dictionary(consents?.byScope) { one, other in
                (one.value.position, one.key.channel.rawValue, one.key.address.map(\.hexadecimal) ?? "")
                    < (
                        other.value.position, other.key.channel.rawValue,
                        other.key.address.map(\.hexadecimal) ?? ""
                    )
            })
    }
}

extension ConsentsInForce.Scope: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ scope: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            purpose: try fields.required(scope?.purpose), channel: try fields.required(scope?.channel),
            address: try fields.optional(scope?.address))
    }
}

extension ConsentsInForce.Consent: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ consent: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            state: try fields.required(consent?.state), method: try fields.required(consent?.method),
            expiresAt: try fields.optional(consent?.expiresAt), moment: try fields.required(consent?.moment),
            position: try fields.integer(consent?.position, in: 1...StoredRow.countMax),
            withdrawnUntil: try fields.optional(consent?.withdrawnUntil))
    }
}

/// One line of the history, and the newest of each choice in the state.
extension PreferenceRecord: SealedRow {
    static let table = LedgerKind.choice.name
    static let layouts: ClosedRange<UInt8> = 1...1
    var fieldByteCount: Int { 128 }

    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ choice: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            subject: fields.subject(choice?.subject), scope: try fields.required(choice?.scope),
            channel: try fields.required(choice?.channel),
            destination: try fields.optional(choice?.destination),
            state: try fields.required(choice?.state), source: try fields.required(choice?.source),
            at: try fields.required(choice?.at), caller: try fields.required(choice?.caller))
    }
}

extension PermissionPrompt: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ prompt: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            subject: fields.subject(prompt?.subject), device: try fields.required(prompt?.device),
            shownAt: try fields.required(prompt?.shownAt), answer: try fields.optional(prompt?.answer))
    }
}

extension DriftFinding: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ finding: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            try fields.required(finding?.kind), try fields.required(finding?.action),
            device: try fields.optional(finding?.device), category: try fields.optional(finding?.category),
            old: try fields.required(finding?.old), new: try fields.optional(finding?.new))
    }
}
