import AuditTrail
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateVocabulary
import GatewayPipeline
import KeyFiles
import OpenSSLCrypto
import PolicyFiles
import Testing
import TrailDirectory

@testable import sendgate

/// Where signing is required, no path puts an unsigned, altered, older or strange bundle in force.
@Suite struct PolicySigningTests {
    private let folder: TemporaryFolder
    private let policies: String
    private let key: String

    init() async throws {
        folder = try TemporaryFolder()
        policies = try folder.policies()
        key = try await Self.makeKey(in: folder, "keys")
    }

    private static func makeKey(in folder: TemporaryFolder, _ name: String) async throws -> String {
        let run = try await CommandLineRun("keys", "init", "--directory", folder.path(name))
        try #require(run.status == 0, "\(run.errors)")
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path(name))
        return "\(folder.path(name))/\(try #require(files.first { $0.hasPrefix("policy-") }))"
    }

    /// Signs what the folder holds and returns the key to pin. The command proves first; whoever attacks does not.
    @discardableResult
    private func sign(with key: String? = nil) throws -> NoteVerifierKey {
        let file = try PrivateKeyFile.read(key ?? self.key, roots: [:])
        let signer = try #require(NoteSigner(name: file.id, key: try Ed25519PrivateKey(seed: file.secret)))
        let bundle = try PolicyLoading.bundle(at: policies)
        try PolicySignature.sign(
            PolicySignature.Statement(of: bundle, digest: bundle.digest), in: policies, by: signer)
        return signer.verifierKey
    }

    /// The same with the command.
    private func signByCommand() async throws -> NoteVerifierKey {
        let run = try await CommandLineRun("policy", "sign", policies, "--key", key, "--json")
        try #require(run.status == 0, "\(run.errors)")
        let object = try CanonicalJSON.read(Array(run.output.dropLast().utf8))
        return try #require(NoteVerifierKey(parsing: object["signed_by"]?.stringValue ?? ""))
    }

    private func note() throws -> SignedNote {
        try SignedNote(parsing: Array(Data(contentsOf: URL(filePath: "\(policies)/bundle.sig"))))
    }

    private func setVersion(_ new: Int, from old: Int) throws {
        try folder.edit("Policies/bundle.yaml", "version: \(old)", "version: \(new)")
    }

    // MARK: Signing

    @Test func `a signature is a signed note over name, version, date and digest, and no part of the digest`()
        async throws
    {
        let before = try PolicyLoading.bundle(at: policies)
        let signer = try await signByCommand()
        let after = try PolicyLoading.bundle(at: policies)
        #expect(after.digest == before.digest)
        let note = try note()
        #expect(try note.attestations(by: [signer]).map(\.key) == [signer])
        let lines = String(decoding: note.text, as: UTF8.self).split(separator: "\n")
        #expect(lines.first == "sendgate/policy/v1")
        let object = try CanonicalJSON.read(Array(try #require(lines.last).utf8))
        #expect(object["digest"]?.stringValue == before.digest.text)
        #expect(object["name"]?.stringValue == before.name)
        #expect(object["version"]?.integerValue == Int64(before.version))
        #expect(object["effective_from"]?.stringValue == "\(before.effectiveFrom)")
    }

    @Test func `two people sign one bundle, each once, and a change makes both go`() async throws {
        let other = try await Self.makeKey(in: folder, "other")
        let signers = [try sign(), try sign(with: other)]
        try sign()
        let both = try note()
        #expect(both.signatures.count == 2)
        #expect(Set(try both.attestations(by: signers).map(\.key)) == Set(signers))
        try setVersion(2, from: 1)
        try sign()
        #expect(try note().signatures.map(\.name) == [signers[0].name])
    }

    @Test func `only a policy key signs, and only a bundle that passes`() async throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path("keys"))
        let trailKey = try #require(files.first { $0.hasPrefix("trail-") })
        let wrong = try await CommandLineRun(
            "policy", "sign", policies, "--key", folder.path("keys/\(trailKey)"))
        #expect(wrong.status == 1)
        #expect(wrong.errors.contains("of the purpose `trail`"))
        try folder.edit("Policies/critical.yaml", "allow:", "alow:")
        let broken = try await CommandLineRun("policy", "sign", policies, "--key", key)
        #expect(broken.status == 1)
        #expect(broken.errors.contains("did you mean `allow`?"))
        try folder.edit("Policies/critical.yaml", "alow:", "allow:")
        try folder.edit("Policies/limits.yaml", "window_hours: 24", "window_hours: 1")
        let unlawful = try await CommandLineRun("policy", "sign", policies, "--key", key)
        #expect(unlawful.status == 1)
        #expect(unlawful.errors.contains("limits.yaml:"), "\(unlawful.errors)")
        #expect(!FileManager.default.fileExists(atPath: "\(policies)/bundle.sig"))
    }

    // MARK: Every path that loads one

    enum Path: String, CaseIterable { case start, signal, activate }

    enum Attack: String, CaseIterable {
        case stripped, altered, alteredSignature, signedByAStranger, older, sameVersionOtherContents
        case notANote

        var complaint: String {
            switch self {
            case .stripped: "bundle.sig: is missing, and only signed bundles are accepted here"
            case .altered: "bundle.sig: signs other contents than the folder has"
            case .alteredSignature: "does not verify"
            case .signedByAStranger: "by no key that is pinned here"
            case .older: "bundle.yaml: is version 1, and version 2 was in force already"
            case .sameVersionOtherContents:
                "bundle.yaml: is version 2 with other contents than the version 2 that was in force"
            case .notANote: "bundle.sig: the note is malformed"
            }
        }
    }

    private func mount(_ attack: Attack) async throws {
        let signature = "\(policies)/bundle.sig"
        switch attack {
        case .stripped: try FileManager.default.removeItem(atPath: signature)
        case .altered:
            try setVersion(3, from: 2)
        case .alteredSignature:
            let text = try String(contentsOfFile: signature, encoding: .utf8)
            let place = text.index(text.endIndex, offsetBy: -8)
            let other = text[place] == "A" ? "B" : "A"
            _ = try folder.file(
                "Policies/bundle.sig", text.replacingCharacters(in: place...place, with: other))
        case .signedByAStranger:
            try setVersion(3, from: 2)
            try sign(with: try await Self.makeKey(in: folder, "stranger"))
        case .older:
            try setVersion(1, from: 2)
            try sign()
        case .sameVersionOtherContents:
            let page = try String(contentsOfFile: "\(policies)/messages/en.yaml", encoding: .utf8)
            let title = try #require(page.firstMatch(of: /title: "?[A-Z]/)).output
            _ = try folder.file(
                "Policies/messages/en.yaml",
                page.replacing(title, with: title.dropLast() + "Z", maxReplacements: 1))
            try sign()
        case .notANote: _ = try folder.file("Policies/bundle.sig", "trust me\n")
        }
    }

    @Test(arguments: Path.allCases, Attack.allCases)
    func `what is not signed as it should be never comes into force`(path: Path, attack: Attack) async throws
    {
        // Given a gateway that requires signatures, under version 2.
        try setVersion(2, from: 1)
        let signing = GatewayConfiguration.PolicySigning(keys: [try sign()])
        if path == .start {
            try await GatewayFixture(in: folder.root, policies: policies, signing: signing).stop()
            try await mount(attack)
            let error = await #expect(throws: PolicyProblems.self) {
                _ = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
            }
            #expect(error?.description.contains(attack.complaint) == true, "\(error.map { "\($0)" } ?? "")")
            return
        }
        let gate = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
        let first = gate.wiring.policy.current.digest

        // When the folder is tampered with and read again.
        try await mount(attack)
        if path == .signal {
            await gate.wiring.reload.reload()
        } else {
            let digest = try PolicyLoading.bundle(at: policies).digest
            let reply = try await gate.ask("POST", "/v1/policy/activate", ["digest": .string(digest.text)])
            #expect(reply.status == 422, "\(reply.object)")
            #expect(reply.object["detail"]?.stringValue?.contains(attack.complaint) == true)
        }

        // Then the old one decides, and readiness and trail say why.
        #expect(gate.wiring.policy.current.digest == first)
        let refusal = try #require(gate.wiring.vitals.reloads.lastRefusal)
        #expect(refusal.reason.contains(attack.complaint), "\(refusal.reason)")
        try await gate.stop()
        let entries = try CopiedTrail(at: folder.path("gate/trail"))
        let entry = try CanonicalJSON.read(try #require(try entries.reader.entry(1)))
        #expect(entry["kind"]?.stringValue == "policy_refused")
        #expect(entry["policy"]?.stringValue == first.text)
        #expect(entry["caller"]?.stringValue == (path == .activate ? "dev" : nil))
    }

    @Test(arguments: [Path.signal, .activate])
    func `a higher version with a pinned signature comes into force, and stays after a restart`(
        path: Path
    ) async throws {
        let signing = GatewayConfiguration.PolicySigning(keys: [try sign()])
        do {
            let gate = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
            try setVersion(7, from: 1)
            try sign()
            if path == .activate {
                let digest = try PolicyLoading.bundle(at: policies).digest.text
                let reply = try await gate.ask("POST", "/v1/policy/activate", ["digest": .string(digest)])
                #expect(reply.status == 200, "\(reply.object)")
            } else {
                await gate.wiring.reload.reload()
            }
            #expect(gate.wiring.policy.current.bundle.version == 7)
            #expect(gate.wiring.vitals.reloads.lastRefusal == nil)
            try await gate.stop()
        }
        // The same version with the same contents is a restart.
        let again = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
        #expect(again.wiring.policy.current.bundle.version == 7)
        try await again.stop()
    }

    @Test(arguments: [Path.signal, .activate])
    func `a rule book replaces another on its day, and not before`(path: Path) async throws {
        let tomorrow = Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000)).advanced(
            bySeconds: 86_400)
        let complaint = "`effective_from` is \(tomorrow.rfc3339.prefix(10)), and that day has not come"
        func date(_ day: Substring) async throws {
            let page = try String(contentsOfFile: "\(policies)/bundle.yaml", encoding: .utf8)
            _ = try folder.file(
                "Policies/bundle.yaml",
                page.replacing(/effective_from: "[0-9-]*"/, with: "effective_from: \"\(day)\""))
        }
        try await date("2026-11-02")
        do {
            let gate = try await GatewayFixture(in: folder.root, policies: policies)
            let first = gate.wiring.policy.current.digest
            try await date(tomorrow.rfc3339.prefix(10))
            if path == .signal {
                await gate.wiring.reload.reload()
            } else {
                let digest = try PolicyLoading.bundle(at: policies).digest
                let reply = try await gate.ask(
                    "POST", "/v1/policy/activate", ["digest": .string(digest.text)])
                #expect(reply.status == 422, "\(reply.object)")
            }
            #expect(gate.wiring.policy.current.digest == first)
            let refusal = try #require(gate.wiring.vitals.reloads.lastRefusal)
            #expect(refusal.reason.contains(complaint), "\(refusal.reason)")
            try await gate.stop()
        }
        // A start has no other one to keep.
        let again = try await GatewayFixture(in: folder.root, policies: policies)
        #expect("\(again.wiring.policy.current.bundle.effectiveFrom)" == tomorrow.rfc3339.prefix(10))
        try await again.stop()
    }

    @Test func `a gateway that asks for no signature takes a lower version, and remembers it`() async throws {
        try setVersion(4, from: 1)
        try await GatewayFixture(in: folder.root, policies: policies).stop()
        try setVersion(3, from: 4)
        try await GatewayFixture(in: folder.root, policies: policies).stop()
        // Whoever asks for signatures from now on starts from what was in force.
        try setVersion(2, from: 3)
        let signing = GatewayConfiguration.PolicySigning(keys: [try sign()])
        let error = await #expect(throws: PolicyProblems.self) {
            _ = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
        }
        #expect(error?.description.contains("version 3 was in force already") == true)
    }

    @Test func `a bundle that breaks is refused by name when it is activated, and recorded`() async throws {
        let gate = try await GatewayFixture(in: folder.root, policies: policies)
        let first = gate.wiring.policy.current.digest
        try folder.edit("Policies/critical.yaml", "allow:", "alow:")
        let reply = try await gate.ask("POST", "/v1/policy/activate", ["digest": .string(first.text)])
        #expect(reply.status == 422)
        #expect(reply.object["detail"]?.stringValue?.contains("critical.yaml:") == true)
        #expect(gate.wiring.policy.current.digest == first)
        let ready = try await gate.ask("GET", "/readyz")
        let check = ready.object["checks"]?.arrayValue?.first { $0["name"]?.stringValue == "policy" }
        #expect(check?["detail"]?.stringValue?.contains("critical.yaml:") == true)
        try await gate.stop()
        let trail = try CopiedTrail(at: folder.path("gate/trail"))
        let entry = try CanonicalJSON.read(try #require(try trail.reader.entry(1)))
        #expect(entry["kind"]?.stringValue == "policy_refused")
        #expect(entry["caller"]?.stringValue == "dev")
    }
}
