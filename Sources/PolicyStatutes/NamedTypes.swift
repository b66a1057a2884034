import BundleModel
import GateVocabulary

/// What a notification is by the name it goes by, written a second time and from other sources than `types/`.
///
/// A page's category decides what its notification needs, so one word on it makes an offer pass the opt-in, the
/// hour and the age. Names are what producers and readers hold on to, and the law and the source documents speak of
/// notifications by name; so what they say of one holds for every type of that name.
///
/// Every row names the law or the document it stands on: S0 to S4 are the source documents, SG-0006 says where they
/// disagree and how that was resolved. What none of them settles is in no row and is the bundle's own affair. A name
/// the bundle does not use is not missed.
enum NamedTypes {
    /// `promo.*` is every name that begins with `promo.`; anything else is one name.
    static func covers(_ names: [String], _ id: TypeID) -> Bool {
        names.contains { name in
            name.hasSuffix("*") ? id.text.hasPrefix(name.dropLast()) : id.text == name
        }
    }

    // MARK: Categories

    /// The category a name belongs to. A page may be stricter, and never more privileged: marketing needs the most,
    /// then social, then transactional; security passes the hour, the cap and every ordinary switch.
    struct Kind: Sendable {
        var names: [String]
        var category: GateVocabulary.Category
        var law: String
    }

    /// The first row that names a type counts.
    static let kinds: [Kind] = [
        Kind(
            names: [
                "promo.*", "promotion.*", "offer.*", "partner_offer.*", "referral.*", "re_engagement",
                "re_engagement.*", "rate.*", "corridor.*", "feature.*", "info.*", "marketing.*",
                "newsletter*",
                "campaign.*", "advert*", "upsell.*", "cross_sell.*", "loyalty.*", "cashback.*", "discount*",
            ], category: .marketing,
            law:
                "ePrivacy Directive 2002/58/EC Art. 13, GDPR Art. 21(2)-(3); SG-0006, 17: rates, new countries, news of features, referrals and partners' offers are marketing"
        ),
        Kind(
            names: ["security.*", "2fa_code", "suspicious_login", "account_takeover_blocked"],
            category: .security, law: "S1, category model and critical alerts; GDPR Art. 32"),
        Kind(
            names: ["account.security", "account.details_changed"], category: .security,
            law: "GDPR Art. 32, PSD2 Art. 97: whoever takes over an account changes these first"),
        Kind(
            names: ["card.blocked"], category: .security,
            law: "PSD2 Art. 68(3): told at the latest immediately after"),
        Kind(
            names: ["privacy.breach_notice"], category: .security,
            law: "GDPR Art. 34(1): told without undue delay"),
        Kind(
            names: ["social.*", "message.*", "digest.social"], category: .social,
            law: "S1, category model; ePrivacy Directive 2002/58/EC Art. 13(1)"),
        Kind(
            names: [
                "transaction.failed", "transaction.remittance_*", "transaction.qr_payment", "transfer.*",
                "payment.received", "bill.*", "savings.*", "order.*", "statement.*", "account.balance_update",
                "account.terms_change", "digest.*", "summary.*", "briefing.*", "programme.*", "reminder.*",
                "intervention.*", "partner.*",
            ], category: .transactional,
            law: "S1, quiet hours: what security bypasses is for whoever must act at once"),
        // S2's eleven.
        Kind(
            names: [
                "alert.bill_reminder", "alert.low_balance", "alert.low_credit", "alert.payment_due",
                "alert.account_recovery", "alert.login_problem", "alert.deposit", "alert.message",
                "alert.micro_deposits_reminder", "alert.rdc_account_status", "alert.payment_processing",
            ], category: .transactional,
            law: "SG-0006, 4: what concerns accounts elsewhere is transactional, and no alarm"),
    ]

    static func kind(of id: TypeID) -> Kind? { kinds.first { covers($0.names, id) } }

    // MARK: Duties

    /// A notice some law obliges us to send.
    struct Duty: Sendable {
        var name: TypeID
        var law: String
        /// The param that is new for every event that has to be told. A card is blocked more than once.
        var event: String
        /// What it must pass at least. What has a cap must pass caps too.
        var passes: [MandatoryPass]
        /// Whether it has to say what happened, and not only that something did.
        var saysWhat = true
        /// Whether it has to be on a durable medium, which a notification is not.
        var isDurable = false
    }

    static let duties: [Duty] = [
        Duty(
            name: TypeID("transaction.failed"), law: "PSD2 Art. 79(1), made available in an agreed manner",
            event: "transaction_id",
            passes: [.preferences], saysWhat: false),
        Duty(
            name: TypeID("card.blocked"), law: "PSD2 Art. 68(3), immediately after the block",
            event: "event_id",
            passes: [.preferences, .quietHours]),
        Duty(
            name: TypeID("security.account_locked"), law: "Delegated Regulation (EU) 2018/389 Art. 4(4)",
            event: "event_id",
            passes: [.preferences, .quietHours]),
        Duty(
            name: TypeID("privacy.breach_notice"), law: "GDPR Art. 34(1), without undue delay",
            event: "incident_id",
            passes: [.preferences, .quietHours]),
        Duty(
            name: TypeID("security.incident_notice"),
            law: "Regulation (EU) 2022/2554 Art. 19(3), without undue delay", event: "incident_id",
            passes: [.preferences, .quietHours]),
        Duty(
            name: TypeID("account.terms_change"), law: "PSD2 Arts. 51(1) and 54(1), on a durable medium",
            event: "document_id",
            passes: [.preferences], isDurable: true),
    ]

    /// Seconds a notice the law obliges us to send lives at least: PSD2 Art. 79(1) gives until the end of the next
    /// business day, and a telephone is off for a night.
    static let dutySecondsMin: Int64 = 86_400

