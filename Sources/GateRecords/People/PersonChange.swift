import CanonicalJSON
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
    /// Another person verified the number or mailbox at `since`, and this person did not later.
    case addressContested(Tag, since: Instant)
    /// The operating system asked, or was answered; the answer is the device's permission from then on.
    case permissionPrompt(PermissionPrompt, action: PromptAction)
    /// - Parameter by: `nil` of a wrong proof, which changes no state, and of entries from before they said it.
    case deviceKey(DeviceKeyRecord, proof: Proof?, by: KeyTransition? = nil)
    /// A key that was never proved, or one that ended, is deleted to make place for a newer one: registrations must not grow a
    /// person's state without bound.
    case deviceKeyForgotten(DeviceKeyRecord)
    case consent(ConsentRecord)
    case preference(PreferenceRecord)
    /// What the provider has a device subscribed to; replaces what was reported before.
    case subscriptions(Tag, ProviderSubscriptions)
    /// An audit found a drift, or found it changed; a repair of the gateway's own record is made by it.
    case drift(DriftFinding)
    /// An audit did not find a drift any more.
    case driftResolved(DriftFinding)

    /// Whether a record is new, or takes the place of an older one.
    package enum Action: String, CaseIterable, Sendable, Hashable {
        case registered
        case updated
    }

    /// Why a push token is not its device's own any more: another device registered it, or the push service refused it.
    package enum Deactivation: String, CaseIterable, Sendable, Hashable {
        case tokenTaken = "token_taken"
        case tokenGone = "token_gone"
    }

    /// Whether the permission prompt was shown, or was answered.
    package enum PromptAction: String, CaseIterable, Sendable, Hashable {
        case prompted
        case answered
    }

    /// What brought a device's key into its state, in the words that entries of the gateway's own keys use.
    package struct KeyTransition: Sendable, Hashable {
        /// The transition of the key's state.
        package enum Event: String, CaseIterable, Sendable, Hashable {
            case add, promote, suspend, resume, deactivate, revoke, destroy
            /// The first of two callers asked for the destruction, which leaves the state as it is.
            case proposeDestruction = "propose_destruction"
        }

        /// Why the transition was made.
        package enum Cause: String, CaseIterable, Sendable, Hashable {
            case compromised, lost, retired
            /// A newer key of the device came into use.
            case rotation
        }

        package var event: Event
        /// `nil` where a caller asked, and said no more.
        package var cause: Cause?
        /// The first of the two callers of a destruction.
        package var proposedBy: CallerName?
        /// By what the public key is refused from then on, of a key that became compromised: 32 bytes. A store that is restored
        /// from the trail does not have the key itself if it was registered after the backup.
        package var publicKeyMAC: [UInt8]?

        package init(
            event: Event, cause: Cause? = nil, proposedBy: CallerName? = nil, publicKeyMAC: [UInt8]? = nil
        ) {
            self.event = event
            self.cause = cause
            self.proposedBy = proposedBy
            self.publicKeyMAC = publicKeyMAC
        }
    }

    /// Whether a device proved that it holds the private half of its key.
    package enum Proof: String, CaseIterable, Sendable, Hashable {
        case right
        case wrong
    }
}

// MARK: As an entry

