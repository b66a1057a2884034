import CanonicalJSON
import Dispatch
import GateTestKit
import GateVocabulary
import PolicyFiles
import PolicyPages
import Synchronization
import Testing

@testable import BundleModel
@testable import CompliancePolicy
@testable import PolicyProof
@testable import PolicyStatutes

/// The bundle with one thing wrong, over and over: each must be noticed by the loader, a case or the proof.
@Suite struct BundleMutantTests {
    /// One cell of one table, weakened or otherwise wrong.
    struct Mutant: Sendable, CustomTestStringConvertible {
        var name: String
        var change: @Sendable (inout TestBundle) throws -> Void
        var testDescription: String { name }

        init(_ file: String, _ path: String..., to value: JSONValue?) {
            name = "\(file) \(path.joined(separator: ".")): \(value.map { "\($0)" } ?? "removed")"
            change = { bundle in
                guard bundle.documents[file] != nil else { throw Unfit(what: "there is no \(file)") }
                let old = Self.value(bundle.documents[file], path[...])
                guard old != value else { throw Unfit(what: "\(file) \(path) says so already") }
                bundle.replace(file, path, with: value)
            }
        }

        init(_ name: String, _ change: @escaping @Sendable (inout TestBundle) throws -> Void) {
            self.name = name
            self.change = change
        }

        private static func value(_ document: JSONValue?, _ path: ArraySlice<String>) -> JSONValue? {
            guard let key = path.first else { return document }
            if case .array(let elements) = document, let index = Int(key), index < elements.count {
                return value(elements[index], path.dropFirst())
            }
            return value(document?[key], path.dropFirst())
        }
    }

    struct Unfit: Error { var what: String }

    static let repository: Result<TestBundle, any Error> = Result {
        var bundle = TestBundle.minimal
        bundle.documents = try Repository.pages().mapValues(\.json)
        return bundle
    }

    enum Catch: Hashable { case loader, flaw, aCase, proof }

    /// Who notices first, the cheapest asked first.
    static func whoNotices(_ mutant: Mutant) throws -> Catch? {
        var bundle = try repository.get()
        try mutant.change(&bundle)
        let policy: CompiledPolicy
        switch bundle.read() {
        case .failure: return .loader
        case .success(let read): policy = CompiledPolicy(read)
        }
        let proof = BundleProof(of: policy, grain: .effects)
        if !proof.book.flaws().isEmpty { return .flaw }
        if policy.bundle.cases.contains(where: { !$0.run(under: policy).passed }) { return .aCase }
        return proof.run(on: Threads.all).holds ? nil : .proof
    }

    static let categories: [Mutant] = [
        Mutant("categories.yaml", "marketing", "quiet_hours", to: "pass"),
        Mutant("categories.yaml", "marketing", "quiet_hours", to: "defer"),
        Mutant("categories.yaml", "social", "quiet_hours", to: "pass"),
        Mutant("categories.yaml", "social", "quiet_hours", to: "defer"),
        Mutant("categories.yaml", "transactional", "quiet_hours", to: "pass"),
        Mutant("categories.yaml", "transactional", "quiet_hours", to: "drop"),
        Mutant("categories.yaml", "security", "quiet_hours", to: "defer"),
        Mutant("categories.yaml", "marketing", "overflow", to: "allow"),
        Mutant("categories.yaml", "security", "overflow", to: "drop"),
        Mutant("categories.yaml", "marketing", "default", to: "on"),
        Mutant("categories.yaml", "social", "default", to: "off"),
        Mutant("categories.yaml", "transactional", "default", to: "off"),
        Mutant("categories.yaml", "security", "default", to: "off"),
        Mutant("categories.yaml", "marketing", "minors", to: "allow"),
        Mutant("categories.yaml", "transactional", "minors", to: "refuse"),
        Mutant("categories.yaml", "security", "switch_off", to: "anyone"),
        Mutant("categories.yaml", "social", "switch_off", to: "step_up"),
        Mutant("categories.yaml", "transactional", "switch_off", to: "step_up"),
        Mutant("categories.yaml", "marketing", "switch_off", to: "step_up"),
        Mutant("categories.yaml", "marketing", "permission", "push", "gdpr", to: "none_needed"),
        Mutant("categories.yaml", "marketing", "permission", "sms", "other", to: "opt_out"),
        Mutant("categories.yaml", "marketing", "permission", "push", "gdpr", to: "written_consent"),
        Mutant("categories.yaml", "marketing", "permission", "email", "uk_gdpr", to: "written_consent"),
        Mutant("categories.yaml", "social", "permission", "email", "gdpr", to: "opt_out"),
        Mutant("categories.yaml", "social", "permission", "email", "gdpr", to: "none_needed"),
        Mutant("categories.yaml", "transactional", "permission", "push", "gdpr", to: "opt_in"),
        Mutant("categories.yaml", "transactional", "permission", "sms", "gdpr", to: "opt_in"),
    ]

    static let regions: [Mutant] =
        ["NO", "DE", "IE", "IS", "YT", "AX", "SJ", "JE", "GI", "NC"].map {
            Mutant("regions.yaml", "regions", $0, "regime", to: "other")
        } + [
            Mutant("regions.yaml", "regions", "GB", "regime", to: "gdpr_like"),
            Mutant("regions.yaml", "regions", "US", "regime", to: "gdpr"),
            Mutant("regions.yaml", "permission_rows", "0", "rule", to: "opt_in"),
            Mutant("regions.yaml", "permission_rows", "0", "rule", to: "express_consent"),
            Mutant("regions.yaml", "permission_rows", "0", "from", to: "2027-02-01"),
            Mutant("regions.yaml", "permission_rows", "0", to: nil),
            Mutant("regions.yaml", "permission_rows", "1", "rule", to: "none_needed"),
            Mutant("regions.yaml", "permission_rows", "1", "rule", to: "opt_out"),
            Mutant("regions.yaml", "permission_rows", "4", "rule", to: "opt_in"),
            Mutant("regions.yaml", "permission_rows", "8", to: nil),
            Mutant("regions.yaml", "permission_rows", "1", to: nil),
            Mutant("regions.yaml", "permission_rows", "3", to: nil),
            Mutant("regions.yaml", "calling_codes", to: nil),
            Mutant("categories.yaml", "marketing", "withheld_from", to: ["programme"]),
            Mutant("regions.yaml", "strictest_first", to: ["gdpr", "gdpr_like", "uk_gdpr", "other"]),
            Mutant("regions.yaml", "freshness", "ip", to: nil),
            Mutant("regions.yaml", "freshness", "device", to: 3_000),
            Mutant("regions.yaml", "freshness", "kyc", to: 1),
            optOutRow("DE", "email", law: "A law.", from: "2020-01-01"),
            optOutRow("CA", "email", law: "A law.", from: "2020-01-01"),
            optOutRow("CH", "sms", law: "A law.", from: "2020-01-01"),
            optOutRow("BR", "email", law: "none, a rule of the house", from: "2020-01-01"),
            optOutRow("BR", "push", law: "A law.", from: "2020-01-01"),
            // Of states of which no law of this kind is known, whatever is cited.
            optOutRow("AD", "email", law: "Law 29/2021 Art. 6", from: "2022-05-17"),
            optOutRow("BR", "email", law: "Lei 13.709/2018 Art. 7", from: "2020-01-01"),
            optOutRow("IN", "sms", law: "15 U.S.C. 7704", from: "2020-01-01"),
            optOutRow("US", "email", law: "CAN-SPAM Act", from: nil),
        ]

