import CanonicalJSON
import GateTestKit
import GateVocabulary
import Testing

@testable import BundleModel
@testable import CompliancePolicy
@testable import PolicyProof
@testable import PolicyStatutes

/// Separation of duties as one table, written by hand: who sends what, and which grant that leaves no room for.
@Suite struct SeparationOfDutiesTests {
    enum Verdict: String {
        case may
        /// By `policy check`, which every other command and every load goes through first.
        case refusedByCheck
        /// By the law of the proof: at every load and before every signature.
        case refusedByProof
    }

    /// Of a caller that sends what needs permission: nothing that writes permission, nor what permission hangs on.
    static let ofPromotion: [Grant: Verdict] = [
        .send: .may, .sendCritical: .refusedByProof,
        // Where people live and how old they are decide which permission is needed at all.
        .recipientsWrite: .refusedByCheck,
        .consentsWrite: .refusedByCheck, .consentsImport: .refusedByCheck,
        .preferencesWrite: .refusedByCheck, .preferencesStepUp: .refusedByCheck,
        // A device says where it is, and what the operating system lets through.
        .devicesWrite: .refusedByCheck,
        .receiptsWrite: .refusedByCheck, .repliesWrite: .refusedByCheck, .keysRotate: .refusedByCheck,
        // An audit lets go again what it suppressed.
        .driftRun: .refusedByCheck,
        // Who was sent what, and what they chose, is no address list.
        .trailRead: .refusedByCheck, .subjectsRead: .refusedByCheck,
        .subjectsErase: .refusedByCheck, .policyActivate: .refusedByCheck, .metricsRead: .may,
    ]

    /// Of a caller that sends what needs none.
    static let ofService: [Grant: Verdict] = [
        .send: .may, .sendCritical: .may,
        .recipientsWrite: .may,
        .consentsWrite: .may, .consentsImport: .refusedByProof,
        .preferencesWrite: .may, .preferencesStepUp: .may,
        .devicesWrite: .may,
        // What webhooks reach sends nothing.
        .receiptsWrite: .may, .repliesWrite: .refusedByProof, .driftRun: .may, .keysRotate: .refusedByProof,
        // Who reads of people answers for what it records of them, or sends nothing.
        .trailRead: .refusedByProof, .subjectsRead: .refusedByProof,
        .subjectsErase: .may, .policyActivate: .refusedByProof, .metricsRead: .may,
    ]

    static let table: [GateVocabulary.Category: [Grant: Verdict]] = [
        .marketing: ofPromotion, .social: ofPromotion, .transactional: ofService, .security: ofService,
    ]

    /// A type of each category that rests on no consent of its own.
    static let types: [GateVocabulary.Category: String] = [
        .marketing: "promo.offer", .social: "social.like", .transactional: "transfer.received",
        .security: "security.new_login",
    ]

    private static let name = "tester"

    /// The product's own bundle with one caller more.
    ///
    /// - Parameters:
    ///   - grants: Besides `send`. What a grant cannot be held without comes with it.
    ///   - sources: What the caller may assert besides.
    private func bundle(
        sending scope: JSONValue, _ grants: Set<Grant>, sources: [String] = []
    ) throws -> TestBundle {
        var bundle = try BundleMutantTests.repository.get()
        var held = grants.union([.send])
        var sources = sources
        if grants.contains(.consentsImport) { held.insert(.consentsWrite) }
        if grants.contains(.preferencesStepUp) { sources.append("in_app_step_up") }
        var page: JSONObject = [
            "means": "A test.",
            "grants": .array(Grant.allCases.filter(held.contains).map { .string($0.rawValue) }),
            "types": scope,
            "may_assert": ["sources": .array(sources.map { .string($0) }), "methods": []],
            "because": "So that a test can tell.", "reviewed": "2026-11-02",
        ]
        if held.contains(.consentsWrite) {
            page["consents_because"] = "The yes is said on a screen that this test alone shows."
        }
        bundle.replace("callers.yaml", ["callers", Self.name], with: .object(page))
        return bundle
    }

