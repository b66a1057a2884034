import BundleModel
import GateVocabulary

/// The pages held against ``NamedTypes``: what a notification is by its name, whatever its page calls it.
extension PageChecker {
    func checkNames() {
        for type in types {
            checkKind(type)
            checkConsent(type)
            checkSensitivity(type)
        }
        for duty in NamedTypes.duties { checkDuty(duty) }
        checkEvents()
        checkNotices()
        checkCriticalDelivery()
        checkNumbers()
    }

    // MARK: Categories

    private func checkKind(_ type: NotificationType) {
        guard let kind = NamedTypes.kind(of: type.id) else { return }
        let said = type.category
        let isKept =
            kind.category == .security ? said == .security : said.privilege <= kind.category.privilege
        guard !isKept else { return }
        flaw(
            StatuteBook.page(of: type.id), ["category"],
            "is `\(said.rawValue)`, and `\(type.id)` is `\(kind.category.rawValue)` by nature", law: kind.law)
    }

    // MARK: Duties

    /// A notice of law that can be stopped, comes too late, or that no caller may send.
    private func checkDuty(_ duty: NamedTypes.Duty) {
        guard let type = bundle.types[duty.name] else { return }
        let file = StatuteBook.page(of: type.id)
        func add(_ path: [String], _ message: String) {
            flaw(file, path, message, law: duty.law)
        }
        if !type.isEnabled { add(["enabled"], "is false, and the law obliges us to send it") }
        if let mandatory = type.mandatory {
            let hasCap =
                (type.ownOverflow ?? bundle.categories[type.category]?.overflow) != .allow
                && (bundle.limits.types[type.id] != nil || bundle.limits.categories[type.category] != nil)
            let demanded = duty.passes + (hasCap ? [.caps] : [])
            let missing = demanded.filter { !mandatory.passes.contains($0) }
            if !missing.isEmpty {
                add(
                    ["mandatory", "passes"],
                    "lacks \(missing.map { "`\($0.rawValue)`" }.joined(separator: ", ")), which would stop or delay what the law obliges us to send"
                )
            }
            let silent = mandatory.dischargedBy.filter { means in
                guard let channel = means.channel else { return false }
                return duty.isDurable && channel != .email || duty.saysWhat && type.body[channel] == .generic
            }
            if !silent.isEmpty {
                add(
                    ["mandatory", "discharged_by"],
                    "names \(silent.map { "`\($0.rawValue)`" }.joined(separator: ", ")), which "
                        + (duty.isDurable
                            ? "is no durable medium" : "says that something happened, and not what")
                )
            }
        } else {
            add(["mandatory"], "is missing, and the law obliges us to send it")
        }
        if let param = type.dutyParam, param != duty.event {
            add(
                type.dedupeBy == nil ? ["params"] : ["dedupe_by"],
                "tells duties apart by `\(param)`, and each `\(duty.event)` is one: the second would count as told with the first"
            )
        }
        if type.ttlSeconds < NamedTypes.dutySecondsMin {
            add(
                ["ttl"],
                "is \(type.ttlSeconds) seconds, and what the law obliges us to send lives a day at least")
        }
        if duty.saysWhat, type.sensitivity != .high, type.body.email != .full {
            add(
                ["channels", "email"],
                "is `\(type.body.email.rawValue)`, and an e-mail that a law obliges us to send says what happened"
            )
        }
        if type.isEnabled, !senders.contains(where: { $0.rule.types.covers(type.id, of: type.category) }) {
            flaw(
                "callers.yaml", ["callers"], "let nobody send `\(type.id)`, which the law obliges us to send",
                law: duty.law)
        }
    }

    // MARK: Consents of their own

