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
            (self.event, self.cause, self.proposedBy) = (event, cause, proposedBy)
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
            RecipientEntry(record, subject: subject, caller: caller, action: Code(action))
        case .device(let record, let action, let isTokenChanged):
            DeviceEntry(
                record, subject: subject, caller: caller, action: Code(action), isTokenChanged: isTokenChanged
            )
        case .deviceRemoved(let device):
            DeviceEntry(ending: device, subject: subject, caller: caller, action: Self.removed)
        case .deviceDeactivated(let device, let why):
            DeviceEntry(ending: device, subject: subject, caller: caller, action: Code(why))
        case .address(let record, let action, let replaced):
            AddressEntry(record, subject: subject, caller: caller, action: Code(action), replaced: replaced)
        case .addressRemoved(let address):
            AddressEntry(ending: address, subject: subject, caller: caller, action: Self.removed)
        case .addressContested(let address, _):
            AddressEntry(ending: address, subject: subject, caller: caller, action: Self.contested)
        case .permissionPrompt(let prompt, let action):
            PermissionPromptEntry(prompt, subject: subject, caller: caller, action: Code(action))
        case .deviceKey(let key, let proof, let transition):
            DeviceKeyEntry(
                key, subject: subject, caller: caller, event: transition.map { Code($0.event) },
                cause: transition?.cause.map { Code($0) }, proof: proof.map { Code($0) },
                proposedBy: transition?.proposedBy,
                publicKeyMAC: transition?.publicKeyMAC.map { Hexadecimal.encode($0) })
        case .deviceKeyForgotten(let key):
            DeviceKeyEntry(key, subject: subject, caller: caller, isForgotten: true)
        case .consent(let record): ConsentEntry(record, subject: subject, caller: caller)
        case .preference(let choice):
            PreferenceEntry(
                choice, subject: subject, caller: caller, eventTime: choice.at == now ? nil : choice.at)
        case .subscriptions(let device, let subscriptions):
            SubscriptionEntry(subscriptions, of: device, subject: subject, caller: caller)
        case .drift(let finding): DriftEntry(finding, subject: subject, caller: caller)
        case .driftResolved(let finding): DriftEntry(finding.resolved, subject: subject, caller: caller)
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
            var record = read.record
            (record.subject, record.registeredAt, record.updatedAt) = (read.subject, entry.time, entry.time)
            return (read.subject, .recipient(record, action: try read.action.name()))
        case .device:
            let read: DeviceEntry = try entry.body()
            return (read.subject, try PersonChange(read, at: entry.time))
        case .address:
            let read: AddressEntry = try entry.body()
            return (read.subject, try PersonChange(read, at: entry.time))
        case .permissionPrompt:
            let read: PermissionPromptEntry = try entry.body()
            var prompt = read.record
            prompt.subject = read.subject
            return (read.subject, .permissionPrompt(prompt, action: try read.action.name()))
        case .deviceKey:
            let read: DeviceKeyEntry = try entry.body()
            return (read.subject, try PersonChange(read, at: entry.time))
        case .consent:
            let read: ConsentEntry = try entry.body()
            var record = read.record
            (record.subject, record.source) = (read.subject, read.caller)
            (record.receivedAt, record.entryIndex) = (entry.time, entry.index)
            return (read.subject, .consent(record))
        case .preference:
            let read: PreferenceEntry = try entry.body()
            var choice = read.record
            (choice.subject, choice.caller) = (read.subject, read.caller)
            choice.at = read.eventTime ?? entry.time
            return (read.subject, .preference(choice))
        case .subscription:
            let read: SubscriptionEntry = try entry.body()
            return (read.subject, .subscriptions(read.device, read.record))
        case .drift:
            let read: DriftEntry = try entry.body()
            let finding = read.record
            return (read.subject, finding.action == .resolved ? .driftResolved(finding) : .drift(finding))
        default: return nil
        }
    }

    private init(_ entry: DeviceEntry, at time: Instant) throws {
        var device = entry.record
        let why = entry.action.known(Deactivation.self)
        guard entry.isEnding == (why != nil || entry.action == Self.removed) else {
            throw Self.misfit("action", "a device that is gone has no properties, and any other has them")
        }
        if entry.isEnding {
            self = why.map { .deviceDeactivated(device.tag, because: $0) } ?? .deviceRemoved(device.tag)
        } else {
            (device.subject, device.seenAt) = (entry.subject, time)
            self = .device(device, action: try entry.action.name(), isTokenChanged: entry.isTokenChanged)
        }
    }

    private init(_ entry: AddressEntry, at time: Instant) throws {
        var address = entry.record
        guard entry.isEnding == (entry.action == Self.removed || entry.action == Self.contested) else {
            throw Self.misfit(
                "action", "an address that is gone or contested has no properties, and any other has them")
        }
        if entry.isEnding {
            self =
                entry.action == Self.removed
                ? .addressRemoved(address.tag) : .addressContested(address.tag, since: .longAgo)
        } else {
            (address.subject, address.updatedAt) = (entry.subject, time)
            self = .address(address, action: try entry.action.name(), replaced: entry.replaced)
        }
    }

    private init(_ entry: DeviceKeyEntry, at time: Instant) throws {
        var key = entry.record
        (key.subject, key.createdAt, key.changedAt) = (entry.subject, time, time)
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
    /// What is said of it when the two sides agree again.
    fileprivate var resolved: Self {
        var finding = self
        finding.action = .resolved
        return finding
    }
}
