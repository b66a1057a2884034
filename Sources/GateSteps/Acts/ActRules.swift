import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import KeyLifecycle
import GateRecords
import SealedFormat
import WireProtocol

/// The rules by which a caller's act is taken.
///
/// Pure over the act as it is recorded, the bundle in force, and what was known before. A step asks them before it records
/// anything, and ``EvidenceFold/objection(to:policies:)`` asks them of each entry, so an auditor's replay refuses what the gate
/// refuses and nothing else.
struct ActRules {
    let policy: CompiledPolicy
    /// What was known when the act came: the stored rows, or the fold of the entries before it.
    let known: any RecordReading
    /// The time of the entry.
    let now: Instant
}

extension StepContext {
    func rules(at now: Instant) -> ActRules { ActRules(policy: policy, known: memory, now: now) }
}

// MARK: Who

extension ActRules {
    /// - Throws: ``Problem`` `grantMissing` where the bundle grants the caller none of the acts.
    func require(oneOf acts: [CallerAct], of caller: CallerName) throws {
        let grants = policy.grants(of: caller)
        guard acts.contains(where: { $0.permission.isSatisfied(by: grants.contains) }) else {
            let needed = Set(acts.flatMap(\.grants)).map { "`\($0.rawValue)`" }.sorted()
            throw Problem(
                .grantMissing,
                detail: "the bundle grants caller `\(caller)` none of \(needed.joined(separator: ", "))")
        }
    }

    func require(_ act: CallerAct, of caller: CallerName) throws { try require(oneOf: [act], of: caller) }
}

// MARK: Consents

extension ActRules {
    func requireMethod(_ method: ConsentMethod, by caller: CallerName) throws {
        guard policy.caller(caller)?.methods.contains(method) == true else {
            throw Problem(
                .assertionNotPermitted,
                detail: "caller `\(caller)` may not assert the method `\(method.rawValue)`")
        }
    }

    /// Everything that is asked of a record `given`, `refused` or `shown`, besides who may report it so.
    func requireTrue(_ record: ConsentRecord, of person: RecipientWithLedger) throws {
        // A no that a clock ahead of the gateway's dates later counts from now, and keeps what was stated.
        guard record.eventTime <= now, record.statedTime == nil || record.state == .refused else {
            throw Problem(.eventInFuture, detail: "`event_time` is in the future")
        }
        if let expiry = record.expiresAt, expiry <= record.eventTime {
            throw Problem(wrong: "expires_at", "expected a time after `event_time`")
        }
        if record.method == .existingCustomer { try requireSilence(of: person, about: record) }
        let age = now.milliseconds - record.eventTime.milliseconds
        guard
            age <= ConsentRecord.freshMilliseconds
                || policy.grants(of: record.source).contains(.consentsImport)
        else {
            throw Problem(
                .grantMissing, detail: "an event older than 24 hours needs the grant `consents.import`")
        }
        try requireNotice(for: record)
    }

    /// When a consent ends: as the record says, and not after the days its purpose lasts at most. A record that says
    /// nothing ends then; one that says more is refused.
    func end(
        of purpose: Purpose, as state: ConsentRecord.State, from eventTime: Instant, asked: Instant?
    ) throws -> Instant? {
        guard state == .given, let days = policy.consentDaysMax(for: purpose) else { return asked }
        let latest = eventTime.advanced(bySeconds: Int64(days) * 86_400)
        guard let asked else { return latest }
        guard asked <= latest else {
            throw Problem(
                wrong: "expires_at",
                "expected at most \(days) days after `event_time`: a consent to `\(purpose)` lasts no longer")
        }
        return asked
    }

