import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import Testing

@Suite struct CompiledPolicyTests {
    let policy: CompiledPolicy

    init() throws { policy = try TestBundle.minimal.compile() }

    @Test func `a caller's grants are what its page says and nothing more`() {
        #expect(policy.grants(of: TestCaller.security).grants == [.send, .sendCritical])
        #expect(policy.grants(of: TestCaller.stranger) == [])
        #expect(policy.caller(TestCaller.app)?.methods == [.inAppToggle])
        #expect(policy.caller(TestCaller.app)?.sources == [.inAppSettings])
        #expect(policy.caller(TestCaller.stranger) == nil)
        #expect(GrantSet.all.grants == Grant.allCases)
    }

    @Test func `a sealed push needs its key and both forms, and the windows of its caps`() throws {
        let needs = try #require(policy.needs(for: .of(TestType.payment)))
        #expect(needs.purpose == Purpose("transactional"))
        #expect(needs.specialPurpose == nil)
        #expect(needs.typeWindowSeconds == 3_600)
        #expect(needs.categoryWindowSeconds == nil)
        #expect(needs.deviceKey)
        #expect(needs.forms == [.sealed, .generic])
        #expect(needs.sendingHours == nil)
    }

    @Test func `a marketing text needs the hours of its law`() throws {
        let needs = try #require(policy.needs(for: .of(TestType.promo, on: .sms)))
        #expect(needs.sendingHours?.earliest == 480)
        #expect(needs.sendingHours?.latest == 1_260)
        #expect(needs.categoryWindowSeconds == 86_400)
        #expect(!needs.deviceKey)
        #expect(needs.forms == [.full, .generic])
    }

    @Test func `a type with a purpose and one with its own switch say so`() throws {
        #expect(try #require(policy.needs(for: .of(TestType.help))).specialPurpose == Purpose("help"))
        #expect(try #require(policy.needs(for: .of(TestType.comment))).typePreferences)
        #expect(policy.needs(for: .of(TypeID("nothing"))) == nil)
    }

    @Test func `a text is looked for in the file of the locale, and then in English`() throws {
        let payment = policy.terms(of: .of(TestType.payment))
        let norwegian = try #require(policy.texts(in: "nb"))
        #expect(norwegian.texts(under: payment)?.locale == "nb")
        #expect(norwegian.texts(under: policy.terms(of: .of(TestType.statement)))?.locale == "en")
        #expect(norwegian.texts(under: policy.terms(of: .of(TypeID("nothing")))) == nil)
        #expect(norwegian.generic(.important).title.text == "Nytt")
        let english = try #require(policy.texts(in: "en"))
        #expect(english.texts(under: payment)?.locale == "en")
        #expect(english.generic(.important).title.text == "News")
        #expect(policy.texts(in: "de") == nil)
    }

    @Test func `an opt-out law makes the default on, and only there`() {
        let request = AttestedRequest.of(TestType.promo, on: .email)
        func outcome(_ region: String) -> Outcome {
            decide(
                request,
                given: Facts.ready.with {
                    $0.accountRegion = .of(region)
                    $0.deviceRegions = []
                    $0.consent = ConsentFact(state: .neverAsked)
                }, under: policy
            ).outcome
        }
        #expect(outcome("SG") == .forward)
        #expect(outcome("BR") == .reject)
    }

    @Test func `the rules of a bundle are reached by the requests given with them`() {
        let rules = policy.rules()
        for (rule, request) in rules { #expect(policy.rule(for: request) == rule) }
        #expect(rules.count > 50)
    }
}

extension CompiledPolicyTests {
    @Test func `what a caller may send is what its page says, of every type`() {
        let names = policy.bundle.callers.keys.sorted()
        for type in policy.types {
            for name in names {
                let rule = policy.bundle.callers[name]!
                let flags = policy.rule(for: .of(type.id, by: name)).flags
                #expect(flags.contains(.callerKnown))
                let isGranted = rule.grants.contains(.send) && rule.types.covers(type.id, of: type.category)
                #expect(flags.contains(.typeGranted) == isGranted, "\(name) \(type.id)")
            }
            let stranger = policy.rule(for: .of(type.id, by: TestCaller.stranger)).flags
            #expect(stranger.isDisjoint(with: [.callerKnown, .typeGranted, .criticalGranted]))
            let isSummary = [TestType.paymentsSummary, TestType.commentsSummary].contains(type.id)
            let own = policy.rule(for: .of(type.id, by: .gateway)).flags
            #expect(own.contains(.callerKnown))
            #expect(own.contains(.typeGranted) == isSummary, "\(type.id)")
        }
    }

