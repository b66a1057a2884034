public import GateVocabulary

/// What holds for every notification of one category (`categories.yaml`).
package struct CategoryRule: Hashable, Sendable {
    package var means: String
    /// Whether it goes out to a recipient who has not chosen.
    package var isOnByDefault: Bool
    package var permission: ByChannel<ByRegime<PermissionRule>>
    package var quietHours: QuietHoursRule
    package var overflow: OverflowRule
    /// The type that says what was gathered; set exactly when ``overflow`` is `digest`.
    package var summary: TypeID?
    package var refusesMinors: Bool
    /// A recipient who gave a consent to one of these gets none of the category.
    package var withheldFrom: [Purpose]
    /// Whether every message carries the link that mutes the category without a login.
    package var hasUnsubscribeLink: Bool
    package var switchOff: SwitchOffRule
    package var rationale: Rationale
}

/// What a category needs before a notification of it may go out, weakest first.
///
/// The order is one of strictness: whatever satisfies a rule satisfies every rule before it.
/// ``CompliancePolicy`` leans on that when it must take the strictest of several.
package enum PermissionRule: String, CaseIterable, Sendable, Hashable, Comparable {
    /// Contract or legitimate interest carries it; consent is not looked at.
    case noneNeeded = "none_needed"
    /// Allowed until the recipient objects: only a refusal or a withdrawal stops it.
    case optOut = "opt_out"
    /// A given consent, or a recorded existing customer (ePrivacy Directive Art. 13(2)).
    case optInOrExistingCustomer = "opt_in_or_existing_customer"
    /// A consent the person gave; being a customer is not enough.
    case optIn = "opt_in"
    /// Prior express consent of the called party (47 CFR 64.1200(a)(1)); any method by which the person
    /// said yes for this number counts.
    case expressConsent = "express_consent"
    /// Prior express written consent (47 CFR 64.1200(f)(9)); only a record of that method counts.
    case writtenConsent = "written_consent"

    private var strictness: UInt8 {
        switch self {
        case .noneNeeded: 0
        case .optOut: 1
        case .optInOrExistingCustomer: 2
        case .optIn: 3
        case .expressConsent: 4
        case .writtenConsent: 5
        }
    }

    package static func < (weaker: PermissionRule, stricter: PermissionRule) -> Bool {
        weaker.strictness < stricter.strictness
    }

    /// Whether a consent given by `method` is enough.
    package func accepts(_ method: ConsentMethod) -> Bool {
        switch self {
        case .noneNeeded, .optOut, .optInOrExistingCustomer: true
        case .optIn, .expressConsent: method != .existingCustomer
        case .writtenConsent: method == .writtenConsent
        }
    }
}

/// One value per regime.
@usableFromInline
package struct ByRegime<Value: Hashable & Sendable>: Hashable, Sendable {
    @usableFromInline package var gdpr: Value
    @usableFromInline package var ukGDPR: Value
    @usableFromInline package var gdprLike: Value
    @usableFromInline package var other: Value

    @inlinable
    package init(gdpr: Value, ukGDPR: Value, gdprLike: Value, other: Value) {
        self.gdpr = gdpr
        self.ukGDPR = ukGDPR
        self.gdprLike = gdprLike
        self.other = other
    }

    @inlinable
    package subscript(regime: Regime) -> Value {
        switch regime {
        case .gdpr: gdpr
        case .ukGDPR: ukGDPR
        case .gdprLike: gdprLike
        case .other: other
        }
    }
}

/// One value per channel.
@usableFromInline
package struct ByChannel<Value: Hashable & Sendable>: Hashable, Sendable {
    @usableFromInline package var push: Value
    @usableFromInline package var sms: Value
    @usableFromInline package var email: Value

    @inlinable
    package init(push: Value, sms: Value, email: Value) {
        self.push = push
        self.sms = sms
        self.email = email
    }

    @inlinable
    package subscript(channel: Channel) -> Value {
        switch channel {
        case .push: push
        case .sms: sms
        case .email: email
        }
    }
}

/// What happens to a notification that meets the recipient's quiet hours.
package enum QuietHoursRule: String, CaseIterable, Sendable, Hashable {
    case drop
    case `defer`
    case pass
}

/// What happens to a notification above a cap.
package enum OverflowRule: String, CaseIterable, Sendable, Hashable {
    case drop
    case digest
    case allow
}

/// How hard a category is to switch off.
package enum SwitchOffRule: String, CaseIterable, Sendable, Hashable {
    /// One tap, no questions.
    case anyone
    /// Only through the step-up flow: S1's "very hard to turn off".
    case stepUp = "step_up"
}

/// Whether something goes to minors, as a category or a type writes it.
enum MinorsRule: String, CaseIterable { case allow, refuse }

extension CategoryRule {
    private enum Default: String, CaseIterable { case on, off }

    static func page(_ reader: NodeReader) -> [GateVocabulary.Category: CategoryRule] {
        let rows = reader.members()
        var categories: [GateVocabulary.Category: CategoryRule] = [:]
        for category in GateVocabulary.Category.allCases {
            let row = rows.required(category.rawValue, "What holds for every type of the category.")
            if let row { categories[category] = CategoryRule(row.named("category_rule")) }
        }
        rows.refuseOthers()
        return categories
    }

    init(_ reader: NodeReader) {
        let members = reader.members()
        let byDefault: Default = members.name(
            "default", "Whether it goes to a recipient who has not chosen; between double quotes.")
        let minors: MinorsRule = members.name("minors", "Whether it goes to minors.")
        self.init(
            means: members.text("means", "What belongs to the category."), isOnByDefault: byDefault == .on,
            permission: Self.permission(
                members.required("permission", "What a send needs, by channel and regime.")),
            quietHours: members.name("quiet_hours", "What happens in the recipient's quiet hours."),
            overflow: members.name("overflow", "What happens above a limit."),
            summary: members.optional(
                "summary", "The type that tells what was gathered; with `overflow: digest` only.")?.typeID(),
            refusesMinors: minors == .refuse,
            withheldFrom: members.optional(
                "withheld_from", "A recipient who gave a consent to one of these purposes gets none of it.")?
                .texts().map { Purpose($0) } ?? [],
            hasUnsubscribeLink: members.boolean(
                "unsubscribe_link",
                "Whether every message has the link that mutes the category without a login."),
            switchOff: members.name("switch_off", "How it is switched off."), rationale: members.rationale())
        members.refuseOthers()
    }

    private static func permission(_ reader: NodeReader?) -> ByChannel<ByRegime<PermissionRule>> {
        let members = reader?.members()
        func row(_ channel: Channel) -> ByRegime<PermissionRule> {
            let rules = members?.required(channel.rawValue, "By regime.")?.named("permission").members()
            defer {
                rules?.ignoreRationale()
                rules?.refuseOthers()
            }
            func rule(_ regime: Regime) -> PermissionRule {
                rules?.name(regime.rawValue, "What a send needs under it.") ?? .writtenConsent
            }
            return ByRegime(
                gdpr: rule(.gdpr), ukGDPR: rule(.ukGDPR), gdprLike: rule(.gdprLike), other: rule(.other))
        }
        let table = ByChannel(push: row(.push), sms: row(.sms), email: row(.email))
        members?.ignoreRationale()
        members?.refuseOthers()
        return table
    }
}
