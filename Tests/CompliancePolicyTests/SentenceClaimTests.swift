import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import Testing

/// What a sentence claims is a fact of every way to it.
@Suite struct SentenceClaimTests {
    private static let now = Instant.utc("2026-03-02T12:00:00Z")

    private typealias Setting = @Sendable (inout Facts) -> Void

    private static let requests: [AttestedRequest] =
        [
            TestType.payment, TestType.sealedOnly, TestType.statement, TestType.duty, TestType.help,
            TestType.briefing, TestType.comment, TestType.promo, TestType.login, TestType.notice,
        ].map { .of($0) }
        + [.of(TestType.login, critical: true)]
        + [TestType.payment, TestType.promo, TestType.comment].flatMap { type in
            [Channel.sms, .email].map { .of(type, on: $0) }
        }

    /// In seconds: the edges to the millisecond are in `GateTableTests`.
    private static let times: [Setting] = {
        let hours: [QuietHoursFact] = [
            .off, .outside, .zoneMissing, .inside(endsAt: now.advanced(bySeconds: 7_200)),
            .insideSomewhere(endsAt: now.advanced(bySeconds: 7_200)),
        ]
        var settings: [Setting] = []
        for expiry: Int64 in [86_400, 1_800] {
            for due: Int64 in [0, -60, 3_600] {
                for quiet in hours {
                    settings.append { facts in
                        facts.now = now
                        facts.expiry = now.advanced(bySeconds: expiry)
                        facts.due = now.advanced(bySeconds: due)
                        facts.quietHours = quiet
                    }
                }
            }
        }
        return settings
    }()

    private static let counts: [Setting] = [(0, 0, 0), (100, 0, 0), (0, 100, 0), (0, 0, 100)].map { count in
        { facts in (facts.typeCount, facts.categoryCount, facts.everythingCount) = count }
    }

    private static let people: [Setting] = {
        let states: [ConsentFact] = [
            ConsentFact(state: .given, method: .webForm), ConsentFact(state: .neverAsked),
            ConsentFact(state: .refused), ConsentFact(state: .withdrawn), ConsentFact(state: .otherChannel),
            ConsentFact(state: .given, method: .webForm, expiresAt: now),
        ]
        var settings: [Setting] = []
        for region in ["FR", "SG"] {
            for consent in states {
                settings.append { facts in
                    facts.accountRegion = .of(region)
                    facts.deviceRegions = []
                    facts.consent = consent
                }
            }
        }
        let keys: [DeviceKeyFact] = [.none, .unconfirmed, .revoked, .sealedToRevoked]
        for key in keys { settings.append { $0.deviceKey = key } }
        return settings + [
            { _ in }, { $0.fallback = .mismatch }, { $0.fallback = .replacesOwnSend },
            { $0.ownRequest = ConsentFact(state: .given, method: .inAppToggle) },
            { $0.ownRequest = ConsentFact(state: .withdrawn) }, { $0.accountPreference = .userOff },
            { $0.pushEnabled = false }, { $0.criticalAlerts = false },
        ]
    }()

    /// The bundle of the tests, and the same with a time of day for types that quiet hours drop.
    private static func policies() throws -> [CompiledPolicy] {
        var timed = TestBundle.minimal
        for type in ["promo", "comment"] {
            timed.set("types/\(type).yaml", "timing", to: ["daily": "10:00"])
        }
        return [try TestBundle.minimal.compile(), try timed.compile()]
    }

    /// A claim of a sentence, by the words that make it, and whether the facts bear it out.
    private struct Claim: Sendable {
        var words: String
        var isTrue: @Sendable (_ facts: Facts, _ decision: Decision, _ again: (Setting) -> Decision) -> Bool
    }