    static func optOutRow(_ region: String, _ channel: String, law: String, from: String?) -> Mutant {
        Mutant("regions.yaml: an opt-out row for \(region) by \(channel), law: \(law), from: \(from ?? "-")")
        {
            var row: JSONObject = [
                "region": .string(region), "channel": .string(channel), "categories": ["marketing"],
                "rule": "opt_out", "because": "So that a test can tell.", "law": .string(law),
                "reviewed": "2026-11-02",
            ]
            if let from { row["from"] = .string(from) }
            guard case .array(let rows) = $0.documents["regions.yaml"]?["permission_rows"] else {
                throw Unfit(what: "regions.yaml has no rows")
            }
            $0.replace("regions.yaml", ["permission_rows"], with: .array([.object(row)] + rows))
        }
    }

    static let others: [Mutant] = [
        Mutant("callers.yaml", "callers", "marketing", "grants", to: ["send", "consents.write"]),
        Mutant("callers.yaml", "callers", "marketing", "grants", to: ["send", "policy.activate"]),
        Mutant("callers.yaml", "callers", "marketing", "grants", to: []),
        Mutant(
            "callers.yaml", "callers", "payments", "types", "categories", to: ["transactional", "marketing"]),
        Mutant("callers.yaml", "callers", "payments", "types", "except", to: nil),
        Mutant("callers.yaml", "callers", "security", "grants", to: ["send", "subjects.read"]),
        Mutant("critical.yaml", "allow", "0", "callers", to: ["security", "payments"]),
        Mutant("critical.yaml", "allow", "0", "callers", to: []),
        Mutant("critical.yaml", "allow", "0", "type", to: "security.new_login"),
        Mutant("critical.yaml", "allow", "0", to: nil),
        Mutant("critical.yaml", "allow", "0", "type", to: "transaction.failed"),
        Mutant("channels.yaml", "sms", "fallback", "marketing", to: "own_consent"),
        Mutant("channels.yaml", "sms", "fallback", "others", to: "forbidden"),
        Mutant("channels.yaml", "sms", "hours", to: nil),
        Mutant("channels.yaml", "sms", "hours", "latest", to: "22:00"),
        Mutant("channels.yaml", "sms", "hours", "earliest", to: "07:00"),
        Mutant("channels.yaml", "sms", "hours", "categories", to: ["social"]),
        Mutant("channels.yaml", "sms", "hours", "regions", to: ["US"]),
        Mutant("channels.yaml", "sms", "revocation", to: nil),
        Mutant("channels.yaml", "sms", "revocation", "words", to: ["en": ["stop"]]),
        Mutant(
            "channels.yaml", "sms", "revocation", "words", "en",
            to: ["quit", "revoke", "opt out", "unsubscribe", "stopall", "pls stop"]),
        Mutant(
            "channels.yaml", "sms", "revocation", "words", "en",
            to: ["stop", "quit", "revoke", "opt out", "unsubscribe"]),
        Mutant("channels.yaml", "sms", "revocation", "confirmation", "en", to: "See www.example.org/offers"),
        Mutant("channels.yaml", "sms", "revocation", "honoured_within_business_days", to: 30),
        Mutant("channels.yaml", "sms", "revocation", "confirmation_within_minutes", to: 60),
        Mutant("channels.yaml", "push", "payload_bytes_max", to: 2_048),
        Mutant("channels.yaml", "sms", "payload_bytes_max", to: 918),
        Mutant("types/promo.offer.yaml", "sensitivity", to: "high"),
        Mutant("types/promo.offer.yaml", "channels", "push", to: nil),
        Mutant("types/promo.offer.yaml", "mandatory", to: mandate),
        Mutant("types/transaction.failed.yaml", "mandatory", to: nil),
        Mutant("types/transaction.failed.yaml", "mandatory", "passes", to: ["preferences"]),
        Mutant("types/transaction.failed.yaml", "mandatory", "passes", to: ["quiet_hours", "caps"]),
        Mutant("types/transaction.failed.yaml", "mandatory", "law", to: ["none"]),
        Mutant("types/transaction.remittance_sent.yaml", "channels", "push", to: ["body": "full"]),
        Mutant("types/transaction.remittance_sent.yaml", "channels", "push", to: ["body": "generic"]),
        Mutant("types/2fa_code.yaml", "channels", "push", "without_key", to: "generic"),
        Mutant("types/2fa_code.yaml", "sensitivity", to: "personal"),
        Mutant("types/intervention.critical.yaml", "minors", to: nil),
        Mutant("types/programme.tip.yaml", "minors", to: nil),
        Mutant("types/partner.alert.yaml", "minors", to: nil),
        Mutant("types/alert.deposit.yaml", "purpose", to: nil),
        Mutant("types/privacy.breach_notice.yaml", "channels", "email", to: ["body": "generic"]),
        Mutant("types/2fa_code.yaml", "category", to: "transactional"),
        Mutant("types/intervention.venue_proximity.yaml", "purpose", to: nil),
        Mutant("types/account.balance_update.yaml", "purpose", to: nil),
        Mutant("types/statement.available.yaml", "sensitivity", to: "open"),
        Mutant("types/social.comment.yaml", "mutable_alone", to: nil),
    ]

    private static let mandate: JSONValue = [
        "law": ["PSD2 Art. 79(1)"], "passes": ["preferences"], "must_reach_within": "a day",
        "if_unreachable": "email", "discharged_by": ["email"], "discharge_within": ["hours": 24],
        "review": "2027-11-02",
    ]

    @Test func `the bundle as it is gives nobody anything to notice`() throws {
        #expect(try Self.whoNotices(Mutant("as it is") { _ in }) == nil)
    }

    @Test
    func `every bundle with one thing wrong is noticed, forty and more of all by law, case or proof alone`()
        throws
    {
        var caught: [Catch: Int] = [:]
        let mutants = Soak.part(of: Self.categories + Self.regions + Self.others, 40, "mutants of bundles")
        for mutant in mutants {
            if let who = try Self.whoNotices(mutant) {
                caught[who, default: 0] += 1
            } else {
                Issue.record("\(mutant.name) survives")
            }
        }
        let late = caught[.flaw, default: 0] + caught[.aCase, default: 0] + caught[.proof, default: 0]
        #expect(late >= (Soak.isWhole ? 40 : 1), "\(caught)")
    }

