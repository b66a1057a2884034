import GateVocabulary
import GatewayPipeline
import RecipientModel

// How a person's state lies in its sealed column. The version is the first byte; a changed order is a new version.

extension RecipientState {
    /// Bytes of one state at most, before they are sealed: 20 devices, 20 addresses and every consent and choice at each
    /// of them take a tenth of it.
    static let byteCountMax = 1 << 20

    static let table = "person"

    var sealedFields: [UInt8] {
        var fields = FieldWriter(version: 2, capacity: 1024)
        fields.put(consentCount)
        fields.put(choiceCount)
        fields.put(record) { $1.write(to: &$0) }
        fields.put(list: devices) { $1.write(to: &$0) }
        fields.put(list: addresses) { $1.write(to: &$0) }
        fields.put(list: keys) { $1.write(to: &$0) }
        fields.put(list: words.sortedWords) { fields, word in
            fields.put(word.scope.purpose.text)
            fields.put(word.scope.channel)
            fields.put(optional: word.scope.address)
            fields.put(word.word.state)
            fields.put(word.word.method)
            fields.put(optional: word.word.expiresAt)
            fields.put(word.word.moment)
            fields.put(word.word.position)
            fields.put(optional: word.word.withdrawnUntil)
        }
        fields.put(list: preferences) { $1.write(to: &$0) }
        fields.put(list: prompts) { fields, prompt in
            fields.put(prompt.device)
            fields.put(prompt.shownAt)
            fields.put(optional: prompt.answer)
        }
        fields.put(list: drifts) { fields, finding in
            fields.put(finding.kind)
            fields.put(finding.action)
            fields.put(optional: finding.device)
            fields.put(optional: finding.category)
            fields.put(finding.old)
            fields.put(optional: finding.new)
        }
        return fields.bytes
    }

    init(sealedFields: [UInt8], subject: SubjectID) throws {
        var fields = try FieldReader(sealedFields, version: 2, table: Self.table)
        let consentCount = try fields.integer(in: 0...StoredRow.countMax)
        let choiceCount = try fields.integer(in: 0...StoredRow.countMax)
        let record = try fields.optional { try RecipientRecord(from: &$0, subject: subject) }
        let devices = try fields.list { try DeviceRecord(from: &$0, subject: subject) }
        let addresses = try fields.list { try AddressRecord(from: &$0, subject: subject) }
        let keys = try fields.list { try DeviceKeyRecord(from: &$0, subject: subject) }
        let words = try fields.list { fields in
            let scope = ConsentWords.Scope(
                purpose: Purpose(try fields.text()), channel: try fields.code(),
                address: try fields.optional { try $0.id() })
            let word = ConsentWords.Word(
                state: try fields.code(), method: try fields.code(),
                expiresAt: try fields.optional { try $0.instant() }, moment: try fields.instant(),
                position: try fields.integer(in: 1...StoredRow.countMax),
                withdrawnUntil: try fields.optional { try $0.instant() })
            return (scope, word)
        }
        let preferences = try fields.list { try PreferenceRecord(from: &$0, subject: subject) }
        let prompts = try fields.list { fields in
            PermissionPrompt(
                subject: subject, device: try fields.id(), shownAt: try fields.instant(),
                answer: try fields.optional { try $0.code() })
        }
        let drifts = try fields.list { fields in
            DriftFinding(
                try fields.code(), try fields.code(), device: try fields.optional { try $0.id() },
                category: try fields.optional { try $0.code() }, old: try fields.text(),
                new: try fields.optional { try $0.text() })
        }
        try fields.finish()
        self.init(
            subject, record: record, devices: devices, addresses: addresses, keys: keys,
            words: ConsentWords(Dictionary(words) { _, last in last }), preferences: preferences,
            prompts: prompts, drifts: drifts, consentCount: consentCount, choiceCount: choiceCount)
    }
}

extension ConsentWords {
    /// In the order of the ledger, so that one state has one encoding.
    fileprivate var sortedWords: [(scope: Scope, word: Word)] {
        words.map { (scope: $0.key, word: $0.value) }.sorted { one, other in
            (one.word.position, one.scope.channel.rawValue, one.scope.address.map(\.hexadecimal) ?? "")
                < (
                    other.word.position, other.scope.channel.rawValue,
                    other.scope.address.map(\.hexadecimal) ?? ""
                )
        }
    }
}

extension RecipientRecord {
    fileprivate func write(to fields: inout FieldWriter) {
        fields.put(optional: region)
        fields.put(optional: age)
        fields.put(optional: locale)
        fields.put(optional: timeZone)
        fields.put(privacy)
        fields.put(pushEnabled)
        fields.put(quietHours) { fields, hours in
            fields.put(Int64(hours.startMinute))
            fields.put(Int64(hours.endMinute))
        }
        fields.put(registeredAt)
        fields.put(updatedAt)
    }

