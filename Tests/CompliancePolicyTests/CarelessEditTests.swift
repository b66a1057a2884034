import CanonicalJSON
import GateTestKit
import GateVocabulary
import Testing

@testable import BundleModel
@testable import CompliancePolicy
@testable import PolicyProof
@testable import PolicyStatutes

/// What somebody in a hurry writes: pages that read well and decide lawfully one by one, which only a difference of two
/// bundles would have named.
@Suite struct CarelessEditTests {
    private typealias Flaw = BundleMutantTests.NamedFlaw

    /// The pages as they are, which every edit is held against.
    private static let before = BundleMutantTests.repository.flatMap { bundle in
        Result { try bundle.read().get() }
    }
    private static let flawsBefore = before.map { StatuteBook($0).flaws() }
    private static let legalBefore = before.map { $0.parts(signedAs: .legal) }

    private static func mandate(_ law: JSONValue) -> JSONValue {
        [
            "law": [law], "passes": ["preferences", "caps"], "must_reach_within": "a day",
            "if_unreachable": "email", "discharged_by": ["email"], "discharge_within": ["hours": 24],
            "review": "2027-11-02",
        ]
    }

    static let duties: [BundleMutantTests.NamedFlaw] = [
        ("order.shipped", "PSD2 Art. 79(1)", "is about a payment order that was refused"),
        ("payment.received", "PSD2 Art. 79(1)", "no required reason of the refusal"),
        ("transfer.sent", "UK PSRs 2017 reg. 82", "no required reason of the refusal"),
        ("order.confirmed", "GDPR Art. 34(1)", "a `transactional` type tells of something else"),
        ("account.security", "PSD2 Art. 68(3)", "no required uuid of the instrument"),
        ("account.security", "UK GDPR Art. 34", "no required uuid of the breach"),
        ("transfer.received", "PSD2 Art. 54(1)", "is about a change of the framework contract"),
        ("security.bankid_consent", "Delegated Regulation (EU) 2018/389 Art. 4(4)", "state of the block"),
        ("account.details_changed", "Regulation (EU) 2022/2554 (DORA) Art. 19(3)", "uuid of the incident"),
    ].map { id, law, words in
        let file = "types/\(id).yaml"
        return Flaw(words, in: file, after: (file, ["mandatory"], mandate(.string(law))))
    }

    static let grounds: [BundleMutantTests.NamedFlaw] = [
        ("promo.offer", "gdpr", "Art. 6(1)(b)", "is Art. 6(1)(b), which carries no marketing notification"),
        ("promo.offer", "uk_gdpr", "Art. 6(1)(c)", "is Art. 6(1)(c), which carries no marketing"),
        ("promo.referral", "gdpr", "Art. 6(1)(f)", "names no consent"),
        (
            "promo.offer", "gdpr", "Art. 6(1)b and Art. 6(1)(a)",
            "cites Art. 6 in a form that cannot be judged"
        ),
        (
            "promo.offer", "gdpr", "Art. 6(1) lit. b, Art. 6(1)(a)",
            "cites Art. 6 in a form that cannot be judged"
        ),
        (
            "promo.offer", "uk_gdpr", "Art. 6.1.b and Art. 6(1)(a)",
            "cites Art. 6 in a form that cannot be judged"
        ),
        ("promo.offer", "gdpr", "Art. 6(1)(a), (b)", "cites Art. 6 in a form that cannot be judged"),
        ("promo.offer", "gdpr", "Art. 6(1)(a)-(b)", "cites Art. 6 in a form that cannot be judged"),
        ("promo.offer", "gdpr", "Art. 6(1)(a) or (b)", "cites Art. 6 in a form that cannot be judged"),
        ("promo.offer", "gdpr", "Art. 6(1)(a)(b)", "cites Art. 6 in a form that cannot be judged"),
        ("promo.offer", "gdpr", "the contract and Art. 6(1)(a)", "and marketing rests on consent"),
        ("promo.offer", "gdpr", "Art. 6 (1) (a) and Art. 6 (1) (b)", "is Art. 6(1)(b), which carries no"),
        ("promo.offer", "gdpr", "our terms", "names no point of Art. 6(1)"),
        ("promo.offer", "gdpr_like", "contract", "marketing rests on consent everywhere"),
        ("promo.offer", "other", "legitimate interest", "marketing rests on consent everywhere"),
        ("social.like", "gdpr", "Art. 6(1)(c)", "carries no social notification"),
        ("transfer.sent", "gdpr", "Art. 6(1)(e)", "carries no transactional notification"),
        ("transfer.sent", "gdpr", "Art. 6(1)(c)", "the page cites no law that obliges"),
        ("card.blocked", "gdpr", "Art. 6(1)(f)", "the type is `mandatory`"),
        ("account.security", "uk_gdpr", "Art. 6(1)(a)", "carries no security notification"),
    ].map { id, regime, basis, words in
        let file = "types/\(id).yaml"
        return Flaw(words, in: file, after: (file, ["basis", regime], .string(basis)))
    }