    /// Without its cases, a bundle has nothing but the proof to stop it. The finer grain, with a hundred times the states, walks
    /// the types that the coarser one refuted.
    @Test(arguments: Soak.part(of: proved, 4, "mutants that are proved"))
    func `the law alone stops what breaks it, at both grains`(mutant: Mutant) throws {
        var bundle = try Self.repository.get()
        try mutant.change(&bundle)
        let policy = try bundle.compile()
        let coarse = BundleProof(of: policy, grain: .effects).run(on: Threads.all).refutations
        #expect(!coarse.isEmpty, "\(mutant.name) is proved")
        let fine = BundleProof(of: policy, grain: .reasons)
            .run(of: Set(coarse.map(\.request.type)), on: Threads.all).refutations
        #expect(
            Set(fine.map(\.statute.name)).isSuperset(of: coarse.map(\.statute.name)), "\(mutant.name)")
        for refutation in coarse + fine {
            // And the case it writes fails under the bundle it was found in.
            var pasted = bundle
            pasted.documents["cases/found.yaml"] =
                try PolicyPage.read(Array(("cases:\n" + refutation.example).utf8), file: "cases/found.yaml")
                .json
            pasted.relist()
            let again = try pasted.compile()
            let example = try #require(again.bundle.cases.first { $0.file == "cases/found.yaml" })
            #expect(example.facts == refutation.facts, "\(refutation.example)")
            #expect(!example.run(under: again).passed, "\(refutation.example)")
        }
    }

    static let proved: [Mutant] = [
        Mutant("categories.yaml", "marketing", "quiet_hours", to: "pass"),
        Mutant("categories.yaml", "transactional", "quiet_hours", to: "pass"),
        Mutant("categories.yaml", "social", "switch_off", to: "step_up"),
        Mutant("regions.yaml", "permission_rows", "0", "rule", to: "express_consent"),
        Mutant("regions.yaml", "permission_rows", "0", "from", to: "2027-02-01"),
        Mutant("regions.yaml", "permission_rows", "1", "rule", to: "none_needed"),
        Mutant("regions.yaml", "regions", "NO", "regime", to: "other"),
        optOutRow("BR", "push", law: "A law.", from: "2020-01-01"),
    ]

    /// A page that says of a name what the law or a source document does not.
    struct NamedFlaw: Sendable, CustomTestStringConvertible {
        var mutant: Mutant
        var file: String
        var words: String
        var testDescription: String { mutant.name }

        /// - Parameters:
        ///   - words: What the message says.
        ///   - edits: Each a file, a path in it, and what stands there now.
        init(
            _ words: String, in file: String,
            after edits: (file: String, path: [String], value: JSONValue?)...
        ) {
            self.words = words
            self.file = file
            let name = edits.map { "\($0.file) \($0.path.joined(separator: "."))" }
            mutant = Mutant("\(name.joined(separator: ", ")): \(words)") { bundle in
                for edit in edits { bundle.replace(edit.file, edit.path, with: edit.value) }
            }
        }

        static func category(of id: String, _ category: String, by nature: String) -> NamedFlaw {
            let file = "types/\(id).yaml"
            return NamedFlaw(
                "is `\(category)`, and `\(id)` is `\(nature)` by nature", in: file,
                after: (file, ["category"], .string(category)),
                (file, ["not_marketing_because"], "So that a test can tell."))
        }
    }

    static let named: [NamedFlaw] =
        [
            "feature.announce", "info.feature_update", "info.new_corridor", "info.rate_update",
            "promo.announcement", "promo.offer", "promo.partner_offer", "promo.referral", "rate.changed",
            "re_engagement",
        ].map { .category(of: $0, "transactional", by: "marketing") } + [
            .category(of: "promo.offer", "social", by: "marketing"),
            .category(of: "statement.available", "security", by: "transactional"),
            .category(of: "social.like", "transactional", by: "social"),
            .category(of: "security.new_login", "transactional", by: "security"),
            .category(of: "security.payment_code", "transactional", by: "security"),
            .category(of: "card.blocked", "transactional", by: "security"),
            .category(of: "privacy.breach_notice", "transactional", by: "security"),
        ]
        + [
            "transaction.failed", "card.blocked", "security.account_locked", "privacy.breach_notice",
            "security.incident_notice", "account.terms_change",
        ].flatMap { id in
            let file = "types/\(id).yaml"
            return [
                NamedFlaw("is missing, and the law obliges us", in: file, after: (file, ["mandatory"], nil)),
                NamedFlaw(
                    "lacks `preferences`", in: file,
                    after: (file, ["mandatory", "passes"], ["quiet_hours", "caps"])),
                NamedFlaw(
                    "is false, and the law obliges us", in: file, after: (file, ["enabled"], false),
                    (file, ["disabled_hint"], "So that a test can tell.")),
            ]
        } + [
            NamedFlaw(
                "lacks `quiet_hours`", in: "types/card.blocked.yaml",
                after: ("types/card.blocked.yaml", ["mandatory", "passes"], ["preferences"])),
            NamedFlaw(
                "is 1 seconds", in: "types/privacy.breach_notice.yaml",
                after: (
                    "types/privacy.breach_notice.yaml", ["ttl"], ["seconds": 1, "counts_from": "arrival"]
                )),
            NamedFlaw(
                "let nobody send `transaction.failed`", in: "callers.yaml",
                after: (
                    "callers.yaml", ["callers", "payments", "types", "except", "0"], "transaction.failed"
                )),
            NamedFlaw(
                "is missing, and whoever gets `programme.tip`", in: "types/programme.tip.yaml",
                after: ("types/programme.tip.yaml", ["purpose"], nil)),
            NamedFlaw(
                "is missing, and whoever gets `promo.partner_offer`", in: "types/promo.partner_offer.yaml",
                after: ("types/promo.partner_offer.yaml", ["purpose"], nil)),
            NamedFlaw(
                "is `programme`, and whoever gets `intervention.critical`",
                in: "types/intervention.critical.yaml",
                after: ("types/intervention.critical.yaml", ["purpose"], "programme")),
            NamedFlaw(
                "is `programme`, and whoever gets `account.balance_update`",
                in: "types/account.balance_update.yaml",
                after: ("types/account.balance_update.yaml", ["purpose"], "programme")),
            NamedFlaw(
                "rests on a consent that the page does not ask for", in: "types/order.shipped.yaml",
                after: ("types/order.shipped.yaml", ["basis", "gdpr"], "Art. 9(2)(a)")),
            NamedFlaw(
                "is no required uuid", in: "types/partner.alert.yaml",
                after: ("types/partner.alert.yaml", ["params", "disclosure_consent"], nil)),
            NamedFlaw(
                "is no required uuid", in: "types/partner.alert.yaml",
                after: ("types/partner.alert.yaml", ["params", "disclosure_consent"], ["optional": "uuid"])),
            NamedFlaw(
                "and that is for help against an urge alone", in: "types/programme.coaching.yaml",
                after: (
                    "types/programme.coaching.yaml", ["own_request"],
                    ["purpose": "intervention_any_time", "passes": ["quiet_hours"]]
                )),
            NamedFlaw(
                "the type tells of what needs explicit consent", in: "types/intervention.critical.yaml",
                after: ("types/intervention.critical.yaml", ["sensitivity"], "personal")),
            NamedFlaw(
                "is not for whoever sees the screen", in: "types/transaction.remittance_sent.yaml",
                after: ("types/transaction.remittance_sent.yaml", ["sensitivity"], "personal")),
            NamedFlaw(
                "is not for whoever sees the screen", in: "types/security.new_login.yaml",
                after: ("types/security.new_login.yaml", ["sensitivity"], "personal")),
            NamedFlaw(
                "the type carries an amount", in: "types/order.confirmed.yaml",
                after: ("types/order.confirmed.yaml", ["params", "amount"], "money"),
                (
                    "messages/en.yaml", ["order.confirmed", "body"],
                    "We have received {order_number}: {amount}."
                )),
            NamedFlaw(
                "names no ground of Art. 9(2)", in: "types/intervention.critical.yaml",
                after: ("types/intervention.critical.yaml", ["basis", "uk_gdpr"], "Art. 6(1)(b)")),
            NamedFlaw(
                "has no row of the alerts table", in: "types/alert.payment_processing.yaml",
                after: ("types/alert.payment_processing.yaml", ["alert_record"], true)),
            NamedFlaw(
                "is no required uuid", in: "types/alert.deposit.yaml",
                after: ("types/alert.deposit.yaml", ["params", "transactionId"], nil)),
            NamedFlaw(
                "carries nothing but its alert's id", in: "types/alert.rdc_account_status.yaml",
                after: ("types/alert.rdc_account_status.yaml", ["enabled"], nil),
                ("types/alert.rdc_account_status.yaml", ["disabled_hint"], nil)),
            NamedFlaw(
                "tells duties apart by `card_id`, and each `event_id` is one", in: "types/card.blocked.yaml",
                after: ("types/card.blocked.yaml", ["dedupe_by"], "card_id")),
            NamedFlaw(
                "tells duties apart by `no_id`", in: "types/security.account_locked.yaml",
                after: ("types/security.account_locked.yaml", ["dedupe_by"], nil),
                (
                    "types/security.account_locked.yaml", ["params"],
                    ["state": ["warned", "blocked"], "no_id": "uuid"]
                ),
                ("types/security.account_locked.yaml", ["used_by"], ["app": ["no_id", "state"]])),
            NamedFlaw(
                "names no payment", in: "types/alert.payment_processing.yaml",
                after: ("types/alert.payment_processing.yaml", ["dedupe_by"], nil),
                ("types/alert.payment_processing.yaml", ["dedupe_scope"], nil)),
            NamedFlaw(
                "takes back no other service's notice", in: "types/alert.payment_processing.yaml",
                after: ("types/alert.payment_processing.yaml", ["dedupe_scope"], "caller")),
            NamedFlaw(
                "gives nobody time to acknowledge", in: "types/alert.payment_processing.yaml",
                after: ("types/alert.payment_processing.yaml", ["timing"], nil)),
            NamedFlaw(
                "ask nobody about `marketing`", in: "notices.yaml",
                after: ("notices.yaml", ["notices", "promo", "asks_for"], ["social"]),
                ("notices.yaml", ["notices", "sms_marketing", "asks_for"], ["social"]),
                ("notices.yaml", ["notices", "sms_marketing", "methods"], nil)),
            NamedFlaw(
                "ask nobody about `security`", in: "notices.yaml",
                after: ("notices.yaml", ["notices", "sms_service", "asks_for"], ["transactional"])),
            NamedFlaw(
                "ask nobody about `partner_disclosure`", in: "notices.yaml",
                after: ("notices.yaml", ["notices", "partner_disclosure", "asks_for"], ["social"])),
            NamedFlaw(
                "asks for `gone`, which nothing rests on", in: "notices.yaml",
                after: ("notices.yaml", ["notices", "gone"], ["asks_for": ["gone"], "basis": "b"]),
                ("notices/gone.1.en.txt", [], "May we?")),
            NamedFlaw(
                "names `marketing`, who sends what sells", in: "critical.yaml",
                after: ("callers.yaml", ["callers", "marketing", "grants"], ["send", "send.critical"]),
                (
                    "callers.yaml", ["callers", "marketing", "types", "categories"],
                    ["marketing", "security"]
                ),
                ("critical.yaml", ["allow", "0", "callers"], ["security", "marketing"])),
            NamedFlaw(
                "holds `send.critical` and sends what sells", in: "callers.yaml",
                after: ("callers.yaml", ["callers", "marketing", "grants"], ["send", "send.critical"])),
            NamedFlaw(
                "lets a caller that sends hold `policy.activate`", in: "callers.yaml",
                after: ("callers.yaml", ["callers", "payments", "grants"], ["send", "policy.activate"])),
            NamedFlaw(
                "lets a caller send `digest.transactions`", in: "callers.yaml",
                after: ("callers.yaml", ["callers", "payments", "types", "except", "1"], nil)),
            NamedFlaw(
                "lets a caller that records consents send `alert.deposit`", in: "callers.yaml",
                after: ("callers.yaml", ["callers", "product", "types", "only", "0"], "alert.deposit")),
            NamedFlaw(
                "at night marketing notifications are dropped", in: "categories.yaml",
                after: ("categories.yaml", ["marketing", "quiet_hours"], "defer")),
            NamedFlaw(
                "at night transactional notifications wait for the morning", in: "categories.yaml",
                after: ("categories.yaml", ["transactional", "quiet_hours"], "drop")),
            NamedFlaw(
                "lets more go out than one in 24 hours or two in seven days", in: "limits.yaml",
                after: ("limits.yaml", ["categories", "marketing"], nil)),
            NamedFlaw(
                "lets more go out than one in 24 hours or two in seven days", in: "limits.yaml",
                after: ("limits.yaml", ["categories", "marketing", "0", "window_hours"], 1)),
            NamedFlaw(
                "lets more go out than one in 24 hours or two in seven days", in: "limits.yaml",
                after: ("limits.yaml", ["categories", "marketing", "0", "count"], 30),
                ("limits.yaml", ["categories", "marketing", "0", "window_hours"], 720)),
            NamedFlaw(
                "counts what is older than 90 days", in: "regions.yaml",
                after: ("regions.yaml", ["freshness", "device"], 91)),
            NamedFlaw(
                "counts what is older than 90 days", in: "regions.yaml",
                after: ("regions.yaml", ["freshness", "device"], .null)),
            NamedFlaw(
                "counts what is older than 90 days", in: "regions.yaml",
                after: ("regions.yaml", ["freshness", "ip"], .null)),
            NamedFlaw(
                "counts what is older than 3650 days", in: "regions.yaml",
                after: ("regions.yaml", ["freshness", "user_declared"], .null)),
            NamedFlaw(
                "an e-mail that a law obliges us to send says what happened",
                in: "types/privacy.breach_notice.yaml",
                after: ("types/privacy.breach_notice.yaml", ["channels", "email", "body"], "generic")),
            NamedFlaw(
                "lacks `America/Los_Angeles`", in: "channels.yaml",
                after: (
                    "channels.yaml", ["sms", "hours", "zones"],
                    .array(
                        LawOfTheLand.unitedStatesZones.filter { $0 != "America/Los_Angeles" }.map {
                            .string($0)
                        })
                )),
            NamedFlaw(
                "lacks `+1`", in: "channels.yaml",
                after: ("channels.yaml", ["sms", "hours", "calling_codes"], ["+47"])),
            NamedFlaw(
                "cites no law", in: "types/transaction.failed.yaml",
                after: ("types/transaction.failed.yaml", ["mandatory", "law"], ["PSD2 Art. 79(1)", "?"])),
        ]

    /// Pages that read well, decide lawfully one by one, and are careless all the same.
    static let careless: [NamedFlaw] =
        [
            "intervention.critical", "intervention.risk_alert", "programme.tip", "briefing.daily",
            "partner.alert",
        ]
        .map { id in
            NamedFlaw(
                "are not refused, and `\(id)` rests on an explicit consent", in: "types/\(id).yaml",
                after: ("types/\(id).yaml", ["minors"], nil))
        } + [
            NamedFlaw(
                "is named like what lets somebody in", in: "types/security.payment_code.yaml",
                // Without the text message, which the loader lets be `full` for a code alone.
                after: ("types/security.payment_code.yaml", ["params", "code"], ["text": ["bytes_max": 16]]),
                ("types/security.payment_code.yaml", ["channels", "sms"], nil)),
            NamedFlaw(
                "carry no required `code`", in: "types/2fa_code.yaml",
                after: ("types/2fa_code.yaml", ["params", "code"], ["text": ["bytes_max": 16]]),
                ("types/2fa_code.yaml", ["channels", "sms"], nil)),
            NamedFlaw(
                "is named like what lets somebody in", in: "types/security.new_login.yaml",
                after: ("types/security.new_login.yaml", ["params", "smsPIN"], ["optional": "integer"]),
                ("types/security.new_login.yaml", ["used_by", "app"], ["country", "at", "smsPIN"])),
            NamedFlaw(
                "is `generic`, and a constant text leaves whoever waits", in: "types/2fa_code.yaml",
                after: ("types/2fa_code.yaml", ["channels", "push", "without_key"], "generic")),
            NamedFlaw(
                "is 2419200 seconds, and a code is good for 600", in: "types/2fa_code.yaml",
                after: ("types/2fa_code.yaml", ["ttl"], ["hours": 672, "counts_from": "arrival"])),
            NamedFlaw(
                "sends a marketing notification outside 08:00 to 21:00", in: "types/promo.offer.yaml",
                after: ("types/promo.offer.yaml", ["timing"], ["daily": "03:00"])),
            NamedFlaw(
                "sends a social notification outside 08:00 to 21:00", in: "types/social.like.yaml",
                after: ("types/social.like.yaml", ["timing"], ["between": ["20:00", "22:00"]])),
            NamedFlaw(
                "lets a caller that sends hold `consents.import`", in: "callers.yaml",
                after: (
                    "callers.yaml", ["callers", "product", "grants"],
                    ["send", "consents.write", "consents.import"]
                )),
            NamedFlaw(
                "lets a caller that sends assert `admin_override`", in: "callers.yaml",
                after: (
                    "callers.yaml", ["callers", "payments", "may_assert", "sources"], ["admin_override"]
                )),
            NamedFlaw(
                "names `push`, which says that something happened, and not what",
                in: "types/privacy.breach_notice.yaml",
                after: (
                    "types/privacy.breach_notice.yaml", ["mandatory", "discharged_by"],
                    ["push", "email", "letter"]
                )),
            NamedFlaw(
                "names `push`, which is no durable medium", in: "types/account.terms_change.yaml",
                after: (
                    "types/account.terms_change.yaml", ["mandatory", "discharged_by"],
                    ["push", "email", "letter"]
                )),
            NamedFlaw(
                "lets a caller of marketing send social types", in: "callers.yaml",
                after: (
                    "callers.yaml", ["callers", "marketing", "types"],
                    ["categories": ["marketing", "social"], "except": ["digest.social"]]
                )),
            NamedFlaw(
                "has `consents.write` without a `consents_because`", in: "callers.yaml",
                after: (
                    "callers.yaml", ["callers", "auditor", "grants"], ["subjects.read", "consents.write"]
                )),
            NamedFlaw(
                "is the reason of `auditor` already", in: "callers.yaml",
                after: (
                    "callers.yaml", ["callers", "auditor", "grants"], ["subjects.read", "consents.write"]
                ),
                (
                    "callers.yaml", ["callers", "auditor", "consents_because"],
                    "The yes is said in the app, on a screen of ours."
                ),
                (
                    "callers.yaml", ["callers", "product", "consents_because"],
                    "The yes is said in the app, on a screen of ours."
                )),
            NamedFlaw(
                "is said of a caller without `consents.write`", in: "callers.yaml",
                after: (
                    "callers.yaml", ["callers", "auditor", "consents_because"],
                    "The yes is said in the app, on a screen of ours."
                )),
        ]

    /// A loader that refuses the page already would prove nothing of the law.
    @Test(arguments: Soak.part(of: named + careless, 25, "pages that name a type"))
    func `no page changes what a notification is by its name`(flaw: NamedFlaw) throws {
        var bundle = try Self.repository.get()
        try flaw.mutant.change(&bundle)
        let flaws = StatuteBook(try bundle.read().get()).flaws()
        #expect(
            flaws.contains { $0.file == flaw.file && $0.message.contains(flaw.words) && $0.hint != nil },
            "\(flaws.map(\.description))")
    }

    @Test(arguments: [
        ("code", true), ("pin", true), ("PIN", true), ("otp_code", true), ("smsPin", true), ("userPIN", true),
        ("pin2", false), ("pinned_by", false), ("postcode", false), ("encoder", false), ("tandem", false),
    ])
    func `a param is known for a secret by a word of its name`(name: String, isSecret: Bool) {
        #expect(PageChecker.namesSecret(name) == isSecret)
    }

    @Test func `a bundle that lost its cases is refused, whatever it decides`() throws {
        var bundle = try Self.repository.get()
        let pages = bundle.documents.keys.filter { $0.hasPrefix("cases/") && $0 != "cases/acceptance.yaml" }
        for page in pages { bundle.documents[page] = nil }
        guard case .array(let cases) = bundle.documents["cases/acceptance.yaml"]?["cases"] else {
            throw Unfit(what: "there are no acceptance cases")
        }
        bundle.replace("cases/acceptance.yaml", ["cases"], with: .array(Array(cases.prefix(4))))
        let policy = try bundle.compile()
        #expect(policy.bundle.cases.count == 4)
        let report = BundleProof(of: policy, grain: .effects).run(of: [])
        let flaw = try #require(report.flaws.first { $0.file == "bundle.yaml" }, "\(report.flaws)")
        for part in ["lists 4 cases", "`no_device_key`", "`privacy.breach_notice`", "`2fa_code`"] {
            #expect(flaw.message.contains(part), "\(flaw.message)")
        }
        #expect(!report.holds)
    }

    /// What each edit of a page is refused for, by the check alone.
    @Test(
        arguments: [
            ("types/card.blocked.yaml", ["mandatory", "law"], ["Bank Secrecy Act s. 12"], "no table knows"),
            ("types/card.blocked.yaml", ["mandatory", "review"], "2099-01-02", "more than 18 months after"),
            ("types/card.blocked.yaml", ["mandatory", "review"], "2028-05-10", "more than 18 months after"),
            ("types/card.blocked.yaml", ["mandatory", "discharge_within", "hours"], 25, "leaves 24 at most"),
            (
                "types/privacy.breach_notice.yaml", ["mandatory", "discharge_within", "hours"], 700,
                "leaves 72"
            ),
            (
                "types/privacy.breach_notice.yaml", ["mandatory", "discharge_within", "hours"], 73,
                "leaves 72"
            ),
            ("types/transaction.failed.yaml", ["mandatory", "discharge_within", "hours"], 73, "leaves 72"),
            (
                "types/account.terms_change.yaml", ["mandatory", "discharge_within", "hours"], 169,
                "leaves 168"
            ),
            ("callers.yaml", ["callers", "product", "consents_because"], "x", "says nothing"),
            (
                "callers.yaml", ["callers", "product", "consents_because"],
                "yes yes yes yes yes yes yes yes yes yes", "says nothing"
            ),
            ("categories.yaml", ["marketing", "because"], "x", "is no reason"),
            ("types/promo.offer.yaml", ["means"], "An offer.", nil),
            ("types/statement.available.yaml", ["not_marketing_because"], "No.", "is no reason"),
            ("types/statement.available.yaml", ["params", "mood"], "text", "is used by no text"),
            ("types/statement.available.yaml", ["params", "cause"], ["a", "b"], "is used by no text"),
            ("types/transaction.failed.yaml", ["used_by"], nil, "is used by no text"),
            (
                "types/transaction.failed.yaml", ["used_by", "app"], ["cause", "mood"],
                "is no param of the type"
            ),
            (
                "types/order.confirmed.yaml", ["used_by"], ["app": ["order_number"]],
                "no push of the type carries"
            ),
        ] as [(file: String, path: [String], value: JSONValue?, words: String?)])
    func `a law, a date, a delay, a reason or a param that means nothing is refused by the check`(
        file: String, path: [String], value: JSONValue?, words: String?
    ) throws {
        var bundle = try Self.repository.get()
        bundle.replace(file, path, with: value)
        let diagnostics = bundle.diagnostics.filter { $0.file == file }
        guard let words else {
            #expect(diagnostics == [])
            return
        }
        #expect(diagnostics.contains { $0.message.contains(words) }, "\(diagnostics)")
    }

    @Test func `at the end of what a law or a review leaves, a page is taken`() throws {
        var bundle = try Self.repository.get()
        for (file, hours) in [
            ("card.blocked", 24), ("privacy.breach_notice", 72), ("transaction.failed", 72),
        ] {
            bundle.replace(
                "types/\(file).yaml", ["mandatory", "discharge_within", "hours"], with: .integer(Int64(hours))
            )
            bundle.replace("types/\(file).yaml", ["mandatory", "review"], with: "2028-05-09")
        }
        #expect(bundle.diagnostics == [])
        #expect(
            DutyLaw.of("GDPR Art. 34(1)")?.hoursMax == 72
                && DutyLaw.of("GDPR Art. 341") == nil)
        #expect(CalendarDate("2026-08-31")?.adding(months: 18).description == "2028-02-29")
        #expect(CalendarDate("2026-12-01")?.adding(months: 1).description == "2027-01-01")
    }

    /// The list is the security team's, who sign it; the law says only what may stand on it and who may ask.
    @Test func `the critical list may be longer than S1's, and may name another caller that sells nothing`()
        throws
    {
        var bundle = try Self.repository.get()
        bundle.replace("critical.yaml", ["allow", "0", "type"], with: "security.fraud_suspected")
        bundle.replace("callers.yaml", ["callers", "payments", "grants"], with: ["send", "send.critical"])
        bundle.replace(
            "callers.yaml", ["callers", "payments", "types", "categories"],
            with: ["transactional", "security"])
        // What the gateway alone may say stays its own.
        let excepted = ["callers", "payments", "types", "except"]
        let before = bundle.documents["callers.yaml"]?["callers"]?["payments"]?["types"]?["except"]?
            .arrayValue
        bundle.replace(
            "callers.yaml", excepted,
            with: .array(
                try #require(before) + ["security.address_contested", "security.device_key_replaced"]))
        bundle.replace("critical.yaml", ["allow", "0", "callers"], with: ["security", "payments"])
        let policy = try bundle.compile()
        let report = BundleProof(of: policy, grain: .effects).run(
            of: [TypeID("security.fraud_suspected"), TypeID("suspicious_login")], on: Threads.all)
        #expect(report.flaws == [])
        #expect(report.refutations.map(\.summary) == [])
    }

    @Test(arguments: [
        (1, 24, true), (1, 720, true), (2, 168, true), (1, 23, false), (2, 167, false), (3, 720, false),
    ])
    func `marketing comes once a day or twice a week, and not more often`(
        count: Int, hours: Int, isKept: Bool
    ) {
        #expect(NamedTypes.keeps(marketing: Cap(count: count, windowHours: hours, source: "test")) == isKept)
    }

    /// Where one line of a table lets a statute be broken, the reader is told which.
    @Test(arguments: [
        (
            Mutant("regions.yaml", "permission_rows", "0", "rule", to: "express_consent"), "promo.offer",
            "regions.yaml"
        ),
        (Mutant("categories.yaml", "marketing", "quiet_hours", to: "pass"), "promo.offer", "categories.yaml"),
        (
            Mutant("categories.yaml", "social", "switch_off", to: "step_up"), "digest.social",
            "types/digest.social.yaml"
        ),
    ])
    func `a broken statute names the page behind it`(mutant: Mutant, type: String, file: String) throws {
        var bundle = try Self.repository.get()
        try mutant.change(&bundle)
        let report = BundleProof(of: try bundle.compile(), grain: .effects).run(
            of: [TypeID(type)], on: Threads.all)
        #expect(
            report.refutations.contains { $0.diagnostic.file == file },
            "\(report.refutations.map(\.diagnostic))")
    }

    @Test func `a row that asks for more than its country's law of silence is no flaw`() throws {
        var bundle = try Self.repository.get()
        guard case .array(let rows) = bundle.documents["regions.yaml"]?["permission_rows"],
            let index = rows.firstIndex(where: { $0["region"] == "US" && $0["channel"] == "email" })
        else { throw Unfit(what: "regions.yaml has no row for e-mail in the United States") }
        bundle.replace(
            "regions.yaml", ["permission_rows", String(index), "rule"], with: "opt_in_or_existing_customer")
        let report = BundleProof(of: try bundle.compile(), grain: .effects).run(
            of: [TypeID("promo.offer")], on: Threads.all)
        #expect(report.flaws == [])
        for refutation in report.refutations {
            Issue.record("\(refutation.summary)\n\(refutation.example)")
        }
    }
}

