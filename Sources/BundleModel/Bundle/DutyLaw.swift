import GateVocabulary

/// A law that obliges a firm to tell its customers, as pages cite it.
struct DutyLaw: Sendable {
    let citation: String
    /// Hours after a send that leaves the duty owed until the alarm, at most: later than this the law is broken, or as
    /// good as broken.
    let hoursMax: Int
    let because: String
    /// What the law has told; a type that tells of something else does no duty under it.
    let subject: DutySubject

    /// Every law a mandatory type may stand on. A duty that cites none of them is refused:
    /// another law is added here, with how long it leaves.
    static let all: [DutyLaw] = {
        let immediately =
            "at the latest immediately after, or before it is final; a day is for whoever writes the letter"
        let breach =
            "without undue delay, and not later than the authority is told (GDPR Art. 33(1): 72 hours)"
        let businessDay = "by the end of the next business day (PSD2 Art. 83(1)), a weekend between"
        let durable = "two months before the change: a week is for the letter"
        func row(_ citation: String, _ subject: DutySubject, hoursMax: Int, _ because: String) -> DutyLaw {
            DutyLaw(citation: citation, hoursMax: hoursMax, because: because, subject: subject)
        }
        return [
            row("PSD2 Art. 54(1)", .changedTerms, hoursMax: 168, durable),
            row("PSD2 Art. 68(3)", .blockedInstrument, hoursMax: 24, immediately),
            row("PSD2 Art. 79(1)", .refusedPayment, hoursMax: 72, businessDay),
            row("UK PSRs 2017 reg. 50", .changedTerms, hoursMax: 168, durable),
            row("UK PSRs 2017 reg. 71", .blockedInstrument, hoursMax: 24, immediately),
            row("UK PSRs 2017 reg. 82", .refusedPayment, hoursMax: 72, businessDay),
            row("UK PSRs 2017 reg. 99", .incident, hoursMax: 72, breach),
            row("GDPR Art. 34", .dataBreach, hoursMax: 72, breach),
            row("UK GDPR Art. 34", .dataBreach, hoursMax: 72, breach),
            row(
                "Delegated Regulation (EU) 2018/389 Art. 4(4)", .blockedAccess, hoursMax: 24, immediately),
            row("UK SCA-RTS Art. 4(4)", .blockedAccess, hoursMax: 24, immediately),
            row("Regulation (EU) 2022/2554 (DORA) Art. 19(3)", .incident, hoursMax: 72, breach),
        ]
    }()

    /// The row of a citation; `nil` for a law that no row knows.
    static func of(_ law: String) -> DutyLaw? {
        all.first { known in
            guard law.hasPrefix(known.citation) else { return false }
            // `Art. 34` is not `Art. 341`.
            return law.dropFirst(known.citation.count).first?.isNumber != true
        }
    }
}

/// What a duty to tell is about (`policy prove` holds mandatory types against it), as far as the page of a type shows it: its category, and what every send of it has to
/// say or name. A page that lacks either tells of something else, whatever law it cites.
struct DutySubject: Sendable {
    /// Read after "is about".
    let words: String
    let categories: Set<GateVocabulary.Category>
    /// Each is met by a required param.
    let params: [Demand]

    /// A param, by its kind and a word of its name.
    struct Demand: Sendable {
        /// Read after "has no required".
        let words: String
        /// Words of a name, one of which is enough; empty where the kind alone says what it is.
        let names: Set<String>
        let accepts: @Sendable (ParamSchema.Kind) -> Bool

        func isMet(by params: [String: ParamSchema]) -> Bool {
            params.contains { name, schema in
                !schema.isOptional && accepts(schema.kind)
                    && (names.isEmpty || !names.isDisjoint(with: ParamSchema.words(of: name)))
            }
        }

        static func reference(_ words: String, _ names: Set<String>) -> Demand {
            Demand(words: "uuid of \(words)", names: names) { $0 == .uuid }
        }

