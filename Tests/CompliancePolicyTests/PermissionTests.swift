import BundleModel
import CompliancePolicy
import GateTestKit
import GateVocabulary
import Testing

private let noon = Instant.utc("2026-03-02T12:00:00Z")

extension GateRow {
    /// A recipient in `code`, with one device there.
    private static func living(_ code: String, _ facts: inout Facts) {
        facts.accountRegion = .of(code)
        facts.deviceRegions = [.of(code, .device)]
    }

    private static func state(_ state: ConsentState, _ detail: Detail) -> GateRow {
        GateRow(
            "consent \(state.rawValue) in Norway", .of(TestType.promo), .permission,
            .fail(.noGDPRConsent, detail)
        ) { $0.consent = ConsentFact(state: state) }
    }

    static let permission: [GateRow] = [
        GateRow("a payment needs no consent", .of(TestType.payment), .permission, .pass) { $0.consent = nil },
        state(.neverAsked, .neverAsked), state(.refused, .refused), state(.withdrawn, .withdrawn),
        state(.otherChannel, .otherChannel), state(.otherAddress, .otherAddress),
        GateRow("consent nobody knows of", .of(TestType.promo), .permission, .fail(.factMissing, .consent)) {
            $0.consent = nil
        },
        GateRow("consent up to the last millisecond", .of(TestType.promo), .permission, .pass) {
            $0.consent?.expiresAt = noon.advanced(byMilliseconds: 1)
        },
        GateRow(
            "consent that has just run out", .of(TestType.promo), .permission, .fail(.noGDPRConsent, .expired)
        ) { $0.consent?.expiresAt = noon },
        GateRow(
            "consent given nobody knows how", .of(TestType.promo), .permission, .fail(.factMissing, .consent)
        ) { $0.consent?.method = nil },
        GateRow(
            "in the United Kingdom it is no_gdpr_consent", .of(TestType.promo), .permission,
            .fail(.noGDPRConsent, .neverAsked)
        ) {
            living("GB", &$0)
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "in Jersey too", .of(TestType.promo), .permission, .fail(.noGDPRConsent, .neverAsked)
        ) {
            living("JE", &$0)
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "in Brazil it is no_marketing_opt_in", .of(TestType.promo), .permission,
            .fail(.noMarketingOptIn, .neverAsked)
        ) {
            living("BR", &$0)
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "a traveller in Germany is protected by both", .of(TestType.promo), .permission,
            .fail(.noGDPRConsent, .neverAsked)
        ) {
            $0.accountRegion = .of("US")
            $0.deviceRegions = [.of("US", .device), .of("DE", .device)]
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "an unknown region is the strictest", .of(TestType.promo), .permission,
            .fail(.noGDPRConsent, .regionUnknown)
        ) {
            $0.accountRegion = nil
            $0.deviceRegions = []
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "a stale region is an unknown one", .of(TestType.promo), .permission,
            .fail(.noGDPRConsent, .regionUnknown)
        ) {
            $0.accountRegion = .of("US", .ip, at: "2026-01-30T11:59:59Z")
            $0.deviceRegions = []
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "thirty days old is still fresh", .of(TestType.promo), .permission,
            .fail(.noMarketingOptIn, .neverAsked)
        ) {
            $0.accountRegion = .of("US", .ip, at: "2026-01-31T12:00:00Z")
            $0.deviceRegions = []
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "a device that was somewhere once may be anywhere now", .of(TestType.promo), .permission,
            .fail(.noGDPRConsent, .regionUnknown)
        ) {
            $0.accountRegion = .of("US")
            $0.deviceRegions = [.of("US", .device), .of("US", .device, at: "2025-11-01T00:00:00Z")]
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "a known strict device makes it never_asked, not region_unknown", .of(TestType.promo),
            .permission,
            .fail(.noGDPRConsent, .neverAsked)
        ) {
            $0.accountRegion = nil
            $0.deviceRegions = [.of("DE", .device)]
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "a refusal stays a refusal where the region is unknown", .of(TestType.promo), .permission,
            .fail(.noGDPRConsent, .refused)
        ) {
            $0.accountRegion = nil
            $0.consent = ConsentFact(state: .refused)
        },
        GateRow(
            "a service text in the EU needs none", .of(TestType.payment, on: .sms), .permission, .pass
        ) { $0.consent = nil },
        GateRow(
            "a service text elsewhere needs the number's consent", .of(TestType.payment, on: .sms),
            .permission, .fail(.noSMSConsent, .neverAsked)
        ) {
            living("BR", &$0)
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "a service text to nobody knows where needs it too", .of(TestType.payment, on: .sms), .permission,
            .fail(.noSMSConsent, .regionUnknown)
        ) {
            $0.accountRegion = nil
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "a text in place of a push needs it everywhere", .of(TestType.payment, on: .sms), .permission,
            .fail(.noSMSConsent, .otherChannel)
        ) {
            $0.fallback = .replacesOwnSend
            $0.consent = ConsentFact(state: .otherChannel)
        },
        GateRow(
            "being a customer is no consent to a text in place of a push", .of(TestType.payment, on: .sms),
            .permission, .fail(.noSMSConsent, .methodInsufficient)
        ) {
            $0.fallback = .replacesOwnSend
            $0.consent?.method = .existingCustomer
        },
        GateRow(
            "marketing texts in the US need it in writing", .of(TestType.promo, on: .sms), .permission,
            .fail(.noMarketingOptIn, .methodInsufficient)
        ) { living("US", &$0) },
        GateRow("and in writing they go", .of(TestType.promo, on: .sms), .permission, .pass) {
            living("US", &$0)
            $0.consent?.method = .writtenConsent
        },
        GateRow(
            "a country's row holds in its parts", .of(TestType.promo, on: .sms), .permission,
            .fail(.noGDPRConsent, .methodInsufficient)
        ) { living("US-CA", &$0) },
        GateRow(
            "written nowhere, and nobody knows where", .of(TestType.promo, on: .sms), .permission,
            .fail(.noGDPRConsent, .regionUnknown)
        ) { $0.accountRegion = nil },
        GateRow(
            "a telephone nobody located asks a text for what the GDPR asks", .of(TestType.payment, on: .sms),
            .permission, .pass
        ) {
            $0.deviceRegions = [.of("ZZ", .device)]
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "an account without a region counts as the GDPR", .of(TestType.payment, on: .sms), .permission,
            .pass
        ) {
            $0.accountRegion = .of("ZZ")
            $0.deviceRegions = []
            $0.consent = nil
        },
        GateRow(
            "what was asked where a telephone was seen last is asked still", .of(TestType.payment, on: .sms),
            .permission, .fail(.noSMSConsent, .regionUnknown)
        ) {
            $0.deviceRegions = [.of("US", .device, at: "2025-11-01T00:00:00Z")]
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "a list of devices that is lost asks for what any place asks", .of(TestType.payment, on: .sms),
            .permission, .fail(.noSMSConsent, .regionUnknown)
        ) {
            $0.deviceRegions = nil
            $0.consent = ConsentFact(state: .withdrawn)
        },
        GateRow(
            "where the known place asks as much, its own answer is given", .of(TestType.payment, on: .sms),
            .permission, .fail(.noSMSConsent, .withdrawn)
        ) {
            $0.accountRegion = nil
            $0.deviceRegions = [.of("US", .device)]
            $0.consent = ConsentFact(state: .withdrawn)
        },
        GateRow(
            "an existing customer in Norway may have e-mail", .of(TestType.promo, on: .email), .permission,
            .pass
        ) { $0.consent?.method = .existingCustomer },
        GateRow(
            "an existing customer in Brazil may not", .of(TestType.promo, on: .email), .permission,
            .fail(.noMarketingOptIn, .methodInsufficient)
        ) {
            living("BR", &$0)
            $0.consent?.method = .existingCustomer
        },
        GateRow(
            "an existing customer has no push", .of(TestType.promo), .permission,
            .fail(.noGDPRConsent, .methodInsufficient)
        ) { $0.consent?.method = .existingCustomer },
        GateRow(
            "a comment by e-mail needs consent", .of(TestType.comment, on: .email), .permission,
            .fail(.noEmailConsent, .neverAsked)
        ) { $0.consent = ConsentFact(state: .neverAsked) },
        GateRow("a dated opt-out law", .of(TestType.promo, on: .email), .permission, .pass) {
            living("SG", &$0)
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "the day before the opt-out law", .of(TestType.promo, on: .email), .permission,
            .fail(.noMarketingOptIn, .neverAsked)
        ) {
            living("SG", &$0)
            $0.now = .utc("2026-01-31T23:59:59Z")
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "an opt-out is heard", .of(TestType.promo, on: .email), .permission,
            .fail(.noMarketingOptIn, .withdrawn)
        ) {
            living("SG", &$0)
            $0.consent = ConsentFact(state: .withdrawn)
        },
        GateRow(
            "an opt-out law does not follow its people to Germany", .of(TestType.promo, on: .email),
            .permission, .fail(.noGDPRConsent, .neverAsked)
        ) {
            $0.accountRegion = .of("SG")
            $0.deviceRegions = [.of("DE", .device)]
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "nor to a country where silence is no consent either", .of(TestType.promo, on: .email),
            .permission, .fail(.noMarketingOptIn, .neverAsked)
        ) {
            $0.accountRegion = .of("SG")
            $0.deviceRegions = [.of("SG", .device), .of("BR", .device)]
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow(
            "a visitor to the United States has its law on texts as well", .of(TestType.promo, on: .sms),
            .permission, .fail(.noMarketingOptIn, .methodInsufficient)
        ) {
            $0.accountRegion = .of("BR")
            $0.deviceRegions = [.of("US", .device)]
            $0.consent = ConsentFact(state: .given, method: .inAppToggle)
        },
        GateRow(
            "what Norway lets one write to old customers holds abroad", .of(TestType.promo, on: .email),
            .permission, .pass
        ) {
            $0.accountRegion = .of("NO")
            $0.deviceRegions = [.of("BR", .device)]
            $0.consent = ConsentFact(state: .given, method: .existingCustomer)
        },
        GateRow("a minor", .of(TestType.promo), .permission, .fail(.minor)) { $0.age = .minor },
        GateRow("a minor who was never asked is a minor", .of(TestType.promo), .permission, .fail(.minor)) {
            $0.age = .minor
            $0.consent = ConsentFact(state: .neverAsked)
        },
        GateRow("nobody knows the age", .of(TestType.promo), .permission, .fail(.factMissing, .age)) {
            $0.age = nil
        },
        GateRow(
            "consent is said before the unknown age", .of(TestType.promo), .permission,
            .fail(.noGDPRConsent, .refused)
        ) {
            $0.age = nil
            $0.consent = ConsentFact(state: .refused)
        },
        GateRow("a payment asks nobody's age", .of(TestType.payment), .permission, .pass) { $0.age = nil },
        GateRow(
            "a special purpose needs its own consent", .of(TestType.help), .permission,
            .fail(.noPurposeConsent, .neverAsked)
        ) { $0.purposeConsent = ConsentFact(state: .neverAsked) },
        GateRow(
            "a special purpose that ran out", .of(TestType.help), .permission,
            .fail(.noPurposeConsent, .expired)
        ) { $0.purposeConsent?.expiresAt = noon },
        GateRow(
            "a special purpose nobody knows of", .of(TestType.help), .permission,
            .fail(.factMissing, .consent)
        ) { $0.purposeConsent = nil },
        GateRow(
            "a word texted back does not say to which purpose", .of(TestType.help), .permission,
            .fail(.noPurposeConsent, .methodInsufficient)
        ) { $0.purposeConsent?.method = .smsKeyword },
        GateRow(
            "a number handed over does not say to which purpose", .of(TestType.help), .permission,
            .fail(.noPurposeConsent, .methodInsufficient)
        ) { $0.purposeConsent?.method = .expressConsent },
        GateRow("a minor, kept out by the type's own page", .of(TestType.help), .permission, .fail(.minor)) {
            $0.age = .minor
        },
        GateRow(
            "an age nobody knows, where the type's own page asks for it", .of(TestType.help), .permission,
            .fail(.factMissing, .age)
        ) { $0.age = nil },
        GateRow("no special purpose, no second consent", .of(TestType.payment), .permission, .pass) {
            $0.purposeConsent = nil
        },
    ]
}

@Suite struct PermissionRuleTests {
    @Test func `a stricter rule accepts nothing that a weaker one refuses`() {
        for weaker in PermissionRule.allCases {
            for stricter in PermissionRule.allCases where weaker < stricter {
                for method in ConsentMethod.allCases where stricter.accepts(method) {
                    #expect(weaker.accepts(method), "\(weaker) and \(stricter) about \(method)")
                }
            }
        }
    }

