import BundleModel
import GateVocabulary

/// What a page may not say although it reads well and no single decision under it breaks a statute: how codes travel,
/// who may record a person's will, who is kept from what, and when marketing goes out.
extension PageChecker {
    func checkSafeguards() {
        for type in types {
            checkCodes(type)
            checkMinors(type)
            checkCarried(type)
        }
        checkRecorders()
        checkReaders()
        checkMixedGrants()
        checkCodeTexts()
        checkPlausibility()
    }

    // MARK: What a text carries along

    /// A warning is believed, so what others wrote brings nothing in it that can be followed: a device names itself. Who is
    /// told of a breach is told by us whom to ask.
    private func checkCarried(_ type: NotificationType) {
        guard type.category == .security || type.category == .transactional, type.mandatory == nil else {
            return
        }
        for (name, schema) in type.params.sorted(by: { $0.key < $1.key }) {
            guard case .text(_, let rule) = schema.kind else { continue }
            var refused: Set<TextAllowance> = [.phoneNumbers, .emailAddresses]
            if type.category == .security {
                refused.formUnion([.lineBreaks, .reference])
                if NamedTypes.businessWords.isDisjoint(with: ParamSchema.words(of: name)) {
                    refused.insert(.domainNames)
                }
            }
            let lets = TextAllowance.allCases.filter { refused.contains($0) && rule.allowances.contains($0) }
            guard !lets.isEmpty else { continue }
            flaw(
                StatuteBook.page(of: type.id), ["params", name],
                "lets \(lets.map { "`\($0.rawValue)`" }.joined(separator: ", ")) of somebody else's into a \(type.category.rawValue) notification",
                law: "GDPR Arts. 5(1)(f) and 32(1): a warning that leads to a thief is the thief's")
        }
    }

    // MARK: Codes

    /// Seconds a code is good for at most.
    static let codeSecondsMax: Int64 = 600

    private func checkCodes(_ type: NotificationType) {
        let file = StatuteBook.page(of: type.id)
        let law = "Delegated Regulation (EU) 2018/389 Arts. 5(2) and 22"
        for (name, schema) in type.params.sorted(by: { $0.key < $1.key }) where Self.namesSecret(name) {
            switch schema.kind {
            case .text, .integer, .url: break
            default: continue
            }
            flaw(
                file, ["params", name],
                "is named like what lets somebody in, and is no `code`: what is no `code` may stand in a text in clear",
                law: "\(law); write `code`, a closed list of its values, or another name")
        }
        let hasCode = type.params.values.contains { $0.kind == .code && !$0.isOptional }
        if NamedTypes.codes.contains(type.id), !hasCode {
            flaw(file, ["params"], "carry no required `code`", law: law)
        }
        guard type.params.values.contains(where: { $0.kind == .code }) else { return }
        if type.ttlSeconds > Self.codeSecondsMax {
            flaw(
                file, ["ttl"],
                "is \(type.ttlSeconds) seconds, and a code is good for \(Self.codeSecondsMax) at most",
                law: "NIST SP 800-63B section 5.1.3.2, ten minutes; \(law)")
        }
        if type.body.sms == .full, !NamedTypes.codes.contains(type.id) {
            flaw(
                file, ["channels", "sms", "body"],
                "is `full`, and no text may bring the code of `\(type.id)`",
                law:
                    "\(law): \(NamedTypes.codes.map(\.text).sorted().map { "`\($0)`" }.joined(separator: ", ")) alone are known for codes that a person waits for"
            )
        }
        if NamedTypes.paymentCodes.contains(type.id) {
            let required = type.params.filter { !$0.value.isOptional }
            let hasPayee = required.contains { name, schema in
                guard case .text = schema.kind else { return false }
                return !NamedTypes.payeeWords.isDisjoint(with: ParamSchema.words(of: name))
            }
            if !required.values.contains(where: { $0.kind == .money }) || !hasPayee {
                flaw(
                    file, ["params"],
                    "carry no required amount, or no required payee, which the code approves",
                    law: "Delegated Regulation (EU) 2018/389 Art. 5(1)(a)")
            }
        }
        if type.body.push == .sealed, type.withoutKey == .generic {
            flaw(
                file, ["channels", "push", "without_key"],
                "is `generic`, and a constant text leaves whoever waits for a code without it",
                law: "\(law): refuse it, so that the producer takes another way at once")
        }
    }