        /// A closed list of values, or a text.
        static func statement(_ words: String, _ names: Set<String>) -> Demand {
            Demand(words: words, names: names) { kind in
                switch kind {
                case .oneOf, .text: true
                default: false
                }
            }
        }
    }

    /// PSD2 Art. 79(1): "notify … the refusal and, if possible, the reasons for it".
    static let refusedPayment = DutySubject(
        words: "a payment order that was refused", categories: [.transactional],
        params: [
            .reference(
                "the payment (`transaction_id`)", ["transaction", "payment", "transfer", "remittance"]),
            .statement("reason of the refusal (`cause`)", ["cause", "reason"]),
        ])

    /// PSD2 Art. 68(3): "inform the payer of the blocking of the payment instrument and the reasons for it".
    static let blockedInstrument = DutySubject(
        words: "a card or another payment instrument that was blocked", categories: [.security],
        params: [
            .reference("the instrument (`card_id`)", ["card", "instrument", "wallet", "account"]),
            .statement("reason of the block (`cause`)", ["cause", "reason"]),
        ])

    /// PSD2 Art. 54(1): changes are proposed "no later than two months before their proposed date of application".
    static let changedTerms = DutySubject(
        words: "a change of the framework contract", categories: [.transactional],
        params: [
            .reference(
                "the document (`document_id`)", ["document", "terms", "contract", "agreement", "change"]),
            Demand(words: "day on which it takes effect (a `timestamp`)", names: []) { $0 == .timestamp },
        ])

    /// GDPR Art. 34(2) with Art. 33(3)(b): the nature of the breach in plain language, and whom to ask.
    static let dataBreach = DutySubject(
        words: "a breach of personal data", categories: [.security],
        params: [
            .reference("the breach (`incident_id`)", ["incident", "breach"]),
            .statement("account of what happened (`what_happened`)", ["happened", "nature", "description"]),
            .statement("contact (`contact`)", ["contact"]),
        ])

    /// DORA Art. 19(3): clients are told of a major incident "and about the measures that have been taken".
    static let incident = DutySubject(
        words: "an operational or security incident", categories: [.security],
        params: [
            .reference("the incident (`incident_id`)", ["incident"]),
            .statement("account of the measures taken (`what_we_do`)", ["do", "measures"]),
        ])

    /// Delegated Regulation (EU) 2018/389 Art. 4(4): "the payer shall be alerted before the block is made permanent".
    static let blockedAccess = DutySubject(
        words: "a block after failed attempts to sign in", categories: [.security],
        params: [.statement("state of the block (`state`)", ["state", "status", "block"])])

    /// How a type tells of something else; `nil` where it fits.
    func objection(to type: NotificationType) -> String? {
        if !categories.contains(type.category) {
            return "a `\(type.category.rawValue)` type tells of something else"
        }
        let missing = params.filter { !$0.isMet(by: type.params) }
        return missing.isEmpty
            ? nil
            : "the type has no required \(missing.map(\.words).joined(separator: ", and none for the "))"
    }
}

extension NotificationType {
    /// Why a law that the page cites as a duty has something else told than this type does; empty where each fits.
    package var misfitDuties: [String] {
        (mandatory?.law ?? []).compactMap { DutyLaw.of($0) }.compactMap { law in
            law.subject.objection(to: self).map { objection in
                "cites `\(law.citation)`, which is about \(law.subject.words), and \(objection)"
            }
        }
    }
}

extension ParamSchema {
    /// The words of a param's name, in lower case: they end at `_` and before a capital.
    package static func words(of name: String) -> [String] {
        var words = [""]
        var isAfterLowercase = false
        for character in name {
            if character == "_" || character.isUppercase && isAfterLowercase { words.append("") }
            if character != "_" { words[words.count - 1] += character.lowercased() }
            isAfterLowercase = character.isLowercase || character.isNumber
        }
        return words
    }
}