    @Test func `the order of rules is total`() {
        #expect(PermissionRule.allCases.sorted() == PermissionRule.allCases)
    }
}

@Suite struct JurisdictionTests {
    let policy: CompiledPolicy

    init() throws { policy = try TestBundle.minimal.compile() }

    private func jurisdiction(of facts: Facts) -> Jurisdiction {
        policy.jurisdiction(of: facts, under: policy.rule(for: .of(TestType.promo)))
    }

    @Test(arguments: [
        ("NO", "NO", Regime.gdpr), ("GB", "US", .ukGDPR), ("JE", "GB", .ukGDPR), ("BR", "BR", .other),
        ("US-CA", "US", .gdprLike), ("US", "US-CA", .gdprLike), ("US-NY", "US", .other), ("US", "DE", .gdpr),
    ])
    func `the strictest of account and devices counts`(account: String, device: String, regime: Regime) {
        let facts = Facts.ready.with {
            $0.accountRegion = .of(account)
            $0.deviceRegions = [.of(device, .device)]
        }
        #expect(jurisdiction(of: facts).regime == regime)
    }

    struct Whereabouts: Sendable, CustomTestStringConvertible {
        var account: RegionObservation?
        var devices: [RegionObservation]?
        var regime: Regime
        var isKnown: Bool
        var isStrictForWantOfRegion = false

