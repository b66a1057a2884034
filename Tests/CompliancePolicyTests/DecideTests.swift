import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import Testing

@Suite struct DecideTests {
    let policy: CompiledPolicy
    private let noon = Instant.utc("2026-03-02T12:00:00Z")

    init() throws { policy = try TestBundle.minimal.compile() }

    private func decision(
        _ request: AttestedRequest, _ change: (inout Facts) -> Void = { _ in }
    ) -> Decision {
        decide(request, given: Facts.ready.with(change), under: policy)
    }

    // MARK: Precedence

    @Test func `the lowest gate that refuses gives the reason`() {
        let found = decision(.of(TestType.promo, by: TestCaller.payments)) {
            $0.consent = ConsentFact(state: .neverAsked)
            $0.osPermission = .denied
        }
        #expect(found.reason == .callerNotPermitted)
        #expect(found.decidingGate == .caller)
        #expect(found.trace[.permission].reason == .noGDPRConsent)
        #expect(found.trace[.osPermission].reason == .blockedAtOSLevel)
    }

    @Test func `a suppression at a lower gate comes before a rejection at a higher one`() {
        let found = decision(.of(TestType.payment)) {
            $0.expiry = $0.now?.advanced(byMilliseconds: -1)
            $0.recipient = .unknown
        }
        #expect(found.outcome == .suppress)
        #expect(found.reason == .expired)
    }