extension TestBundle {
    /// ``minimal`` with the regimes and rows no bundle may do without.
    static var lawful: TestBundle {
        var bundle = minimal
        for code in ISOCodes.countries.sorted() {
            guard let region = RegionCode(code), let least = LawOfTheLand.leastRegime(of: region) else {
                continue
            }
            bundle.set("regions.yaml", "regions", code, to: .string(least.rawValue))
        }
        guard case .array(let rows) = bundle.documents["regions.yaml"]?["permission_rows"] else {
            preconditionFailure("the bundle of the tests has no rows")
        }
        // A row for each that the statutes demand and the small bundle lacks, as strict as they ask.
        let more = LawOfTheLand.demandedRows.filter { demanded in
            !rows.contains { row in
                row["region"] == .string(demanded.region.description)
                    && row["channel"] == .string(demanded.channel.rawValue)
                    && row["categories"]?.arrayValue?.contains(.string(demanded.category.rawValue)) == true
            }
        }.map { demanded -> JSONValue in
            [
                "region": .string(demanded.region.description),
                "channel": .string(demanded.channel.rawValue),
                "categories": [.string(demanded.category.rawValue)],
                "rule": .string(demanded.least.rawValue), "from": "2018-05-25",
                "because": "So that a test can tell.", "law": "Act No. 1", "reviewed": "2026-01-01",
            ]
        }
        bundle.set("regions.yaml", "permission_rows", to: .array(rows + more))
        return bundle
    }

