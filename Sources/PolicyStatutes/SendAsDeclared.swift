package import BundleModel
package import GateVocabulary

/// One way of asking for one type, as the pages of the bundle declare it: what a statute reads besides facts.
///
/// Read from the pages and never from ``CompiledRule``, so that a mistake made in compiling them shows as a broken
/// statute.
package struct SendAsDeclared: Hashable, Sendable {
    package var isRegistered = false
    package var isEnabled = false
    package var isCallerPermitted = false
    package var asksCritical = false
    /// The list names type and caller, the caller holds `send.critical`, and the type is one of security.
    package var mayBeCritical = false
    package var channel: Channel
    package var category: GateVocabulary.Category = .marketing
    package var sensitivity: Sensitivity = .high
    package var body: BodyForm = .never
    package var standsInWithoutKey = false
    package var needsPurpose = false
    package var isMutableAlone = false
    package var isOnByDefault = false
    package var refusesMinors = true
    package var quietHours: QuietHoursRule = .drop
    package var overflow: OverflowRule = .drop
    package var isFallbackForbidden = true
    package var passesPreferences = false
    package var passesHours = false
    package var passesCaps = false
    /// The e-mail in which a law obliges us to say all of it.
    package var isStatutoryEmail = false
    /// Whether it may go to an address that another person has proved theirs since: it neither warns of an attack on the
    /// account nor tells a secret.
    package var mayReachOlderHolders = false
    /// A text message that says a code.
    package var isCodeText = false
    package var isDeduplicated = false
    package var isTimed = false
    package var requestPassesHours = false
    package var requestPassesCaps = false
    package var typeCap: Int?
    package var categoryCap: Int?
    package var everythingCap: Int?
    package var payloadByteCountMax = 0

    package var isMarketing: Bool { category == .marketing }
    package var isPromotion: Bool { category == .marketing || category == .social }
    /// Asked for, and allowed.
    package var isCritical: Bool { asksCritical && mayBeCritical }
    /// Only a choice behind a second confirmation counts. Nothing but security may be hard to switch off, whatever a
    /// page says.
    var isGuarded: Bool { category == .security || isCritical }

    /// Of an unregistered type, asked for by an unknown caller.
    package init(channel: Channel) { self.channel = channel }

    /// What the page says of a type, for every caller.
    package init(of type: TypeID, on channel: Channel, in bundle: PolicyBundle) {
        self.channel = channel
        guard let type = bundle.types[type], let page = bundle.categories[type.category] else { return }
        isRegistered = true
        isEnabled = type.isEnabled
        category = type.category
        sensitivity = type.sensitivity
        body = type.body[channel]
        standsInWithoutKey = type.withoutKey == .generic
        needsPurpose = type.purpose != nil
        isMutableAlone = type.isMutableAlone
        isOnByDefault = page.isOnByDefault && type.category != .marketing
        refusesMinors = page.refusesMinors || type.refusesMinors || type.category == .marketing
        quietHours = page.quietHours
        // No page lets what sells or what others did through however often, and none silences a warning.
        let isBound = type.category == .marketing || type.category == .social
        overflow = page.overflow
        if let own = type.ownOverflow, type.category != .security, !isBound || own != .allow {
            overflow = own
        }
        let summary = (type.ownSummary ?? page.summary).flatMap { bundle.types[$0] }
        let canBeGathered = summary.map { $0.body[channel] != .never } ?? false
        if overflow == .digest, !canBeGathered { overflow = .drop }
        isFallbackForbidden =
            type.category == .marketing || bundle.channels.smsFallbackForOthers == .forbidden
        isCodeText =
            channel == .sms && body == .full && type.category == .security
            && type.params.values.contains(ParamSchema(kind: .code, isOptional: false))
        // No law obliges a company to send marketing, whatever a page says.
        if let mandatory = type.mandatory, !isPromotion {
            passesPreferences = mandatory.passes.contains(.preferences)
            passesHours = mandatory.passes.contains(.quietHours)
            passesCaps = mandatory.passes.contains(.caps)
            isStatutoryEmail = channel == .email && body == .full && sensitivity != .high
        }
        mayReachOlderHolders = type.category != .security && type.sensitivity != .high
        // A duty to tell is done twice rather than never.
        isDeduplicated = type.dedupeBy != nil && type.mandatory == nil
        isTimed = type.timing != nil
        if let request = type.ownRequest {
            requestPassesHours = request.passes.contains(.quietHours)
            requestPassesCaps = request.passes.contains(.caps)
        }
        typeCap = bundle.limits.types[type.id]?.count
        categoryCap = bundle.limits.categories[type.category]?.count
        let isSummary =
            bundle.categories.values.contains { $0.summary == type.id }
            || bundle.types.values.contains { $0.ownSummary == type.id }
        // What must arrive is under no limit but one written for it.
        if type.mandatory == nil, type.tier != .critical, type.category != .security {
            if typeCap == nil, !isSummary { typeCap = bundle.limits.tiers[type.tier]?.count }
            everythingCap = bundle.limits.everything?.count
        }
        payloadByteCountMax = bundle.channels.rules[channel].payloadByteCountMax
    }

    /// The same with what hangs on the caller and the channel.
    package func asked(_ request: AttestedRequest, in bundle: PolicyBundle) -> SendAsDeclared {
        var send = self
        send.asksCritical = request.critical
        let caller = bundle.callers[request.caller]
        let maySend = request.caller == .gateway || caller?.grants.contains(.send) == true
        guard isRegistered else {
            send.isCallerPermitted = maySend
            return send
        }
        if let scope = caller?.types {
            let isNamed = scope.only.map { $0.contains(request.type) } ?? true
            send.isCallerPermitted =
                maySend && scope.categories.contains(category) && isNamed
                && !scope.except.contains(request.type)
        }
        // Summaries and the notices of `channels.yaml` are the gateway's own, and it has nothing else to say.
        if request.caller == .gateway {
            send.isCallerPermitted =
                bundle.categories.values.contains { $0.summary == request.type }
                || bundle.types.values.contains { $0.ownSummary == request.type }
                || bundle.channels.deviceKeyAge?.replacementNotice == request.type
                || bundle.channels.contestedNotice == request.type
        }
        send.mayBeCritical =
            category == .security && caller?.grants.contains(.sendCritical) == true
            && bundle.critical.contains { line in
                line.type == request.type && line.callers.contains(request.caller)
            }
        return send
    }

    /// What holds of it whatever the facts are.
    package var standing: Conditions {
        var found = Conditions(.anySend)
        found.insert(.unregistered, if: !isRegistered)
        found.insert(.disabled, if: isRegistered && !isEnabled)
        found.insert(.callerNotPermitted, if: !isCallerPermitted)
        found.insert(.criticalNotPermitted, if: asksCritical && !mayBeCritical)
        found.insert(.flagNotPermitted, if: !isCritical)
        found.insert(.channelClosed, if: body == .never)
        found.insert(.highSensitivity, if: sensitivity == .high && !isCodeText)
        found.insert(.mandatoryDespitePreferences, if: passesPreferences)
        found.insert(.mandatoryDespiteHours, if: passesHours)
        found.insert(.mandatoryDespiteCaps, if: passesCaps)
        found.insert(.security, if: isRegistered && category == .security)
        found.insert(.statutoryEmail, if: isStatutoryEmail)
        found.insert(.codeText, if: isCodeText)
        return found
    }

    /// Whether some way of asking may succeed; the others are refused whatever the facts are.
    package var isLawfulToAsk: Bool {
        standing.isDisjoint(
            with: Conditions([
                .unregistered, .disabled, .callerNotPermitted, .criticalNotPermitted, .channelClosed,
            ]))
    }
}