    private func checkConsent(_ type: NotificationType) {
        let file = StatuteBook.page(of: type.id)
        if let consent = NamedTypes.consent(for: type.id) {
            let purposes = consent.purposes.map { "`\($0)`" }.joined(separator: " or ")
            if let purpose = type.purpose {
                if !consent.purposes.contains(purpose.text) {
                    flaw(
                        file, ["purpose"],
                        "is `\(purpose)`, and whoever gets `\(type.id)` has to consent to \(purposes)",
                        law: consent.law)
                }
            } else {
                flaw(
                    file, ["purpose"],
                    "is missing, and whoever gets `\(type.id)` has to consent to \(purposes)",
                    law: consent.law)
            }
            for regime in [Regime.gdpr, .ukGDPR]
            where consent.tellsOfHealth && !type.basis[regime].contains("9(2)") {
                flaw(
                    file, ["basis", regime.rawValue],
                    "names no ground of Art. 9(2), and `\(type.id)` tells of health", law: consent.law)
            }
        } else if type.purpose == nil, let regime = restsOnExplicitConsent(type) {
            flaw(
                file, ["basis", regime.rawValue], "rests on a consent that the page does not ask for",
                law: "GDPR Art. 9(2)(a), PSD2 Art. 67(2)(a): name it under `purpose`")
        }
        for disclosure in Disclosure.all where disclosure.type == type.id {
            if type.params[disclosure.param] != ParamSchema(kind: .uuid, isOptional: false) {
                flaw(
                    file, ["params", disclosure.param],
                    "is no required uuid, and names the consent of the person it tells of",
                    law: "GDPR Art. 9(2)(a); SG-0006, 6: both people consent")
            }
        }
        if type.ownRequest != nil, !NamedTypes.covers(NamedTypes.atAnyHour, type.id) {
            flaw(
                file, ["own_request"],
                "lets `\(type.id)` come at any hour, and that is for help against an urge alone",
                law: "S3, interventions; S1, quiet hours")
        }
    }

    /// The regime whose basis names an explicit consent; `nil` when none does.
    private func restsOnExplicitConsent(_ type: NotificationType) -> Regime? {
        Regime.allCases.first { regime in
            let words = type.basis[regime]
            return words.contains("Art. 9(2)(a)") || words.contains("PSD2 Art. 67")
                || words.contains("explicit consent")
        }
    }

    // MARK: Sensitivity

    private func checkSensitivity(_ type: NotificationType) {
        guard type.sensitivity != .high else { return }
        func demandHigh(_ why: String, law: String) {
            flaw(
                StatuteBook.page(of: type.id), ["sensitivity"],
                "is `\(type.sensitivity.rawValue)`, and \(why)",
                law: law)
        }
        let consent = NamedTypes.consent(for: type.id)
        if consent?.tellsOfHealth == true || restsOnExplicitConsent(type) != nil {
            return demandHigh(
                "the type tells of what needs explicit consent", law: "GDPR Arts. 9(1) and 32(1)")
        }
        if let row = NamedTypes.high.first(where: {
            NamedTypes.covers($0.names, type.id) && !NamedTypes.covers($0.except, type.id)
        }) {
            return demandHigh("`\(type.id)` is not for whoever sees the screen", law: row.law)
        }
        if type.purpose != nil, type.category != .marketing {
            return demandHigh(
                "the type needs a consent of its own", law: "GDPR Arts. 9(1) and 32(1), PSD2 Art. 67(2)(a)")
        }
        if type.category != .marketing, type.params.values.contains(where: { $0.kind == .money }) {
            return demandHigh("the type carries an amount", law: "GDPR Art. 32(1); SG-0006, 7")
        }
    }

    // MARK: Events

    /// S2's alerts: what identifies them, and Payment Processing, which once led to double payments.
    private func checkEvents() {
        func add(_ id: TypeID, _ path: [String], _ message: String, law: String) {
            flaw(StatuteBook.page(of: id), path, message, law: law)
        }
        for id in NamedTypes.withoutAlertRecord where bundle.types[id]?.hasAlertRecord == true {
            add(
                id, ["alert_record"], "is true, and S2 has no row of the alerts table for it",
                law: "SG-0006, 2")
        }
        let uuid = ParamSchema(kind: .uuid, isOptional: false)
        let deposit = NamedTypes.deposit
        if let type = bundle.types[deposit], type.params["transactionId"] != uuid {
            add(deposit, ["params", "transactionId"], "is no required uuid", law: "S2, Deposit Alert")
        }
        let incomplete = NamedTypes.incomplete
        if let type = bundle.types[incomplete], type.isEnabled,
            type.params.keys.allSatisfy({ $0 == "alertId" })
        {
            add(
                incomplete, ["enabled"], "is true, and the type carries nothing but its alert's id",
                law: "S2, RDC Account Status; SG-0006, 2: complete the params first")
        }
        let processing = NamedTypes.paymentProcessing
        guard let type = bundle.types[processing] else { return }
        let law = "S2, Payment Processing; SG-0006, 3"
        if type.dedupeBy.flatMap({ type.params[$0] }) != uuid {
            add(
                processing, ["dedupe_by"],
                "names no payment, so that neither a repeat nor an acknowledgement is known", law: law)
        }
        if type.dedupeScope != .type {
            add(
                processing, ["dedupe_scope"],
                "is not `type`, so that the app's acknowledgement takes back no other service's notice",
                law: law)
        }
        if case .after = type.timing {
        } else {
            add(processing, ["timing"], "gives nobody time to acknowledge the payment first", law: law)
        }
    }