    static let days: [BundleMutantTests.NamedFlaw] =
        [
            (["permission_rows", "0", "from"], "2003-10-16", "the law it cites counts from 2013-10-16"),
            (["permission_rows", "1", "from"], "1982-12-20", "the law it cites counts from 1992-12-20"),
            (["permission_rows", "14", "from"], "1994-01-01", "the law it cites counts from 2004-01-01"),
            (["permission_rows", "15", "from"], "2011-11-01", "the law it cites counts from 2021-11-01"),
            (["permission_rows", "16", "from"], "2008-05-25", "counts from 2018-05-25 there"),
            (["code_texts", "0", "from"], "2009-09-14", "the law it cites counts from 2019-09-14"),
            (["regions", "NO", "since"], "2008-07-20", "the law there counts from 2018-07-20"),
            (["regions", "AL", "since"], "2015-02-01", "the law there counts from 2025-02-01"),
            (["regions", "BR", "since"], "2008-05-25", "before there was a GDPR"),
            (
                ["regions", "US", "since"], "2021-05-25",
                "where the GDPR never held is `other` since 2018-05-25"
            ),
            (["regimes", "gdpr", "reviewed"], "2062-11-02", "years from the day the bundle takes effect"),
            (
                ["permission_rows", "0", "reviewed"], "2016-11-02",
                "years from the day the bundle takes effect"
            ),
        ].map { path, day, words in
            Flaw(words, in: "regions.yaml", after: ("regions.yaml", path, .string(day)))
        } + [
            Flaw(
                "the rule counts from 2027-01-31", in: "channels.yaml",
                after: ("channels.yaml", ["sms", "revocation", "ends_all_texts_from"], "2037-01-31"))
        ]

    static let lives: [BundleMutantTests.NamedFlaw] = [
        ("suspicious_login", ["hours": 30, "counts_from": "arrival"], "what is critical lives 60 to 86400"),
        ("intervention.critical", ["hours": 30, "counts_from": "arrival"], "what is critical lives"),
        ("account.security", ["seconds": 5, "counts_from": "arrival"], "is 5 seconds"),
        ("transfer.sent", ["hours": 240, "counts_from": "due"], "what is important lives"),
        ("briefing.daily", ["hours": 96, "counts_from": "due"], "what is informational lives"),
        ("promo.offer", ["hours": 336, "counts_from": "due"], "what is promotional lives"),
    ].map { (id: String, ttl: JSONValue, words: String) in
        let file = "types/\(id).yaml"
        return Flaw(words, in: file, after: (file, ["ttl"], ttl))
    }

