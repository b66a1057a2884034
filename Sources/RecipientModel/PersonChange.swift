package import AuditTrail
package import CanonicalJSON
package import GateVocabulary

/// A change of what is held of one person, as one entry of the trail records it.
///
/// ``RecipientState/apply(_:)`` is the only way a state changes. Made by a step, a change holds private values beside the
/// evidence (a token, a number, a name); read back from an entry, it holds the evidence alone, and everything that is
/// decided on is the same.
package enum PersonChange: Hashable, Sendable {
    case recipient(RecipientRecord, action: Action)
    /// - Parameter isTokenChanged: Whether the push token is another one than before; `nil` of a device that is new, and of
    ///   entries from before they said it.
    case device(DeviceRecord, action: Action, isTokenChanged: Bool? = nil)
    case deviceRemoved(Tag)
    /// The push token of a device is not its own any more: registered elsewhere, or refused by the push service.
    case deviceDeactivated(Tag, because: Deactivation)
    /// - Parameter replaced: The tag of the number or mailbox whose name it takes over.
    case address(AddressRecord, action: Action, replaced: Tag?)
    case addressRemoved(Tag)
    /// The operating system asked, or was answered; the answer is the device's permission from then on.
    case permissionPrompt(PermissionPrompt, action: PromptAction)
    /// - Parameter by: `nil` of a wrong proof, which changes no state, and of entries from before they said it.
    case deviceKey(DeviceKeyRecord, proof: Proof?, by: KeyTransition? = nil)
    /// An unproved key is deleted to make room for a newer one: registrations that are never proved must not grow a
    /// person's state.
    case deviceKeyForgotten(DeviceKeyRecord)
    case consent(ConsentRecord)
    case preference(PreferenceRecord)
    /// What the provider has a device subscribed to; replaces what was reported before.
    case subscriptions(Tag, ProviderSubscriptions)
    /// An audit found a drift, or found it changed; a repair of the gateway's own record is made by it.
    case drift(DriftFinding)
    /// An audit did not find a drift any more.
    case driftResolved(DriftFinding)

    package enum Action: String, CaseIterable, Sendable, Hashable {
        case registered
        case updated
    }

    package enum Deactivation: String, CaseIterable, Sendable, Hashable {
        case tokenTaken = "token_taken"
        case tokenGone = "token_gone"
    }

    package enum PromptAction: String, CaseIterable, Sendable, Hashable {
        case prompted
        case answered
    }

    /// What brought a device's key into its state, in the words that entries of the gateway's own keys use.
    package struct KeyTransition: Sendable, Hashable {
        package enum Event: String, CaseIterable, Sendable, Hashable {
            case add, promote, suspend, resume, deactivate, revoke, destroy
        }

        package enum Cause: String, CaseIterable, Sendable, Hashable {
            case compromised, lost, retired
            /// A newer key of the device came into use.
            case rotation
        }

        package var event: Event
        /// `nil` where a caller asked, and said no more.
        package var cause: Cause?

        package init(event: Event, cause: Cause? = nil) {
            self.event = event
            self.cause = cause
        }
    }

    package enum Proof: String, CaseIterable, Sendable, Hashable {
        case right
        case wrong
    }
}

// MARK: As an entry

extension PersonChange {
    package var kind: EntryKind {
        switch self {
        case .recipient: .recipient
        case .device, .deviceRemoved, .deviceDeactivated: .device
        case .address, .addressRemoved: .address
        case .permissionPrompt: .permissionPrompt
        case .deviceKey, .deviceKeyForgotten: .deviceKey
        case .consent: .consent
        case .preference: .preference
        case .subscriptions: .subscription
        case .drift, .driftResolved: .drift
        }
    }

