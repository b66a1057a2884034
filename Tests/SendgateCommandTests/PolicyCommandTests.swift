import CanonicalJSON
import Foundation
import Testing

@Suite struct PolicyCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `the repository's bundle passes its checks and its cases`() async throws {
        let check = try await CommandLineRun("policy", "check", "Policies")
        #expect(check.status == 0, "\(check.errors)")
        #expect(check.output.contains("digest "))
        let test = try await CommandLineRun("policy", "test", "Policies")
        #expect(test.status == 0, "\(test.output)")
        #expect(test.output.contains("cases pass"))
        #expect(test.output.contains("reasons: "))
    }

    @Test func `every problem is told with file, line and hint`() async throws {
        let policies = try folder.policies()
        try folder.edit(
            "Policies/callers.yaml", "means: Campaigns.\n    grants: [send]",
            "means: Campaigns.\n    grants: [send, consents.write]")
        try folder.edit("Policies/critical.yaml", "allow:", "alow:")
        let run = try await CommandLineRun("policy", "check", policies)
        #expect(run.status == 1)
        #expect(run.output.isEmpty)
        #expect(run.errors.contains("sendgate: error: \(policies)/callers.yaml:"))
        #expect(run.errors.contains("separation of duties"))
        #expect(run.errors.contains("sendgate: error: \(policies)/critical.yaml:"))
        #expect(run.errors.contains("sendgate: hint: did you mean `allow`?"))
    }

    @Test func `a case that comes out otherwise ends with 3 and is named with its line`() async throws {
        let policies = try folder.policies()
        let cases = "Policies/cases/acceptance.yaml"
        let text = try String(contentsOfFile: folder.path(cases), encoding: .utf8)
        let line = try #require(text.split(separator: "\n").first { $0.contains("caller: marketing") })
        try folder.edit(cases, String(line), line.replacingOccurrences(of: "marketing", with: "auditor"))
        let run = try await CommandLineRun("policy", "test", policies)
        #expect(run.status == 3, "\(run.errors)\(run.output)")
        #expect(run.output.contains("FAILED \(policies)/cases/acceptance.yaml:"))
        #expect(run.output.contains("expected"))
        let json = try await CommandLineRun("policy", "test", policies, "--json")
        #expect(json.status == 3)
        let object = try CanonicalJSON.read(Array(json.output.dropLast().utf8), limits: .document)
        #expect(try #require(object["failed"]?.integerValue) > 0)
    }

    @Test func `one type is shown on one page`() async throws {
        let run = try await CommandLineRun("policy", "show", "transaction.failed")
        #expect(run.status == 0, "\(run.errors)")
        for part in [
            "transaction.failed\n", "mandatory", "sealed to the device", "PSD2", "params", "text in nb",
        ] {
            #expect(run.output.contains(part), "\(part) is not in\n\(run.output)")
        }
        #expect(run.output.split(separator: "\n", omittingEmptySubsequences: false).count <= 60)
    }

    @Test(arguments: [
        ("promo.offer", "in US, AS, GU, MP, PR, UM, VI sms needs written consent from 2013-10-16"),
        ("promo.offer", "a link in every one"),
        ("social.like", "by itself, or with its category"),
        ("programme.tip", "asked for by    programme"),
        (
            "promo.partner_offer",
            "explicit consent to the purpose `partner_offers`, from an existing customer too"
        ),
        ("privacy.breach_notice", "whatever was chosen for the lock screen"),
        ("programme.tip", "minors          never"),
    ])
    func `the page says what a table of categories cannot`(type: String, part: String) async throws {
        let run = try await CommandLineRun("policy", "show", type)
        #expect(run.output.contains(part), "\(part) is not in\n\(run.output)")
        let other = try await CommandLineRun("policy", "show", "transaction.failed")
        #expect(!other.output.contains(part))
    }

    @Test func `a type nobody knows is answered with the nearest one`() async throws {
        let run = try await CommandLineRun("policy", "show", "transaction.faild")
        #expect(run.status == 1)
        #expect(run.errors.contains("did you mean `transaction.failed`?"))
    }

    @Test func `the page that only development may add is refused from a folder`() async throws {
        let policies = try folder.policies()
        _ = try folder.file("Policies/development.yaml", "caller: dev\nbecause: I said so.\n")
        try folder.edit(
            "Policies/bundle.yaml", "  - critical.yaml\n", "  - critical.yaml\n  - development.yaml\n")
        let run = try await CommandLineRun("policy", "check", policies)
        #expect(run.status == 1)
        #expect(run.errors.contains("development.yaml"))
    }
}
