import CanonicalJSON
import Foundation
import Testing

@Suite struct PolicyDiffTests {
    private let folder: TemporaryFolder
    private let policies: String

    init() throws {
        folder = try TemporaryFolder()
        policies = try folder.policies()
    }

    private func diff() async throws -> CommandLineRun {
        try await CommandLineRun("policy", "diff", CommandLineRun.policies, policies)
    }

    @Test func `a bundle does not differ from itself`() async throws {
        let run = try await diff()
        #expect(run.status == 0, "\(run.errors)\(run.output)")
        #expect(run.output.isEmpty)
        #expect(run.errors.hasPrefix("0 differences in 0 decisions; 0 edits on 0 pages"))
    }

    @Test(arguments: [
        (
            "messages/en.yaml", "title: Money received", "title: Money came in",
            #"messages/en.yaml: transfer.received.title was "Money received", now "Money came in""#
        ),
        (
            "types/promo.offer.yaml", "hours: 12", "hours: 11",
            "types/promo.offer.yaml: ttl.hours was 12, now 11"
        ),
        (
            "callers.yaml", "grants: [trail.read, subjects.read, metrics.read]",
            "grants: [trail.read, subjects.read]",
            #"callers.yaml: callers.auditor.grants.2 is gone: "metrics.read""#
        ),
        ("bundle.yaml", "version: 1", "version: 2", "bundle.yaml: version was 1, now 2"),
    ])
    func `an edit that no decision shows is named, and is a difference`(
        page: String, old: String, new: String, sentence: String
    ) async throws {
        try folder.edit("Policies/\(page)", old, new)
        let run = try await diff()
        #expect(run.status == 3, "\(run.errors)")
        #expect(run.output == sentence + "\n")
        #expect(run.errors.contains("0 differences in 0 decisions; 1 edit on 1 page\n"), "\(run.errors)")
        #expect(run.errors.contains("no decision on equal facts changes with them"))
    }

    @Test func `a notice edited in place is named as one`() async throws {
        let page = "Policies/notices/promo.3.en.txt"
        let text = try String(contentsOfFile: folder.path(page), encoding: .utf8)
        _ = try folder.file(page, text + "And to our partners.\n")
        let run = try await diff()
        #expect(run.status == 3)
        #expect(run.output.hasPrefix("notices/promo.3.en.txt was "))
        #expect(run.errors.contains("has other words than were in force under this id and version"))
        #expect(run.errors.contains("put the new words into a file of the next version"))
    }

    @Test func `a country under another law is told with what now goes out there, and nowhere else`()
        async throws
    {
        let line = try #require(
            try String(contentsOfFile: "\(policies)/regions.yaml", encoding: .utf8)
                .firstMatch(of: #/ {2}"DE":[^\n]*\n(?: {4}[^\n]*\n)?/#)
        ).output
        try folder.edit(
            "Policies/regions.yaml", String(line),
            "  \"DE\": {regime: other, since: \"2026-01-01\", because: A mistake of somebody.}\n")
        let run = try await diff()
        #expect(run.status == 3, "\(run.errors)")
        #expect(
            run.output.contains(
                ": was refused (no_gdpr_consent), now refused (no_marketing_opt_in)"
            ), "\(run.output)")
        #expect(run.output.contains("by push from marketing in DE, with consent `never_asked`"))
        for sentence in run.output.split(separator: "\n") where !sentence.hasPrefix("regions.yaml: ") {
            #expect(sentence.contains(" in DE"), "\(sentence)")
        }
        #expect(run.output.contains("\nregions.yaml: regions.DE.regime was \"gdpr\", now \"other\"\n"))
    }

    @Test func `a bundle with a problem is not compared`() async throws {
        try folder.edit("Policies/categories.yaml", "minors: allow", "minors: refuse")
        let run = try await diff()
        // Security must allow them, so the page has a problem, and a bundle with one is not compared.
        #expect(run.status == 1)
        #expect(run.errors.contains("categories.yaml:"))
    }

    @Test func `a type that is no longer sealed is told by the body, and by the phone without a key`()
        async throws
    {
        let page = try String(contentsOfFile: "\(policies)/types/transfer.received.yaml", encoding: .utf8)
        _ = try folder.file(
            "Policies/types/transfer.received.yaml",
            page.replacing("sensitivity: high", with: "sensitivity: personal")
                .replacing("push: {body: sealed, without_key: generic}", with: "push: {body: full}"))
        let run = try await CommandLineRun(
            "policy", "diff", CommandLineRun.policies, policies, "--json")
        #expect(run.status == 3, "\(run.errors)")
        let object = try CanonicalJSON.read(Array(run.output.dropLast().utf8), limits: .document)
        #expect(object["pages"] == ["types/transfer.received.yaml"])
        let changes = try #require(object["changes"]?.arrayValue)
        #expect(changes.allSatisfy { $0["types"] == ["transfer.received"] })
        #expect(
            changes.contains {
                $0["circumstances"] == [] && $0["before"]?["form"] == "sealed"
                    && $0["after"]?["form"] == "full"
            }, "\(run.output)")
        #expect(
            changes.contains {
                $0["circumstances"]?.arrayValue?.contains("with device key `none`") == true
                    && $0["before"]?["reason"] == "generic_only" && $0["after"]?["reason"] == "allowed"
            })
    }
}
