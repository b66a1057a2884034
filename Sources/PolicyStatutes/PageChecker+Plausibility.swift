import BundleModel
import CanonicalJSON
import GateVocabulary

/// What a careless edit makes of a page without changing which decision is lawful: a law that does not fit, a ground that
/// cannot carry, a day moved by years, a life that is too long, an hour nobody is awake in, a caller that learns of health
/// beside its own business. Each is a rule with the law or the document it stands on.
extension PageChecker {
    func checkPlausibility() {
        for type in types {
            checkMisfits(type)
            checkGrounds(type)
            checkLife(type)
            checkHours(type)
            checkPresentation(type)
        }
        checkDays()
        checkReviews()
        checkHealth()
        checkKeyAge()
    }

    // MARK: Duties

    private func checkMisfits(_ type: NotificationType) {
        for misfit in type.misfitDuties {
            flaw(
                StatuteBook.page(of: type.id), ["mandatory", "law"], misfit,
                law:
                    "GDPR Art. 6(1)(c) with 6(3): a duty is what its law says; cite the one that has this told, or remove `mandatory`"
            )
        }
    }

    // MARK: Grounds

    /// The points of GDPR Art. 6(1) that can carry what a category sends.
    ///
    /// Marketing needs a yes, or an existing customer (f); what other people did is the app's own service; what a contract
    /// or a law has us tell may rest on either, and on consent where a type asks for one. Nothing here saves a life (d) or
    /// is a public task (e).
    private static func grounds(of category: GateVocabulary.Category) -> Set<Character> {
        switch category {
        case .marketing: ["a", "f"]
        case .social: ["a", "b", "f"]
        case .transactional: ["a", "b", "c", "f"]
        case .security: ["b", "c", "f"]
        }
    }

    private func checkGrounds(_ type: NotificationType) {
        let file = StatuteBook.page(of: type.id)
        func add(_ regime: Regime, _ message: String, law: String) {
            flaw(file, ["basis", regime.rawValue], message, law: law)
        }
        let lawful = Self.grounds(of: type.category)
        for regime in [Regime.gdpr, .ukGDPR] {
            let named = Self.points(of: type.basis[regime])
            if named.isEmpty {
                add(
                    regime, "names no point of Art. 6(1)",
                    law: "GDPR Arts. 5(1)(a), 6(1) and 13(1)(c): write it as `Art. 6(1)(b)`")
            }
            if !Self.isReadable(type.basis[regime]) {
                add(
                    regime, "cites Art. 6 in a form that cannot be judged",
                    law: "GDPR Art. 6(1): write each point in full, e.g. `Art. 6(1)(a) and Art. 6(1)(f)`")
            }
            let words = type.basis[regime].lowercased()
            if type.category == .marketing, words.contains("contract") || words.contains("obligation") {
                add(
                    regime, "is `\(type.basis[regime])`, and marketing rests on consent",
                    law:
                        "EDPB Guidelines 2/2019 on Art. 6(1)(b): no contract needs its customer to be sold something"
                )
            }
            for point in named.subtracting(lawful).sorted() {
                add(
                    regime, "is Art. 6(1)(\(point)), which carries no \(type.category.rawValue) notification",
                    law: type.category == .marketing
                        ? "GDPR Arts. 6(1) and 21(2)-(3), EDPB Guidelines 2/2019 on Art. 6(1)(b): no contract needs its customer to be sold something"
                        : "GDPR Art. 6(1)")
            }
            if type.category == .marketing, !named.isEmpty, !named.contains("a") {
                add(
                    regime, "names no consent, and only an existing customer's e-mail does without",
                    law: "ePrivacy Directive 2002/58/EC Art. 13(1) and (2)")
            }
            if named.contains("c"), type.mandatory == nil, !citesLaw(citedLaw(of: type)) {
                add(
                    regime, "is a legal obligation, and the page cites no law that obliges",
                    law: "GDPR Art. 6(3): name it under `law` or `mandatory.law`")
            }
            if type.mandatory != nil, !named.isEmpty, !named.contains("c") {
                add(
                    regime, "is no legal obligation, and the type is `mandatory`", law: "GDPR Art. 6(1)(c)")
            }
        }
        guard type.category == .marketing else { return }
        for regime in [Regime.gdprLike, .other] {
            let words = type.basis[regime].lowercased()
            if !words.contains("consent") || words.contains("contract") || words.contains("obligation") {
                add(
                    regime, "is `\(type.basis[regime])`, and marketing rests on consent everywhere",
                    law: "Apple App Review Guideline 4.5.4; regions.yaml, `other`")
            }
        }
    }