    /// The same as ``set(_:_:to:)`` with a path that was made elsewhere.
    mutating func replace(_ file: String, _ path: [String], with value: JSONValue?) {
        documents[file] = Self.changing(documents[file], path[...], value)
        relist()
    }

    /// Lists exactly the files there are.
    mutating func relist() {
        let files = documents.keys.filter { $0 != "bundle.yaml" }.sorted()
        documents["bundle.yaml"] = Self.changing(
            documents["bundle.yaml"], ["files"], .array(files.map { .string($0) }))
    }

    private static func changing(
        _ document: JSONValue?, _ path: ArraySlice<String>, _ value: JSONValue?
    ) -> JSONValue? {
        guard let key = path.first else { return value }
        if case .array(var elements) = document, let index = Int(key), index < elements.count {
            if let new = changing(elements[index], path.dropFirst(), value) {
                elements[index] = new
            } else {
                elements.remove(at: index)
            }
            return .array(elements)
        }
        // A region may be written as its regime alone.
        var object = document?.objectValue ?? JSONObject()
        object[key] = changing(object[key], path.dropFirst(), value)
        return .object(object)
    }
}

/// The gates with one thing wrong, under a bundle that is right: each must be refuted by a statute.
@Suite struct GateMutantTests {
    typealias Change = @Sendable (inout Facts, inout CompiledRule, inout Jurisdiction) -> Void