    /// Refuses a consent to anything but what its notice asks for: the purposes, the channels, and the ways of saying yes.
    private func requireNotice(for record: ConsentRecord) throws {
        guard let shown = record.notice else {
            throw Problem(.unknownNotice, detail: "it names no notice")
        }
        let notice = Notice.Key(id: shown.id, version: shown.version, language: shown.language)
        guard let scope = try known.scope(of: notice, sha256: shown.sha256, under: policy) else {
            throw Problem(
                .unknownNotice,
                detail:
                    "no notice `\(shown.id)` version `\(shown.version)` in `\(shown.language)` has this SHA-256"
            )
        }
        guard policy.purposes.contains(record.purpose) else {
            let known = policy.purposes.map(\.text).joined(separator: ", ")
            throw Problem(.unknownPurpose, detail: "`\(record.purpose)` is none of \(known)")
        }
        guard scope.purposes.contains(record.purpose), scope.channels.contains(record.channel) else {
            let asked = scope.purposes.map(\.text).joined(separator: ", ")
            let channels = scope.channels.map(\.rawValue).joined(separator: ", ")
            throw Problem(
                .otherPurpose,
                detail:
                    "the notice `\(notice.id)` asks about \(asked) on \(channels), not about `\(record.purpose)` on \(record.channel.rawValue)"
            )
        }
        // The page in force may name the first day of a text that it has no more.
        if record.state == .given,
            let first = policy.scope(of: notice)?.firstDay(of: shown.version, after: record.eventTime)
        {
            throw Problem(
                wrong: "event_time",
                "expected \(first) or later: version `\(shown.version)` of the notice `\(notice.id)` was shown to nobody before"
            )
        }
        if record.state == .given, !scope.methods.contains(record.method) {
            let known = scope.methods.map { "`\($0.rawValue)`" }.joined(separator: ", ")
            throw Problem(
                wrong: "method",
                "expected \(known): a yes to the notice `\(notice.id)` is given in no other way")
        }
    }

    /// A consent by purchase is the company's statement, not the recipient's: it permits e-mail about own similar
    /// products where the recipient said nothing, and overrides no refusal, no objection and no consent (ePrivacy
    /// Directive Art. 13(2), GDPR Art. 21(3)).
    private func requireSilence(of person: RecipientWithLedger, about record: ConsentRecord) throws {
        guard record.purpose == .marketing, record.channel == .email, record.state == .given else {
            throw Problem(
                wrong: "method",
                "expected another method: `existing_customer` is a yes to marketing by e-mail and nothing else"
            )
        }
        let scope = Category.marketing.rawValue
        let isOff = [nil, record.address].contains {
            person.person.preference(scope, record.channel, at: $0).isOff
        }
        let said = person.person.consentsInForce.fact(
            purpose: record.purpose, channel: record.channel, address: record.address)
        let hasSpoken =
            switch said.state {
            case .refused, .withdrawn: true
            case .given: said.method != .existingCustomer
            case .neverAsked, .otherChannel, .otherAddress: false
            }
        guard !isOff, !hasSpoken else {
            throw Problem(
                .wrongState,
                detail:
                    "the recipient has said themselves whether they want this; only they can say otherwise")
        }
    }
}

// MARK: Choices

extension ActRules {
    /// Everything that is asked of a choice which a caller reports.
    func requireTrue(_ choice: PreferenceRecord) throws {
        guard choice.at == now || policy.grants(of: choice.caller).contains(.consentsImport) else {
            throw Problem(
                .invalidRequest,
                detail: "a choice is of the moment when it is reported, unless `consents.import` is granted")
        }
        let (scope, source, caller) = (choice.scope, choice.source, choice.caller)
        guard policy.caller(caller)?.sources.contains(source) == true else {
            throw Problem(
                .assertionNotPermitted,
                detail: "caller `\(caller)` may not assert the source `\(source.rawValue)`")
        }
        let category = Category(rawValue: scope)
        guard category != nil || policy.type(TypeID(scope))?.isMutableAlone == true else {
            throw Problem(
                .unknownScope, detail: "`\(scope)` is neither a category nor a type that may be muted alone")
        }
        let needsStepUp =
            (category ?? policy.type(TypeID(scope))?.category)
            .map { policy.category($0).switchOff == .stepUp } ?? false
        let grants = policy.grants(of: caller)
        guard needsStepUp || grants.contains(.preferencesWrite) else {
            throw Problem(
                .assertionNotPermitted,
                detail:
                    "the grant `preferences.step_up` is for what only a step-up switches off, not for `\(scope)`"
            )
        }
        guard grants.contains(source.neededGrant) else {
            throw Problem(
                .grantMissing,
                detail: "the source `\(source.rawValue)` needs the grant `\(source.neededGrant.rawValue)`")
        }
        if choice.state.isOff, category != nil, needsStepUp, choice.state != .userOffStepUp {
            throw Problem(
                .assertionNotPermitted,
                detail: "`\(scope)` can be switched off with the source `in_app_step_up` only")
        }
    }
}

