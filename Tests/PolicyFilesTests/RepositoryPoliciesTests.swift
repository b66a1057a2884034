import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateTestKit
import GateVocabulary
import PolicyFiles
import PolicyProof
import Testing

/// The repository's own bundle, as far as it can be judged without a decision.
@Suite struct `The repository's policies` {
    let documents: [String: PolicyNode]

    init() throws {
        documents = try PolicyDirectory.read(at: Repository.policies)
    }

    private func page(_ path: String) throws -> JSONValue {
        try #require(documents[path], "no page \(path)").json
    }

    private func pages(in folder: String) -> [(path: String, page: JSONValue)] {
        documents.filter { $0.key.hasPrefix(folder + "/") }.sorted { $0.key < $1.key }
            .map { ($0.key, $0.value.json) }
    }

    @Test func `read without a problem, every page with a place for every line`() {
        #expect(documents.count > 50)
        #expect(documents.values.allSatisfy { $0.location != nil })
    }

    @Test func `agree with one another`() throws {
        let bundle = try PolicyDirectory.readBundle(at: Repository.policies)
        #expect(bundle.types.count >= 67)
        #expect(bundle.messages.keys.sorted() == ["bs", "en", "nb", "sq"])
        // S4: the fallback locale is nb, and everything ends in en.
        #expect(bundle.messages["bs"]?.fallback == "nb")
        #expect(bundle.messages["sq"]?.fallback == "nb")
        #expect(bundle.messages["nb"]?.fallback == "en")
    }