        var testDescription: String { "\(String(describing: account)) \(String(describing: devices))" }
    }

    /// A day from `Facts.ready`, and longer ago than any source but a document counts.
    private static let longAgo = "2015-01-01T00:00:00Z"

    static let whereabouts: [Whereabouts] = [
        Whereabouts(
            account: .of("US-CA"), devices: [.of("US-CA", .device)], regime: .gdprLike, isKnown: true),
        Whereabouts(account: .of("US"), devices: [.of("US", .device)], regime: .other, isKnown: true),
        Whereabouts(account: .of("NO"), devices: [], regime: .gdpr, isKnown: true),
        Whereabouts(
            account: .of("JE", .ip, at: longAgo), devices: [.of("JE", .device)], regime: .gdpr,
            isKnown: false,
            isStrictForWantOfRegion: true),
        Whereabouts(
            account: .of("DE"), devices: [.of("DE", .device, at: longAgo)], regime: .gdpr, isKnown: false),
        Whereabouts(
            account: .of("ZZ"), devices: [.of("ZZ", .device)], regime: .gdpr, isKnown: false,
            isStrictForWantOfRegion: true),
        Whereabouts(account: nil, devices: [.of("DE", .device)], regime: .gdpr, isKnown: false),
        Whereabouts(account: .of("NO"), devices: nil, regime: .gdpr, isKnown: false),
        Whereabouts(
            account: .of("BR"), devices: nil, regime: .gdpr, isKnown: false, isStrictForWantOfRegion: true),
    ]