// MARK: What is registered

extension ActRules {
    func requireKnown(zone: String?) throws {
        guard let zone, !LocalTime.isKnown(zone: zone) else { return }
        throw Problem(.unknownTimeZone, detail: "`\(zone)` is no zone of tzdata \(LocalTime.dataVersion)")
    }

    func requirePast(_ observation: RegionObservation?) throws {
        guard let observation, observation.observedAt > now else { return }
        throw Problem(.eventInFuture, detail: "a region cannot have been observed in the future")
    }

    /// What enters the trail of a region that a caller named.
    func registered(_ code: RegionCode, at member: String) throws -> RegionCode {
        guard let registered = policy.bundle.regions.registered(code) else {
            throw Problem(
                wrong: member,
                "expected a country of ISO 3166-1; `NO`, or `US-CA` where the policy names the part")
        }
        return registered
    }

    /// - Parameter word: `devices` or `addresses`.
    func requireRoom(besides count: Int, _ word: String) throws {
        guard count < WireLimits.destinationCountMax else {
            throw Problem(
                .tooManyDestinations,
                detail: "\(WireLimits.destinationCountMax) \(word) are registered; remove one first")
        }
    }

    /// The OS prompt was shown: never again on this device (S1, "never prompt twice"). What the person answered may
    /// be reported with it or later, once.
    func requireFirst(
        promptShownAt shownAt: Instant, isAnswered: Bool, after earlier: PermissionPrompt?
    ) throws {
        guard shownAt <= now else { throw Problem(.eventInFuture, detail: "`shown_at` is in the future") }
        guard earlier == nil || earlier?.answer == nil && isAnswered else {
            throw Problem(.alreadyPrompted, detail: "lead the person to the OS settings instead")
        }
    }

    /// - Parameter device: With what is on record of its provider.
    func requireNewest(_ observedAt: Instant, of device: DeviceRecord) throws {
        guard observedAt <= now else {
            throw Problem(.eventInFuture, detail: "`observed_at` is in the future")
        }
        if let newer = device.subscriptions?.observedAt, newer > observedAt {
            throw Problem(
                .wrongState, detail: "the provider's state of \(newer.rfc3339) is on record, which is newer")
        }
    }
}

// MARK: Sends

extension ActRules {
    /// When something was observed of a send.
    func requireTime(_ at: Instant, ofReceiptFor sentAt: Instant) throws {
        guard at <= now else { throw Problem(.eventInFuture, detail: "`at` is in the future") }
        // A caller that reports whole seconds cuts off the milliseconds by which the time is later.
        guard at.seconds >= sentAt.seconds else {
            throw Problem(wrong: "at", "expected a time at or after the send's own")
        }
    }

    /// A type whose events a caller may acknowledge: one that it may send.
    func acknowledged(_ id: TypeID, by caller: CallerName) throws -> NotificationType {
        guard let type = policy.type(id) else {
            throw Problem(.notFound, detail: "the registry has no type of this name")
        }
        let request = AttestedRequest(caller: caller, type: type.id, channel: .push, critical: false)
        guard policy.rule(for: request).flags.contains(.typeGranted) else {
            throw Problem(.grantMissing, detail: "this caller may not send `\(type.id)`")
        }
        return type
    }
}

// MARK: Keys

extension ActRules {
    /// The state of a key after an event.
    func state(of state: KeyState, after event: KeyEvent) throws -> KeyState {
        do {
            return try state.after(event)
        } catch {
            throw Problem(.wrongState, detail: error.message)
        }
    }

    /// The second of the two callers that a destruction, and the promotion of a root key, need.
    ///
    /// - Parameter first: Who proposed it; `nil` where nobody did.
    func requireSecondCaller(_ caller: CallerName, after first: GatewayKey.Proposal?) throws {
        guard let first, first.isOpen(at: now) else {
            throw Problem(.wrongState, detail: "no other caller proposed it within the hour before")
        }
        guard first.caller != caller else {
            throw Problem(
                .wrongState, detail: KeyringRefusal.secondCallerMissing(until: first.expiresAt).message)
        }
    }
}