    static let hours: [BundleMutantTests.NamedFlaw] = [
        ("reminder.goal", ["between": ["01:00", "04:00"]]), ("briefing.daily", ["daily": "03:00"]),
        ("summary.weekly", ["weekly": ["day": "sunday", "at": "23:30"]]),
        ("statement.available", ["daily": "06:59"]), ("reminder.goal", ["between": ["06:00", "09:00"]]),
    ].map { (id: String, timing: JSONValue) in
        let file = "types/\(id).yaml"
        return Flaw(
            "sends a transactional notification outside 07:00 to 22:00", in: file,
            after: (file, ["timing"], timing))
    }

    static let others: [BundleMutantTests.NamedFlaw] = [
        Flaw(
            "lets one caller send `intervention.", in: "callers.yaml",
            after: (
                "callers.yaml", ["callers", "payments", "types", "except"],
                ["briefing.daily", "digest.transactions", "digest.updates", "partner.alert"]
            )),
        Flaw(
            "which tells of health, and `order.shipped`, which does not", in: "callers.yaml",
            after: ("callers.yaml", ["callers", "help", "types", "only", "0"], "order.shipped")),
        Flaw(
            "is `marketing`, the channel of `", in: "types/card.blocked.yaml",
            after: ("types/card.blocked.yaml", ["android_channel"], "marketing")),
        Flaw(
            "is `passive`, and nobody would see", in: "types/privacy.breach_notice.yaml",
            after: ("types/privacy.breach_notice.yaml", ["interruption"], "passive")),
        Flaw(
            "lets a newer notice take an unread one's place", in: "types/security.new_login.yaml",
            after: ("types/security.new_login.yaml", ["collapse"], true)),
        Flaw(
            "is 3650, and a key is replaced after 730 days", in: "channels.yaml",
            after: ("channels.yaml", ["push", "device_key", "max_age_days"], 3_650)),
        Flaw(
            "lets a text bring a code to an account in AE after 2026-03-31", in: "regions.yaml",
            after: ("regions.yaml", ["code_texts", "0", "regions", "0"], "AE")),
        Flaw(
            "lets a text bring a code to an account in CH, where `(EU) 2018/389` does not hold",
            in: "regions.yaml", after: ("regions.yaml", ["code_texts", "0", "regions", "0"], "CH")),
        Flaw(
            "in BR, where `NIST SP 800-63B` does not hold", in: "regions.yaml",
            after: ("regions.yaml", ["code_texts", "3", "regions", "0"], "BR")),
        Flaw(
            "let a caller that only sends hold `subjects.read`", in: "callers.yaml",
            after: ("callers.yaml", ["callers", "payments", "grants"], ["send", "subjects.read"])),
        Flaw(
            "let a caller that only sends hold `trail.read`", in: "callers.yaml",
            after: ("callers.yaml", ["callers", "help", "grants"], ["send", "trail.read"])),
        Flaw(
            "cites no law that lets a text bring a code", in: "regions.yaml",
            after: ("regions.yaml", ["code_texts", "0", "law"], "none")),
        Flaw(
            "carry no required amount, or no required payee", in: "types/security.payment_code.yaml",
            after: ("types/security.payment_code.yaml", ["params", "payee_name"], ["optional": "text"]),
            ("messages/en.yaml", ["security.payment_code", "body"], "{code} approves {amount}."),
            ("messages/nb.yaml", ["security.payment_code", "body"], "{code} approves {amount}."),
            ("messages/bs.yaml", ["security.payment_code", "body"], "{code} approves {amount}."),
            ("messages/sq.yaml", ["security.payment_code", "body"], "{code} approves {amount}."),
            ("types/security.payment_code.yaml", ["used_by"], ["app": ["payee_name"]])),
        Flaw(
            "is `full`, and no text may bring the code of `security.new_login`",
            in: "types/security.new_login.yaml",
            after: ("types/security.new_login.yaml", ["params", "code"], "code"),
            ("types/security.new_login.yaml", ["channels", "sms", "body"], "full"),
            ("messages/en.yaml", ["security.new_login", "body"], "{code} from {device_name}."),
            ("messages/nb.yaml", ["security.new_login", "body"], "{code} from {device_name}."),
            ("messages/bs.yaml", ["security.new_login", "body"], "{code} from {device_name}."),
            ("messages/sq.yaml", ["security.new_login", "body"], "{code} from {device_name}.")),
    ]

