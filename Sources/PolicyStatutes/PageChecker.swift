package import BundleModel
package import GateVocabulary

extension StatuteBook {
    /// Contradictions between the pages and a law that is the same for every company, whatever any decision makes of it.
    package func flaws() -> [PolicyDiagnostic] { PageChecker(bundle).checked() }

    package static func page(of id: TypeID) -> String { "types/\(id).yaml" }
}

/// Holds the pages of a bundle against the law, and keeps what it finds in that order.
final class PageChecker {
    let bundle: PolicyBundle
    /// By id.
    let types: [NotificationType]
    /// By name, without the caller of a gateway in development.
    let callers: [(name: CallerName, rule: CallerRule)]
    private var flaws: [PolicyDiagnostic] = []

    init(_ bundle: PolicyBundle) {
        self.bundle = bundle
        types = bundle.types.values.sorted { $0.id < $1.id }
        callers = bundle.callers.sorted { $0.key < $1.key }.filter { $0.key != bundle.developmentCaller }
            .map { (name: $0.key, rule: $0.value) }
    }

    func checked() -> [PolicyDiagnostic] {
        checkRegions()
        checkRows()
        checkDemandedRows()
        checkServices()
        checkTexts()
        checkPromoters()
        checkRecordersOfConsent()
        checkSummaries()
        checkTypes()
        checkNames()
        checkSafeguards()
        checkWayOut()
        return flaws
    }

    /// The callers that send.
    var senders: [(name: CallerName, rule: CallerRule)] { callers.filter { $0.rule.grants.contains(.send) } }

    /// Types that are sent in summaries, by id.
    var summaries: [TypeID] {
        Set(bundle.categories.values.compactMap(\.summary) + types.compactMap(\.ownSummary)).sorted()
    }

    /// Whether a caller may send what sells.
    func sells(_ rule: CallerRule) -> Bool {
        types.contains { $0.category.sells && rule.types.covers($0.id, of: $0.category) }
    }

    func flaw(
        _ file: String, _ path: [String], _ message: String, law: String
    ) {
        let name = path.isEmpty ? "the page" : "`\(path.joined(separator: "."))`"
        flaws.append(
            PolicyDiagnostic(
                file: file, at: bundle.location(file, path), "\(name) \(message)", hint: "see \(law)"))
    }

    private func checkRegions() {
        checkOrder()
        checkSoftOptIn()
        for (code, rule) in bundle.regions.regions.sorted(by: { $0.key.packed < $1.key.packed }) {
            guard let least = LawOfTheLand.leastRegime(of: code),
                LawOfTheLand.stricter(least, rule.regime) != rule.regime
            else { continue }
            flaw(
                "regions.yaml", ["regions", code.description],
                "is `\(rule.regime.rawValue)`, and at least `\(least.rawValue)` holds there",
                law: Self.source(of: code))
        }
    }