    @Test func `give every case the decision it names`() throws {
        let bundle = try PolicyDirectory.readBundle(at: Repository.policies)
        let policy = CompiledPolicy(bundle)
        #expect(bundle.cases.count > 150)
        for example in bundle.cases {
            let result = example.run(under: policy)
            #expect(
                result.passed, "\(example.file):\(example.line ?? 0) \(example.name): \(result.differences)")
        }
    }

    @Test func `every type is named like its file and says why it is lawful`() throws {
        let types = pages(in: "types")
        #expect(types.count >= 67)
        for (path, type) in types {
            #expect(type["type"]?.stringValue.map { "types/\($0).yaml" } == path)
            for regime in Regime.allCases {
                #expect(
                    type["basis"]?[regime.rawValue]?.stringValue != nil,
                    "\(path) has no basis under \(regime)")
            }
            #expect(type["reviewed"]?.stringValue != nil, "\(path) is not dated")
            let isMarketing = type["category"] == "marketing"
            #expect((type["not_marketing_because"] == nil) == isMarketing, "\(path)")
            if type["sensitivity"] == "high" {
                #expect(type["channels"]?["push"]?["body"] == "sealed", "\(path) is high and not sealed")
            }
        }
    }

    @Test func `S2's eleven numbers are all there, each once`() {
        let numbers = pages(in: "types").compactMap { $0.page["alert_type"]?.integerValue }
        #expect(numbers.sorted() == Array(1...11))
    }

    @Test(arguments: ["nb", "en", "bs", "sq"])
    func `every type has its words`(locale: String) throws {
        let texts = try page("messages/\(locale).yaml")
        let types = pages(in: "types")
        #expect(types.count > 50)
        for (_, type) in types {
            let id = try #require((type["messages"] ?? type["type"])?.stringValue)
            #expect(
                texts[id]?["title"] != nil && texts[id]?["body"] != nil, "\(id) has no words in \(locale)")
        }
    }

    @Test(arguments: ["nb", "bs", "sq"])
    func `every language says the same with the same params`(locale: String) throws {
        let english = try #require(try page("messages/en.yaml").objectValue)
        let other = try #require(try page("messages/\(locale).yaml").objectValue)
        #expect(other.map(\.key).filter { $0 != "fallback" } == english.map(\.key))
        for (key, value) in other where !["generic", "fallback", "unsubscribe"].contains(key) {
            let counterpart = try #require(english[key]?.objectValue, "\(key)")
            let texts = try #require(value.objectValue)
            #expect(texts.map(\.key) == counterpart.map(\.key), "\(key)")
            for (part, text) in texts {
                #expect(params(in: text) == params(in: try #require(counterpart[part])), "\(key).\(part)")
            }
        }
    }

    /// The params a text names, the one it counts by among them. A form such as "one day" need not name its number.
    private func params(in value: JSONValue) -> Set<String> {
        switch value {
        case .string(let text):
            Set(
                text.split(separator: "{", omittingEmptySubsequences: false).dropFirst()
                    .map { String($0.prefix { $0 != "}" }) })
        case .object(let counted):
            counted.reduce(into: []) { names, entry in
                names.insert(entry.key)
                for (_, form) in entry.value.objectValue ?? [:] { names.formUnion(params(in: form)) }
            }
        default: []
        }
    }

    @Test func `every decision the gateway can give has a case, with every gate's reason`() throws {
        var reasons: Set<Reason> = []
        var outcomes: Set<Outcome> = []
        for (path, page) in pages(in: "cases") {
            for entry in try #require(page["cases"]?.arrayValue, "\(path)") {
                reasons.insert(
                    try #require(entry["then"]?["reason"]?.stringValue.flatMap { Reason(rawValue: $0) }))
                outcomes.insert(
                    try #require(entry["then"]?["outcome"]?.stringValue.flatMap { Outcome(name: $0) }))
            }
        }
        #expect(reasons == Set(Reason.allCases))
        #expect(outcomes == Set(Outcome.allCases))
    }

    @Test func `S1's four acceptance criteria are the first four cases`() throws {
        #expect(pages(in: "cases").first?.path == "cases/acceptance.yaml")
        let cases = try #require(try page("cases/acceptance.yaml")["cases"]?.arrayValue)
        #expect(
            cases.prefix(4).map { $0["then"]?["reason"]?.stringValue } == [
                "no_gdpr_consent", "quiet_hours_dropped", "user_preference", "blocked_at_os_level",
            ])
    }

    @Test func `the handbook says of every type and every limit where it comes from, and of nothing else`()
        throws
    {
        let bundle = try PolicyDirectory.readBundle(at: Repository.policies)
        let types = try HandbookTable(of: "Sources", head: "| type | named in | resolved |").rows
        #expect(types.map { $0[0] } == bundle.types.keys.map { "`\($0)`" }.sorted())
        #expect(types.allSatisfy { $0.count == 3 })

        let limitRows = try HandbookTable(of: "Sources", head: "| limit of | count | named in | resolved |")
            .rows
        func row(_ name: String, _ cap: Cap) -> [String] { [name, "\(cap.count) in \(cap.windowHours) h"] }
        let limits =
            (bundle.limits.everything.map { [row("everything", $0)] } ?? [])
            + bundle.limits.tiers.map { row("each type of tier `\($0.key.rawValue)`", $0.value) }
            + bundle.limits.categories.map { row("category `\($0.key.rawValue)`", $0.value) }
            + bundle.limits.types.map { row("`\($0.key)`", $0.value) }
        #expect(
            Set(limitRows.map { Array($0.prefix(2)) }) == Set(limits),
            "the handbook and limits.yaml differ")
    }

    @Test func `whatever can come in numbers has a limit, or its page says why none`() throws {
        let bundle = try PolicyDirectory.readBundle(at: Repository.policies)
        for type in bundle.types.values
        where type.tier != .critical && type.category != .security && type.mandatory == nil
            && !bundle.summaries.contains(type.id) && type.ownOverflow != .allow
        {
            #expect(bundle.typeCap(of: type) != nil, "\(type.id) has no limit")
            #expect(bundle.everythingCap(of: type) != nil, "\(type.id) is under no limit over everything")
        }
    }

    @Test func `the handbook has every reason with its details, its outcome, its remedy and its sentence`()
        throws
    {
        let expected = Reason.allCases.flatMap { reason in
            let plain: [Detail?] =
                reason == .quietHoursDeferred || reason == .channelNotAllowed ? [nil] : []
            let details = reason.details.isEmpty ? [nil] : plain + reason.details.map(Optional.some)
            return details.map { detail -> [String] in
                let name = detail.map { "`\($0.rawValue)`" } ?? ""
                return [
                    "`\(reason.rawValue)`", name, reason.outcome.name, reason.whoCanFix(detail).rawValue,
                    Explanation.english.sentence(reason, detail),
                ]
            }
        }
        let list = try HandbookTable(
            of: "Reasons", head: "| reason | detail | outcome | who can fix it | in a sentence |")
        let rows = expected.map { "| \($0.joined(separator: " | ")) |" }.joined(separator: "\n")
        #expect(list.rows == expected, "Reasons.md should have these rows:\n\(rows)")
        let fixers = try HandbookTable(of: "Reasons", head: "| `who_can_fix` | who that is | what they do |")
        #expect(fixers.names(in: 0) == WhoCanFix.allCases.map(\.rawValue))
    }

    @Test(arguments: ["bs", "nb", "sq"])
    func `every sentence is said in every language of the bundle, and unlike the others`(_ locale: String)
        throws
    {
        let bundle = try PolicyDirectory.readBundle(at: Repository.policies)
        #expect(Set(bundle.messages.keys) == Set(bundle.sentences.keys).union(["en"]))
        let sentences = try #require(bundle.sentences[locale])
        let values = Dictionary(
            uniqueKeysWithValues: SentenceTemplate.Value.allCases.map { ($0, "<\($0.rawValue)>") })
        var seen: [String: Reason] = [:]
        for sentence in Sentence.all {
            let template = try #require(sentences.templates[sentence], "\(locale): \(sentence.path)")
            let english = try #require(Sentences.english.templates[sentence])
            let text = template.filled(with: values)
            #expect(template.required == english.required && template.optional == english.optional)
            // What a language leaves in English was forgotten; a date and a place may read alike.
            if sentence != .phrase(.moment) {
                #expect(text != english.filled(with: values), "\(sentence.path)")
            }
            guard case .reason(let reason, _) = sentence else { continue }
            #expect(text.hasSuffix(".") && text.first?.isUppercase == true, "\(locale): \(text)")
            if let other = seen.updateValue(reason, forKey: text) { #expect(other == reason, "\(text)") }
        }
        #expect(Set(sentences.months).count == 12)
    }

    @Test func `whoever records consents sends nothing that rests on one`() throws {
        let bundle = try PolicyDirectory.readBundle(at: Repository.policies)
        let recorders = bundle.callers.filter { $0.value.grants.contains(.consentsWrite) }
        #expect(!recorders.isEmpty)
        for (name, rule) in recorders {
            let resting = bundle.types.values.filter {
                rule.types.covers($0.id, of: $0.category)
                    && ($0.purpose != nil || $0.category == .marketing || $0.category == .social)
            }
            #expect(resting.isEmpty, "\(name) sends \(resting.map(\.id).sorted())")
        }
        let senderless = bundle.types.values.filter { type in
            type.isEnabled && !bundle.gatewayTypes.contains(type.id)
                && !bundle.callers.values.contains {
                    $0.grants.contains(.send) && $0.types.covers(type.id, of: type.category)
                }
        }
        #expect(senderless.isEmpty, "nobody may send \(senderless.map(\.id).sorted())")
    }

    @Test func `no two cases share a name`() {
        let names = pages(in: "cases").flatMap { $0.page["cases"]?.arrayValue ?? [] }
            .compactMap { $0["name"]?.stringValue }
        #expect(names.count > 50 && Set(names).count == names.count, "\(names.count) names")
    }

    @Test func `Norway is a country, and so are 249 others`() throws {
        let regions = try #require(try page("regions.yaml")["regions"]?.objectValue)
        #expect(regions.count == 250)
        #expect(regions["NO"]?["regime"] == "gdpr")
        for code in [
            "GF", "GP", "MQ", "RE", "YT", "MF", "AX", "IS", "LI", "BL", "PM", "NC", "PF", "WF", "TF", "SJ",
        ] {
            #expect(regions[code]?["regime"] == "gdpr", "\(code)")
            #expect(
                regions[code]?["because"]?.stringValue != nil, "\(code) is not obvious and says no reason")
        }
        for code in ["JE", "GG", "IM", "GI", "AL", "BA", "MK", "RS", "XK"] {
            #expect(regions[code]?["regime"] == "gdpr_like", "\(code)")
        }
        for code in ["FO", "GL", "AW", "CW", "SX", "BQ", "CH"] {
            #expect(regions[code]?["regime"] == "other", "\(code)")
        }
    }

    @Test func `every notice exists in the language of whoever may be asked`() {
        let notices = Set(documents.keys.filter { $0.hasPrefix("notices/") })
        for notice in notices where notice.hasSuffix(".nb.txt") {
            #expect(notices.contains(notice.replacing(".nb.txt", with: ".en.txt")), "\(notice)")
        }
        #expect(notices.contains("notices/promo.3.nb.txt"))
    }
}