    // MARK: Notices

    /// Consents that cannot be given, and consents to nothing.
    private func checkNotices() {
        let file = Notice.purposesPage
        // A text for customers tells of the right to object, and asks for nothing.
        let asking = bundle.noticeScopes.values.filter { $0.methods != [.existingCustomer] }
        let asked = Set(asking.map(\.purposes).joined())
        for category in GateVocabulary.Category.allCases where category != .social {
            let types = bundle.types.values.filter { $0.isEnabled && $0.category == category }
            let needing = types.filter { category == .marketing || $0.body.sms != .never }
            guard !asked.contains(Purpose(category.rawValue)),
                let first = needing.min(by: { $0.id < $1.id })
            else { continue }
            let why =
                category == .marketing
                ? "whoever gets `\(first.id)` has to have said yes"
                : "whoever gets `\(first.id)` as a text in the United States has to have said yes"
            flaw(
                file, ["notices"], "ask nobody about `\(category.rawValue)`, and \(why)",
                law: category == .marketing
                    ? "GDPR Arts. 4(11) and 7(1), ePrivacy Directive 2002/58/EC Art. 13(1)"
                    : "47 CFR 64.1200(a)(1), GDPR Art. 7(1)")
        }
        for disclosure in Disclosure.all
        where bundle.types[disclosure.type] != nil && !asked.contains(disclosure.purpose) {
            flaw(
                file, ["notices"],
                "ask nobody about `\(disclosure.purpose)`, and `\(disclosure.type)` rests on it",
                law: "GDPR Art. 9(2)(a); SG-0006, 6: both people consent")
        }
        let withheld = bundle.categories[.marketing]?.withheldFrom ?? []
        for purpose in NamedTypes.noMarketingDuring
        where asked.contains(purpose) && !withheld.contains(purpose) {
            flaw(
                "categories.yaml", ["marketing", "withheld_from"],
                "lacks `\(purpose)`, so that whoever is quitting gambling is sold something",
                law: "GDPR Arts. 9 and 25(2); S3, who is helped has a gambling disorder")
        }
        for (id, scope) in bundle.noticeScopes.sorted(by: { $0.key < $1.key }) {
            let ground = scope.basis.lowercased()
            let own: ConsentMethod? =
                ground.contains("legitimate interest") || Self.points(of: ground).contains("f")
                ? .existingCustomer : ground.contains("written consent") ? .writtenConsent : nil
            if let own, scope.purposes.contains(Purpose("marketing")), scope.methods != [own] {
                flaw(
                    file, ["notices", id], "rests on `\(scope.basis)` and takes a yes in other ways",
                    law:
                        "GDPR Arts. 5(1)(a) and 7(1): what rests on it is given in its own way; write `methods: [\(own.rawValue)]`"
                )
            }
            for row in NamedTypes.consentDaysMax
            where scope.purposes.contains(row.purpose) && (scope.endsAfterDays ?? .max) > row.days {
                flaw(
                    file, ["notices", id, "ends_after_days"],
                    "lets a yes to `\(row.purpose)` last longer than \(row.days) days", law: row.law)
            }
        }
        var known = Set(Disclosure.all.map(\.purpose))
        known.formUnion(GateVocabulary.Category.allCases.map { Purpose($0.rawValue) })
        for type in bundle.types.values {
            known.formUnion([type.purpose, type.ownRequest?.purpose].compactMap(\.self))
        }
        for (id, purposes) in bundle.noticePurposes.sorted(by: { $0.key < $1.key }) {
            for purpose in purposes where !known.contains(purpose) {
                flaw(
                    file, ["notices", id], "asks for `\(purpose)`, which nothing rests on",
                    law: "GDPR Art. 5(1)(b) and (c): a consent is asked for what is done with it")
            }
        }
    }

    // MARK: Critical delivery and grants