    /// Careless and misleading edits of the way out, of who holds what, and of what a warning carries along.
    static let wayOut: [BundleMutantTests.NamedFlaw] =
        ["nb", "bs", "sq"].flatMap { language -> [BundleMutantTests.NamedFlaw] in
            [nil, []].map { (words: JSONValue?) in
                Flaw(
                    "for a withdrawal", in: "channels.yaml",
                    after: ("channels.yaml", ["sms", "revocation", "words", language], words))
            }
        } + [
            Flaw(
                "has no word of `sq`, in which the bundle writes texts", in: "channels.yaml",
                after: ("channels.yaml", ["sms", "revocation", "words", "sq"], nil),
                ("channels.yaml", ["sms", "revocation", "alone", "sq"], nil),
                ("channels.yaml", ["sms", "revocation", "confirmation", "sq"], nil)),
            Flaw(
                "does not take `stopp` for a withdrawal", in: "channels.yaml",
                after: ("channels.yaml", ["sms", "revocation", "words", "nb"], ["stans", "avslutt"])),
        ]
        + [
            ("en", "Thank you for your message. Come back soon.", "does not say that it is over"),
            ("de", "Vielen Dank. Bis bald.", "does not say that it is over"),
            ("zh", "感谢您的留言。", "does not say that it is over"),
            ("en", "You are unsubscribed. Answer START to come back.", "says `start`"),
            ("en", "You are unsubscribed. Reply YES for 20% off.", "says `yes`"),
            ("en", "You are unsubscribed. A discount waits.", "says `discount`"),
            ("nb", "Du er avmeldt på dette nummeret. Nå 20 % rabatt!", "says `rabatt`"),
        ].map { locale, text, words in
            Flaw(
                words, in: "channels.yaml",
                after: ("channels.yaml", ["sms", "revocation", "confirmation", locale], .string(text)))
        }
        + [
            ("en", "To confirm that you want our offers, open this link:"),
            ("nb", "Åpne denne lenken for å lese mer:"), ("bs", "Otvorite ovaj link:"),
            ("sq", "Hapni këtë lidhje:"),
        ].map { locale, text in
            Flaw(
                "does not say that the link ends something", in: "messages/\(locale).yaml",
                after: ("messages/\(locale).yaml", ["unsubscribe"], .string(text)))
        }

    static let grants: [BundleMutantTests.NamedFlaw] =
        [
            ("replies", ["replies.write", "recipients.write"]),
            ("replies", ["replies.write", "preferences.write"]),
            ("replies", ["replies.write", "subjects.read"]), ("replies", ["replies.write", "send"]),
            ("replies", ["replies.write", "metrics.read"]), ("metrics", ["metrics.read", "subjects.read"]),
            ("metrics", ["metrics.read", "subjects.erase"]),
            ("keys-witness", ["keys.rotate", "policy.activate"]),
            ("keys-witness", ["keys.rotate", "subjects.read"]),
        ].map { (caller: String, grants: [JSONValue]) in
            Flaw(
                "let one caller hold `", in: "callers.yaml",
                after: ("callers.yaml", ["callers", caller, "grants"], .array(grants)))
        } + [
            Flaw(
                "let one caller hold `preferences.step_up` and `preferences.write`", in: "callers.yaml",
                after: (
                    "callers.yaml", ["callers", "product", "grants"],
                    ["send", "recipients.write", "preferences.write", "preferences.step_up"]
                ),
                (
                    "callers.yaml", ["callers", "product", "may_assert", "sources"],
                    ["in_app_settings", "in_app_step_up"]
                ))
        ]