    struct Mutant: Sendable, CustomTestStringConvertible {
        var name: String
        var types: Set<TypeID>
        var change: Change
        var testDescription: String { name }

        init(_ name: String, _ types: TypeID..., change: @escaping Change) {
            self.name = name
            self.types = Set(types)
            self.change = change
        }

        /// Gates that take a fact for what it is at best.
        static func blind(_ fact: String, _ types: TypeID...) -> Mutant {
            var finder = FactCopy(name: fact)
            Facts.show(to: &finder)
            guard let copy = finder.copy else { preconditionFailure("no fact is called \(fact)") }
            var mutant = Mutant("nobody looks at \(fact)") { facts, _, _ in
                copy(.ready(at: facts.now ?? .utc("2026-03-02T12:00:00Z")), &facts)
            }
            mutant.types = Set(types)
            return mutant
        }

        /// Finds what puts the fact of a name from one set of facts into another.
        private struct FactCopy: FieldVisitor {
            let name: String
            var copy: (@Sendable (_ source: Facts, _ target: inout Facts) -> Void)?

            mutating func required<Value: FieldValue>(
                _ name: StaticString, _ path: WritableKeyPath<Facts, Value>, _: String
            ) { found(name, path) }

            mutating func optional<Value: FieldValue>(
                _ name: StaticString, _ path: WritableKeyPath<Facts, Value?>, _: String
            ) { found(name, path) }

