package import GateSteps
package import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
package import GateRecords

extension GateMemory {
    /// The pseudonym of a user, or a new one of the test's choice.
    package func makeSubject(for user: UserID, subject: SubjectID) throws -> Subject {
        if let known = try self.subject(of: user) { return known }
        let made = Subject(
            id: subject, tagKey: try SecretBytes.random(byteCount: Subject.tagKeyByteCount))
        add(made, for: user)
        return made
    }

    package func putRecipient(_ record: RecipientRecord) throws {
        try apply(.recipient(record, action: .updated), to: record.subject)
    }
    package func putDevice(_ record: DeviceRecord) throws {
        try apply(.device(record, action: .updated), to: record.subject)
    }
    package func removeDevice(_ device: Tag, of subject: SubjectID) throws {
        try apply(.deviceRemoved(device), to: subject)
    }
    package func putAddress(_ record: AddressRecord) throws {
        try apply(.address(record, action: .updated, replaced: nil), to: record.subject)
    }
    package func removeAddress(_ address: Tag, of subject: SubjectID) throws {
        try apply(.addressRemoved(address), to: subject)
    }
    package func putDeviceKey(_ record: DeviceKeyRecord) throws {
        try apply(.deviceKey(record, proof: nil), to: record.subject)
    }
    package func putPermissionPrompt(_ prompt: PermissionPrompt) throws {
        try apply(.permissionPrompt(prompt, action: .prompted), to: prompt.subject)
    }
    /// - Returns: Its position in the ledger.
    @discardableResult
    package func appendConsent(_ record: ConsentRecord) throws -> Int64 {
        try apply(.consent(record), to: record.subject)
        return try state(of: record.subject)?.consentCount ?? 0
    }
    package func appendPreference(_ record: PreferenceRecord) throws {
        try apply(.preference(record), to: record.subject)
    }

    /// An entry of any bytes, at the index that is next.
    package func appendEntry(_ entry: StoredEntry) throws {
        precondition(entry.index == upcomingIndex, "entry \(entry.index) appended as \(upcomingIndex)")
        append(entry)
    }

    /// A write that no store takes, which undoes everything beside it: there is no such message.
    package func cannotBeWritten() throws {
        markAttempt(MessageID(high: .max, low: .max), at: Instant(seconds: 1))
    }
}

extension GateStore {
    /// What a step over this store would commit.
    package func changes(of body: (GateMemory) throws -> Void) throws -> [Change] {
        let memory = GateMemory()
        try load([], into: memory)
        try step(body, over: memory)
        return memory.applied
    }
}