    /// The points of Art. 6(1) that a basis names, in lower case.
    static func points(of basis: String) -> Set<Character> {
        let letters = Array(basis.lowercased().filter { !$0.isWhitespace })
        let mark = Array("6(1)(")
        return letters.indices.reduce(into: []) { found, start in
            let end = start + mark.count
            guard end + 1 < letters.count, Array(letters[start..<end]) == mark, letters[end + 1] == ")",
                start == 0 || !letters[start - 1].isNumber
            else { return }
            found.insert(letters[end])
        }
    }

    /// Whether ``points(of:)`` finds every point that a basis names: each citation of Art. 6 is written in full, and no
    /// letter in brackets stands without its paragraph, as in `6.1.b`, `6(1) lit. b` and `6(1)(a), (b)`.
    static func isReadable(_ basis: String) -> Bool {
        let letters = Array(basis.lowercased().filter { !$0.isWhitespace })
        func character(_ index: Int) -> Character? { letters.indices.contains(index) ? letters[index] : nil }
        func isDigit(_ index: Int) -> Bool { character(index)?.isNumber == true }
        func isPoint(_ start: Int) -> Bool {
            character(start) == "(" && character(start + 1)?.isLetter == true && character(start + 2) == ")"
        }
        return letters.indices.allSatisfy { index in
            let isArticle =
                letters[index] == "6" && character(index - 1) != "(" && !isDigit(index - 1)
                && !isDigit(index + 1)
            if isArticle {
                return letters[(index + 1)...].starts(with: "(1)") && isPoint(index + 4)
            }
            return !isPoint(index) || character(index - 1) == ")" && isDigit(index - 2)
        }
    }

    /// `law` of a type's page, which decides nothing and so is in no model.
    private func citedLaw(of type: NotificationType) -> [String] {
        switch bundle.documents[StatuteBook.page(of: type.id)]?.json.objectValue?["law"] {
        case .string(let text): [text]
        case .array(let elements): elements.compactMap(\.stringValue)
        default: []
        }
    }

    // MARK: Lives

    /// Seconds what a tier sends may live, at least and at most (SG-0053).
    ///
    /// Critical is for who must act at once (S0, P0): a day later the warning misleads. An offer of last week is none. What
    /// is important may be read for a week, a summary or a statement for three days.
    static func lifeSeconds(of tier: Tier) -> ClosedRange<Int64> {
        switch tier {
        case .critical: 60...86_400
        case .important: 60...7 * 86_400
        case .informational: 60...3 * 86_400
        case .promotional: 60...2 * 86_400
        }
    }

    private func checkLife(_ type: NotificationType) {
        let lawful = Self.lifeSeconds(of: type.tier)
        let bounds = [
            (lawful, "what is \(type.tier.rawValue)", "S0, tiers P0 to P3; SG-0053"),
            (
                NamedTypes.covers(NamedTypes.atAnyHour, type.id) ? 60...NamedTypes.urgeSecondsMax : lawful,
                "help against an urge", "S3: an urge lasts fifteen to thirty minutes"
            ),
        ]
        guard let (bound, what, law) = bounds.first(where: { !$0.0.contains(type.ttlSeconds) }) else {
            return
        }
        flaw(
            StatuteBook.page(of: type.id), ["ttl"],
            "is \(type.ttlSeconds) seconds, and \(what) lives \(bound.lowerBound) to \(bound.upperBound)",
            law: law)
    }

    // MARK: Hours

