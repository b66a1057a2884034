/// Why a rule exists: what every rule-like mapping of a bundle says about itself.
///
/// Nothing here changes a decision. It is what a compliance officer reads out when asked "who says so?".
package struct Rationale: Hashable, Sendable {
    /// One sentence.
    package var because: String
    /// The provisions it rests on, e.g. `GDPR Art. 6(1)(a)`.
    package var law: [String]
    /// When a person last made sure that it still holds.
    package var reviewed: CalendarDate

    package init(because: String, law: [String], reviewed: CalendarDate) {
        self.because = because
        self.law = law
        self.reviewed = reviewed
    }
}

extension MemberReader {
    /// `because`, `law` and `reviewed`, all required.
    func rationale() -> Rationale {
        Rationale(
            because: required("because", Rationale.meansBecause)?.reason() ?? "",
            law: required("law", Rationale.meansLaw).map { Self.law($0) } ?? [],
            reviewed: date("reviewed", Rationale.meansReviewed))
    }

    /// The same where the format asks for less; `law` may be absent.
    func rationaleWithoutLaw() -> Rationale {
        Rationale(
            because: required("because", Rationale.meansBecause)?.reason() ?? "",
            law: optional("law", Rationale.meansLaw).map { Self.law($0) } ?? [],
            reviewed: date("reviewed", Rationale.meansReviewed))
    }

    /// Accepts the three wherever an author wants to give a reason that is not demanded.
    func ignoreRationale() {
        _ = optional("because", Rationale.meansBecause)?.reason()
        _ = optional("law", Rationale.meansLaw).map { Self.law($0) }
        _ = optional("reviewed", Rationale.meansReviewed)?.date()
    }

    private static func law(_ reader: NodeReader) -> [String] { reader.named("law").texts() }
}

extension Rationale {
    fileprivate static let meansBecause = "Why the rule is as it is, in a sentence."
    fileprivate static let meansLaw = "What it rests on."
    fileprivate static let meansReviewed = "When it was last read and agreed to."
}