    private func only(_ category: GateVocabulary.Category) throws -> JSONValue {
        [
            "categories": [.string(category.rawValue)],
            "only": [.string(try #require(Self.types[category]))],
        ]
    }

    /// What is said of the caller, and by whom.
    private func findings(_ bundle: TestBundle) -> (verdict: Verdict, said: [PolicyDiagnostic]) {
        switch bundle.read() {
        case .failure(let diagnostics): return (.refusedByCheck, diagnostics.diagnostics)
        case .success(let read):
            let flaws = StatuteBook(read).flaws()
            return (flaws.isEmpty ? .may : .refusedByProof, flaws)
        }
    }

    /// Each grant with every category.
    private static let grantsAndCategories = Grant.allCases.flatMap { grant in
        GateVocabulary.Category.allCases.map { (category: $0, grant: grant) }
    }

    @Test(arguments: Soak.part(of: grantsAndCategories, 36, "categories and grants"))
    func `who sends a category holds a grant exactly as the table has it`(
        category: GateVocabulary.Category, grant: Grant
    ) throws {
        let expected = try #require(Self.table[category]?[grant])
        let found = findings(try bundle(sending: only(category), [grant]))
        #expect(found.verdict == expected, "\(found.said.map(\.description))")
        // Nothing else is wrong with the bundle, and the grant itself is named, with what to do.
        #expect(found.said.allSatisfy { $0.file == "callers.yaml" }, "\(found.said.map(\.description))")
        let named = found.said.filter { $0.message.contains("`\(grant.rawValue)`") && $0.hint != nil }
        #expect(named.isEmpty == (expected == .may), "\(found.said.map(\.description))")
    }

    /// Of callers that send nothing: what is not in one hand with what.
    static let apart: [(held: Grant, with: Set<Grant>)] = {
        let writes: Set<Grant> = [
            .recipientsWrite, .consentsWrite, .consentsImport, .preferencesWrite, .preferencesStepUp,
            .devicesWrite, .receiptsWrite, .repliesWrite, .driftRun, .subjectsErase,
        ]
        return [
            (.trailRead, writes.union([.keysRotate, .policyActivate])), (.keysRotate, writes),
            (.policyActivate, writes),
        ]
    }()

    @Test func `who audits changes nothing, and who changes keys or rules acts for no recipient`() throws {
        for (held, with) in Self.apart {
            for other in Grant.allCases where other != held && ![.send, .sendCritical].contains(other) {
                var bundle = try bundle(sending: ["categories": []], [held, other])
                let page = bundle.documents["callers.yaml"]?["callers"]?[Self.name]
                let grants = page?["grants"]?.arrayValue?.filter { $0 != "send" } ?? []
                bundle.replace("callers.yaml", ["callers", Self.name, "grants"], with: .array(grants))
                let found = findings(bundle)
                let isApart =
                    with.contains(other) || Self.apart.contains { $0.held == other && $0.with.contains(held) }
                #expect(
                    (found.verdict == .refusedByCheck) == isApart,
                    "\(held) \(other): \(found.said.map(\.description))")
            }
        }
    }

    @Test func `the table has every category and every grant`() {
        #expect(Set(Self.table.keys) == Set(GateVocabulary.Category.allCases))
        for (category, row) in Self.table {
            #expect(Set(row.keys) == Set(Grant.allCases), "\(category)")
        }
        #expect(Grant.allCases.count == 17)
    }

    /// The same caller, said in every way in which a page can say that it promotes.
    static let scopes: [(name: String, scope: JSONValue)] = [
        ("a category", ["categories": ["marketing"]]),
        ("one type of it", ["categories": ["marketing"], "only": ["promo.offer"]]),
        ("all but one", ["categories": ["marketing"], "except": ["promo.offer"]]),
        ("beside another category", ["categories": ["transactional", "marketing"]]),
        (
            "one type beside another category",
            ["categories": ["security", "social"], "only": ["security.new_login", "social.like"]]
        ),
        ("the last of its list", ["categories": ["social"], "only": ["social.like", "social.mention"]]),
    ]

    private static let scopesAndGrants = scopes.indices.flatMap { index in
        Grant.allCases.filter { ofPromotion[$0] == .refusedByCheck }.map { (index, $0) }
    }

    @Test(arguments: Soak.part(of: scopesAndGrants, 24, "scopes and grants"))
    func `no way of saying what is promoted makes room for a grant that writes`(index: Int, grant: Grant)
        throws
    {
        let found = findings(try bundle(sending: Self.scopes[index].scope, [grant]))
        #expect(found.verdict == .refusedByCheck)
        #expect(
            found.said.contains {
                $0.message.contains("may send marketing or social types and holds")
                    && $0.message.contains("`\(grant.rawValue)`")
            }, "\(found.said.map(\.description))")
    }

