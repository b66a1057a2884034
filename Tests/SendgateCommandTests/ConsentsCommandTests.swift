import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateVocabulary
import GatewayPipeline
import Testing

@testable import sendgate

/// `sendgate consents …` and `sendgate policy activate`, against a gateway that listens.
@Suite struct ConsentsCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A day in the past, which needs no import: the last hour.
    private var lastHour: String {
        ISO8601DateFormatter().string(from: Date().addingTimeInterval(-3600))
    }

    @Test func `a consent is granted, shown with its words, and withdrawn everywhere`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.registerSomebody()
        try await gate.listening { socket in
            let notice = "Policies/notices/promo.3.en.txt"
            let grant = try await CommandLineRun(
                "consents", "grant", "u_42", "--notice", notice, "--purpose", "marketing", "--channel",
                "push",
                "--method", "in_app_toggle", "--jurisdiction", "DE", "--id", "c 1/ø", "--at", lastHour,
                "--socket", socket)
            #expect(grant.status == 0, "\(grant.errors)")
            #expect(grant.output.hasPrefix("recorded as c 1/ø, entry "))

            let shown = try await CommandLineRun(
                "consents", "show", "u_42", "--purpose", "marketing", "--socket", socket)
            #expect(shown.status == 0, "\(shown.errors)")
            #expect(shown.output.contains("\nmarketing by push: given\n"))
            #expect(shown.output.contains("given (in_app_toggle), heard of at "))
            #expect(shown.output.contains("    shown: promo version 3 in en, SHA-256 "))
            let words = try String(
                contentsOf: CommandLineRun.repository.appending(path: notice), encoding: .utf8)
            for line in words.split(separator: "\n") { #expect(shown.output.contains("    | \(line)\n")) }

            let before = try await CommandLineRun(
                "consents", "show", "u_42", "--as-of", "2025-11-03", "--purpose", "marketing", "--socket",
                socket)
            #expect(
                before.output == """
                    u_42 as of 2025-11-03T23:59:59.999Z, as known at now
                    marketing: nothing recorded

                    """)

            let withdrawn = try await CommandLineRun(
                "consents", "withdraw", "u_42", "c 1/ø", "--every-channel", "--socket", socket)
            #expect(withdrawn.status == 0, "\(withdrawn.errors)")
            let after = try await CommandLineRun("consents", "show", "u_42", "--json", "--socket", socket)
            let object = try CanonicalJSON.read(Array(after.output.dropLast().utf8), limits: .document)
            #expect(object["standing"]?.arrayValue?.first?["state"]?.stringValue == "withdrawn")
            // The one that was given, by name; and a no to each other channel and to what else marketing asks for.
            let ended = (object["records"]?.arrayValue ?? []).dropFirst().compactMap { record in
                record["state"] == "withdrawn" ? record["channel"]?.stringValue : nil
            }
            #expect(ended.sorted() == ["email", "email", "push", "push", "sms", "sms"])
        }
        try await gate.stop()
    }

    @Test func `what makes no sense is refused before the gateway is asked, and what it refuses is told`()
        async throws
    {
        let time = try await CommandLineRun(
            "consents", "show", "u_42", "--as-of", "yesterday", "--socket", "/nowhere")
        #expect(time.status == 64)
        #expect(time.errors.contains("write 2025-11-03 or 2025-11-03T12:00:00Z"))
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.listening { socket in
            let nobody = try await CommandLineRun("consents", "show", "nobody", "--socket", socket)
            #expect(nobody.status == 1)
            #expect(nobody.errors.contains("nobody of this name is registered"))
            let notice = try folder.file("promo.3.en.txt", "Other words.\n")
            let unknown = try await CommandLineRun(
                "consents", "grant", "u_42", "--notice", notice, "--purpose", "marketing", "--channel",
                "push",
                "--method", "in_app_toggle", "--jurisdiction", "DE", "--socket", socket)
            #expect(unknown.status == 1)
        }
        try await gate.stop()
    }

    @Test func `the reviewed bundle is activated by its folder or its digest, and no other`() async throws {
        let policies = try folder.policies()
        let gate = try await GatewayFixture(in: folder.root, policies: policies)
        try await gate.listening { socket in
            try folder.edit("Policies/bundle.yaml", "version: 1", "version: 2")
            let other = try await CommandLineRun(
                "policy", "activate", CommandLineRun.policies, "--socket", socket)
            #expect(other.status == 1)
            #expect(other.errors.contains("the configured bundle is `"))
            #expect(gate.wiring.policy.current.bundle.version == 1)
            let folder = try await CommandLineRun("policy", "activate", policies, "--socket", socket)
            #expect(folder.status == 0, "\(folder.errors)")
            #expect(folder.output.hasPrefix("in force  "))
            #expect(gate.wiring.policy.current.bundle.version == 2)
            let digest = try PolicyLoading.bundle(at: policies).digest.text
            #expect(try await CommandLineRun("policy", "activate", digest, "--socket", socket).status == 0)
        }
        try await gate.stop()
    }
}