            private mutating func found<Value>(_ name: StaticString, _ path: WritableKeyPath<Facts, Value>) {
                guard "\(name)" == self.name else { return }
                nonisolated(unsafe) let path = path  // A key path to a property captures nothing.
                copy = { $1[keyPath: path] = $0[keyPath: path] }
            }
        }

        static func adding(_ flags: CompiledRule.RuleFlags, _ name: String, _ types: TypeID...) -> Mutant {
            var mutant = Mutant("everything is \(name)") { _, rule, _ in rule.flags.formUnion(flags)
            }
            mutant.types = Set(types)
            return mutant
        }

        static func without(_ flags: CompiledRule.RuleFlags, _ name: String, _ types: TypeID...) -> Mutant {
            var mutant = Mutant("nothing is \(name)") { _, rule, _ in rule.flags.subtract(flags) }
            mutant.types = Set(types)
            return mutant
        }
    }

    static let all: [Mutant] = [
        Mutant("everything is registered", TypeID("no.such.type")) { _, rule, _ in
            rule.flags.formUnion([.typeKnown, .typeEnabled])
            rule.body = .full
            rule.payloadByteCountMax = 4_096
        },
        .adding(.typeEnabled, "enabled", TestType.disabled),
        .adding([.callerKnown, .typeGranted], "granted", TestType.payment),
        .adding([.criticalListed, .criticalGranted], "on the critical list", TestType.notice),
        .adding(.criticalGranted, "asked by who may", TestType.login),
        .adding(.stepUpToSwitchOff, "hard to switch off", TestType.payment),
        .adding(.mandatoryPassesPreferences, "past preferences", TestType.payment),
        .adding(.mandatoryPassesQuietHours, "past quiet hours", TestType.payment),
        .adding(.mandatoryPassesCaps, "past caps", TestType.payment),
        .adding(.ownRequestPassesQuietHours, "asked for at night", TestType.payment),
        .adding(.ownRequestPassesCaps, "asked for often", TestType.payment),
        .adding(.genericWithoutKey, "sent without a key", TestType.sealedOnly),
        .adding(.statutoryEmail, "a statutory e-mail", TestType.comment),
        .adding(.reachesOlderHolders, "sent to who had the number before", TestType.payment),
        Mutant("a word texted back is explicit", TestType.help) { facts, _, _ in
            if facts.purposeConsent?.method == .smsKeyword { facts.purposeConsent?.method = .inAppToggle }
        },
        .without(.refusesMinors, "kept from minors", TestType.promo),
        .without(.refusesMinors, "kept from minors by its own page", TestType.help),
        .without(.statutoryEmail, "a statutory e-mail", TestType.duty),
        .without(.reachesOlderHolders, "sent to who had the number before", TestType.comment),
        .without(.needsPurpose, "in need of a purpose", TestType.help),
        .without(.codeText, "a text that brings a code", TestType.code),
        Mutant("a code is texted everywhere", TestType.code) { _, _, jurisdiction in
            jurisdiction.allowsCodeText = true
        },
        .without(.smsFallbackForbidden, "kept from falling back", TestType.promo),
        .without(.mutableAlone, "mutable alone", TestType.comment),
        .without(.stepUpToSwitchOff, "hard to switch off", TestType.login),
        .without(.mandatoryPassesPreferences, "mandatory past preferences", TestType.duty),
        .without(.mandatoryPassesQuietHours, "mandatory past quiet hours", TestType.duty),
        .without(.mandatoryPassesCaps, "mandatory past caps", TestType.duty),
        .without(.deduplicated, "told once", TestType.payment),
        .without(.timed, "given a time", TestType.briefing),
        .without(.ownRequestPassesQuietHours, "asked for at night", TestType.help),
        .without(.ownRequestPassesCaps, "asked for often", TestType.help),
        .without(.typeGranted, "granted", TestType.payment),
        Mutant("nobody looks at the clock", TestType.payment) { facts, _, _ in
            facts.now = facts.now ?? facts.due
        },
        .blind("expiry", TestType.payment),
        .blind("due", TestType.payment),
        .blind("params", TestType.payment),
        .blind("fallback", TestType.payment),
        .blind("repetition", TestType.payment),
        .blind("recipient", TestType.payment),
        .blind("destination", TestType.payment),
        .blind("age", TestType.promo),
        .blind("consent", TestType.promo),
        .blind("purpose_consent", TestType.help),
        .blind("push_enabled", TestType.payment),
        .blind("account_preference", TestType.payment),
        .blind("destination_preference", TestType.payment),
        .blind("account_type_preference", TestType.comment),
        .blind("destination_type_preference", TestType.comment),
        .blind("quiet_hours", TestType.payment),
        .blind("os_permission", TestType.payment),
        .blind("critical_alerts", TestType.login),
        .blind("device_key", TestType.payment),
        .blind("sizes", TestType.payment),
        .blind("type_count", TestType.payment),
        .blind("category_count", TestType.promo),
        .blind("everything_count", TestType.statement),
        Mutant("nothing is limited over everything", TestType.statement) { _, rule, _ in
            rule.everythingCap = 0
        },
        Mutant("the limit over everything is one too high", TestType.statement) { _, rule, _ in
            if rule.everythingCap > 0 { rule.everythingCap += 1 }
        },
        .blind("own_request", TestType.help),
        .blind("withheld", TestType.promo),
        Mutant("privacy is always full", TestType.statement) { facts, _, _ in facts.privacy = .full },
        Mutant("nothing is quiet", TestType.payment) { _, rule, _ in rule.quietHours = .pass },
        Mutant("security waits", TestType.login) { _, rule, _ in rule.quietHours = .defer },
        Mutant("nothing overflows", TestType.payment) { _, rule, _ in rule.overflow = .allow },
        Mutant("security is capped", TestType.notice) { _, rule, _ in
            rule.overflow = .drop
            rule.typeCap = 1
        },
        Mutant("caps are one too high", TestType.payment) { _, rule, _ in
            if rule.typeCap > 0 { rule.typeCap += 1 }
        },
        Mutant("anything fits", TestType.payment) { _, rule, _ in rule.payloadByteCountMax *= 2 },
        Mutant("sensitive things leave in full", TestType.payment) { _, rule, _ in
            rule.body = .full
            rule.sensitivity = .open
        },
        Mutant("every channel carries everything", TestType.statement) { _, rule, _ in
            if case .never = rule.body { rule.body = .generic }
        },
        Mutant("marketing needs nothing", TestType.promo) { _, _, jurisdiction in
            jurisdiction.rule = .noneNeeded
        },
        Mutant("everywhere is elsewhere", TestType.promo) { _, _, jurisdiction in jurisdiction.regime = .other
        },
        Mutant("everything interrupts as critical", TestType.payment) { _, rule, _ in
            rule.interruption = .critical
        },
        Mutant("marketing counts as social", TestType.promo) { _, rule, _ in rule.category = .social
        },
        Mutant("a text counts as a push", TestType.promo) { _, rule, _ in rule.channel = .push },
    ]