    @Test func `of a type nobody knows, a caller that may send nothing is refused as such`() {
        func marks(_ caller: CallerName) -> CompiledRule.RuleFlags {
            policy.rule(for: .of(TypeID("no.such.type"), by: caller)).flags
        }
        #expect(marks(TestCaller.app) == [.callerKnown])
        #expect(marks(TestCaller.payments) == [.callerKnown, .typeGranted])
        #expect(marks(.gateway) == [.callerKnown, .typeGranted])
        #expect(marks(TestCaller.stranger) == [])
    }
}

/// One value against one kind of param.
struct ParamRow: Sendable, CustomTestStringConvertible {
    var schema: JSONValue
    var value: JSONValue
    /// Where the violation is; `nil` when the value fits.
    var pointer: String?

    init(_ schema: JSONValue, _ value: JSONValue, _ pointer: String? = nil) {
        self.schema = schema
        self.value = value
        self.pointer = pointer
    }

    var testDescription: String { "\(schema) \(value)" }
}

@Suite struct ParamsTests {
    static let uuid = "6f1c0f5e-2f6a-4c60-9a53-0d9d5b9b3c11" as JSONValue

    static let web = ["url": ["under": ["https://getdrop.no/a"]]] as JSONValue

    static let rows: [ParamRow] = [
        ParamRow("uuid", uuid), ParamRow("uuid", "6F1C0F5E-2F6A-4C60-9A53-0D9D5B9B3C11", "/p"),
        ParamRow("uuid", "6f1c0f5e2f6a4c609a530d9d5b9b3c11", "/p"), ParamRow("uuid", 7, "/p"),
        ParamRow("money", ["minor": 500_000, "currency": "NOK"]),
        ParamRow("money", ["minor": -1, "currency": "NOK"]),
        ParamRow("money", ["minor": 1, "currency": "nok"], "/p/currency"),
        ParamRow("money", ["minor": 1, "currency": "QQQ"], "/p/currency"),
        ParamRow("money", ["minor": "1", "currency": "NOK"], "/p/minor"),
        ParamRow("money", ["currency": "NOK"], "/p/minor"),
        ParamRow("money", ["minor": 1, "currency": "NOK", "scale": 2], "/p"),
        ParamRow("money", "5 NOK", "/p"),
        ParamRow("text", "Ahmad Karimi"), ParamRow("text", "", "/p"),
        ParamRow("text", .string(String(repeating: "a", count: 128))),
        ParamRow("text", .string(String(repeating: "a", count: 129)), "/p"),
        // 43 characters of three bytes each are 129 bytes.
        ParamRow("text", .string(String(repeating: "€", count: 43)), "/p"),
        ParamRow("text", "two\nlines", "/p"), ParamRow("text", "bell\u{7}", "/p"),
        ParamRow(["text": ["allows": ["line_breaks"]]], "two\nlines"),
        ParamRow("text", "NOK 100\u{202E}000", "/p"), ParamRow("text", "a\u{2028}b", "/p"),
        ParamRow(["text": ["bytes_max": 4]], "four"), ParamRow(["text": ["bytes_max": 4]], "fives", "/p"),
        ParamRow("integer", 0), ParamRow("integer", true, "/p"),
        ParamRow(["integer": ["min": 0, "max": 100]], 100),
        ParamRow(["integer": ["min": 0, "max": 100]], 101, "/p"),
        ParamRow("timestamp", "2026-03-02T12:00:00Z"),
        ParamRow("timestamp", "2026-03-02T13:00:00+01:00", "/p"),
        ParamRow("timestamp", "2026-03-02", "/p"), ParamRow("timestamp", 1_772_452_800, "/p"),
        ParamRow("country", "XK"), ParamRow("country", "no", "/p"), ParamRow("country", "ZZ", "/p"),
        ParamRow("code", "0042"), ParamRow("code", "12345678"), ParamRow("code", "123", "/p"),
        ParamRow("code", "123456789", "/p"), ParamRow("code", "12 34", "/p"), ParamRow("code", 1234, "/p"),
        ParamRow("code", "٤٤٤٤", "/p"),
        ParamRow(web, "https://getdrop.no/a?b=c"), ParamRow(web, "http://getdrop.no/a", "/p"),
        ParamRow(web, "https://getdrop.no/ab", "/p"),
        ParamRow(web, "https://getdrop.no@evil.example/a", "/p"),
        ParamRow(web, "https://getdrop.no/a\\evil", "/p"), ParamRow(web, "https://getdrop.no/a b", "/p"),
        ParamRow(["a", "b"], "b"), ParamRow(["a", "b"], "c", "/p"), ParamRow(["a", "b"], "B", "/p"),
        ParamRow(["optional": "uuid"], uuid), ParamRow(["optional": "uuid"], "x", "/p"),
    ]

