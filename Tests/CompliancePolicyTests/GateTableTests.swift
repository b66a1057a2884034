import BundleModel
import CompliancePolicy
import GateTestKit
import GateVocabulary
import Testing

/// One row: a send that differs from the ready one in one thing, and what the differing gate must say.
struct GateRow: Sendable, CustomTestStringConvertible {
    var name: String
    var request: AttestedRequest
    var gate: Gate
    var expected: GateResult
    var change: @Sendable (inout Facts) -> Void

    init(
        _ name: String, _ request: AttestedRequest, _ gate: Gate, _ expected: GateResult,
        _ change: @escaping @Sendable (inout Facts) -> Void = { _ in }
    ) {
        self.name = name
        self.request = request
        self.gate = gate
        self.expected = expected
        self.change = change
    }

    var facts: Facts { Facts.ready.with(change) }
    var testDescription: String { name }
}

private let noon = Instant.utc("2026-03-02T12:00:00Z")

private let missing: @Sendable (Detail) -> GateResult = { .fail(.factMissing, $0) }

extension GateRow {
    static let expiry: [GateRow] = [
        GateRow("at the very expiry it still goes", .of(TestType.payment), .expiry, .pass) {
            $0.expiry = noon
        },
        GateRow("a millisecond later it is worth nothing", .of(TestType.payment), .expiry, .fail(.expired)) {
            $0.expiry = Instant(milliseconds: noon.milliseconds - 1)
        },
        GateRow("due after the expiry", .of(TestType.payment), .expiry, .fail(.expiresBeforeDue)) {
            $0.due = noon.advanced(bySeconds: 86_401)
        },
        GateRow(
            "waiting for the morning would outlive it", .of(TestType.payment), .expiry,
            .fail(.expiresBeforeDue)
        ) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 86_401))
        },
        GateRow("waiting until the very expiry is fine", .of(TestType.payment), .expiry, .pass) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 86_400))
        },
        GateRow("a window that would drop it is not waited for", .of(TestType.promo), .expiry, .pass) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 999_999))
        },
        GateRow("nobody knows the time", .of(TestType.payment), .expiry, missing(.now)) { $0.now = nil },
        GateRow("nobody knows the expiry", .of(TestType.payment), .expiry, missing(.expiry)) {
            $0.expiry = nil
        },
        GateRow("nobody knows when it is due", .of(TestType.payment), .expiry, missing(.expiry)) {
            $0.due = nil
        },
        GateRow("told before", .of(TestType.payment), .expiry, .fail(.repeated, .alreadySent)) {
            $0.repetition = .alreadySent
        },
        GateRow("acknowledged", .of(TestType.payment), .expiry, .fail(.repeated, .acknowledged)) {
            $0.repetition = .acknowledged
        },
        GateRow("nobody knows whether it was told", .of(TestType.payment), .expiry, missing(.repetition)) {
            $0.repetition = nil
        },
        GateRow("a type that may be told again", .of(TestType.statement), .expiry, .pass) {
            $0.repetition = nil
        },
        GateRow(
            "its own time comes after its expiry", .of(TestType.briefing), .expiry, .fail(.expiresBeforeDue)
        ) {
            $0.due = noon.advanced(bySeconds: 86_401)
        },
    ]

    static let registry: [GateRow] = [
        GateRow("an unknown type", .of(TypeID("nothing")), .type, .fail(.unknownType)),
        GateRow("a disabled type", .of(TestType.disabled), .type, .fail(.typeDisabled)),
        GateRow("params that do not fit", .of(TestType.payment), .type, .fail(.invalidParams)) {
            $0.params = .invalid
        },
        GateRow("params nobody checked", .of(TestType.payment), .type, missing(.params)) { $0.params = nil },
        GateRow(
            "an unknown caller", .of(TestType.payment, by: TestCaller.stranger), .caller,
            .fail(.callerNotPermitted, .callerUnknown)),
        GateRow(
            "a caller without the category", .of(TestType.promo, by: TestCaller.payments), .caller,
            .fail(.callerNotPermitted, .typeNotGranted)),
        GateRow(
            "a caller without the grant to send", .of(TestType.payment, by: TestCaller.app), .caller,
            .fail(.callerNotPermitted, .typeNotGranted)),
        GateRow(
            "a stranger asking for an unknown type", .of(TypeID("nothing"), by: TestCaller.stranger), .caller,
            .fail(.callerNotPermitted, .callerUnknown)),
        GateRow(
            "a known sender of an unknown type", .of(TypeID("nothing"), by: TestCaller.payments), .caller,
            .pass),
        GateRow("critical not asked for", .of(TestType.login), .critical, .notApplicable),
        GateRow("critical by who may", .of(TestType.login, critical: true), .critical, .pass),
        GateRow(
            "critical for a type not on the list", .of(TestType.notice, critical: true), .critical,
            .fail(.criticalNotPermitted, .notOnAllowList)),
        GateRow(
            "critical by a caller the list does not name",
            .of(TestType.login, by: TestCaller.deputy, critical: true), .critical,
            .fail(.criticalNotPermitted, .callerLacksGrant)),
        GateRow(
            "not on the list is said before the missing grant",
            .of(TestType.promo, by: TestCaller.marketing, critical: true), .critical,
            .fail(.criticalNotPermitted, .notOnAllowList)),
        GateRow(
            "critical for an unknown type", .of(TypeID("nothing"), critical: true), .critical,
            .fail(.criticalNotPermitted, .notOnAllowList)),
    ]

    static let fallback: [GateRow] = [
        GateRow(
            "a text in place of a marketing push", .of(TestType.promo, on: .sms), .fallback,
            .fail(.smsFallbackForbidden, .marketing)
        ) { $0.fallback = .replacesOwnSend },
        GateRow("a text in place of a payment push", .of(TestType.payment, on: .sms), .fallback, .pass) {
            $0.fallback = .replacesOwnSend
        },
        GateRow("a push in place of a push", .of(TestType.promo), .fallback, .pass) {
            $0.fallback = .replacesOwnSend
        },
        GateRow(
            "in place of somebody else's send, as a text", .of(TestType.payment, on: .sms), .fallback,
            .fail(.smsFallbackForbidden, .fallbackMismatch)
        ) { $0.fallback = .mismatch },
        GateRow(
            "in place of somebody else's send, as a push", .of(TestType.payment), .fallback,
            .fail(.smsFallbackForbidden, .fallbackMismatch)
        ) { $0.fallback = .mismatch },
        GateRow(
            "a channel the type has no body for", .of(TestType.statement, on: .sms), .fallback,
            .fail(.channelNotAllowed)),
        GateRow("a code as a text", .of(TestType.code, on: .sms), .fallback, .pass) { _ in },
        GateRow("a code as a text in place of a push", .of(TestType.code, on: .sms), .fallback, .pass) {
            $0.fallback = .replacesOwnSend
        },
        GateRow(
            "a code as a text where no row is", .of(TestType.code, on: .sms), .fallback,
            .fail(.channelNotAllowed, .region)
        ) { $0.accountRegion?.code = RegionCode("SE")! },
        GateRow(
            "a code as a text after the last day of a row", .of(TestType.code, on: .sms), .fallback,
            .fail(.channelNotAllowed, .region)
        ) { $0.accountRegion?.code = RegionCode("US")! },
        GateRow("a code as a text in a part of a country", .of(TestType.code, on: .sms), .fallback, .pass) {
            $0.accountRegion?.code = RegionCode("GB-SCT")!
        },
        GateRow("a traveller's code as a text", .of(TestType.code, on: .sms), .fallback, .pass) {
            $0.deviceRegions?[0].code = RegionCode("SE")!
        },
        GateRow(
            "a code as a text to nobody knows where", .of(TestType.code, on: .sms), .fallback,
            missing(.region)
        ) { $0.accountRegion = nil },
        GateRow("a code as a push needs no row", .of(TestType.code), .fallback, .pass) {
            $0.accountRegion?.code = RegionCode("SE")!
        },
        GateRow(
            "nobody knows what it replaces", .of(TestType.payment), .fallback, missing(.fallback)
        ) { $0.fallback = nil },
    ]

    static let destination: [GateRow] = [
        GateRow("nobody knows the recipient", .of(TestType.payment), .destination, missing(.recipient)) {
            $0.recipient = nil
        },
        GateRow("an unknown recipient", .of(TestType.payment), .destination, .fail(.unknownRecipient)) {
            $0.recipient = .unknown
        },
        GateRow("no device", .of(TestType.payment), .destination, .fail(.noDestination, .noneRegistered)) {
            $0.destination = .noneRegistered
        },
        GateRow(
            "a device of somebody else", .of(TestType.payment), .destination,
            .fail(.noDestination, .destinationUnknown)
        ) { $0.destination = .unknown },
        GateRow(
            "a device that is gone", .of(TestType.payment), .destination,
            .fail(.noDestination, .destinationInactive)
        ) { $0.destination = .inactive },
        GateRow(
            "a number nobody proved", .of(TestType.payment, on: .sms), .destination,
            .fail(.noDestination, .addressUnverified)
        ) { $0.destination = .unverified },
        GateRow(
            "a secret for a number that another person proved since",
            .of(TestType.payment, on: .sms), .destination, .fail(.noDestination, .addressContested)
        ) { $0.destination = .contested },
        GateRow(
            "a warning for a mailbox that another person proved since",
            .of(TestType.notice, on: .email), .destination, .fail(.noDestination, .addressContested)
        ) { $0.destination = .contested },
        GateRow("nobody knows the device", .of(TestType.payment), .destination, missing(.destination)) {
            $0.destination = nil
        },
    ]

    static let preferences: [GateRow] = [
        GateRow("the master switch", .of(TestType.payment), .preferences, .fail(.pushDisabled)) {
            $0.pushEnabled = false
        },
        GateRow("the master switch is push's", .of(TestType.payment, on: .email), .preferences, .pass) {
            $0.pushEnabled = false
        },
        GateRow("the master switch unknown", .of(TestType.payment), .preferences, missing(.preferences)) {
            $0.pushEnabled = nil
        },
        GateRow(
            "the master switch unknown, by e-mail", .of(TestType.payment, on: .email), .preferences, .pass
        ) { $0.pushEnabled = nil },
        GateRow(
            "off for the account", .of(TestType.payment), .preferences, .fail(.userPreference, .accountOff)
        ) { $0.accountPreference = .userOff },
        GateRow(
            "off for the account, on for the device", .of(TestType.payment), .preferences,
            .fail(.userPreference, .accountOff)
        ) { ($0.accountPreference, $0.destinationPreference) = (.userOff, .userOn) },
        GateRow(
            "on for the account, off for the device", .of(TestType.payment), .preferences,
            .fail(.userPreference, .destinationOff)
        ) { ($0.accountPreference, $0.destinationPreference) = (.userOn, .userOff) },
        GateRow(
            "the kind is off", .of(TestType.comment), .preferences, .fail(.userPreference, .typeOff)
        ) { $0.accountTypePreference = .userOff },
        GateRow(
            "the kind is off on the device", .of(TestType.comment), .preferences,
            .fail(.userPreference, .typeOff)
        ) { $0.destinationTypePreference = .userOff },
        GateRow("a kind without a switch of its own", .of(TestType.payment), .preferences, .pass) {
            ($0.accountTypePreference, $0.destinationTypePreference) = (.userOff, nil)
        },
        GateRow("the kind's switch unknown", .of(TestType.comment), .preferences, missing(.preferences)) {
            $0.accountTypePreference = nil
        },
        GateRow("the account's switch unknown", .of(TestType.payment), .preferences, missing(.preferences)) {
            $0.accountPreference = nil
        },
        GateRow(
            "the device's switch unknown", .of(TestType.payment), .preferences, missing(.preferences)
        ) { $0.destinationPreference = nil },
        GateRow(
            "a known off is said before an unknown", .of(TestType.payment), .preferences,
            .fail(.userPreference, .accountOff)
        ) { ($0.accountPreference, $0.destinationPreference) = (.userOff, nil) },
        GateRow("security hears no plain off", .of(TestType.notice), .preferences, .pass) {
            $0.accountPreference = .userOff
            $0.destinationPreference = .userOff
            $0.pushEnabled = false
        },
        GateRow(
            "security hears a stepped-up off", .of(TestType.notice), .preferences,
            .fail(.userPreference, .accountOff)
        ) { $0.accountPreference = .userOffStepUp },
        GateRow(
            "security hears it on the device too", .of(TestType.notice), .preferences,
            .fail(.userPreference, .destinationOff)
        ) { $0.destinationPreference = .userOffStepUp },
        GateRow(
            "critical does not pass a stepped-up off", .of(TestType.login, critical: true), .preferences,
            .fail(.userPreference, .accountOff)
        ) { $0.accountPreference = .userOffStepUp },
        GateRow(
            "marketing is off by default, and consent is the will", .of(TestType.promo), .preferences, .pass),
        GateRow(
            "marketing without a word is off", .of(TestType.promo), .preferences,
            .fail(.userPreference, .accountOff)
        ) { $0.consent = ConsentFact(state: .neverAsked) },
        GateRow(
            "an expired consent is no will", .of(TestType.promo), .preferences,
            .fail(.userPreference, .accountOff)
        ) { $0.consent = ConsentFact(state: .given, method: .inAppToggle, expiresAt: noon) },
        GateRow("a switch turned on is a choice", .of(TestType.promo), .preferences, .pass) {
            $0.consent = ConsentFact(state: .neverAsked)
            $0.accountPreference = .userOn
        },
    ]

    static let device: [GateRow] = [
        GateRow("the OS says no", .of(TestType.payment), .osPermission, .fail(.blockedAtOSLevel, .denied)) {
            $0.osPermission = .denied
        },
        GateRow(
            "the OS was never asked", .of(TestType.payment), .osPermission,
            .fail(.blockedAtOSLevel, .notDetermined)
        ) { $0.osPermission = .notDetermined },
        GateRow("quietly is enough", .of(TestType.payment), .osPermission, .pass) {
            $0.osPermission = .provisional
        },
        GateRow("nobody knows the OS", .of(TestType.payment), .osPermission, missing(.osPermission)) {
            $0.osPermission = nil
        },
        GateRow("a text needs no OS", .of(TestType.payment, on: .sms), .osPermission, .notApplicable) {
            $0.osPermission = nil
        },
        GateRow(
            "not even critical passes the OS", .of(TestType.login, critical: true), .osPermission,
            .fail(.blockedAtOSLevel, .denied)
        ) { $0.osPermission = .denied },
        GateRow("no key, a stand-in", .of(TestType.payment), .deviceKey, .fail(.genericOnly, .noKey)) {
            $0.deviceKey = DeviceKeyFact.none
        },
        GateRow(
            "an unproved key, a stand-in", .of(TestType.payment), .deviceKey,
            .fail(.genericOnly, .keyUnconfirmed)
        ) { $0.deviceKey = .unconfirmed },
        GateRow(
            "a revoked key, no stand-in", .of(TestType.sealedOnly), .deviceKey,
            .fail(.noDeviceKey, .keyRevoked)
        ) { $0.deviceKey = .revoked },
        GateRow(
            "sealed to a key that was revoked, with a stand-in it has no more", .of(TestType.payment),
            .deviceKey,
            .fail(.noDeviceKey, .keyRevoked)
        ) { $0.deviceKey = .sealedToRevoked },
        GateRow(
            "nobody knows the key", .of(TestType.payment), .deviceKey, missing(.deviceKey)
        ) { $0.deviceKey = nil },
        GateRow("a text has no key", .of(TestType.payment, on: .sms), .deviceKey, .notApplicable) {
            $0.deviceKey = nil
        },
        GateRow("a clear push has no key", .of(TestType.statement), .deviceKey, .notApplicable) {
            $0.deviceKey = nil
        },
        GateRow("exactly full", .of(TestType.payment), .size, .pass) { $0.sizes?.sealed = 4096 },
        GateRow("a byte too many", .of(TestType.payment), .size, .fail(.payloadTooLarge)) {
            $0.sizes?.sealed = 4097
        },
        GateRow("the form that goes is the form that counts", .of(TestType.payment), .size, .pass) {
            $0.deviceKey = .revoked
            $0.sizes = PayloadSizes(sealed: 9999, generic: 200, full: 9999)
        },
        GateRow("a form nobody composed", .of(TestType.payment), .size, missing(.size)) {
            $0.sizes?.sealed = nil
        },
        GateRow("nothing composed", .of(TestType.payment), .size, missing(.size)) { $0.sizes = nil },
        GateRow("a text longer than three", .of(TestType.payment, on: .sms), .size, .fail(.payloadTooLarge)) {
            $0.sizes?.generic = 460
        },
        GateRow(
            "privacy unknown: the larger text has to fit", .of(TestType.statement), .size,
            .fail(.payloadTooLarge)
        ) {
            $0.privacy = nil
            $0.sizes?.full = 4097
        },
    ]

    static let timing: [GateRow] = [
        GateRow(
            "a briefing waits for its hour", .of(TestType.briefing), .quietHours,
            .fail(.scheduled, .sendTime)
        ) {
            $0.due = noon.advanced(bySeconds: 3600)
        },
        GateRow(
            "quiet hours at its hour defer it further", .of(TestType.briefing), .quietHours,
            .fail(.quietHoursDeferred)
        ) {
            $0.due = noon.advanced(bySeconds: 3600)
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 7200))
        },
        GateRow(
            "and beyond its worth they refuse it", .of(TestType.briefing), .expiry, .fail(.expiresBeforeDue)
        ) {
            $0.due = noon.advanced(bySeconds: 3600)
            $0.expiry = noon.advanced(bySeconds: 7199)
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 7200))
        },
        GateRow(
            "whether its hour is quiet has to be known", .of(TestType.briefing), .quietHours,
            missing(.quietHours)
        ) {
            $0.due = noon.advanced(bySeconds: 3600)
            $0.quietHours = nil
        },
        GateRow("a type without a time of its own", .of(TestType.payment), .quietHours, .pass) {
            $0.due = noon.advanced(bySeconds: 3600)
        },
        GateRow("asked for at any hour", .of(TestType.help), .quietHours, .pass) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 60))
            $0.ownRequest = ConsentFact(state: .given, method: .inAppToggle)
        },
        GateRow("asked for, and taken back", .of(TestType.help), .quietHours, .fail(.quietHoursDeferred)) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 60))
            $0.ownRequest = ConsentFact(state: .withdrawn)
        },
        GateRow(
            "nobody knows whether it was asked for", .of(TestType.help), .caps, .fail(.digested, .typeCap)
        ) {
            $0.typeCount = 3
            $0.ownRequest = nil
        },
        GateRow("asked for however often", .of(TestType.help), .caps, .pass) {
            $0.typeCount = 3
            $0.ownRequest = ConsentFact(state: .given, method: .inAppToggle)
        },
        GateRow("a request is no knowledge of the count", .of(TestType.help), .caps, missing(.counts)) {
            $0.typeCount = nil
            $0.ownRequest = ConsentFact(state: .given, method: .inAppToggle)
        },
        GateRow("a payment waits", .of(TestType.payment), .quietHours, .fail(.quietHoursDeferred)) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 60))
        },
        GateRow("an offer is dropped", .of(TestType.promo), .quietHours, .fail(.quietHoursDropped)) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 60))
        },
        GateRow("a comment is dropped", .of(TestType.comment), .quietHours, .fail(.quietHoursDropped)) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 60))
        },
        GateRow("security has no quiet hours", .of(TestType.notice), .quietHours, .notApplicable) {
            $0.quietHours = nil
        },
        GateRow("outside the window", .of(TestType.promo), .quietHours, .pass) { $0.quietHours = .outside },
        GateRow("an offer without a zone", .of(TestType.promo), .quietHours, .fail(.quietHoursZoneMissing)) {
            $0.quietHours = .zoneMissing
        },
        GateRow("a payment without a zone is not lost", .of(TestType.payment), .quietHours, .pass) {
            $0.quietHours = .zoneMissing
        },
        GateRow(
            "a payment waits where it may be quiet", .of(TestType.payment), .quietHours,
            .fail(.quietHoursDeferred, .zoneUnknown)
        ) {
            $0.quietHours = .insideSomewhere(endsAt: noon.advanced(bySeconds: 60))
        },
        GateRow(
            "an offer where it may be quiet", .of(TestType.promo), .quietHours, .fail(.quietHoursZoneMissing)
        ) {
            $0.quietHours = .insideSomewhere(endsAt: noon.advanced(bySeconds: 60))
        },
        GateRow("nobody knows the hours", .of(TestType.payment), .quietHours, missing(.quietHours)) {
            $0.quietHours = nil
        },
        GateRow("the fifth payment goes", .of(TestType.payment), .caps, .pass) { $0.typeCount = 4 },
        GateRow("the sixth is gathered", .of(TestType.payment), .caps, .fail(.digested, .typeCap)) {
            $0.typeCount = 5
        },
        GateRow("one offer a day", .of(TestType.promo), .caps, .fail(.frequencyCap, .categoryCap)) {
            $0.categoryCount = 1
        },
        GateRow(
            "the type's cap is said before the category's", .of(TestType.promo), .caps,
            .fail(.frequencyCap, .typeCap)
        ) { ($0.typeCount, $0.categoryCount) = (2, 1) },
        GateRow("nobody counted the type", .of(TestType.promo), .caps, missing(.counts)) {
            $0.typeCount = nil
        },
        GateRow("nobody counted the category", .of(TestType.promo), .caps, missing(.counts)) {
            $0.categoryCount = nil
        },
        GateRow("no cap but that over everything", .of(TestType.statement), .caps, .pass) {
            ($0.typeCount, $0.categoryCount, $0.everythingCount) = (nil, nil, 19)
        },
        GateRow("the 21st of everything", .of(TestType.statement), .caps, .fail(.digested, .everythingCap)) {
            $0.everythingCount = 20
        },
        GateRow(
            "what its category drops is dropped over everything", .of(TestType.promo), .caps,
            .fail(.frequencyCap, .everythingCap)
        ) { $0.everythingCount = 20 },
        GateRow(
            "the category's cap is said before that over everything", .of(TestType.promo), .caps,
            .fail(.frequencyCap, .categoryCap)
        ) { ($0.categoryCount, $0.everythingCount) = (1, 20) },
        GateRow("nobody counted everything", .of(TestType.statement), .caps, missing(.counts)) {
            $0.everythingCount = nil
        },
        GateRow("a duty is under no limit over everything", .of(TestType.duty), .caps, .pass) {
            $0.everythingCount = 1_000
        },
        GateRow("nor is security", .of(TestType.login), .caps, .notApplicable) {
            $0.everythingCount = 1_000
        },
        GateRow("security has no caps", .of(TestType.notice), .caps, .notApplicable) {
            ($0.typeCount, $0.categoryCount) = (nil, nil)
        },
    ]

    static let all = expiry + registry + fallback + destination + permission + preferences + device + timing
}