    /// Whether the gates are refuted at both grains. The finer one, with a hundred times the states, walks the type whose
    /// refutation by the coarser one is the plainest.
    private static func areRefuted(
        _ policy: CompiledPolicy, of types: Set<TypeID>?, deciding: @escaping BundleProof.Decide
    ) -> Bool {
        let coarse = BundleProof(of: policy, grain: .effects, deciding: deciding).run(of: types)
        guard let plainest = coarse.refutations.first else { return false }
        let fine = BundleProof(of: policy, grain: .reasons, deciding: deciding)
            .run(of: [plainest.request.type])
        return !fine.refutations.isEmpty
    }

    @Test func `a gate with one thing wrong is refuted, at both grains`() throws {
        let policy = try TestBundle.lawful.compile()
        let survivors = Mutex<[String]>([])
        let mutants = Soak.part(of: Self.all, 20, "mutants of gates")
        DispatchQueue.concurrentPerform(iterations: mutants.count) { index in
            let mutant = mutants[index]
            let isRefuted = Self.areRefuted(policy, of: mutant.types) { facts, jurisdiction, rule in
                var (facts, rule, jurisdiction) = (facts, rule, jurisdiction)
                mutant.change(&facts, &rule, &jurisdiction)
                return decide(given: facts, in: jurisdiction, under: rule)
            }
            if !isRefuted { survivors.withLock { $0.append(mutant.name) } }
        }
        #expect(survivors.withLock { $0 } == [], "no statute is broken")
    }

    /// Facts that one circumstance speaks of whether they are unknown or against the send.
    private static let facts: [(fact: String, type: TypeID)] = [
        ("destination", TestType.payment), ("device_key", TestType.sealedOnly),
        ("fallback", TestType.payment), ("os_permission", TestType.payment), ("params", TestType.payment),
        ("purpose_consent", TestType.help), ("recipient", TestType.payment), ("sizes", TestType.payment),
        ("withheld", TestType.promo),
    ]

    @Test(arguments: facts)
    func `an unknown fact has to be refused as missing, and one that is known for what it says`(
        fact: String, type: TypeID
    ) throws {
        let policy = try TestBundle.lawful.compile()
        let usual = FactSpace(bundle: policy.bundle).favourable
        /// What a proof demands of gates that take the fact for the usual one where it is unknown, or where it is known.
        func demanded(whereUnknown: Bool) -> [Reason] {
            let report = BundleProof(of: policy, grain: .effects) { facts, jurisdiction, rule in
                let isTaken = (facts.removing(fact) == facts) == whereUnknown
                let seen = isTaken ? facts.taking(fact, from: usual) ?? facts : facts
                return decide(given: seen, in: jurisdiction, under: rule)
            }.run(of: [type])
            return report.refutations.filter { $0.unusual == [fact] }.map(\.expected.reason)
        }
        #expect(demanded(whereUnknown: true).contains(.factMissing))
        let known = demanded(whereUnknown: false)
        #expect(!known.isEmpty && !known.contains(.factMissing), "\(known)")
    }

    /// The form alone: a gate that takes another choice for the reader's breaks the statute about sizes as well.
    @Test(arguments: BundleProof.Grain.allCases)
    func `a text that shows more than its reader chose is refuted`(grain: BundleProof.Grain) throws {
        let proof = BundleProof(of: try TestBundle.lawful.compile(), grain: grain) {
            facts, jurisdiction, rule in
            var decision = decide(given: facts, in: jurisdiction, under: rule)
            if decision.outcome.isPromise, rule.body == .full, facts.privacy == .generic {
                decision.form = .full
            }
            return decision
        }
        #expect(!proof.run(of: [TestType.statement]).refutations.isEmpty, "no statute is broken")
    }

    @Test(arguments: Soak.part(of: Gate.allCases, 9, "gates that never object"))
    func `a gate that never objects is refuted, at both grains`(gate: Gate) throws {
        let policy = try TestBundle.lawful.compile()
        let types: Set<TypeID> = [
            TestType.payment, TestType.promo, TestType.login, TestType.sealedOnly, TestType.disabled,
        ]
        let isRefuted = Self.areRefuted(policy, of: types) { facts, jurisdiction, rule in
            var decision = decide(given: facts, in: jurisdiction, under: rule)
            guard decision.trace[gate].verdict == .fail else { return decision }
            decision.trace[gate] = .pass
            let rest = Gate.allCases.compactMap { decision.trace[$0].reason }
            let reason = rest.first { !$0.outcome.isPromise } ?? rest.first ?? .allowed
            decision.reason = reason
            decision.outcome = reason.outcome
            decision.form = reason.outcome.isPromise ? .generic : .never
            if case .defer = decision.outcome, case .inside(let end) = facts.quietHours {
                decision.notBefore = end
            }
            return decision
        }
        #expect(isRefuted, "\(gate.name): no statute is broken")
    }

    @Test(arguments: BundleProof.Grain.allCases)
    func `the gates as they are are not refuted`(grain: BundleProof.Grain) throws {
        let policy = try TestBundle.lawful.compile()
        let types =
            grain == .effects
            ? nil : Set(Soak.part(of: policy.types.map(\.id), 5, "types at the finer grain"))
        let report = BundleProof(of: policy, grain: grain).run(of: types, on: Threads.all)
        #expect(report.sendCount > (types?.count ?? 20))
        for refutation in report.refutations { Issue.record("\(refutation.summary)\n\(refutation.example)") }
    }

    /// Mutants are proved through a closure; a gateway proves, and decides, without one.
    @Test(arguments: BundleProof.Grain.allCases)
    func `the proof finds the same with the gates handed to it as with those that serve`(
        grain: BundleProof.Grain
    ) throws {
        var unlawful = TestBundle.lawful
        unlawful.set("categories.yaml", "marketing", "quiet_hours", to: "pass")
        // The finer grain walks one type of each bundle, of the unlawful one a type that it breaks.
        for (bundle, type) in [(TestBundle.lawful, TestType.payment), (unlawful, TestType.promo)] {
            let policy = try bundle.compile()
            let types: Set<TypeID>? =
                grain == .effects ? nil : Soak.isWhole ? [TestType.promo, TestType.payment] : [type]
            let serving = BundleProof(of: policy, grain: grain).run(of: types, on: Threads.all)
            let handed = BundleProof(of: policy, grain: grain) { facts, jurisdiction, rule in
                decide(given: facts, in: jurisdiction, under: rule)
            }.run(of: types, on: Threads.all)
            #expect(
                serving.stateCount == handed.stateCount
                    && serving.stateCount > (types?.count == 1 ? 20_000 : 100_000),
                "\(type): \(serving.stateCount) and \(handed.stateCount)")
            #expect(serving.refutations.map(\.summary) == handed.refutations.map(\.summary))
            #expect(serving.refutations.isEmpty == (bundle.documents == TestBundle.lawful.documents))
        }
    }

    /// What answers a send goes from the request to its behaviour and from the facts to a jurisdiction, then decides; the
    /// proof goes the same way from every request that it lets stand for others.
    @Test func `what decides a send is what the proof decides by`() throws {
        let policy = try Repository.policy()
        let space = FactSpace(bundle: policy.bundle)
        let proof = BundleProof(of: policy)
        let sends = proof.sends()
        var numbers = SeededNumbers(seed: 20_261_122)
        for round in 0..<20_000 {
            let send = sends[round % sends.count]
            var facts = space.favourable
            for settings in space.dimensions where numbers.next() % 4 == 0 {
                settings[Int(numbers.next() % UInt64(settings.count))](&facts)
            }
            let served = decide(send.request, given: facts, under: policy)
            let proved = proof.decide(
                facts, policy.jurisdiction(of: facts, under: send.rule), send.rule)
            #expect(served == proved, "\(send.request) \(facts.json)")
        }
    }
}
