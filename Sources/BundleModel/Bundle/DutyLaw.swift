/// A law that obliges a firm to tell its customers, as pages cite it.
struct DutyLaw: Sendable {
    let citation: String
    /// Hours after a send that leaves the duty owed until the alarm, at most: later than this the law is broken, or as
    /// good as broken.
    let hoursMax: Int
    let because: String

    /// Every law a mandatory type may stand on. A duty that cites none of them is refused:
    /// another law is added here, with how long it leaves.
    static let all: [DutyLaw] = {
        let immediately =
            "at the latest immediately after, or before it is final; a day is for whoever writes the letter"
        let breach =
            "without undue delay, and not later than the authority is told (GDPR Art. 33(1): 72 hours)"
        let businessDay = "by the end of the next business day (PSD2 Art. 83(1)), a weekend between"
        let durable = "two months before the change: a week is for the letter"
        return [
            DutyLaw(citation: "PSD2 Art. 54(1)", hoursMax: 168, because: durable),
            DutyLaw(citation: "PSD2 Art. 68(3)", hoursMax: 24, because: immediately),
            DutyLaw(citation: "PSD2 Art. 79(1)", hoursMax: 72, because: businessDay),
            DutyLaw(citation: "UK PSRs 2017 reg. 50", hoursMax: 168, because: durable),
            DutyLaw(citation: "UK PSRs 2017 reg. 71", hoursMax: 24, because: immediately),
            DutyLaw(citation: "UK PSRs 2017 reg. 82", hoursMax: 72, because: businessDay),
            DutyLaw(citation: "UK PSRs 2017 reg. 99", hoursMax: 72, because: breach),
            DutyLaw(citation: "GDPR Art. 34", hoursMax: 72, because: breach),
            DutyLaw(citation: "UK GDPR Art. 34", hoursMax: 72, because: breach),
            DutyLaw(
                citation: "Delegated Regulation (EU) 2018/389 Art. 4(4)", hoursMax: 24, because: immediately),
            DutyLaw(citation: "UK SCA-RTS Art. 4(4)", hoursMax: 24, because: immediately),
            DutyLaw(
                citation: "Regulation (EU) 2022/2554 (DORA) Art. 19(3)", hoursMax: 72, because: breach),
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