@Suite struct GateTableTests {
    let policy: CompiledPolicy

    init() throws { policy = try TestBundle.minimal.compile() }

    @Test(arguments: GateRow.all)
    func `each gate says what the table says`(row: GateRow) {
        let decision = decide(row.request, given: row.facts, under: policy)
        #expect(decision.trace[row.gate] == row.expected)
    }

    @Test func `every type with everything in favour is forwarded`() {
        for type in policy.types where type.isEnabled {
            let decision = decide(.of(type.id), given: .ready, under: policy)
            #expect(decision.outcome == .forward, "\(type.id): \(decision.reason)")
            #expect(decision.reason == .allowed)
            #expect(decision.decidingGate == nil)
        }
    }

    @Test func `the table reaches every gate, every reason and every outcome`() {
        let decisions = GateRow.all.map { decide($0.request, given: $0.facts, under: policy) }
        let reasons = Set(decisions.map(\.reason))
        #expect(Reason.allCases.filter { !reasons.contains($0) } == [])
        #expect(Set(decisions.map(\.outcome)) == Set(Outcome.allCases))
        let gates = Set(GateRow.all.filter { $0.expected.verdict == .fail }.map(\.gate))
        #expect(gates == Set(Gate.allCases))
    }

    @Test func `a detail is one its reason may carry`() {
        var details: Set<Detail> = []
        for row in GateRow.all {
            let decision = decide(row.request, given: row.facts, under: policy)
            for gate in Gate.allCases {
                guard let reason = decision.trace[gate].reason, let detail = decision.trace[gate].detail
                else { continue }
                details.insert(detail)
                #expect(reason.details.contains(detail), "\(row.name): \(reason) \(detail)")
            }
        }
        #expect(details.count > 20, "only \(details.count) details were seen")
    }
}