    private static let claims: [Claim] = {
        @Sendable func came(_ facts: Facts) -> Bool {
            guard case .inside = facts.quietHours else { return false }
            return facts.due! <= facts.now!
        }
        @Sendable func isZoneUnknown(_ facts: Facts) -> Bool {
            switch facts.quietHours {
            case .zoneMissing, .insideSomewhere: true
            default: false
            }
        }
        /// Whether whoever was never asked is refused there.
        @Sendable func asks(_ again: (Setting) -> Decision) -> Bool {
            again { $0.consent = ConsentFact(state: .neverAsked) }.trace[.permission].verdict == .fail
        }
        return [
            Claim(words: "came in quiet hours") { facts, _, _ in came(facts) },
            Claim(words: "was inside quiet hours") { facts, _, _ in came(facts) },
            Claim(words: "was due in quiet hours") { facts, _, _ in
                if case .inside = facts.quietHours { !came(facts) } else { false }
            },
            Claim(words: "kept until they end") { facts, decision, _ in
                decision.notBefore == facts.quietHours?.endsAt
            },
            Claim(words: "time zone is not known") { facts, _, _ in isZoneUnknown(facts) },
            Claim(words: "time zone they live in is not known") { facts, _, _ in isZoneUnknown(facts) },
            Claim(words: "at a time of its own") { facts, decision, _ in
                facts.due! > facts.now! && decision.notBefore == facts.due
            },
            Claim(words: "of this kind lately") { facts, _, _ in facts.typeCount! > 0 },
            Claim(words: "of this category lately") { facts, _, _ in facts.categoryCount! > 0 },
            Claim(words: "of all kinds together") { facts, _, _ in facts.everythingCount! > 0 },
            Claim(words: "notifications of this kind as") { facts, _, _ in facts.typeCount! > 0 },
            Claim(words: "notifications of this category as") { facts, _, _ in facts.categoryCount! > 0 },
            Claim(words: "needs an opt-in") { _, _, again in asks(again) },
            Claim(words: "to this number needs consent") { _, _, again in asks(again) },
            Claim(words: "to this address needs consent") { _, _, again in asks(again) },
            Claim(words: "is asks for consent") { _, _, again in asks(again) },
            Claim(words: "said no") { facts, _, _ in facts.consent?.state == .refused },
            Claim(words: "to the recipient was ended") { facts, _, _ in facts.consent?.state == .withdrawn },
            Claim(words: "it was ended") { facts, _, _ in facts.consent?.state == .withdrawn },
            Claim(words: "may travel sealed only") { _, _, again in
                again { $0.deviceKey = DeviceKeyFact.none }.reason == .noDeviceKey
            },
            Claim(words: "made to travel sealed") { facts, _, _ in
                facts.deviceKey == .revoked || facts.deviceKey == .sealedToRevoked
            },
            Claim(words: "none is on record") { facts, _, _ in facts.fallback == .mismatch },
            Claim(words: "By the time it could have gone out") { facts, _, _ in
                let end = facts.quietHours?.endsAt
                return facts.expiry! < facts.due! || end.map { facts.expiry! < $0 } == true
            },
        ]
    }()

    @Test func `each way to a deferral or a refusal bears out what its sentence claims`() throws {
        var seen: Set<String> = []
        var toldBy: [String: Int] = [:]
        for policy in try Self.policies() {
            for request in Self.requests {
                for time in Self.times {
                    for count in Self.counts {
                        for person in Self.people {
                            var facts = Facts.ready
                            time(&facts)
                            count(&facts)
                            person(&facts)
                            let decision = decide(request, given: facts, under: policy)
                            let text = Explanation.english.text(decision, given: facts)
                            let circumstance = Explanation.Circumstance(decision, given: facts)
                            seen.insert(
                                "\(decision.reason.rawValue) \(decision.detail?.rawValue ?? "-") \(circumstance.map { "\($0)" } ?? "-")"
                            )
                            for claim in Self.claims where text.contains(claim.words) {
                                toldBy[claim.words, default: 0] += 1
                                let isTrue = claim.isTrue(facts, decision) { change in
                                    decide(request, given: facts.with(change), under: policy)
                                }
                                if !isTrue {
                                    Issue.record("\(request.type) on \(request.channel): \(text) \(facts)")
                                    return
                                }
                            }
                        }
                    }
                }
            }
        }
        // Each deferral, by each way to it.
        let ways = [
            "quiet_hours_deferred - cameInQuietHours", "quiet_hours_deferred - -",
            "quiet_hours_deferred zone_unknown -", "scheduled send_time -",
            "quiet_hours_dropped - cameInQuietHours", "quiet_hours_dropped - -",
            "quiet_hours_zone_missing - -", "digested type_cap -", "frequency_cap type_cap -",
            "frequency_cap category_cap -", "no_marketing_opt_in refused -",
            "no_marketing_opt_in withdrawn -", "no_device_key key_revoked -",
            "sms_fallback_forbidden fallback_mismatch -", "expires_before_due - -",
        ]
        for way in ways { #expect(seen.contains(way), "\(way) was not reached: \(seen.sorted())") }
        // These need a limit over everything, or a law that the bundle of the tests does not have.
        let unreached: Set<String> = [
            "of this category lately", "of all kinds together", "to this address needs consent",
            "to this number needs consent", "it was ended",
        ]
        for claim in Self.claims where !unreached.contains(claim.words) {
            #expect(toldBy[claim.words] != nil, "`\(claim.words)` was never told")
        }
    }

    @Test func `words of what waited and was taken back are true of whoever was due later, too`() {
        let claims: [(Reason, String)] = [
            (.quietHoursDropped, "by then"), (.quietHoursZoneMissing, "quiet hours"),
            (.expiresBeforeDue, "was of no use"),
        ]
        for (reason, claim) in claims {
            #expect(!reason.declaration.withdrawal.contains(claim), "\(reason.declaration.withdrawal)")
        }
    }
}
