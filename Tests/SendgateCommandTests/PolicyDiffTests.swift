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

    @Test func `a rule book does not differ from itself`() async throws {
        let run = try await diff()
        #expect(run.status == 0, "\(run.errors)\(run.output)")
        #expect(run.output.isEmpty)
        #expect(run.errors.hasPrefix("0 differences in 0 decisions; 0 pages changed"))
    }

    @Test(arguments: [
        (
            "types/transfer.received.yaml", "ttl: {hours: 24, counts_from: due}",
            "ttl: {hours: 23, counts_from: due}"
        ),
        ("types/briefing.daily.yaml", "daily: \"08:00\"", "daily: \"08:01\""),
        ("types/transfer.received.yaml", "means: ", "means: Now, "),
    ])
    func `whatever else changes ends with 3, and its page is named`(
        _ page: String, _ old: String, _ new: String
    ) async throws {
        try folder.edit("Policies/\(page)", old, new)
        let run = try await diff()
        #expect(run.status == 3, "\(run.output)")
        #expect(
            run.errors.contains("\(page) changed, and no decision on equal facts with it"), "\(run.errors)")
    }

    @Test func `a text that changes is a page and no decision`() async throws {
        let page = try String(contentsOfFile: "\(policies)/messages/en.yaml", encoding: .utf8)
        _ = try folder.file(
            "Policies/messages/en.yaml", page.replacing("Money received", with: "Money came in"))
        let run = try await diff()
        #expect(run.status == 3, "\(run.output)")
        #expect(run.output.isEmpty)
        #expect(run.errors.contains("messages/en.yaml changed, and no decision on equal facts with it"))
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
        for sentence in run.output.split(separator: "\n") {
            #expect(sentence.contains(" in DE"), "\(sentence)")
        }
    }

    @Test func `a rule book with a problem is not compared`() async throws {
        try folder.edit("Policies/categories.yaml", "minors: allow", "minors: refuse")
        let run = try await diff()
        // Security must allow them, so the page has a problem, and a rule book with one is not compared.
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
        let changes = object["changes"]?.arrayValue ?? []
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