    /// A type whose only param is `p`.
    private func policy(_ schema: JSONValue) throws -> CompiledPolicy {
        var bundle = TestBundle.minimal
        bundle.set("types/sealed_only.yaml", "params", to: ["p": schema])
        bundle.set("types/sealed_only.yaml", "used_by", to: ["app": ["p"]])
        // A recipient of a code has to be told it.
        if schema == "code" { bundle.set("messages/en.yaml", "sealed_only", "body", to: "{p}") }
        return try bundle.compile()
    }

    @Test(arguments: rows)
    func `a value fits its param or is told where it does not`(row: ParamRow) throws {
        let found = try policy(row.schema).paramsViolations(["p": row.value], of: TestType.sealedOnly)
        #expect(found.map(\.pointer.text) == (row.pointer.map { ["/params" + $0] } ?? []))
    }

    @Test func `what was found is never repeated`() throws {
        let policy = try policy("code")
        let found = policy.paramsViolations(["p": "hunter2"], of: TestType.sealedOnly)
        #expect(!found[0].message.contains("hunter2"))
    }

    @Test func `a missing param and one nobody knows are both told`() throws {
        let policy = try TestBundle.minimal.compile()
        let found = policy.paramsViolations(["amonut": 5, "id": Self.uuid], of: TestType.payment)
        #expect(found.map(\.pointer.text) == ["/params/amonut", "/params/amount"])
        #expect(found.map(\.message) == ["the type has no such param", "the param is missing"])
    }

    @Test func `an optional param may be absent, and a null is not absent`() throws {
        let policy = try policy(["optional": "uuid"])
        #expect(policy.paramsViolations([:], of: TestType.sealedOnly) == [])
        #expect(
            policy.paramsViolations(["p": nil], of: TestType.sealedOnly).map(\.pointer.text) == ["/params/p"])
    }

    @Test func `a type nobody registered has no schema to break`() throws {
        let policy = try TestBundle.minimal.compile()
        #expect(policy.paramsViolations(["x": 1], of: TypeID("nothing")) == [])
    }
}

@Suite struct ExplanationTests {
    @Test func `every reason and detail has a sentence of its own`() {
        var seen: [String: String] = [:]
        for reason in Reason.allCases {
            // Without its detail a reason still reads well, if not unlike any other.
            let plain = Explanation.english.sentence(reason, nil)
            #expect(plain.hasSuffix(".") && !plain.contains("_"), "\(reason.rawValue): \(plain)")
            let details = reason.details.isEmpty ? [nil] : reason.details.map(Optional.some)
            for detail in details {
                let sentence = Explanation.english.sentence(reason, detail)
                let key = "\(reason.rawValue) \(detail?.rawValue ?? "")"
                #expect(sentence.hasSuffix(".") && sentence.first?.isUppercase == true, "\(key): \(sentence)")
                #expect(!sentence.contains("_"), "\(key): \(sentence)")
                if let other = seen[sentence] { Issue.record("\(key) reads like \(other)") }
                seen[sentence] = key
            }
        }
    }

    @Test func `what else a decision did is said after its reason`() throws {
        let policy = try TestBundle.minimal.compile()
        let found = decide(
            .of(TestType.login, critical: true), given: Facts.ready.with { $0.criticalAlerts = false },
            under: policy)
        let text = Explanation.english.text(found, given: Facts.ready)
        #expect(text.hasPrefix(Explanation.english.sentence(.allowed, nil) + " "))
        #expect(text.contains("Do Not Disturb"))
    }

