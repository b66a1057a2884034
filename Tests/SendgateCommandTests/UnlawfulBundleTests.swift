import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateRecords
import GateTestKit
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import PolicyFiles
import PolicyProof
import PolicyStatutes
import SQLiteStore
import Testing
import TrailDirectory

@testable import sendgate

/// An edit of the repository's bundle that every check accepts and no page of which has a flaw, and under which some
/// decision breaks a statute.
struct UnlawfulEdit: Sendable, CustomTestStringConvertible {
    var page: String
    var old: String
    var new: String
    /// By name, and in the words of the message.
    var statute: String
    var says: String
    var category: String

    var testDescription: String { "\(page) \(category): \(statute)" }

    /// Who wants to switch a category off would have to prove who they are first; all else is as it was.
    private static func stepUp(_ category: String, before because: String) -> UnlawfulEdit {
        let end = "\n  because: >-\n    \(because)"
        return UnlawfulEdit(
            page: "categories.yaml", old: "\n  switch_off: anyone\(end)",
            new: "\n  switch_off: step_up\(end)",
            statute: "off_is_off",
            says: "breaks the statute that nothing goes out past a switch its recipient turned off",
            category: category)
    }

    static let all = [
        stepUp("social", before: "A push inside the app"),
        stepUp("marketing", before: "\"They installed the app\""),
    ]
}

/// No path puts in force, signs or passes a bundle that the proof refutes: these have nothing else against them, so a
/// path that leaves the proof out takes them.
@Suite struct UnlawfulBundleTests {
    private let folder: TemporaryFolder
    private let policies: String
    private let signers: [ApprovalRole: NoteSigner]

    init() throws {
        folder = try TemporaryFolder()
        policies = try folder.policies()
        var signers: [ApprovalRole: NoteSigner] = [:]
        for role in ApprovalRole.allCases {
            let signer = try #require(NoteSigner(name: "policy-\(role.rawValue)", key: .generate()))
            signers[role] = signer
        }
        self.signers = signers
    }

    /// Every day another goes every path.
    private static let edits = Soak.part(of: UnlawfulEdit.all, 1, "unlawful edits")

    private func make(_ edit: UnlawfulEdit) throws {
        try folder.edit("Policies/\(edit.page)", edit.old, edit.new)
    }

    /// Every role signs what the folder holds. The command would prove it first.
    @discardableResult
    private func signAll() throws -> GatewayConfiguration.PolicySigning {
        let bundle = try PolicyLoading.bundle(at: policies)
        for (role, signer) in signers {
            try PolicySignature.sign(role, of: bundle, in: policies, by: signer)
        }
        return GatewayConfiguration.PolicySigning(keys: signers.mapValues { [$0.verifierKey] })
    }

    private func keptProofs() throws -> [Substring] {
        let path = folder.path("gate/state/\(KeptProofs.fileName)")
        return try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
    }

    // MARK: The edits themselves

    /// The finer grain, with a hundred times the states, walks the types of the edit's category.
    @Test(arguments: edits)
    func `nothing but the proof has anything against the edit`(edit: UnlawfulEdit) async throws {
        try make(edit)
        let check = try await CommandLineRun("policy", "check", policies)
        #expect(check.status == 0, "\(check.errors)")
        let policy = CompiledPolicy(try PolicyLoading.bundle(at: policies))
        let edited = policy.bundle.types.values.filter { $0.category.rawValue == edit.category }.map(\.id)
        for report in [
            ProvedBundles.run(of: policy, grain: .effects),
            BundleProof(of: policy, grain: .reasons).run(of: Set(edited)),
        ] {
            #expect(report.flaws == [])
            #expect(report.refutations.map(\.statute.name) == [edit.statute])
            #expect(!report.holds)
        }
    }

    // MARK: Every path that puts one in force

    enum Path: String, CaseIterable { case start, signal, activate }

    @Test(arguments: Path.allCases, edits)
    func `what the proof alone refutes comes into force by no path, whoever signed it`(
        path: Path, edit: UnlawfulEdit
    ) async throws {
        // Given a gateway that proved the lawful bundle and kept that proof.
        let signing = try signAll()
        let gate = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
        let first = gate.wiring.policy.current.digest
        if path == .start {
            try await gate.stop()
        }

        // When the folder has the edit, signed by every role.
        try make(edit)
        try folder.edit("Policies/bundle.yaml", "version: 1", "version: 2")
        try signAll()
        let digest = try PolicyLoading.bundle(at: policies).digest

        // Then it is refused for what it decides, every time it is tried.
        for round in 1...2 {
            switch path {
            case .start:
                let error = await #expect(throws: PolicyDiagnostics.self) {
                    _ = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
                }
                #expect(error?.diagnostics.count == 1 && error?.description.contains(edit.says) == true)
                #expect(error?.diagnostics.first?.hint?.contains("`sendgate policy prove`") == true)
            case .signal:
                await gate.wiring.reload.reload()
            case .activate:
                let reply = try await gate.ask(
                    "POST", "/v1/policy/activate", ["digest": .string(digest.text)])
                #expect(reply.status == 422, "\(reply.object)")
                #expect(reply.object["detail"]?.stringValue?.contains(edit.says) == true, "\(reply.object)")
            }
            #expect(gate.wiring.policy.current.digest == first, "round \(round)")
            if path != .start {
                let refusal = try #require(gate.wiring.healthChecks.reloads.lastRefusal)
                #expect(refusal.reason.contains(edit.says), "\(refusal.reason)")
            }
        }
        #expect(try keptProofs().map { $0.prefix(64) } == [first.text.prefix(64)])
        guard path != .start else {
            // The trail ends where the lawful gateway stopped.
            let trail = try CopiedTrail(at: folder.path("gate/trail"))
            #expect(try trail.reader.entry(2) == nil)
            return
        }
        try await gate.stop()
        let trail = try CopiedTrail(at: folder.path("gate/trail"))
        for index in 1...2 as ClosedRange<UInt64> {
            let entry = try CanonicalJSON.read(try #require(try trail.reader.entry(index)))
            #expect(entry["kind"]?.stringValue == "policy_refused")
            #expect(entry["policy"]?.stringValue == first.text)
            #expect(entry["caller"]?.stringValue == (path == .activate ? "dev" : nil))
        }
    }

