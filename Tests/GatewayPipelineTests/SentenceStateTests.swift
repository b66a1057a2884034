import CompliancePolicy
import GateTestKit
import GateVocabulary
import GateRecords
import Testing

/// What is said of a consent or a choice is true of every state of the records that leads to it, in every language.
@Suite struct SentenceStateTests {
    static let languages = ["en", "nb", "bs", "sq"]
    private static let ledger = ConsentLedgerTests()
    private static let here = GateVocabulary.Tag(high: 1, low: 1)
    private static let elsewhere = GateVocabulary.Tag(high: 2, low: 2)
    private static let now = Instant(seconds: 100)

    /// One step of a history: a record of the consent asked for, or of the same at another place.
    private enum Step: CaseIterable {
        case shown, given, sold, refused, withdrawn, undone, expiring, elsewhere, otherChannel, soldElsewhere
    }

    private static func record(_ step: Step, at seconds: Int64, after earlier: [ConsentRecord])
        -> ConsentRecord
    {
        func record(
            _ state: ConsentRecord.State, _ channel: Channel = .email, _ address: GateVocabulary.Tag? = here,
            method: ConsentMethod = .webForm, expires: Int64? = nil
        ) -> ConsentRecord {
            ledger.record(
                state, at: seconds, channel: channel, address: address, method: method, expires: expires)
        }
        switch step {
        case .shown: return record(.shown)
        case .given: return record(.given)
        case .sold: return record(.given, method: .existingCustomer)
        case .refused: return record(.refused)
        case .withdrawn: return record(.withdrawn)
        case .expiring: return record(.given, expires: 50)
        case .elsewhere: return record(.given, .email, elsewhere)
        case .otherChannel: return record(.given, .push, nil)
        case .soldElsewhere: return record(.given, .email, elsewhere, method: .existingCustomer)
        case .undone:
            var undone = record(.undone)
            undone.withdraws = earlier.last { $0.state == .withdrawn }?.idTag
            return undone
        }
    }

    /// Every history of up to three steps.
    private static let histories: [[ConsentRecord]] = {
        var all: [[ConsentRecord]] = [[]]
        var longest = all
        for seconds in 1...3 {
            longest = longest.flatMap { earlier in
                Step.allCases.map { earlier + [record($0, at: Int64(seconds * 10), after: earlier)] }
            }
            all += longest
        }
        return all
    }()

    /// What a sentence may claim of a history, by the words that claim it in each language.
    private struct Claim: Sendable {
        var words: [String: [String]]
        var isTrue: @Sendable ([ConsentRecord]) -> Bool
    }

    private static let claims: [Claim] = [
        Claim(words: ["en": ["never asked"], "nb": ["spurt"], "bs": ["pitan"], "sq": ["pyetur"]]) {
            $0.isEmpty
        },
        Claim(
            words: [
                "en": ["taken it back", "withdrawn", "withdrew"], "nb": ["trukket"], "bs": ["povukao"],
                "sq": ["tërhequr"],
            ]
            // A switch, a link of another holder of the mailbox and a restore end what was never given, too, and facts do not say
            // which it was.
        ) { _ in false },
        Claim(
            words: [
                "en": ["said no"], "nb": ["sa nei", "sagt nei"], "bs": ["odbio"],
                "sq": ["tha jo", "thënë jo"],
            ]
        ) { $0.contains { $0.state == .refused } },
        Claim(
            words: [
                "en": ["has not given it"], "nb": ["har ikke gitt", "det har mottakeren ikke"],
                "bs": ["ga nije dao"], "sq": ["nuk e ka dhënë"],
            ]
        ) { history in
            !ConsentLedger.consentsInForce(in: history).byScope.values.contains {
                $0.state == .given && $0.method != .existingCustomer
            }
        },
        Claim(
            words: [
                "en": ["gave it for another"], "nb": ["ga det"], "bs": ["ga je dao"], "sq": ["marrësi e dha"],
            ]
        ) { $0.contains { $0.state == .given && $0.method != .existingCustomer && $0.address != here } },
        Claim(
            words: [
                "en": ["it was ended", "was ended"], "nb": ["avsluttet"], "bs": ["okonč"], "sq": ["ndërpre"],
            ]
        ) { $0.contains { $0.state == .withdrawn } },
        Claim(words: ["en": ["has run out"], "nb": ["gått ut"], "bs": ["istekao"], "sq": ["skaduar"]]) {
            $0.contains { $0.expiresAt != nil }
        },
    ]

    @Test func `a sentence on a consent is true of every history that leads to it`() throws {
        let policy = try Repository.policy()
        let requests: [AttestedRequest] = ["promo.offer", "payment.received", "alert.deposit"].map {
            AttestedRequest(
                caller: CallerName("marketing"), type: TypeID($0), channel: .email, critical: false)
        }
        var told: Set<Detail> = []
        for history in Self.histories {
            for region in ["NO", "US", nil] {
                var facts = Facts.ready
                facts.now = Self.now
                facts.expiry = Self.now.advanced(bySeconds: 3_600)
                facts.due = Self.now
                facts.accountRegion = region.map { .of($0) }
                facts.deviceRegions = []
                facts.consent = ConsentLedger.fact(
                    purpose: .marketing, channel: .email, address: Self.here, in: history)
                facts.purposeConsent = facts.consent
                for request in requests {
                    let trace = decide(request, given: facts, under: policy).trace
                    guard let reason = trace[.permission].reason, reason != .factMissing else { continue }
                    let detail = trace[.permission].detail
                    if let detail { told.insert(detail) }
                    for language in Self.languages {
                        let text = Explanation(policy.sentences(in: language)).sentence(reason, detail)
                        for claim in Self.claims where claim.words[language]!.contains(where: text.contains) {
                            #expect(
                                claim.isTrue(history),
                                "`\(text)` of \(history.map { "\($0.state) \($0.method)" })")
                        }
                    }
                }
            }
        }
        #expect(
            told.isSuperset(of: [.neverAsked, .refused, .withdrawn, .otherAddress, .otherChannel, .expired]),
            "\(told)")
    }

    /// A choice may be an administrator's, the drift audit's, a restore's or that of another holder of the mailbox: facts have
    /// the state and not the source, so no sentence names who chose.
    @Test(arguments: languages)
    func `a sentence on a switch does not say who switched it`(_ language: String) throws {
        let words = Explanation(try Repository.policy().sentences(in: language))
        let actors = [
            "en": "recipient has switched", "nb": "ottakeren har slått", "bs": "rimalac je isključio",
            "sq": "arrësi i ka çaktivizuar", "sq2": "arrësi e ka çaktivizuar",
        ]
        for reason in [Reason.userPreference, .pushDisabled] {
            for detail in [nil] + reason.details.map(Optional.some) {
                let text = words.sentence(reason, detail)
                for (key, claim) in actors where key.hasPrefix(language) {
                    #expect(!text.contains(claim), "\(text)")
                }
            }
        }
    }
}