    @Test func `what waits says until when`() {
        let due = Instant(rfc3339: "2026-11-23T07:00:30Z")!
        #expect(
            Explanation.english.waiting(until: due, place: nil)
                == "It waits until 23 Nov 2026 at 07:00 (UTC).")
        #expect(
            Explanation.english.waiting(until: due, place: "d_1")
                == "It waits for `d_1` until 23 Nov 2026 at 07:00 (UTC).")
    }

    @Test func `what became of a send has a sentence each`() {
        let moment = Instant(rfc3339: "2026-11-23T07:00:30Z")!
        var seen: Set<String> = []
        for kind in SendEventKind.allCases {
            let plain = Explanation.english.sentence(kind, at: moment, place: nil, reason: nil)
            let full = Explanation.english.sentence(kind, at: moment, place: "d_1", reason: nil)
            for sentence in [plain, full] {
                #expect(
                    sentence.hasPrefix("On 23 Nov 2026 at 07:00 (UTC) ") && sentence.hasSuffix("."),
                    "\(sentence)")
            }
            #expect(seen.insert(plain).inserted, "\(plain)")
            #expect(full.contains("`d_1`") || kind == .mandatoryUnreached, "\(full)")
        }
    }

    @Test(
        arguments: Reason.allCases.map(\.rawValue)
            + ["cancelled", "acknowledged", "erased", "destination_removed", "damaged"])
    func `what was taken back says why in words`(_ reason: String) {
        let moment = Instant(rfc3339: "2026-11-23T07:00:30Z")!
        let sentence = Explanation.english.sentence(.withdrawn, at: moment, place: nil, reason: reason)
        #expect(sentence.contains("taken back: ") && !sentence.contains("_"), "\(sentence)")
        #expect(!sentence.hasSuffix("back: \(reason)."), "\(sentence)")
    }

    @Test func `who can fix it is said of every reason`() {
        for reason in Reason.allCases { #expect(Explanation.english.fix(reason, nil).hasSuffix(".")) }
    }

    @Test func `whoever said no is never asked to put it right`() {
        for reason in Reason.allCases {
            for detail in reason.details where [.refused, .withdrawn, .denied].contains(detail) {
                #expect(reason.whoCanFix(detail) == .nobody, "\(reason) \(detail)")
            }
        }
        // A switch that was turned off is a no as well.
        for reason in [Reason.pushDisabled, .userPreference] {
            for detail in reason.details.map(Optional.some) + [nil] {
                #expect(reason.whoCanFix(detail) == .nobody, "\(reason)")
            }
        }
        #expect(Reason.noGDPRConsent.whoCanFix(.neverAsked) == .recipient)
        #expect(Reason.noSMSConsent.whoCanFix(.regionUnknown) == .producer)
        #expect(Reason.typeDisabled.whoCanFix(nil) == .compliance)
        #expect(
            Set(
                Reason.allCases.flatMap { reason in
                    ([nil] + reason.details).map { reason.whoCanFix($0) }
                }) == Set(WhoCanFix.allCases))
    }
}

@Suite struct SentenceTests {
    private static let bundle = TestBundle.minimal