    static let carried: [BundleMutantTests.NamedFlaw] = [
        ("security.new_login", "device_name", ["domain_names", "phone_numbers"]),
        ("security.new_login", "device_name", ["line_breaks"]),
        ("security.bankid_consent", "granted_to", ["phone_numbers"]),
        ("security.payment_code", "payee_name", ["email_addresses"]),
        ("transfer.received", "sender_name", ["phone_numbers"]),
    ].map { (id: String, param: String, allows: [JSONValue]) in
        Flaw(
            "of somebody else's into a", in: "types/\(id).yaml",
            after: ("types/\(id).yaml", ["params", param], ["text": ["allows": .array(allows)]]))
    }

    static let notices: [BundleMutantTests.NamedFlaw] = ["existing_customer", "sms_marketing"].map { id in
        Flaw(
            "and takes a yes in other ways", in: "notices.yaml",
            after: ("notices.yaml", ["notices", id, "methods"], nil))
    }

    static let urges: [BundleMutantTests.NamedFlaw] = [
        "critical", "risk_alert", "risk_notice", "spending_blocked", "venue_proximity",
    ].map { name in
        let file = "types/intervention.\(name).yaml"
        return Flaw(
            "and help against an urge lives 60 to 1800", in: file,
            after: (file, ["ttl"], ["hours": 24, "counts_from": "arrival"]))
    }