    /// People who take part in these get no marketing (S3: who is quitting gambling).
    static let noMarketingDuring = [Purpose("programme"), Purpose("intervention")]

    // MARK: Consents of their own

    /// What goes out only on a consent besides its category's.
    struct Consent: Sendable {
        var names: [String]
        /// One of these, each asked for in words of its own.
        var purposes: [String]
        var law: String
        /// Whether it tells its recipient of a disorder, their own or of a person they help.
        var tellsOfHealth = false
    }

    /// The first row that names a type counts.
    static let consents: [Consent] = [
        Consent(
            names: ["intervention.*"], purposes: ["intervention"],
            law: "GDPR Art. 9(2)(a); S3, who is helped has a gambling disorder", tellsOfHealth: true),
        Consent(
            names: ["briefing.*"], purposes: ["programme", "intervention"],
            law: "GDPR Art. 9(2)(a); S3, who gets it has a gambling disorder", tellsOfHealth: true),
        Consent(
            names: ["programme.*", "summary.weekly", "reminder.goal"], purposes: ["programme"],
            law: "GDPR Art. 9(2)(a); S3, who gets it is quitting gambling", tellsOfHealth: true),
        Consent(
            names: ["partner.alert"], purposes: ["partner_alert"],
            law: "GDPR Arts. 6(1)(a) and 9(2)(a); SG-0006, 6: both people consent", tellsOfHealth: true),
        Consent(
            names: ["promo.partner_offer"], purposes: ["partner_offers"],
            law: "GDPR Art. 4(11): a yes to our news is none to other companies'"),
        Consent(
            names: ["account.balance_update"], purposes: ["account_information"], law: "PSD2 Art. 67(2)(a)"),
    ]

    static func consent(for id: TypeID) -> Consent? { consents.first { covers($0.names, id) } }

    /// What may come at any hour when the recipient asked for that: help against an urge (S3). Coaching, tips and
    /// summaries wait for the morning.
    static let atAnyHour = ["intervention.*"]

    /// Seconds that such help lives at most: "an urge lasts fifteen to thirty minutes" (S3).
    static let urgeSecondsMax: Int64 = 1_800

    // MARK: Codes

    /// Types that carry a code: it lets its reader in, or approves a payment (PSD2 Art. 97(1)).
    static let codes: Set<TypeID> = [TypeID("2fa_code"), TypeID("security.payment_code")]

    /// Codes that approve a payment: they say its amount and its payee.
    static let paymentCodes: Set<TypeID> = [TypeID("security.payment_code")]
    static let payeeWords: Set<String> = ["payee", "recipient", "merchant", "beneficiary", "creditor"]

    /// Words in the name of a param that names a business: one may be called like its domain.
    static let businessWords = payeeWords.union(["sender", "biller", "granted"])

    // MARK: Sensitivity

    /// Days after which a consent ends at the latest, where a law gives it an end.
    static let consentDaysMax: [(purpose: Purpose, days: Int, law: String)] = [
        (
            Purpose("account_information"), 180,
            "Delegated Regulation (EU) 2018/389 Art. 10a(2), as (EU) 2022/2360 has it: confirmed again every 180 days"
        )
    ]

    /// What must be of high sensitivity, so that it leaves sealed: what tells of health is in ``consents``.
    static let high: [(names: [String], except: [String], law: String)] = [
        (
            ["transaction.*", "transfer.*", "payment.*", "bill.*", "savings.*", "alert.*"], ["alert.message"],
            "GDPR Art. 32(1); SG-0006, 7: what happened to somebody's money is nobody else's to read"
        ),
        (
            ["account.balance_update", "summary.spending", "digest.transactions"], [],
            "GDPR Art. 32(1); SG-0006, 16"
        ),
        (
            [
                "security.new_login", "security.new_country_login", "suspicious_login", "account.security",
                "account.details_changed", "account_takeover_blocked", "security.fraud_suspected",
                "security.suspicious_activity",
            ], [],
            "GDPR Art. 32(1): whoever holds the telephone would read where its owner signs in, or that we are on to them"
        ),
    ]

    // MARK: Events

    /// S2's Payment Processing: told once for a payment, and only after the app had time to acknowledge it.
    static let paymentProcessing = TypeID("alert.payment_processing")

    /// S2's types without a row in the alerts table: an app that looks one up finds nothing.
    static let withoutAlertRecord = [paymentProcessing, TypeID("alert.micro_deposits_reminder")]

    /// S2's Deposit, which names the booking besides the alert.
    static let deposit = TypeID("alert.deposit")

    /// S2's RDC Account Status, of which S2 does not say what it carries.
    static let incomplete = TypeID("alert.rdc_account_status")

    // MARK: Hours and numbers

    /// "Suppress marketing and social, delay-deliver transactional until the window ends, bypass entirely for
    /// security" (S1, quiet hours).
    static func quietHours(of category: GateVocabulary.Category) -> QuietHoursRule {
        switch category {
        case .marketing, .social: .drop
        case .transactional: .defer
        case .security: .pass
        }
    }

    /// Whether a limit of marketing keeps to S0's "maximum one per day", or to S4's two in seven days, which may come
    /// together and are fewer.
    static func keeps(marketing cap: Cap) -> Bool {
        cap.count == 1 && cap.windowHours >= 24 || cap.count == 2 && cap.windowHours >= 168
    }

    /// Days an observation says where a person is: "every device seen in the last 90 days", and what a network or a
    /// card tells is no better. A person's own statement ages, too; only an identity check does not.
    static let observationDaysMax: [RegionSource: Int] = [
        .device: 90, .sim: 90, .ip: 90, .userDeclared: 3650,
    ]
}