    fileprivate init(from fields: inout FieldReader, subject: SubjectID) throws {
        self.init(
            subject: subject, region: try fields.optional { try $0.region() },
            age: try fields.optional { try $0.code() }, locale: try fields.optional { try $0.text() },
            timeZone: try fields.optional { try $0.text() }, privacy: try fields.code(),
            pushEnabled: try fields.flag(),
            quietHours: try fields.optional {
                QuietHours(
                    startMinute: Int(try $0.integer(in: 0...1439)),
                    endMinute: Int(try $0.integer(in: 0...1439)))
            },
            registeredAt: try fields.instant(), updatedAt: try fields.instant())
    }
}

extension DeviceRecord {
    fileprivate func write(to fields: inout FieldWriter) {
        fields.put(tag)
        fields.put(id.text)
        fields.put(platform)
        fields.put(app)
        fields.put(token)
        fields.put(optional: region)
        fields.put(optional: timeZone)
        fields.put(osPermission)
        fields.put(criticalAlerts)
        fields.put(isActive)
        fields.put(seenAt)
        fields.put(subscriptions) { fields, subscriptions in
            fields.put(list: subscriptions.states.sorted { $0.key.code < $1.key.code }) { fields, state in
                fields.put(state.key)
                fields.put(state.value)
            }
            fields.put(subscriptions.observedAt)
        }
    }

    fileprivate init(from fields: inout FieldReader, subject: SubjectID) throws {
        self.init(
            subject: subject, tag: try fields.id(), id: DestinationID(try fields.text()),
            platform: try fields.code(), app: try fields.text(), token: try fields.text(),
            region: try fields.optional { try $0.region() }, timeZone: try fields.optional { try $0.text() },
            osPermission: try fields.code(), criticalAlerts: try fields.flag(), isActive: try fields.flag(),
            seenAt: try fields.instant(),
            subscriptions: try fields.optional { fields in
                let states = try fields.list { (try $0.code(Category.self), try $0.flag()) }
                return ProviderSubscriptions(
                    states: Dictionary(states) { _, last in last }, observedAt: try fields.instant())
            })
    }
}

extension AddressRecord {
    fileprivate func write(to fields: inout FieldWriter) {
        fields.put(tag)
        fields.put(id.text)
        fields.put(channel)
        fields.put(value)
        fields.put(optional: verifiedAt)
        fields.put(updatedAt)
    }

    fileprivate init(from fields: inout FieldReader, subject: SubjectID) throws {
        self.init(
            subject: subject, tag: try fields.id(), id: DestinationID(try fields.text()),
            channel: try fields.code(), value: try fields.text(),
            verifiedAt: try fields.optional { try $0.instant() }, updatedAt: try fields.instant())
    }
}

extension DeviceKeyRecord {
    fileprivate func write(to fields: inout FieldWriter) {
        fields.put(key)
        fields.put(device)
        fields.put(suite)
        fields.put(publicKey)
        fields.put(state)
        fields.put(createdAt)
        fields.put(changedAt)
        fields.put(challenge) { fields, challenge in
            fields.put(challenge.expectedProof)
            fields.put(challenge.expectedOldKeyProof) { $0.put($1) }
            fields.put(challenge.oldKey) { $0.put($1) }
            fields.put(challenge.expiresAt)
            fields.put(Int64(challenge.triesLeft))
        }
    }

    fileprivate init(from fields: inout FieldReader, subject: SubjectID) throws {
        let key = try fields.id(KeyID.self)
        let device = try fields.id(Tag.self)
        let suite = try fields.text()
        let publicKey = try fields.byteArray()
        let state = try fields.text()
        let createdAt = try fields.instant()
        let changedAt = try fields.instant()
        let challenge = try fields.optional { fields in
            PendingChallenge(
                expectedProof: try fields.byteArray(),
                expectedOldKeyProof: try fields.optional { try $0.byteArray() },
                oldKey: try fields.optional { try $0.id() }, expiresAt: try fields.instant(),
                triesLeft: Int(try fields.integer(in: 0...Int64(Int32.max))))
        }
        self.init(
            key: key, subject: subject, device: device, suite: suite, publicKey: publicKey, state: state,
            challenge: challenge, createdAt: createdAt, changedAt: changedAt)
    }
}

extension PreferenceRecord {
    fileprivate func write(to fields: inout FieldWriter) {
        fields.put(scope)
        fields.put(channel)
        fields.put(optional: destination)
        fields.put(state)
        fields.put(source)
        fields.put(at)
        fields.put(caller.text)
    }

    fileprivate init(from fields: inout FieldReader, subject: SubjectID) throws {
        self.init(
            subject: subject, scope: try fields.text(), channel: try fields.code(),
            destination: try fields.optional { try $0.id() }, state: try fields.code(),
            source: try fields.code(), at: try fields.instant(), caller: CallerName(try fields.text()))
    }

    /// One line of the history.
    var sealedFields: [UInt8] {
        var fields = FieldWriter(version: 1)
        write(to: &fields)
        return fields.bytes
    }

    init(sealedFields: [UInt8], subject: SubjectID) throws {
        var fields = try FieldReader(sealedFields, version: 1, table: LedgerKind.choice.name)
        try self.init(from: &fields, subject: subject)
        try fields.finish()
    }
}