    /// Every day half of each table.
    @Test(
        arguments: [
            duties, grounds, days, lives, hours, others, wayOut, grants, carried, notices, urges,
        ].flatMap { Soak.part(of: $0, ($0.count + 1) / 2, "careless edits") })
    func `a careless edit of a page is refused by the proof`(flaw: BundleMutantTests.NamedFlaw) throws {
        #expect(try Self.flawsBefore.get() == [])
        var bundle = try BundleMutantTests.repository.get()
        try flaw.mutant.change(&bundle)
        let flaws = StatuteBook(try bundle.read().get()).flaws()
        #expect(
            flaws.contains { $0.file == flaw.file && $0.message.contains(flaw.words) && $0.hint != nil },
            "\(flaws.map(\.description))")
    }

    /// The edges of what is taken.
    @Test func `at the end of what a law, a life or a day leaves, a page is taken`() throws {
        var bundle = try BundleMutantTests.repository.get()
        for (file, path, value) in [
            ("types/suspicious_login.yaml", ["ttl"], ["hours": 24, "counts_from": "arrival"]),
            ("types/promo.offer.yaml", ["ttl"], ["hours": 48, "counts_from": "due"]),
            ("types/briefing.daily.yaml", ["timing"], ["daily": "07:00"]),
            ("types/reminder.goal.yaml", ["timing"], ["between": ["07:00", "22:00"]]),
            ("types/promo.referral.yaml", ["basis", "gdpr"], "Article 6 (1) (a)"),
            ("channels.yaml", ["push", "device_key", "max_age_days"], 730),
            ("channels.yaml", ["sms", "revocation", "ends_all_texts_from"], "2026-11-09"),
        ] as [(String, [String], JSONValue)] {
            bundle.replace(file, path, with: value)
        }
        #expect(StatuteBook(try bundle.read().get()).flaws() == [])
        #expect(PageChecker.points(of: "Art. 16(1)(b), Art. 6(1)(A)") == ["a"])
    }

    // MARK: Texts that sell

    @Test(arguments: [
        ("en", "security.new_login", "New sign-in from {device_name}. Ask about our LOANS.", "loans"),
        ("en", "transfer.sent", "{amount} sent to {recipient_name}. See today's rate!", "rate"),
        ("nb", "card.blocked", "Kortet er sperret. Du kan få et forbrukslån.", "forbrukslan"),
        ("nb", "order.confirmed", "Bestilling {order_number}. Nye tilbudet venter.", "tilbudet"),
        ("bs", "card.blocked", "Kartica je blokirana. Iskoristite ponudu i popuste.", "ponudu"),
        ("sq", "card.blocked", "Karta u bllokua. Shihni ofertën tonë.", "oferten"),
        ("en", "transfer.received", "{amount} received. Invite a friend and you both earn 100 kr.", "invite"),
        ("en", "transfer.received", "{amount} received. You earn 100 kr for each friend.", "earn"),
        ("nb", "transfer.received", "{amount} mottatt. Inviter en venn, og dere tjener 100 kr.", "inviter"),
        ("bs", "transfer.received", "Stiglo je {amount}. Preporučite nas i zaradite 100 kr.", "zaradite"),
        ("sq", "transfer.received", "Morët {amount}. Ftoni një mik dhe fitoni 100 kr.", "ftoni"),
    ])
    func `a text that sells where nothing is sold is a remark, and legal signs it`(
        locale: String, key: String, body: String, word: String
    ) throws {
        var bundle = try BundleMutantTests.repository.get()
        let file = "messages/\(locale).yaml"
        bundle.replace(file, [key, "body"], with: .string(body))
        let after = try bundle.read().get()
        #expect(
            after.remarks.contains { $0.file == file && $0.message.contains("`\(word)`") }, "\(after.remarks)"
        )
        let parts = after.parts(signedAs: .legal)
        #expect(parts?["\(file)#\(key)"]?["body"] == .string(body))
        #expect(try parts != Self.legalBefore.get())
    }

    @Test(arguments: [
        ("metrics", "metrics.read", "trail.read"), ("auditor", "subjects.read", "policy.activate"),
    ])
    func `a second caller that reads the record or activates a policy is a remark`(
        caller: String, own: String, grant: String
    ) throws {
        #expect(try Self.before.get().remarks.filter { $0.file == "callers.yaml" } == [])
        var bundle = try BundleMutantTests.repository.get()
        bundle.replace(
            "callers.yaml", ["callers", caller, "grants"], with: [.string(own), .string(grant)])
        let remarks = try bundle.read().get().remarks
        #expect(
            remarks.contains {
                $0.message.contains("gives `\(grant)` to") && $0.message.contains("`\(caller)`")
            })
    }

    @Test func `marketing sells without a remark, and neither a param nor a longer word is one`() throws {
        let before = try Self.before.get()
        #expect(before.sellingTexts.isEmpty && before.sellingRemarks == [])
        var bundle = try BundleMutantTests.repository.get()
        bundle.replace(
            "messages/en.yaml", ["promo.offer", "body"], with: "A loan, a discount, an offer: {headline}")
        bundle.replace("messages/en.yaml", ["card.blocked", "body"], with: "Corporate separate. Reloaned.")
        #expect(try bundle.read().get().sellingRemarks == [])
        let words = try #require(SellingWords.of("en-GB"))
        #expect(words.found(in: "Offers, OFFER and “products”") == ["offers", "offer", "products"])
        #expect(SellingWords.of("hr")?.found(in: "Kamatna stopa") == ["kamatna"])
        #expect(SellingWords.of("sr")?.found(in: "Sigurna prijava") == [])
    }

    @Test func `a language without a table of words is read by a person`() throws {
        var bundle = try BundleMutantTests.repository.get()
        let page = try #require(bundle.documents["messages/en.yaml"])
        bundle.documents["messages/fr.yaml"] = page
        // The sentences of a language decide nothing here, so those of another will do.
        let sentences = try #require(bundle.documents["reasons/nb.yaml"])
        bundle.documents["reasons/fr.yaml"] = sentences
        let files = try #require(bundle.documents["bundle.yaml"]?["files"]?.arrayValue)
        bundle.replace(
            "bundle.yaml", ["files"], with: .array(files + ["messages/fr.yaml", "reasons/fr.yaml"]))
        let read = try bundle.read().get()
        #expect(read.sellingRemarks.contains { $0.file == "messages/fr.yaml" }, "\(read.sellingRemarks)")
        #expect(read.parts(signedAs: .legal)?["messages/fr.yaml#security.new_login"] != nil)
    }
}