    /// What has a time of its own has one in the day, in the recipient's zone. Security has none: it does not wait.
    private func checkHours(_ type: NotificationType) {
        let sells = type.category.sells
        let day = sells ? 8 * 60...21 * 60 : 7 * 60...22 * 60
        let isByDay =
            switch type.timing {
            case nil, .after: true
            case .daily(let minute), .weekly(_, let minute): day.contains(minute)
            case .between(let first, let last): day.contains(first) && day.contains(last)
            }
        guard !isByDay else { return }
        flaw(
            StatuteBook.page(of: type.id), ["timing"],
            "sends a \(type.category.rawValue) notification outside \(sells ? "08:00 to 21:00" : "07:00 to 22:00") of the recipient's day",
            law: sells
                ? "47 CFR 64.1200(c)(1), the latest hour any law of the table allows; S1, quiet hours"
                : "S1, quiet hours; Directive 2003/88/EC Art. 2(3): a night has midnight to 05:00 in it, and two hours on either side are slept in"
        )
    }

    // MARK: On the device

    private func checkPresentation(_ type: NotificationType) {
        guard type.category == .security || type.mandatory != nil else { return }
        let file = StatuteBook.page(of: type.id)
        if type.interruption == .passive {
            flaw(
                file, ["interruption"], "is `passive`, and nobody would see what they have to be told",
                law: "GDPR Art. 32, and the type's `mandatory.law`")
        }
        if type.collapses, type.dedupeBy == nil {
            flaw(
                file, ["collapse"],
                "lets a newer notice take an unread one's place, though it tells of something else",
                law: "GDPR Art. 32, and the type's `mandatory.law`: name the event in `dedupe_by`")
        }
        let sold = bundle.types.values.filter {
            $0.category == .marketing && $0.androidChannel == type.androidChannel
        }.map(\.id).min()
        if let channel = type.androidChannel, let sold {
            flaw(
                file, ["android_channel"],
                "is `\(channel)`, the channel of `\(sold)`, so that whoever mutes the offers mutes the warning",
                law: "GDPR Art. 32; S1, very hard to turn off")
        }
    }

    // MARK: Days

    /// Years a row may be of before it takes effect, and how old the oldest law is that a row may cite.
    private static let daysToComeMax: Int64 = 731
    private static let firstLawYear = 1_990

    /// Days that a law sets and a page moved.
    private func checkDays() {
        func add(_ path: [String], _ message: String, law: String) {
            flaw("regions.yaml", path, message, law: law)
        }
        func check(_ from: CalendarDate, _ law: [String], _ path: [String], _ region: RegionCode) {
            let known = LawOfTheLand.days.first { day in law.contains { $0.contains(day.citation) } }
            if let known, known.from != from {
                add(
                    path, "is \(from), and the law it cites counts from \(known.from)",
                    law: "\(known.citation): when a law counts is a fact")
            } else if known == nil, LawOfTheLand.leastRegime(of: region) == .gdpr,
                from != LawOfTheLand.gdprDay,
                from.instant <= bundle.effectiveFrom.instant
            {
                add(
                    path,
                    "is \(from), and a law this build does not date counts from \(LawOfTheLand.gdprDay) there",
                    law: "GDPR Art. 99(2); a later law is added to the table of days in this build")
            } else if from.year < Self.firstLawYear
                || from.instant
                    > bundle.effectiveFrom.instant.advanced(bySeconds: Self.daysToComeMax * 86_400)
            {
                add(
                    path,
                    "is \(from), and a row counts from \(Self.firstLawYear) at the earliest and two years ahead at the latest",
                    law: "GDPR Art. 5(2)")
            }
        }
        for (index, row) in bundle.regions.permissionRows.enumerated() {
            guard let from = row.from else { continue }
            check(from, row.rationale.law, ["permission_rows", String(index), "from"], row.region)
        }
        for (index, row) in bundle.regions.codeTextRows.enumerated() {
            guard let region = row.regions.first else { continue }
            check(row.from, row.rationale.law, ["code_texts", String(index), "from"], region)
        }
        for (code, rule) in bundle.regions.regions.sorted(by: { $0.key.packed < $1.key.packed }) {
            guard let since = rule.since else { continue }
            let path = ["regions", code.description, "since"]
            if let known = LawOfTheLand.since(code), known != since {
                add(path, "is \(since), and the law there counts from \(known)", law: Self.source(of: code))
            } else if since < LawOfTheLand.gdprDay {
                add(path, "is \(since), before there was a GDPR", law: "GDPR Art. 99(2)")
            } else if rule.regime == .other, LawOfTheLand.leastRegime(of: code) == nil,
                since != LawOfTheLand.gdprDay
            {
                add(
                    path,
                    "is \(since), and a place where the GDPR never held is `other` since \(LawOfTheLand.gdprDay)",
                    law: "GDPR Arts. 3 and 99(2)")
            }
        }
        if let day = bundle.channels.smsRevocation?.endsAllTextsFrom, day > LawOfTheLand.allTextsDay {
            flaw(
                "channels.yaml", ["sms", "revocation", "ends_all_texts_from"],
                "is \(day), and the rule counts from \(LawOfTheLand.allTextsDay)",
                law: "47 CFR 64.1200(a)(10)")
        }
    }