    @Test(arguments: whereabouts)
    func `one place seen twice is one place, and a place unknown makes all of it unknown`(_ row: Whereabouts)
    {
        let facts = Facts.ready.with {
            $0.accountRegion = row.account
            $0.deviceRegions = row.devices
        }
        let jurisdiction = jurisdiction(of: facts)
        #expect(jurisdiction.regime == row.regime)
        #expect(jurisdiction.isKnown == row.isKnown)
        #expect(jurisdiction.isStrictForWantOfRegion == row.isStrictForWantOfRegion)
    }

    @Test func `forgetting where somebody lives never weakens the rule`() {
        for type in [TestType.payment, TestType.promo, TestType.comment, TestType.login] {
            for channel in Channel.allCases {
                let rule = policy.rule(for: .of(type, on: channel))
                let unknown = policy.jurisdiction(
                    of: Facts.ready.with { $0.accountRegion = nil }, under: rule)
                for code in ["NO", "GB", "JE", "US", "US-CA", "SG", "BR"] {
                    let known = policy.jurisdiction(
                        of: Facts.ready.with { $0.accountRegion = .of(code) }, under: rule)
                    #expect(known.rule <= unknown.rule, "\(type) by \(channel) in \(code)")
                }
            }
        }
    }

    @Test func `an observation from the future counts as fresh`() {
        let facts = Facts.ready.with {
            $0.accountRegion = .of("BR", .ip, at: "2026-03-02T12:00:05Z")
            $0.deviceRegions = []
        }
        #expect(jurisdiction(of: facts).regime == .other)
    }

    @Test func `an observation from the beginning of time does not trap`() {
        let facts = Facts.ready.with {
            $0.accountRegion = RegionObservation(
                code: RegionCode("BR")!, source: .ip, observedAt: Instant(milliseconds: .min))
        }
        #expect(jurisdiction(of: facts).regime == .gdpr)
    }
}