    @Test(arguments: edits)
    func `a first start under it leaves no proof, no state and no trail`(edit: UnlawfulEdit) async throws {
        try make(edit)
        let error = await #expect(throws: PolicyDiagnostics.self) {
            _ = try await GatewayFixture(in: folder.root, policies: policies)
        }
        #expect(error?.description.contains(edit.says) == true)
        for name in ["state", "trail"] {
            #expect(!FileManager.default.fileExists(atPath: folder.path("gate/\(name)")), "\(name)")
        }
        // Mended, it starts; the refusal is not remembered either.
        try folder.edit("Policies/\(edit.page)", edit.new, edit.old)
        try await GatewayFixture(in: folder.root, policies: policies).stop()
    }

    @Test(arguments: zip(ApprovalRole.allCases, UnlawfulEdit.all + UnlawfulEdit.all))
    func `nobody signs it with the command, in whatever role`(role: ApprovalRole, edit: UnlawfulEdit)
        async throws
    {
        let made = try await CommandLineRun(
            "keys", "init", "--only", "policy", "--directory", folder.path("keys"))
        try #require(made.status == 0, "\(made.errors)")
        let name = try #require(
            try FileManager.default.contentsOfDirectory(atPath: folder.path("keys")).first {
                $0.hasPrefix("policy-")
            })
        func sign() async throws -> CommandLineRun {
            try await CommandLineRun(
                "policy", "sign", policies, "--role", role.rawValue, "--key", folder.path("keys/\(name)"))
        }
        let signature = "\(policies)/\(role.rawValue).sig"
        try make(edit)
        for _ in 1...2 {
            let run = try await sign()
            #expect(run.status == 1 && run.output.isEmpty)
            #expect(run.errors.contains(edit.says), "\(run.errors)")
            #expect(!FileManager.default.fileExists(atPath: signature))
        }
        try folder.edit("Policies/\(edit.page)", edit.new, edit.old)
        #expect(try await sign().status == 0)
        #expect(FileManager.default.fileExists(atPath: signature))
    }

    // MARK: policy prove

    @Test(arguments: edits)
    func `prove ends with 3 and writes a case that fails until the page is mended`(edit: UnlawfulEdit)
        async throws
    {
        try make(edit)
        let run = try await CommandLineRun("policy", "prove", policies)
        #expect(run.status == 3)
        #expect(run.errors.contains("sendgate: error: \(policies)/") && run.errors.contains(edit.says))
        #expect(run.errors.contains("1 statute or page is broken"), "\(run.errors)")
        #expect(!run.output.contains("no statute can be broken"))
        // What it prints is one case, to be pasted.
        _ = try folder.file("Policies/cases/found.yaml", "cases:\n\(run.output)")
        try folder.edit("Policies/bundle.yaml", "\nfiles:\n", "\nfiles:\n  - cases/found.yaml\n")
        let failed = try await CommandLineRun("policy", "test", policies)
        #expect(failed.status == 3 && failed.output.contains("cases/found.yaml"), "\(failed.output)")
        try folder.edit("Policies/\(edit.page)", edit.new, edit.old)
        let mended = try await CommandLineRun("policy", "test", policies)
        #expect(mended.status == 0, "\(mended.output)\(mended.errors)")
    }

    @Test func `prove says to a machine what holds, what is broken, and what is a flaw`() async throws {
        func prove(_ status: Int32) async throws -> JSONValue {
            let run = try await CommandLineRun("policy", "prove", policies, "--json")
            #expect(run.status == status, "\(run.errors)")
            return try CanonicalJSON.read(Array(run.output.dropLast().utf8), limits: .document)
        }
        let lawful = try await prove(0)
        #expect(lawful["holds"] == true && lawful["broken"] == [] && lawful["flaws"] == [])
        let digest = try PolicyLoading.bundle(at: policies).digest
        #expect(lawful["policy"]?.stringValue == digest.text)

        let edit = UnlawfulEdit.all[0]
        try make(edit)
        let broken = try await prove(3)
        #expect(broken["holds"] == false && broken["flaws"] == [])
        let found = try #require(broken["broken"]?.arrayValue)
        #expect(found.map { $0["statute"]?.stringValue } == [edit.statute])
        #expect(found.first?["type"] == "digest.social" && found.first?["outcome"] == "forward")
        #expect(broken["policy"] != lawful["policy"])

        try folder.edit("Policies/\(edit.page)", edit.new, edit.old)
        try folder.edit("Policies/limits.yaml", "window_hours: 24", "window_hours: 1")
        let flawed = try await prove(3)
        #expect(flawed["holds"] == false && flawed["broken"] == [])
        #expect(flawed["flaws"]?.arrayValue?.first?["file"] == "limits.yaml")

        try folder.edit("Policies/critical.yaml", "allow:", "alow:")
        let unread = try await CommandLineRun("policy", "prove", policies)
        #expect(unread.status == 1 && unread.errors.contains("critical.yaml"), "\(unread.errors)")
    }
}