    /// Days a rule may have been read after the bundle takes effect, for a page that is reviewed ahead, and years before it.
    private static let reviewDaysAheadMax: Int64 = 366
    private static let reviewDaysAgoMax: Int64 = 5 * 366

    /// A rule that says it was read years ago, or that it will be.
    private func checkReviews() {
        let day = bundle.effectiveFrom.instant
        func visit(_ value: JSONValue, _ file: String, _ path: [String]) {
            switch value {
            case .object(let members):
                for (key, member) in members {
                    if key == "reviewed", let date = member.stringValue.flatMap({ CalendarDate($0) }),
                        date.instant > day.advanced(bySeconds: Self.reviewDaysAheadMax * 86_400)
                            || date.instant < day.advanced(bySeconds: -Self.reviewDaysAgoMax * 86_400)
                    {
                        flaw(
                            file, path + [key],
                            "is \(date), years from the day the bundle takes effect (\(bundle.effectiveFrom))",
                            law: "GDPR Arts. 5(2) and 24(1): measures are reviewed and updated")
                    }
                    visit(member, file, path + [key])
                }
            case .array(let elements):
                for (index, element) in elements.enumerated() { visit(element, file, path + [String(index)]) }
            default: break
            }
        }
        for (file, document) in bundle.documents.sorted(by: { $0.key < $1.key })
        where !file.hasPrefix("cases/") && !file.hasPrefix("messages/") && !file.hasPrefix("reasons/") {
            visit(document.json, file, [])
        }
    }

    // MARK: Health

    /// Whether who sends a type learns of a person's disorder.
    private func tellsOfHealth(_ type: NotificationType) -> Bool {
        if NamedTypes.consent(for: type.id)?.tellsOfHealth == true { return true }
        return [Regime.gdpr, .ukGDPR].contains { type.basis[$0].contains("9(2)") }
    }

    /// Who may send what tells of health sends nothing else: a service with other business would know who is ill, and an
    /// answer of the gateway would tell it.
    private func checkHealth() {
        for (name, rule) in senders {
            let sent = types.filter { rule.types.covers($0.id, of: $0.category) }
            guard let health = sent.first(where: tellsOfHealth),
                let other = sent.first(where: { !tellsOfHealth($0) })
            else { continue }
            flaw(
                "callers.yaml", ["callers", name.text, "types"],
                "lets one caller send `\(health.id)`, which tells of health, and `\(other.id)`, which does not",
                law:
                    "GDPR Arts. 5(1)(b) and (f), 9(1) and 32(4): what tells of health has a caller of its own"
            )
        }
    }

    // MARK: Keys

    /// Days a device's key may be old at most.
    private static let keyDaysMax = 730

    private func checkKeyAge() {
        guard let age = bundle.channels.deviceKeyAge, age.maxAgeDays > Self.keyDaysMax else { return }
        flaw(
            "channels.yaml", ["push", "device_key", "max_age_days"],
            "is \(age.maxAgeDays), and a key is replaced after \(Self.keyDaysMax) days at the latest",
            law: "NIST SP 800-57 part 1 rev. 5 section 5.3.6: one to two years for a static key-agreement key"
        )
    }
}