    /// The order of the regimes is the law's, and no table of permissions contradicts it: only then does the strictest
    /// regime of several places speak for all of them.
    private func checkOrder() {
        let lawful = LawOfTheLand.strictestFirst
        guard bundle.regions.order == lawful else {
            flaw(
                "regions.yaml", ["strictest_first"],
                "is not \(lawful.map { "`\($0.rawValue)`" }.joined(separator: ", "))",
                law: "GDPR Art. 3 and Art. 5(2): where two laws meet, the one that asks for more is kept")
            return
        }
        for (category, page) in bundle.categories.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            for channel in Channel.allCases {
                let table = page.permission[channel]
                for (stricter, laxer) in zip(lawful, lawful.dropFirst()) where table[stricter] < table[laxer]
                {
                    flaw(
                        "categories.yaml",
                        [category.rawValue, "permission", channel.rawValue, laxer.rawValue],
                        "asks for more than `\(stricter.rawValue)` does, so that a traveller would be asked for less than at home",
                        law: "GDPR Art. 5(2); regions.yaml, `strictest_first`")
                }
            }
        }
    }

    /// Not every state lets an existing customer be written to, so no table says it of all of them.
    private func checkSoftOptIn() {
        guard let email = bundle.categories[.marketing]?.permission.email else { return }
        for regime in Regime.allCases where email[regime] == .optInOrExistingCustomer {
            flaw(
                "categories.yaml", ["marketing", "permission", "email", regime.rawValue],
                "rests on existing customers everywhere, and a dated row of regions.yaml says where that is the law",
                law:
                    "ePrivacy Directive 2002/58/EC Art. 13(2), which each state transposes: Poland asks for consent (PKE Art. 398)"
            )
        }
    }

    static func source(of code: RegionCode) -> String {
        let country = code.country
        if LawOfTheLand.europeanUnion.contains(country) { return "Regulation (EU) 2016/679 Art. 3" }
        if LawOfTheLand.eftaInEEA.contains(country) { return "EEA Joint Committee Decision 154/2018" }
        if LawOfTheLand.partsOfUnion.contains(country) { return "TFEU Art. 355(1) and (4)" }
        if LawOfTheLand.unitedKingdom.contains(country) { return "the UK GDPR" }
        if LawOfTheLand.equivalent.contains(country) || LawOfTheLand.ownAfterGDPR.contains(country) {
            return "the jurisdiction's own data-protection law"
        }
        return "the data-protection act of the state it belongs to"
    }

    /// What the contract or a law makes us tell needs no consent: a person who was never asked would not hear of a breach, a
    /// stolen card or a payment that failed. A text asks for one only where a row cites the law that does.
    private func checkServices() {
        for category in [GateVocabulary.Category.security, .transactional] {
            for channel in Channel.allCases {
                let table = bundle.categories[category]!.permission[channel]
                for regime in Regime.allCases where table[regime] != .noneNeeded {
                    flaw(
                        "categories.yaml",
                        [category.rawValue, "permission", channel.rawValue, regime.rawValue],
                        "keeps what people have to be told from whoever was never asked",
                        law:
                            "GDPR Art. 34(1) and Art. 6(1)(b), Directive (EU) 2015/2366 Arts. 68(3) and 79(1)"
                    )
                }
            }
        }
        for (index, row) in bundle.regions.permissionRows.enumerated()
        where row.rule != .noneNeeded && (row.channel != .sms || !citesLaw(row.rationale.law))
            && row.categories.contains(where: { $0 == .security || $0 == .transactional })
        {
            flaw(
                "regions.yaml", ["permission_rows", String(index)],
                "keeps what people have to be told from whoever was never asked",
                law: "GDPR Art. 34(1) and Art. 6(1)(b), Directive (EU) 2015/2366 Arts. 68(3) and 79(1)")
        }
    }

    private func checkRows() {
        // The rule of existing customers is each state's own: a row cites the law that has it.
        for (index, row) in bundle.regions.permissionRows.enumerated()
        where row.categories.contains(.marketing) && row.rule <= .optInOrExistingCustomer {
            let path = ["permission_rows", String(index)]
            if row.from == nil || !citesLaw(row.rationale.law) {
                flaw(
                    "regions.yaml", path, "lets marketing go out without an opt-in and cites no dated law",
                    law: "GDPR Art. 5(2): whoever relies on a law names it")
            }
            let isLawful = LawOfTheLand.knowsLaw(of: row)
            if !LawOfTheLand.demandsOptIn(in: row.region), !isLawful {
                flaw(
                    "regions.yaml", path,
                    "lets marketing go out in \(row.region) by \(row.channel.rawValue) without an opt-in, on a law that this build does not know",
                    law:
                        "GDPR Art. 5(2); \(LawOfTheLand.optOutStatute) in the United States, by e-mail, is the only one known"
                )
            }
            if LawOfTheLand.demandsOptIn(in: row.region), !isLawful {
                flaw(
                    "regions.yaml", path + ["rule"],
                    "lets marketing go out without an opt-in, which the law of \(row.region) demands",
                    law:
                        "ePrivacy Directive Art. 13(1), UK PECR reg. 22, and the statutes of \(LawOfTheLand.namesOfOptInByStatute)"
                )
            }
        }
    }

    /// Rows that the statutes of their region make necessary and that are missing, laxer, or not in force yet on the day
    /// the bundle takes effect. A row counts from its date, so until then the table speaks, and a traveller's account.
    private func checkDemandedRows() {
        let rows = Array(bundle.regions.permissionRows.enumerated())
        for demanded in LawOfTheLand.demandedRows {
            let own = rows.filter {
                $0.element.region.country == demanded.region && $0.element.channel == demanded.channel
                    && $0.element.categories.contains(demanded.category)
            }
            for (index, row) in own where row.rule < demanded.least {
                flaw(
                    "regions.yaml", ["permission_rows", String(index), "rule"],
                    "asks for `\(row.rule.rawValue)` in \(row.region), and at least `\(demanded.least.rawValue)` is the law there",
                    law: demanded.law)
            }
            let ofCountry = own.filter { $0.element.region == demanded.region }
            let what =
                "a row for \(demanded.category.rawValue) by \(demanded.channel.rawValue) in \(demanded.region)"
            if ofCountry.isEmpty {
                flaw(
                    "regions.yaml", ["permission_rows"],
                    "lack \(what), which asks for `\(demanded.least.rawValue)` or more", law: demanded.law)
            } else if let first = ofCountry.min(by: {
                ($0.element.from ?? .first) < ($1.element.from ?? .first)
            }), let from = first.element.from, from > bundle.effectiveFrom {
                flaw(
                    "regions.yaml", ["permission_rows", String(first.offset), "from"],
                    "is \(from), so that \(what) is missing from \(bundle.effectiveFrom) until then",
                    law: demanded.law)
            }
        }
    }

    /// The law is a citation, which says where in it to look; not the admission that there is none, nor a wish that there
    /// were one.
    func citesLaw(_ law: [String]) -> Bool {
        !law.isEmpty
            && law.allSatisfy { text in
                let words = text.lowercased()
                return words != "none" && !words.hasPrefix("none,") && !words.hasPrefix("none:")
                    && words.filter(\.isLetter).count >= 3 && words.contains(where: \.isNumber)
            }
    }

    private func checkTexts() {
        let texts = bundle.types.values.filter { $0.isEnabled && $0.body.sms != .never }
        guard !texts.isEmpty else { return }
        if texts.contains(where: { $0.category == .marketing }) {
            let hours = bundle.channels.smsHours
            let isCovered =
                hours.map { hours in
                    hours.categories.contains(.marketing) && hours.earliest >= 8 * 60
                        && hours.latest <= 21 * 60
                        && LawOfTheLand.unitedStates.allSatisfy { state in
                            hours.regions.contains(state)
                        }
                } ?? false
            if !isCovered {
                flaw(
                    "channels.yaml", ["sms", "hours"],
                    "lets marketing texts reach the United States outside 08:00 to 21:00",
                    law: "47 CFR 64.1200(c)(1)")
            }
            if let hours = bundle.channels.smsHours {
                let zones = LawOfTheLand.unitedStatesZones.filter { !hours.zones.contains($0) }
                if !zones.isEmpty {
                    flaw(
                        "channels.yaml", ["sms", "hours", "zones"],
                        "lacks \(zones.map { "`\($0)`" }.joined(separator: ", ")), where it may be night",
                        law: "47 CFR 64.1200(c)(1): local time at the called party's location")
                }
                if !hours.callingCodes.contains("+1") {
                    flaw(
                        "channels.yaml", ["sms", "hours", "calling_codes"],
                        "lacks `+1`, which rings in the United States wherever its owner is registered",
                        law: "47 CFR 64.1200(c)(1): local time at the called party's location")
                }
            }
        }
        if !(bundle.regions.callingCodes["+1"].map(LawOfTheLand.isUnitedStates) ?? false) {
            flaw(
                "regions.yaml", ["calling_codes"],
                "do not say that `+1` belongs to the United States, so that its numbers would get texts without consent",
                law: "47 U.S.C. 227(b)(1)(A)(iii): the called party is who subscribes to the number")
        }
        let missing = Self.revocationWords.filter {
            bundle.channels.smsRevocation?.locale(of: $0) != LanguageTag.last.description
        }.sorted()
        if !missing.isEmpty {
            flaw(
                "channels.yaml", ["sms", "revocation"],
                "does not take \(missing.map { "`\($0)`" }.joined(separator: ", ")) for a withdrawal, in English",
                law: "47 CFR 64.1200(a)(10); CTIA, Messaging Principles and Best Practices, 5.1.3")
        }
        if let rule = bundle.channels.smsRevocation,
            rule.honouredWithinBusinessDays > 10 || rule.confirmationWithinMinutes > 5
        {
            flaw(
                "channels.yaml", ["sms", "revocation"], "honours a withdrawal too late",
                law: "47 CFR 64.1200(a)(10) and (a)(12): 10 business days, one confirmation in 5 minutes")
        }
        for (locale, text) in bundle.channels.smsRevocation?.confirmations.sorted(by: { $0.key < $1.key })
            ?? []
        where text.contains("://") || text.lowercased().contains("www.") {
            flaw(
                "channels.yaml", ["sms", "revocation", "confirmation", locale],
                "leads somewhere, and a confirmation only confirms",
                law: "47 CFR 64.1200(a)(12): it does not include any marketing or promotional information")
        }
    }

    /// Any of these in a reply is a withdrawal (47 CFR 64.1200(a)(10)), and `stopall` by what carriers ask for (CTIA). They are English
    /// words: one that counts only because another language has it is lost with that language, and confirmed in it.
    static let revocationWords: Set<String> = [
        "stop", "stopall", "quit", "end", "revoke", "opt out", "optout", "cancel", "unsubscribe",
    ]

    /// A caller that sends what rests on an explicit consent must not be able to record one.
    private func checkRecordersOfConsent() {
        for (name, rule) in senders
        where rule.grants.contains(.consentsWrite) || rule.grants.contains(.consentsImport) {
            guard
                let type = types.first(where: {
                    $0.purpose != nil && rule.types.covers($0.id, of: $0.category)
                })
            else { continue }
            flaw(
                "callers.yaml", ["callers", name.text, "types"],
                "lets a caller that records consents send `\(type.id)`, which rests on one",
                law: Self.ownConsent)
        }
    }

    private static let ownConsent = "GDPR Art. 7(1): a consent its beneficiary wrote proves nothing"

    /// A caller that may promote must not be able to record the permission to promote.
    private func checkPromoters() {
        let held: [Grant] = [
            .recipientsWrite, .consentsWrite, .consentsImport, .preferencesWrite, .preferencesStepUp,
            .devicesWrite, .receiptsWrite, .repliesWrite, .driftRun, .keysRotate, .subjectsErase,
            .policyActivate,
            .subjectsRead, .trailRead,
        ]
        for (name, rule) in senders where sells(rule) {
            let own = held.filter { rule.grants.contains($0) }
            guard !own.isEmpty else { continue }
            flaw(
                "callers.yaml", ["callers", name.text, "grants"],
                "lets a caller that promotes hold \(own.map { "`\($0.rawValue)`" }.joined(separator: ", "))",
                law: Self.ownConsent)
        }
    }

    /// A summary tells what its members would have told.
    private func checkSummaries() {
        func rank(_ sensitivity: Sensitivity) -> Int { Sensitivity.allCases.firstIndex(of: sensitivity)! }
        for name in summaries {
            guard let summary = bundle.types[name] else { continue }
            let members = types.filter { type in
                guard let page = bundle.categories[type.category] else { return false }
                let isLimited =
                    bundle.limits.everything != nil || bundle.limits.categories[type.category] != nil
                    || bundle.limits.types[type.id] != nil || bundle.limits.tiers[type.tier] != nil
                return isLimited && (type.ownOverflow ?? page.overflow) == .digest
                    && (type.ownSummary ?? page.summary) == name && type.id != name
            }
            guard let most = members.max(by: { rank($0.sensitivity) < rank($1.sensitivity) }),
                rank(most.sensitivity) > rank(summary.sensitivity)
            else { continue }
            flaw(
                StatuteBook.page(of: summary.id), ["sensitivity"],
                "is `\(summary.sensitivity.rawValue)`, and the summary can hold `\(most.id)`",
                law: "GDPR Art. 32(1)")
        }
    }

    private func checkTypes() {
        for type in types {
            let file = StatuteBook.page(of: type.id)
            if let mandatory = type.mandatory {
                if type.category.sells {
                    flaw(
                        file, ["mandatory"], "is said of what nobody is obliged to send",
                        law: "GDPR Art. 21(2)-(3)")
                }
                if !citesLaw(mandatory.law) {
                    flaw(file, ["mandatory", "law"], "cites no law", law: "GDPR Art. 6(1)(c) with 6(3)")
                }
            }
            if type.sensitivity != .high, type.params.values.contains(where: { $0.kind == .code }) {
                flaw(
                    file, ["sensitivity"], "is `\(type.sensitivity.rawValue)`, and the type carries a code",
                    law: "Delegated Regulation (EU) 2018/389 Art. 22")
            }
        }
    }
}