    /// What the trail says of it: the evidence, and nothing a caller or a recipient chose but as a keyed tag.
    ///
    /// - Parameter now: The entry's time.
    package func members(of subject: SubjectID, by caller: CallerName, at now: Instant) -> JSONObject {
        var members: JSONObject = [
            "subject": .string(subject.hexadecimal), "caller": .string(caller.text),
        ]
        switch self {
        case .recipient(let record, let action):
            members["action"] = .string(action.rawValue)
            members["push_enabled"] = .boolean(record.pushEnabled)
            members["privacy"] = .string(record.privacy.rawValue)
            if let region = record.region { members["region"] = .object(region.json) }
            if let age = record.age { members["age"] = .string(age.rawValue) }
            if let zone = record.timeZone { members["time_zone"] = .string(zone) }
            if let hours = record.quietHours {
                members["quiet_hours"] = [
                    "start": .integer(Int64(hours.startMinute)), "end": .integer(Int64(hours.endMinute)),
                ]
            }
        case .device(let record, let action, let isTokenChanged):
            members["device"] = .string(record.tag.hexadecimal)
            members["action"] = .string(action.rawValue)
            members["platform"] = .string(record.platform.rawValue)
            members["os_permission"] = .string(record.osPermission.rawValue)
            members["critical_alerts"] = .boolean(record.criticalAlerts)
            if let isTokenChanged { members["token_changed"] = .boolean(isTokenChanged) }
            if let region = record.region { members["region"] = .object(region.json) }
            if let zone = record.timeZone { members["time_zone"] = .string(zone) }
        case .deviceRemoved(let device):
            members["device"] = .string(device.hexadecimal)
            members["action"] = "removed"
        case .deviceDeactivated(let device, let why):
            members["device"] = .string(device.hexadecimal)
            members["action"] = .string(why.rawValue)
        case .address(let record, let action, let replaced):
            members["address"] = .string(record.tag.hexadecimal)
            members["action"] = .string(action.rawValue)
            members["channel"] = .string(record.channel.rawValue)
            members["verified"] = .boolean(record.verifiedAt != nil)
            if let prefix = record.numberPrefix { members["number_prefix"] = .string(prefix) }
            if let replaced { members["replaced"] = .string(replaced.hexadecimal) }
        case .addressRemoved(let address):
            members["address"] = .string(address.hexadecimal)
            members["action"] = "removed"
        case .permissionPrompt(let prompt, let action):
            members["device"] = .string(prompt.device.hexadecimal)
            members["action"] = .string(action.rawValue)
            members["shown_at"] = .integer(prompt.shownAt.milliseconds)
            if let answer = prompt.answer { members["answer"] = .string(answer.rawValue) }
        case .deviceKey(let key, let proof, let transition):
            key.add(to: &members)
            if let proof { members["proof"] = .string(proof.rawValue) }
            if let transition { members["event"] = .string(transition.event.rawValue) }
            if let cause = transition?.cause { members["cause"] = .string(cause.rawValue) }
        case .deviceKeyForgotten(let key):
            key.add(to: &members)
            members["forgotten"] = true
        case .consent(let event): event.add(to: &members)
        case .preference(let choice):
            members["scope"] = .string(choice.scope)
            members["channel"] = .string(choice.channel.rawValue)
            members["state"] = .string(choice.state.rawValue)
            members["source"] = .string(choice.source.rawValue)
            if let destination = choice.destination {
                members["destination"] = .string(destination.hexadecimal)
            }
            if choice.at != now { members["event_time"] = .integer(choice.at.milliseconds) }
        case .subscriptions(let device, let subscriptions):
            members["device"] = .string(device.hexadecimal)
            members["observed_at"] = .integer(subscriptions.observedAt.milliseconds)
            members["states"] = .object(
                JSONObject(subscriptions.states.map { ($0.key.rawValue, .boolean($0.value)) }))
        case .drift(let finding): finding.add(to: &members, action: finding.action)
        case .driftResolved(let finding): finding.add(to: &members, action: .resolved)
        }
        return members
    }

    /// Reads the change an entry records back, without private values.
    ///
    /// - Returns: `nil` for an entry that changes nothing of a person: a send, what became of it, a bundle, a start.
    /// - Throws: `JSONShapeError`, of an entry that is not of the trail's format.
    package static func read(_ entry: TrailEntry) throws -> (subject: SubjectID, change: PersonChange)? {
        let kinds: Set<EntryKind> = [
            .recipient, .device, .address, .permissionPrompt, .deviceKey, .consent, .preference,
            .subscription, .drift,
        ]
        guard kinds.contains(entry.kind) else { return nil }
        var members = JSONMembers(entry.members, at: JSONPointer([]))
        let subject: SubjectID = try members.required("subject", identifier)
        let caller = CallerName(try members.required("caller", JSONShape.text))
        let change: PersonChange
        switch entry.kind {
        case .recipient:
            change = .recipient(
                try RecipientRecord(of: subject, from: &members, at: entry.time),
                action: try members.required("action", JSONShape.name))
        case .device: change = try readDevice(of: subject, from: &members, at: entry.time)
        case .address: change = try readAddress(of: subject, from: &members, at: entry.time)
        case .permissionPrompt:
            change = .permissionPrompt(
                PermissionPrompt(
                    subject: subject, device: try members.required("device", identifier),
                    shownAt: try members.required("shown_at", JSONShape.instant),
                    answer: try members.optional("answer", JSONShape.name)),
                action: try members.required("action", JSONShape.name))
        case .deviceKey:
            let key = DeviceKeyRecord(
                key: try members.required("key_id", identifier), subject: subject,
                device: try members.required("device", identifier),
                suite: try members.required("suite", JSONShape.text), publicKey: [],
                state: try members.required("state", JSONShape.text), challenge: nil,
                createdAt: entry.time, changedAt: entry.time)
            let proof: Proof? = try members.optional("proof", JSONShape.name)
            let isForgotten = try members.optional("forgotten", JSONShape.boolean) == true
            let transition = try readTransition(from: &members)
            change =
                isForgotten ? .deviceKeyForgotten(key) : .deviceKey(key, proof: proof, by: transition)
        case .consent:
            change = .consent(
                try ConsentRecord(
                    of: subject, by: caller, from: &members, at: entry.time, index: entry.index))
        case .subscription: change = try readSubscriptions(from: &members)
        case .drift: change = try readDrift(from: &members)
        default:
            change = .preference(
                PreferenceRecord(
                    subject: subject, scope: try members.required("scope", JSONShape.text),
                    channel: try members.required("channel", JSONShape.name),
                    destination: try members.optional("destination", identifier),
                    state: try members.required("state", JSONShape.name),
                    source: try members.required("source", JSONShape.name),
                    at: try members.optional("event_time", JSONShape.instant) ?? entry.time, caller: caller))
        }
        try members.refuseOthers()
        return (subject, change)
    }