extension PersonChange {
    /// What the trail says of it: the evidence, and nothing a caller or a recipient chose but as a keyed tag.
    ///
    /// - Parameter now: The entry's time.
    package func entry(of subject: SubjectID, by caller: CallerName, at now: Instant) -> any EntryBody {
        switch self {
        case .recipient(let record, let action):
            RecipientEntry(
                subject: subject, caller: caller, action: Code(action), privacy: record.privacy,
                pushEnabled: record.pushEnabled, region: record.region, age: record.age,
                timeZone: record.timeZone,
                quietHours: record.quietHours.map { .init(start: $0.startMinute, end: $0.endMinute) })
        case .device(let record, let action, let isTokenChanged):
            DeviceEntry(
                subject: subject, caller: caller, device: record.tag, action: Code(action),
                platform: record.platform, provider: record.provider, osPermission: record.osPermission,
                criticalAlerts: record.criticalAlerts, region: record.region, timeZone: record.timeZone,
                isTokenChanged: isTokenChanged)
        case .deviceRemoved(let device):
            DeviceEntry(subject: subject, caller: caller, device: device, action: Self.removed)
        case .deviceDeactivated(let device, let why):
            DeviceEntry(subject: subject, caller: caller, device: device, action: Code(why))
        case .address(let record, let action, let replaced):
            AddressEntry(
                subject: subject, caller: caller, address: record.tag, action: Code(action),
                channel: record.channel, isVerified: record.verifiedAt != nil,
                isContested: record.contestedAt == nil ? nil : true,
                numberPrefix: record.numberPrefix, replaced: replaced)
        case .addressRemoved(let address):
            AddressEntry(subject: subject, caller: caller, address: address, action: Self.removed)
        case .addressContested(let address, _):
            AddressEntry(subject: subject, caller: caller, address: address, action: Self.contested)
        case .permissionPrompt(let prompt, let action):
            PermissionPromptEntry(
                subject: subject, caller: caller, device: prompt.device, action: Code(action),
                shownAt: prompt.shownAt, answer: prompt.answer.map { Code($0) })
        case .deviceKey(let key, let proof, let transition):
            DeviceKeyEntry(
                subject: subject, caller: caller, device: key.device, key: key.key, state: key.state,
                suite: key.suite, event: transition.map { Code($0.event) },
                cause: transition?.cause.map { Code($0) }, proof: proof.map { Code($0) },
                proposedBy: transition?.proposedBy,
                publicKeyMAC: transition?.publicKeyMAC.map { Hexadecimal.encode($0) })
        case .deviceKeyForgotten(let key):
            DeviceKeyEntry(
                subject: subject, caller: caller, device: key.device, key: key.key, state: key.state,
                suite: key.suite, isForgotten: true)
        case .consent(let record):
            ConsentEntry(
                subject: subject, caller: caller, consent: record.idTag, purpose: record.purpose,
                channel: record.channel, address: record.address, state: Code(record.state),
                eventTime: record.eventTime, method: record.method, jurisdiction: record.jurisdiction,
                notice: record.notice.map {
                    .init(id: $0.id, version: $0.version, sha256: $0.sha256, language: $0.language)
                }, expiresAt: record.expiresAt, statedTime: record.statedTime, withdraws: record.withdraws,
                previous: record.previousHash)
        case .preference(let choice):
            PreferenceEntry(
                subject: subject, caller: caller, scope: choice.scope, channel: choice.channel,
                destination: choice.destination, state: choice.state, source: choice.source,
                eventTime: choice.at == now ? nil : choice.at)
        case .subscriptions(let device, let subscriptions):
            SubscriptionEntry(
                subject: subject, caller: caller, device: device, states: subscriptions.states,
                observedAt: subscriptions.observedAt)
        case .drift(let finding): finding.entry(of: subject, by: caller, finding.action)
        case .driftResolved(let finding): finding.entry(of: subject, by: caller, .resolved)
        }
    }

    private static let removed = Code("removed")
    private static let contested = Code("contested")

    /// Reads the change an entry records back, without private values.
    ///
    /// - Returns: `nil` for an entry that changes nothing of a person: a send, what became of it, a bundle, a start.
    /// - Throws: `JSONShapeError` or `UnknownCode`, of an entry that is not of the trail's format.
    package static func read(_ entry: TrailEntry) throws -> (subject: SubjectID, change: PersonChange)? {
        switch entry.kind {
        case .recipient:
            let read: RecipientEntry = try entry.body()
            let hours = read.quietHours.map { QuietHours(startMinute: $0.start, endMinute: $0.end) }
            let record = RecipientRecord(
                subject: read.subject, region: read.region, age: read.age, locale: nil,
                timeZone: read.timeZone, privacy: read.privacy, pushEnabled: read.pushEnabled,
                quietHours: hours, registeredAt: entry.time, updatedAt: entry.time)
            return (read.subject, .recipient(record, action: try read.action.name()))
        case .device:
            let read: DeviceEntry = try entry.body()
            return (read.subject, try PersonChange(read, at: entry.time))
        case .address:
            let read: AddressEntry = try entry.body()
            return (read.subject, try PersonChange(read, at: entry.time))
        case .permissionPrompt:
            let read: PermissionPromptEntry = try entry.body()
            let prompt = PermissionPrompt(
                subject: read.subject, device: read.device, shownAt: read.shownAt,
                answer: try read.answer?.name())
            return (read.subject, .permissionPrompt(prompt, action: try read.action.name()))
        case .deviceKey:
            let read: DeviceKeyEntry = try entry.body()
            return (read.subject, try PersonChange(read, at: entry.time))
        case .consent:
            let read: ConsentEntry = try entry.body()
            let record = ConsentRecord(
                subject: read.subject, id: "", idTag: read.consent, purpose: read.purpose,
                channel: read.channel, address: read.address, state: try read.state.name(),
                eventTime: read.eventTime, statedTime: read.statedTime, receivedAt: entry.time,
                method: read.method, source: read.caller,
                jurisdiction: read.jurisdiction,
                notice: read.notice.map {
                    .init(id: $0.id, version: $0.version, sha256: $0.sha256, language: $0.language)
                }, expiresAt: read.expiresAt, withdraws: read.withdraws, previousHash: read.previous,
                entryIndex: entry.index)
            return (read.subject, .consent(record))
        case .preference:
            let read: PreferenceEntry = try entry.body()
            let record = PreferenceRecord(
                subject: read.subject, scope: read.scope, channel: read.channel,
                destination: read.destination, state: read.state, source: read.source,
                at: read.eventTime ?? entry.time, caller: read.caller)
            return (read.subject, .preference(record))
        case .subscription:
            let read: SubscriptionEntry = try entry.body()
            let subscriptions = ProviderSubscriptions(states: read.states, observedAt: read.observedAt)
            return (read.subject, .subscriptions(read.device, subscriptions))
        case .drift:
            let read: DriftEntry = try entry.body()
            let finding = DriftFinding(
                read.finding, read.action, device: read.device, category: try read.category?.name(),
                old: read.old, new: read.new)
            return (read.subject, read.action == .resolved ? .driftResolved(finding) : .drift(finding))
        default: return nil
        }
    }