    /// Rows that let a text bring a code where a regulator forbids it, or that cite nothing, or a law of other places.
    private func checkCodeTexts() {
        for (index, row) in bundle.regions.codeTextRows.enumerated() {
            let path = ["code_texts", String(index)]
            if !citesLaw(row.rationale.law) {
                flaw(
                    "regions.yaml", path + ["law"], "cites no law that lets a text bring a code",
                    law: "GDPR Art. 5(2): whoever relies on a law names it")
            }
            let cited = LawOfTheLand.codeTextLaws.filter { known in
                row.rationale.law.contains { $0.contains(known.citation) }
            }
            let beyond = row.regions.filter { region in
                !cited.isEmpty && !cited.contains { $0.regions.contains(region.country) }
            }
            if !beyond.isEmpty {
                let law = cited.map { "`\($0.citation)`" }.joined(separator: " and ")
                flaw(
                    "regions.yaml", path + ["regions"],
                    "lets a text bring a code to an account in \(beyond.map(\.description).joined(separator: ", ")), where \(law) does not hold",
                    law:
                        "GDPR Art. 5(2): whoever relies on a law names one that holds there, in a row of its own"
                )
            }
            for ban in LawOfTheLand.codeTextBans
            where row.regions.contains(where: { $0.country == ban.region }) {
                guard row.until.map({ $0.instant > ban.from.instant }) ?? true else { continue }
                flaw(
                    "regions.yaml", path + ["regions"],
                    "lets a text bring a code to an account in \(ban.region) after \(ban.from)", law: ban.law)
            }
        }
    }

    /// Whether a word of a param's name is one for a code or a password.
    static func namesSecret(_ name: String) -> Bool {
        ParamSchema.words(of: name).contains { secretWords.contains($0) }
    }

    private static let secretWords: Set<String> = [
        "code", "otp", "pin", "passcode", "password", "tan", "cvv", "cvc", "secret",
    ]

    // MARK: Minors

    private func checkMinors(_ type: NotificationType) {
        guard let consent = NamedTypes.consent(for: type.id), consent.tellsOfHealth, !type.refusesMinors,
            bundle.categories[type.category]?.refusesMinors == false
        else { return }
        flaw(
            StatuteBook.page(of: type.id), ["minors"],
            "are not refused, and `\(type.id)` rests on an explicit consent about a gambling disorder",
            law: "GDPR Arts. 8(1) and 9(2)(a): no minor gives it; S3, the programme is for adults")
    }

    // MARK: Who reads what is held of a person

    /// Grants to change what is held of a person: who has one is part of the app, or answers for what it records.
    private static let personGrants: Set<Grant> = [
        .recipientsWrite, .consentsWrite, .preferencesWrite, .preferencesStepUp, .devicesWrite,
        .subjectsErase,
    ]

    /// A caller that only sends does not read people: it is told of its own sends what it needs (`explain`, `GET …/sends`), and
    /// what a person takes part in, chose and agreed to is not its business.
    private func checkReaders() {
        for (name, rule) in senders where !Self.personGrants.contains(where: rule.grants.contains) {
            for grant in [Grant.subjectsRead, .trailRead] where rule.grants.contains(grant) {
                flaw(
                    "callers.yaml", ["callers", name.text, "grants"],
                    "let a caller that only sends hold `\(grant.rawValue)`, and so read of everybody what others know of them",
                    law:
                        "GDPR Arts. 5(1)(b) and (c) and 25(2): give it to a caller of its own that sends nothing"
                )
            }
        }
    }