    private static func readTransition(from members: inout JSONMembers) throws -> KeyTransition? {
        let event: KeyTransition.Event? = try members.optional("event", JSONShape.name)
        let cause: KeyTransition.Cause? = try members.optional("cause", JSONShape.name)
        guard let event else {
            guard cause == nil else {
                throw JSONShapeError(JSONPointer(["cause"]), "expected an `event`, too")
            }
            return nil
        }
        return KeyTransition(event: event, cause: cause)
    }

    private static func readDevice(
        of subject: SubjectID, from members: inout JSONMembers, at time: Instant
    ) throws -> PersonChange {
        let tag: Tag = try members.required("device", identifier)
        let action = try members.required("action", JSONShape.text)
        if action == "removed" { return .deviceRemoved(tag) }
        if let why = Deactivation(rawValue: action) { return .deviceDeactivated(tag, because: why) }
        return .device(
            DeviceRecord(
                subject: subject, tag: tag, id: DestinationID(""),
                platform: try members.required("platform", JSONShape.name), app: "", token: "",
                region: try members.optional("region", RegionObservation.read(field:at:)),
                timeZone: try members.optional("time_zone", JSONShape.text),
                osPermission: try members.required("os_permission", JSONShape.name),
                criticalAlerts: try members.required("critical_alerts", JSONShape.boolean), isActive: true,
                seenAt: time),
            action: try members.required("action", JSONShape.name),
            isTokenChanged: try members.optional("token_changed", JSONShape.boolean))
    }

    private static func readSubscriptions(from members: inout JSONMembers) throws -> PersonChange {
        let states = try members.required("states") {
            (value, pointer) throws(JSONShapeError) -> [Category: Bool] in
            var members = try JSONMembers(value, at: pointer)
            var states: [Category: Bool] = [:]
            for category in Category.allCases {
                states[category] = try members.optional(category.rawValue, JSONShape.boolean)
            }
            try members.refuseOthers()
            return states
        }
        return .subscriptions(
            try members.required("device", identifier),
            ProviderSubscriptions(
                states: states, observedAt: try members.required("observed_at", JSONShape.instant)))
    }

    private static func readDrift(from members: inout JSONMembers) throws -> PersonChange {
        let action: DriftAction = try members.required("action", JSONShape.name)
        let finding = DriftFinding(
            try members.required("finding", JSONShape.name), action,
            device: try members.optional("device", identifier),
            category: try members.optional("category", JSONShape.name),
            old: try members.required("old", JSONShape.text), new: try members.optional("new", JSONShape.text)
        )
        return action == .resolved ? .driftResolved(finding) : .drift(finding)
    }

    private static func readAddress(
        of subject: SubjectID, from members: inout JSONMembers, at time: Instant
    ) throws -> PersonChange {
        let tag: Tag = try members.required("address", identifier)
        if try members.required("action", JSONShape.text) == "removed" { return .addressRemoved(tag) }
        return .address(
            AddressRecord(
                subject: subject, tag: tag, id: DestinationID(""),
                channel: try members.required("channel", JSONShape.name), value: "",
                numberPrefix: try members.optional("number_prefix", JSONShape.text),
                verifiedAt: try members.required("verified", JSONShape.boolean) ? .longAgo : nil,
                updatedAt: time),
            action: try members.required("action", JSONShape.name),
            replaced: try members.optional("replaced", identifier))
    }