    /// The law says it by itself: an archive is read without the checks, as would be a bundle whose checks were lost.
    @Test(
        arguments: Soak.part(
            of: grantsAndCategories.filter { [.marketing, .social].contains($0.category) }, 18,
            "categories and grants of the law"))
    func `the law refuses what the checks refuse, without them`(
        category: GateVocabulary.Category, grant: Grant
    ) throws {
        let pages = try bundle(sending: only(category), [grant]).documents
        let read = try PolicyBundle.read(archive: .object(JSONObject(pages.map { ($0.key, $0.value) }))).get()
        let flaws = StatuteBook(read).flaws()
        #expect(flaws.isEmpty == (Self.ofPromotion[grant] == .may), "\(flaws.map(\.description))")
        if !flaws.isEmpty {
            #expect(
                flaws.contains { $0.file == "callers.yaml" && $0.message.contains("`\(grant.rawValue)`") },
                "\(flaws.map(\.description))")
        }
    }

    @Test(arguments: GateVocabulary.Category.allCases)
    func `a caller that sends may not choose for a recipient by an override`(
        category: GateVocabulary.Category
    ) throws {
        let found = findings(try bundle(sending: only(category), [], sources: ["admin_override"]))
        #expect(found.verdict == .refusedByProof)
        #expect(found.said.map(\.file) == ["callers.yaml"], "\(found.said.map(\.description))")
        #expect(found.said.first?.message.contains("`admin_override`") == true)
    }

    /// Marketing handed to who writes, rather than a grant handed to who sells.
    @Test(arguments: ["product", "security"], ["marketing", "social"])
    func `who writes what permission hangs on is not made to promote`(caller: String, category: String) throws
    {
        var bundle = try BundleMutantTests.repository.get()
        let own = bundle.documents["callers.yaml"]?["callers"]?[caller]?["types"]?["categories"]?.arrayValue
        let categories = try #require(own) + [.string(category)]
        bundle.replace(
            "callers.yaml", ["callers", caller, "types"], with: ["categories": .array(categories)])
        let found = findings(bundle)
        #expect(found.verdict == .refusedByCheck)
        #expect(
            found.said.contains { $0.message.contains("may send marketing or social types and holds") },
            "\(found.said.map(\.description))")
    }

    @Test(arguments: ["keys-team", "keys-witness", "metrics", "auditor"], GateVocabulary.Category.allCases)
    func `who holds no grant to send is given no types`(caller: String, category: GateVocabulary.Category)
        throws
    {
        var bundle = try BundleMutantTests.repository.get()
        bundle.replace(
            "callers.yaml", ["callers", caller, "types", "categories"], with: [.string(category.rawValue)])
        let found = findings(bundle)
        #expect(found.verdict == .refusedByCheck)
        #expect(
            found.said.contains { $0.message.contains("names types to a caller that may not send") },
            "\(found.said.map(\.description))")
    }

    // MARK: The starter's own callers

    /// What each caller of `Policies/callers.yaml` holds, sends and may assert, and nothing else.
    static let starter:
        [String: (grants: Set<Grant>, categories: [GateVocabulary.Category], sources: Set<String>)] = [
            "marketing": ([.send], [.marketing], []),
            "social": ([.send], [.social], []),
            "payments": ([.send], [.transactional], []),
            "help": ([.send], [.transactional], []),
            "security": (
                [.send, .sendCritical, .preferencesStepUp, .subjectsRead], [.security], ["in_app_step_up"]
            ),
            "product": (
                [
                    .send, .recipientsWrite, .consentsWrite, .preferencesWrite, .devicesWrite, .receiptsWrite,
                    .driftRun, .subjectsRead, .subjectsErase,
                ], [.transactional], ["in_app_settings", "os_settings_sync", "unsubscribe_link"]
            ),
            "replies": ([.repliesWrite], [], []),
            "keys-team": ([.keysRotate, .policyActivate, .metricsRead], [], []),
            "keys-witness": ([.keysRotate], [], []),
            "metrics": ([.metricsRead], [], []),
            "auditor": ([.trailRead, .subjectsRead, .metricsRead], [], []),
        ]

    @Test func `the starter's callers hold what this table has and nothing more`() throws {
        let callers = try Repository.policy().bundle.callers
        #expect(Set(callers.keys.map(\.text)) == Set(Self.starter.keys))
        for (name, row) in Self.starter {
            let rule = try #require(callers[CallerName(name)])
            #expect(Set(rule.grants.grants) == row.grants, "\(name)")
            #expect(rule.types.categories == row.categories, "\(name)")
            #expect(Set(rule.sources.map(\.rawValue)) == row.sources, "\(name)")
            #expect(rule.methods.isEmpty == (name != "product"), "\(name)")
        }
    }
}