    /// Grants that one caller does not combine, whatever it is called: a way in from outside with anything, a scraper's with
    /// people, the second confirmation with the first choice, the second hand on a key with more than that hand.
    private func checkMixedGrants() {
        let hands = callers.filter { $0.rule.grants.contains(.keysRotate) }
        let more = hands.filter { $0.rule.grants != GrantSet(.keysRotate) }.dropFirst()
        for (name, rule) in callers {
            let grants = rule.grants.grants
            let rows: [(grant: Grant, beside: [Grant], law: String)] = [
                (
                    .repliesWrite, grants.filter { $0 != .repliesWrite },
                    "GDPR Art. 32(1): what webhooks reach from outside takes consent away and does nothing else"
                ),
                (
                    .metricsRead,
                    rule.grants.contains(.trailRead) || rule.grants.contains(.send)
                        ? [] : grants.filter { Self.personGrants.union([.subjectsRead]).contains($0) },
                    "GDPR Arts. 5(1)(c) and 32(1): a scraper's port is open to every process, and who reads people has a caller of its own"
                ),
                (
                    .preferencesStepUp, grants.filter { $0 == .preferencesWrite },
                    "S1: security is switched off by a second confirmation, which is another caller's word than the first"
                ),
                (
                    .keysRotate,
                    more.contains { $0.name == name } ? grants.filter { $0 != .keysRotate } : [],
                    "NIST SP 800-57 part 2 rev. 1, dual control: one caller of several that rotate keys holds more, and each other nothing else"
                ),
            ]
            for row in rows where rule.grants.contains(row.grant) && !row.beside.isEmpty {
                flaw(
                    "callers.yaml", ["callers", name.text, "grants"],
                    "let one caller hold `\(row.grant.rawValue)` and \(row.beside.map { "`\($0.rawValue)`" }.joined(separator: ", "))",
                    law: row.law)
            }
        }
    }

    // MARK: Who records a person's will

    private func checkRecorders() {
        var reasons: [String: CallerName] = [:]
        for (name, rule) in callers {
            let path = ["callers", name.text]
            let covered = Set(
                bundle.types.values.filter { rule.types.covers($0.id, of: $0.category) }.map(\.category))
            if rule.grants.contains(.send), covered.contains(.marketing), covered.contains(.social) {
                flaw(
                    "callers.yaml", path + ["types"],
                    "lets a caller of marketing send social types, which need no opt-in to be marketing in disguise",
                    law:
                        "ePrivacy Directive 2002/58/EC Art. 13(1): social notifications have a caller of their own"
                )
            }
            if rule.grants.contains(.send), rule.grants.contains(.consentsImport) {
                flaw(
                    "callers.yaml", path + ["grants"],
                    "lets a caller that sends hold `consents.import`, and date consents to before its sends",
                    law: "GDPR Art. 7(1): a migration has a caller of its own, which sends nothing")
            }
            if rule.grants.contains(.send), rule.sources.contains(.adminOverride) {
                flaw(
                    "callers.yaml", path + ["may_assert", "sources"],
                    "lets a caller that sends assert `admin_override`, and choose for its own recipients",
                    law: "GDPR Art. 7(1) and Art. 21(2): support has a caller of its own, which sends nothing"
                )
            }
            guard rule.grants.contains(.consentsWrite) else {
                if rule.consentsBecause != nil {
                    flaw(
                        "callers.yaml", path + ["consents_because"],
                        "is said of a caller without `consents.write`", law: Self.recordedWill)
                }
                continue
            }
            guard let reason = rule.consentsBecause else {
                flaw(
                    "callers.yaml", path + ["grants"],
                    "has `consents.write` without a `consents_because` that says whose yes it records, and where it was said",
                    law: Self.recordedWill)
                continue
            }
            if let other = reasons.updateValue(name, forKey: reason) {
                flaw(
                    "callers.yaml", path + ["consents_because"], "is the reason of `\(other)` already",
                    law: "\(Self.recordedWill); one of the two need not hold the grant")
            }
        }
    }

    private static let recordedWill = "GDPR Art. 7(1): the controller shows that the person consented"
}