    /// A pseudonym, a tag or a key id: 16 bytes in hexadecimal.
    fileprivate static func identifier<Kind: IdentifierKind>(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> RandomIdentifier<Kind> {
        guard let id = RandomIdentifier<Kind>(hexadecimal: try JSONShape.text(value, pointer)) else {
            throw JSONShapeError(pointer, "expected 32 hexadecimal digits")
        }
        return id
    }
}

extension RecipientRecord {
    fileprivate init(of subject: SubjectID, from members: inout JSONMembers, at time: Instant) throws {
        let hours = try members.optional("quiet_hours") {
            (value, pointer) throws(JSONShapeError) -> QuietHours in
            var members = try JSONMembers(value, at: pointer)
            let hours = QuietHours(
                startMinute: try members.required("start", JSONShape.count),
                endMinute: try members.required("end", JSONShape.count))
            try members.refuseOthers()
            return hours
        }
        self.init(
            subject: subject, region: try members.optional("region", RegionObservation.read(field:at:)),
            age: try members.optional("age", JSONShape.name), locale: nil,
            timeZone: try members.optional("time_zone", JSONShape.text),
            privacy: try members.required("privacy", JSONShape.name),
            pushEnabled: try members.required("push_enabled", JSONShape.boolean), quietHours: hours,
            registeredAt: time, updatedAt: time)
    }
}

extension DeviceKeyRecord {
    fileprivate func add(to members: inout JSONObject) {
        members["device"] = .string(device.hexadecimal)
        members["key_id"] = .string(key.hexadecimal)
        members["state"] = .string(state)
        members["suite"] = .string(suite)
    }
}

extension DriftFinding {
    fileprivate func add(to members: inout JSONObject, action: DriftAction) {
        members["action"] = .string(action.rawValue)
        members["finding"] = .string(kind.rawValue)
        members["old"] = .string(old)
        members["category"] = category.map { .string($0.rawValue) }
        members["device"] = device.map { .string($0.hexadecimal) }
        members["new"] = new.map { .string($0) }
    }
}

extension ConsentRecord {
    fileprivate func add(to members: inout JSONObject) {
        members["consent"] = .string(idTag.hexadecimal)
        members["purpose"] = .string(purpose.text)
        members["channel"] = .string(channel.rawValue)
        members["state"] = .string(state.rawValue)
        members["event_time"] = .integer(eventTime.milliseconds)
        members["method"] = .string(method.rawValue)
        members["previous"] = .string(previousHash)
        if let address { members["address"] = .string(address.hexadecimal) }
        if let jurisdiction { members["jurisdiction"] = .string(jurisdiction) }
        if let withdraws { members["withdraws"] = .string(withdraws.hexadecimal) }
        if let expiresAt { members["expires_at"] = .integer(expiresAt.milliseconds) }
        if let notice {
            members["notice"] = [
                "id": .string(notice.id), "version": .string(notice.version),
                "sha256": .string(notice.sha256), "language": .string(notice.language),
            ]
        }
    }

    fileprivate init(
        of subject: SubjectID, by caller: CallerName, from members: inout JSONMembers, at time: Instant,
        index: UInt64
    ) throws {
        let notice = try members.optional("notice") {
            (value, pointer) throws(JSONShapeError) -> NoticeReference in
            var members = try JSONMembers(value, at: pointer)
            let notice = NoticeReference(
                id: try members.required("id", JSONShape.text),
                version: try members.required("version", JSONShape.text),
                sha256: try members.required("sha256", JSONShape.text),
                language: try members.required("language", JSONShape.text))
            try members.refuseOthers()
            return notice
        }
        self.init(
            subject: subject, id: "", idTag: try members.required("consent", PersonChange.identifier),
            purpose: Purpose(try members.required("purpose", JSONShape.text)),
            channel: try members.required("channel", JSONShape.name),
            address: try members.optional("address", PersonChange.identifier),
            state: try members.required("state", JSONShape.name),
            eventTime: try members.required("event_time", JSONShape.instant), receivedAt: time,
            method: try members.required("method", JSONShape.name), source: caller,
            jurisdiction: try members.optional("jurisdiction", JSONShape.text), notice: notice,
            expiresAt: try members.optional("expires_at", JSONShape.instant),
            withdraws: try members.optional("withdraws", PersonChange.identifier),
            previousHash: try members.required("previous", JSONShape.text), entryIndex: index)
    }
}