    @Test func `nothing is promised for later that would be refused then`() {
        let found = decision(.of(TestType.payment)) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 60))
            $0.sizes?.sealed = 5000
        }
        #expect(found.outcome == .reject)
        #expect(found.reason == .payloadTooLarge)
        #expect(found.notBefore == nil)
    }

    @Test func `the first promise for later counts`() {
        let found = decision(.of(TestType.payment)) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 60))
            $0.typeCount = 5
        }
        #expect(found.outcome == .defer)
        #expect(found.notBefore == noon.advanced(bySeconds: 60))
    }

    @Test func `a stand-in text waits like any other`() {
        let found = decision(.of(TestType.payment)) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 60))
            $0.deviceKey = .revoked
        }
        #expect(found.outcome == .defer)
        #expect(found.form == .generic)
        #expect(found.trace[.deviceKey].reason == .genericOnly)
    }

    @Test func `a payment notice at 22:01 waits for morning`() {
        // Given a recipient in Paris, quiet from 22:00 to 08:00, in winter.
        let facts = Facts.paris(at: "2026-03-02T21:01:00Z")
        // When the gate decides, it waits until 08:00 local time, which is 07:00 UTC.
        let found = decide(.of(TestType.payment), given: facts, under: policy)
        #expect(found.outcome == .defer)
        #expect(found.reason == .quietHoursDeferred)
        #expect(found.notBefore == .utc("2026-03-03T07:00:00Z"))
    }

    @Test func `the same notice in summer waits until 06:00 UTC`() {
        let facts = Facts.paris(at: "2026-07-01T20:01:00Z")
        let found = decide(.of(TestType.payment), given: facts, under: policy)
        #expect(found.notBefore == .utc("2026-07-02T06:00:00Z"))
    }

    @Test func `a refusal carries nothing`() {
        let found = decision(.of(TestType.login, critical: true)) { $0.osPermission = .denied }
        #expect(found.form == .never)
        #expect(found.interruption == .passive)
        #expect(found.notes == [])
        #expect(found.notBefore == nil)
    }

    // MARK: Who holds the address

    @Test func `nothing confidential goes to an address that another person verified since`() {
        for type in policy.types where type.isEnabled {
            for channel in Channel.allCases where type.body[channel] != .never {
                let usual = decision(.of(type.id, on: channel)) { _ in }
                let found = decision(.of(type.id, on: channel)) { $0.destination = .contested }
                let isConfidential = type.category == .security || type.sensitivity == .high
                #expect(usual.notes.contains(.addressContested) == false, "\(type.id) by \(channel)")
                let destination = found.trace[.destination]
                if isConfidential {
                    #expect(
                        destination == .fail(.noDestination, .addressContested), "\(type.id) by \(channel)")
                    #expect(found.outcome == .reject && found.notes == [], "\(type.id) by \(channel)")
                } else {
                    #expect(
                        destination == .pass && found.outcome == usual.outcome, "\(type.id) by \(channel)")
                    #expect(
                        found.notes.contains(.addressContested) == found.outcome.isPromise,
                        "\(type.id) by \(channel)")
                }
            }
        }
    }

    @Test func `what waits for a contested address says so as well`() {
        let found = decision(.of(TestType.statement)) {
            $0.destination = .contested
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 60))
        }
        #expect(found.outcome == .defer && found.notes == .addressContested)
    }

    // MARK: What passes more

    @Test func `a mandatory notice passes a user's off, and says so`() {
        let found = decision(.of(TestType.duty)) { $0.accountPreference = .userOff }
        #expect(found.outcome == .forward)
        #expect(found.notes == .mandatoryPassed)
        #expect(found.trace[.preferences] == .pass)
    }

    @Test func `a mandatory notice passes the master switch, quiet hours and caps together`() {
        let found = decision(.of(TestType.duty)) {
            $0.pushEnabled = false
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 999_999))
            $0.typeCount = 3
        }
        #expect(found.outcome == .forward)
        #expect(found.notes == .mandatoryPassed)
    }

    @Test func `a mandatory notice with nothing in its way says nothing`() {
        #expect(decision(.of(TestType.duty)).notes == [])
    }

    @Test func `a fact that nobody needs to know any more is not missing`() {
        let found = decision(.of(TestType.duty)) {
            $0.accountPreference = nil
            $0.quietHours = nil
            $0.typeCount = nil
        }
        #expect(found.outcome == .forward)
        #expect(found.notes == [])
    }

    @Test func `no mandate passes the operating system, a destination or a size`() {
        #expect(decision(.of(TestType.duty)) { $0.osPermission = .denied }.reason == .blockedAtOSLevel)
        #expect(decision(.of(TestType.duty)) { $0.destination = .inactive }.reason == .noDestination)
        #expect(decision(.of(TestType.duty)) { $0.sizes?.generic = 9999 }.reason == .payloadTooLarge)
    }

    @Test func `a security notification inside quiet hours goes out with the critical flag`() {
        let found = decision(.of(TestType.login, critical: true)) {
            $0.quietHours = .inside(endsAt: noon.advanced(bySeconds: 60))
        }
        #expect(found.outcome == .forward)
        #expect(found.interruption == .critical)
        #expect(found.notes == [])
    }

    @Test(arguments: [false, nil] as [Bool?])
    func `without the entitlement it is time-sensitive, and says why`(allowed: Bool?) {
        let found = decision(.of(TestType.login, critical: true)) { $0.criticalAlerts = allowed }
        #expect(found.outcome == .forward)
        #expect(found.interruption == .timeSensitive)
        #expect(found.notes == .criticalDowngraded)
    }

    @Test func `an entitlement alone makes nothing critical`() {
        #expect(decision(.of(TestType.login)).interruption == .timeSensitive)
    }

    @Test func `a text is never downgraded, for it has no flag to lose`() {
        let found = decision(.of(TestType.login, on: .sms, critical: true)) { $0.criticalAlerts = nil }
        #expect(found.outcome == .forward)
        #expect(found.notes == [])
    }

    @Test func `critical asked for without the right is refused, never softened`() {
        let found = decision(.of(TestType.promo, by: TestCaller.marketing, critical: true))
        #expect(found.outcome == .reject)
        #expect(found.reason == .criticalNotPermitted)
    }

    // MARK: What may be shown

    static let forms: [(type: TypeID, privacy: PrivacyLevel?, form: BodyForm)] = [
        (TestType.statement, .full, .full), (TestType.statement, .generic, .generic),
        (TestType.statement, .hidden, .generic), (TestType.statement, nil, .generic),
        (TestType.promo, .full, .full), (TestType.promo, .generic, .full),
        (TestType.promo, .hidden, .generic), (TestType.promo, nil, .full),
        (TestType.payment, .full, .sealed), (TestType.payment, .hidden, .sealed),
    ]

    @Test(arguments: forms)
    func `the form follows sensitivity and the recipient's choice`(
        type: TypeID, privacy: PrivacyLevel?, form: BodyForm
    ) {
        let found = decision(.of(type)) { $0.privacy = privacy }
        #expect(found.outcome == .forward)
        #expect(found.form == form)
    }

    @Test(arguments: [PrivacyLevel.full, .generic, .hidden, nil])
    func `a letter the law obliges us to write is written out, whatever was chosen for the lock screen`(
        privacy: PrivacyLevel?
    ) {
        let letter = decision(.of(TestType.duty, on: .email)) { $0.privacy = privacy }
        #expect(letter.outcome == .forward)
        #expect(letter.form == .full)
        // On a screen the same duty keeps to what was chosen.
        let push = decision(.of(TestType.duty)) { $0.privacy = privacy }
        #expect(push.form == (privacy == .full ? .full : .generic))
    }

    @Test func `a statutory e-mail is measured as it leaves`() {
        let found = decision(.of(TestType.duty, on: .email)) {
            $0.privacy = nil
            $0.sizes?.generic = nil
        }
        #expect(found.outcome == .forward)
        let most = policy.bundle.channels.rules[.email].payloadByteCountMax
        #expect(
            decision(.of(TestType.duty, on: .email)) {
                $0.privacy = .hidden
                $0.sizes?.full = most + 1
            }.reason == .payloadTooLarge)
    }

    @Test func `a high type never leaves in clear, whatever is known`() {
        var numbers = SeededNumbers(seed: 7)
        for _ in 0..<2_000 {
            let facts = Facts.random(using: &numbers)
            for type in [TestType.payment, TestType.sealedOnly, TestType.help, TestType.login] {
                let found = decide(.of(type), given: facts, under: policy)
                #expect(found.form != .full)
            }
        }
    }

    // MARK: Shape

    @Test func `equal arguments give equal decisions`() {
        var numbers = SeededNumbers(seed: 11)
        for _ in 0..<500 {
            let facts = Facts.random(using: &numbers)
            let request = AttestedRequest.of(TestType.payment)
            #expect(
                decide(request, given: facts, under: policy) == decide(request, given: facts, under: policy))
        }
    }

    @Test func `a rule holds no reference, and neither does a decision`() {
        #expect(_isPOD(CompiledRule.self))
        #expect(_isPOD(Jurisdiction.self))
        #expect(_isPOD(Decision.self))
    }

    /// The proof compares traces byte by byte.
    @Test func `a trace has no byte that means nothing`() {
        #expect(MemoryLayout<GateResult>.size == 3)
        #expect(MemoryLayout<GateResult>.stride == 3)
        #expect(MemoryLayout<Trace>.size == 3 * Trace.gateCountMax + 1)
    }

    @Test func `a trace begins with gates that were not asked, or as it is told to`() {
        for gate in Gate.allCases {
            #expect(Trace()[gate] == .notApplicable)
            #expect(Trace(.pass)[gate] == .pass)
        }
    }

    @Test func `types that differ in nothing the gates see share a rule`() throws {
        var bundle = TestBundle.minimal
        var twin = bundle.documents["types/statement.yaml"]!.objectValue!
        twin["type"] = "twin"
        bundle.documents["types/twin.yaml"] = .object(twin)
        bundle.set("messages/en.yaml", "twin", to: ["title": "twin", "body": "Look."])
        let policy = try bundle.compile()
        #expect(
            policy.rule(for: .of(TypeID("twin"))) == policy.rule(for: .of(TestType.statement)))
        #expect(policy.rules().count == self.policy.rules().count)
    }
}

/// A fact that gets lost must never turn a refusal into a send.
@Suite struct MissingFactTests {
    @Test func `dropping any one fact of the table's rows turns no refusal into a send`() throws {
        let policy = try TestBundle.minimal.compile()
        for row in GateRow.all {
            for flip in flips(row.request, row.facts, policy) { Issue.record("\(row.name): without \(flip)") }
        }
    }

    private func flips(_ request: AttestedRequest, _ facts: Facts, _ policy: CompiledPolicy) -> [String] {
        guard !decide(request, given: facts, under: policy).outcome.isPromise else { return [] }
        return Facts.names.filter {
            decide(request, given: facts.removing($0)!, under: policy).outcome.isPromise
        }
    }
}