    private func checkCriticalDelivery() {
        let law = "S1, critical alerts: only Security may ask, and only for a named list (SG-0013)"
        let sellers = senders.filter { sells($0.rule) }.map(\.name)
        for (index, line) in bundle.critical.enumerated() {
            let path = ["allow", String(index)]
            if let type = bundle.types[line.type], type.category != .security {
                flaw(
                    "critical.yaml", path + ["type"],
                    "is `\(line.type)`, which is `\(type.category.rawValue)`, and only security may be critical",
                    law: law)
            }
            for name in line.callers {
                if bundle.callers[name]?.grants.contains(.sendCritical) != true {
                    flaw(
                        "critical.yaml", path + ["callers"],
                        "names `\(name)`, who does not hold `send.critical`", law: law)
                }
                if sellers.contains(name) {
                    flaw(
                        "critical.yaml", path + ["callers"], "names `\(name)`, who sends what sells", law: law
                    )
                }
            }
        }
        for (name, rule) in callers {
            let path = ["callers", name.text]
            if rule.grants.contains(.sendCritical), sellers.contains(name) {
                flaw(
                    "callers.yaml", path + ["grants"], "holds `send.critical` and sends what sells", law: law)
            }
            let rules = [Grant.policyActivate, .keysRotate].filter { rule.grants.contains($0) }
            if rule.grants.contains(.send), !rules.isEmpty {
                flaw(
                    "callers.yaml", path + ["grants"],
                    "lets a caller that sends hold \(rules.map { "`\($0.rawValue)`" }.joined(separator: ", "))",
                    law:
                        "Delegated Regulation (EU) 2024/1774 Art. 21: whoever changes rules or keys sends nothing under them"
                )
            }
            guard rule.grants.contains(.send) else { continue }
            for id in summaries {
                guard let type = bundle.types[id], rule.types.covers(id, of: type.category) else { continue }
                flaw(
                    "callers.yaml", path + ["types"],
                    "lets a caller send `\(id)`, which only the gateway can count",
                    law: "GDPR Art. 5(1)(d): a summary of what was gathered is the gateway's own")
            }
            let notices: [(TypeID?, knows: String)] = [
                (bundle.channels.deviceKeyAge?.replacementNotice, "that a key was replaced"),
                (bundle.channels.contestedNotice, "that an address was verified elsewhere"),
            ]
            for (id, what) in notices {
                guard let id, let type = bundle.types[id], rule.types.covers(id, of: type.category)
                else { continue }
                flaw(
                    "callers.yaml", path + ["types"],
                    "lets a caller send `\(id)`, which only the gateway can know",
                    law: "GDPR Art. 5(1)(d): the gateway alone knows \(what)")
            }
        }
    }

    // MARK: Hours and numbers

    private func checkNumbers() {
        for category in GateVocabulary.Category.allCases {
            let demanded = NamedTypes.quietHours(of: category)
            guard let rule = bundle.categories[category]?.quietHours, rule != demanded else { continue }
            flaw(
                "categories.yaml", [category.rawValue, "quiet_hours"],
                "is `\(rule.rawValue)`, and at night \(category.rawValue) notifications \(demanded.words)",
                law: "S1, quiet hours; SG-0006, 8")
        }
        let marketing = bundle.limits.categories[.marketing]
        let isCapped = marketing.map(NamedTypes.keeps(marketing:)) ?? false
        if bundle.types.values.contains(where: { $0.category == .marketing && $0.isEnabled }), !isCapped {
            flaw(
                "limits.yaml", ["categories", "marketing"],
                "lets more go out than one in 24 hours or two in seven days",
                law: "S0, Promotional (P3), and S4 section 8, the loosest of the sources; SG-0006, 9")
        }
        for source in RegionSource.allCases {
            guard let days = bundle.regions.freshnessDays[source],
                let most = NamedTypes.observationDaysMax[source], days ?? .max > most
            else { continue }
            flaw(
                "regions.yaml", ["freshness", source.rawValue], "counts what is older than \(most) days",
                law: "GDPR Art. 5(1)(d): where somebody was says little of where they are")
        }
    }
}

extension GateVocabulary.Category {
    /// Whether it needs what the law asks of advertising.
    var sells: Bool { self == .marketing || self == .social }

    /// How much it may do without asking.
    fileprivate var privilege: Int { [.marketing, .social, .transactional, .security].firstIndex(of: self)! }
}

extension QuietHoursRule {
    fileprivate var words: String {
        switch self {
        case .drop: "are dropped"
        case .defer: "wait for the morning"
        case .pass: "go out"
        }
    }
}
