/// Why a rule exists: what every rule-like mapping of a bundle says about itself.
///
/// Nothing here changes a decision. It is what a compliance officer reads out when asked "who says so?".
package struct Rationale: Hashable, Sendable {
    /// One sentence.
    package var because: String
    /// The provisions it rests on, e.g. `GDPR Art. 6(1)(a)`.
    package var law: [String]
    /// When somebody last made sure that it still holds.
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
        Rationale(because: required("because")?.reason() ?? "", law: texts("law"), reviewed: date("reviewed"))
    }

    /// The same where the format asks for less; `law` may be absent.
    func rationaleWithoutLaw() -> Rationale {
        Rationale(
            because: required("because")?.reason() ?? "", law: optional("law")?.texts() ?? [],
            reviewed: date("reviewed"))
    }

    /// Accepts the three wherever an author wants to give a reason that nobody demands.
    func ignoreRationale() {
        _ = optional("because")?.reason()
        _ = optional("law")?.texts()
        _ = optional("reviewed")?.date()
    }
}