    private init(_ entry: DeviceEntry, at time: Instant) throws {
        let why = entry.action.known(Deactivation.self)
        if why != nil || entry.action == Self.removed {
            let bare = DeviceEntry(
                subject: entry.subject, caller: entry.caller, device: entry.device, action: entry.action)
            guard entry == bare else {
                throw Self.misfit("action", "a device that is gone has no properties")
            }
            self = why.map { .deviceDeactivated(entry.device, because: $0) } ?? .deviceRemoved(entry.device)
            return
        }
        guard let platform = entry.platform, let permission = entry.osPermission,
            let criticalAlerts = entry.criticalAlerts
        else {
            throw Self.misfit("action", "a device has a platform, a permission and a word on critical alerts")
        }
        self = .device(
            DeviceRecord(
                subject: entry.subject, tag: entry.device, id: DestinationID(""), platform: platform,
                provider: entry.provider, app: "", token: "", region: entry.region, timeZone: entry.timeZone,
                osPermission: permission,
                criticalAlerts: criticalAlerts, isActive: true, seenAt: time),
            action: try entry.action.name(), isTokenChanged: entry.isTokenChanged)
    }

    private init(_ entry: AddressEntry, at time: Instant) throws {
        if entry.action == Self.removed || entry.action == Self.contested {
            let bare = AddressEntry(
                subject: entry.subject, caller: entry.caller, address: entry.address, action: entry.action)
            guard entry == bare else {
                throw Self.misfit("action", "an address that is gone or contested has no properties")
            }
            self =
                entry.action == Self.removed
                ? .addressRemoved(entry.address) : .addressContested(entry.address, since: .longAgo)
            return
        }
        guard let channel = entry.channel, let isVerified = entry.isVerified else {
            throw Self.misfit("action", "an address has a channel and whether it is verified")
        }
        self = .address(
            AddressRecord(
                subject: entry.subject, tag: entry.address, id: DestinationID(""), channel: channel,
                value: "",
                numberPrefix: entry.numberPrefix, verifiedAt: isVerified ? .longAgo : nil,
                contestedAt: entry.isContested == true ? .longAgo : nil, updatedAt: time),
            action: try entry.action.name(), replaced: entry.replaced)
    }

    private init(_ entry: DeviceKeyEntry, at time: Instant) throws {
        let key = DeviceKeyRecord(
            key: entry.key, subject: entry.subject, device: entry.device, suite: entry.suite, publicKey: [],
            state: entry.state, challenge: nil, createdAt: time, changedAt: time)
        let proof: Proof? = try entry.proof?.name()
        let cause: KeyTransition.Cause? = try entry.cause?.name()
        let transition = try entry.event.map {
            KeyTransition(
                event: try $0.name(), cause: cause, proposedBy: entry.proposedBy,
                publicKeyMAC: entry.publicKeyMAC.flatMap(Hexadecimal.decode))
        }
        guard transition != nil || cause == nil else {
            throw Self.misfit("cause", "expected an `event`, too")
        }
        self =
            entry.isForgotten == true
            ? .deviceKeyForgotten(key) : .deviceKey(key, proof: proof, by: transition)
    }

    /// An entry whose members do not belong together.
    private static func misfit(_ member: String, _ rule: String) -> JSONShapeError {
        JSONShapeError(JSONPointer([member]), rule)
    }
}

extension DriftFinding {
    fileprivate func entry(
        of subject: SubjectID, by caller: CallerName, _ action: DriftAction
    ) -> DriftEntry {
        DriftEntry(
            subject: subject, caller: caller, finding: kind, action: action, device: device,
            category: category.map { Code($0) }, old: old, new: new)
    }
}