    @Test func `every language of a bundle has a page of sentences`() {
        let missing = Self.bundle.setting("reasons/nb.yaml", to: nil).diagnostics
        #expect(missing.map(\.file) == ["reasons/nb.yaml"])
        #expect(missing.map(\.message) == ["the file is missing"])
        let own = Self.bundle.documents["reasons/nb.yaml"]
        #expect(
            Self.bundle.setting("reasons/en.yaml", to: own).diagnostics.map(\.file) == ["reasons/en.yaml"])
    }

    private static func page(
        _ value: JSONValue?, at path: ArraySlice<String>, in page: JSONValue
    ) -> JSONValue {
        var object = page.objectValue ?? JSONObject()
        guard let key = path.first else { return page }
        object[key] =
            path.count == 1
            ? value : Self.page(value, at: path.dropFirst(), in: object[key] ?? .object(JSONObject()))
        return .object(object)
    }

    @Test(arguments: Sentence.all)
    func `a sentence that is missing, and one with other values, is refused`(sentence: Sentence) {
        var bundle = Self.bundle
        let whole = bundle.documents["reasons/nb.yaml"] ?? .object(JSONObject())
        for (value, message) in [
            (nil, "lacks `\(sentence.path.last ?? "")`"), ("{zone}", "must have the values"),
        ]
            as [(JSONValue?, String)]
        {
            bundle.documents["reasons/nb.yaml"] = Self.page(value, at: sentence.path[...], in: whole)
            let found = bundle.diagnostics
            #expect(found.count == 1 && found.allSatisfy { $0.message.contains(message) }, "\(found)")
        }
    }

    @Test(arguments: [
        ("nb", "nb"), ("NB-no", "nb"), ("nn", "nb"), ("no-NO", "nb"), ("en-GB", "en"), ("fr", "en"),
        ("", "en"),
    ])
    func `a language is that of the locale, or English where the bundle names no first one`(
        _ asked: String, _ found: String
    ) throws {
        let policy = try Self.bundle.compile()
        #expect(policy.sentences(in: asked).locale == found)
        #expect(policy.sentences(in: nil).locale == "en")
    }

    @Test(arguments: [("fr", "nb"), ("da-DK", "nb"), ("", "nb"), ("en-GB", "en"), ("x", "nb")])
    func `a language without sentences is one that its readers read, or the bundle's first`(
        _ asked: String, _ found: String
    ) throws {
        let policy = try Self.bundle.setting(
            "bundle.yaml", "languages", to: ["first": "nb", "also_read": ["da": "nb"]]
        ).compile()
        #expect(policy.sentences(in: asked).locale == found)
        #expect(policy.sentences(in: nil).locale == "en")
    }

    @Test(arguments: ["{", "}", "{place", "a [b", "a ]b", "[a [b]]", "{who}", "[{who}]", "{}"])
    func `what is no template is refused`(_ text: String) {
        #expect(throws: SentenceTemplate.Fault.self) { try SentenceTemplate(text) }
    }

    @Test func `a part in brackets is said where its values are known`() throws {
        let template = try SentenceTemplate("It must go [by {channel}|another way][ for {place}].")
        #expect(template.filled(with: [:]) == "It must go another way.")
        #expect(template.filled(with: [.channel: "sms", .place: "p"]) == "It must go by sms for p.")
        #expect(template.required.isEmpty && template.optional == [.channel, .place])
    }

    @Test func `an hour that comes twice says which of the two it is`() throws {
        // Clocks in Oslo went back from 03:00 to 02:00 at 01:00 UTC.
        let change = try #require(Instant(rfc3339: "2026-10-25T01:00:00Z"))
        let oslo = ZoneClock("Europe/Oslo") { $0 < change ? 7_200 : 3_600 }
        let words = Explanation.english.by(oslo)
        for (moment, read) in [
            ("2026-10-24T23:59:59Z", "25 Oct 2026 at 01:59 (Europe/Oslo)"),
            ("2026-10-25T00:30:00Z", "25 Oct 2026 at 02:30 (Europe/Oslo, UTC+2)"),
            ("2026-10-25T01:30:00Z", "25 Oct 2026 at 02:30 (Europe/Oslo, UTC+1)"),
            ("2026-10-25T02:00:00Z", "25 Oct 2026 at 03:00 (Europe/Oslo)"),
        ] {
            let until = try #require(Instant(rfc3339: moment))
            #expect(words.waiting(until: until, place: nil) == "It waits until \(read).")
        }
    }
}

@Suite struct CalendarDateTests {
    static let days: [(text: String, seconds: Int64)] = [
        ("1970-01-01", 0), ("2000-02-29", 951_782_400), ("2026-11-02", 1_793_577_600),
        ("2100-03-01", 4_107_542_400),
    ]

    @Test(arguments: days)
    func `a day starts at midnight UTC`(text: String, seconds: Int64) throws {
        let date = try #require(CalendarDate(text))
        #expect(date.instant.seconds == seconds)
        #expect(date.description == text)
    }

    @Test(arguments: [
        "2026-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "26-01-01", "2026/01/01", "1969-12-31", "",
    ])
    func `a day that does not exist is refused`(text: String) {
        #expect(CalendarDate(text) == nil)
    }

    @Test(arguments: [("00:00", 0), ("08:30", 510), ("23:59", 1_439)])
    func `a time of day counts minutes`(text: String, minutes: Int) {
        #expect(CalendarDate.minutes(ofDay: text) == minutes)
    }

    @Test(arguments: ["24:00", "8:30", "08:60", "0830", "08:3", "-1:00"])
    func `a time that does not exist is refused`(text: String) {
        #expect(CalendarDate.minutes(ofDay: text) == nil)
    }
}
