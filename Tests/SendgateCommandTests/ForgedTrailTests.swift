import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateRecords
import GateSteps
import GateTestKit
import GateVocabulary
import KeyLifecycle
import OpenSSLCrypto
import PolicyFiles
import SealedFormat
import SendPlanning
import Testing
import TrailDirectory

@testable import sendgate

/// A trail that the holder of its key wrote entries into which no gate made, all of it consistent and signed again.
@Suite struct ForgedTrailTests {
    private static let kept = CommandLineRun.repository.appending(path: "Tests/Fixtures/Trails/first").path
    private static let signer = NoteSigner(
        name: "test.example/trail",
        key: try! Ed25519PrivateKey(seed: SecretBytes(copying: [UInt8](repeating: 7, count: 32))))!

    private let folder: TemporaryFolder
    /// Those of the kept trail.
    private let entries: [[UInt8]]
    private let policy: CompiledPolicy

    init() throws {
        folder = try TemporaryFolder()
        let trail = try CopiedTrail(at: Self.kept)
        let key = try #require(
            NoteVerifierKey(
                parsing: try String(contentsOfFile: "\(Self.kept)/trail.pub", encoding: .utf8)
                    .trimmingCharacters(in: .newlines)))
        var found: [[UInt8]] = []
        _ = try TrailVerifier(trail.reader, trusting: TrailTrust(origin: key.name, keys: [key])).verify(
            visit: { found.append(Array($0.bytes)) })
        entries = found
        let digest = try #require(try trail.reader.policyDigests().first)
        policy = try #require(try trail.policy(digest))
    }

    /// Writes and signs a trail, with the archive of the kept one and more bundles.
    private func publish(_ entries: [[UInt8]], archiving bundles: [CompiledPolicy] = []) throws -> String {
        let path = folder.path("trail-\(entries.count)")
        let writer = try TrailDirectoryWriter(
            openingAt: path,
            trusting: TrailTrust(origin: Self.signer.verifierKey.name, keys: [Self.signer.verifierKey]))
        _ = try writer.integrate(entries, startingAt: 0)
        _ = try writer.publishCheckpoint { try $0.signed(by: [Self.signer]) }
        try writer.writeVerifierKeys([Self.signer.verifierKey])
        for bundle in [policy] + bundles {
            try writer.archivePolicy(bundle.digest, bundle.bundle.canonicalJSON)
        }
        return path
    }

    /// Ends with 3 in every command that looks at the entry, and names it.
    private func expectNamed(
        _ index: UInt64, _ words: String, in path: String, commands: [[String]]
    ) async throws {
        for command in commands {
            let run = try await CommandLineRun(
                ["audit", command[0], path] + command.dropFirst() + ["--key", "\(path)/trail.pub"])
            let said = run.output + run.errors
            #expect(run.status == 3, "\(command): \(said)")
            #expect(said.contains("entry \(index) ") && said.contains(words), "\(command): \(said)")
            #expect(said.contains("hint: "), "\(command): \(said)")
        }
    }

    /// The kept trail without its last entry, the stop.
    private var running: [[UInt8]] { Array(entries.dropLast()) }

    private func time(after count: Int) throws -> Instant { try TrailEntry(reading: entries[count - 1]).time }

    /// The kept bundle, whose marketing needs nobody's consent.
    private func loosened() throws -> CompiledPolicy {
        func loosen(_ value: JSONValue) -> JSONValue {
            if value == "opt_in" { return "none_needed" }
            if let object = value.objectValue {
                return .object(JSONObject(object.map { ($0.key, loosen($0.value)) }))
            }
            return value.arrayValue.map { .array($0.map(loosen)) } ?? value
        }
        var pages = JSONObject(policy.bundle.documents.map { ($0.key, $0.value.json) })
        pages["categories.yaml"] = loosen(try #require(pages["categories.yaml"]))
        let next = CompiledPolicy(try PolicyBundle.read(archive: .object(pages)).get())
        try #require(next.digest != policy.digest)
        return next
    }

    /// A send of the kept trail that no consent allowed, decided under another bundle.
    private func send(under other: CompiledPolicy, at index: Int) throws -> [UInt8] {
        let refused = try running.compactMap { bytes in
            try TrailEntry(reading: bytes).kind == .send ? try SendEntry.read(bytes).entry : nil
        }.last { $0.overall.reason == .noGDPRConsent }
        var send = try #require(refused)
        send.policy = other.digest
        for place in send.deliveries.indices {
            send.deliveries[place].decision = decide(
                send.attested, given: send.deliveries[place].facts, under: other)
        }
        return try send.bytes(index: UInt64(index), time: try time(after: running.count))
    }

    @Test func `a decision under a policy that was never in force is named by every command`() async throws {
        let other = try loosened()
        let index = running.count
        let before = try publish(running)
        let path = try publish(running + [try send(under: other, at: index)], archiving: [other])
        try await expectNamed(
            UInt64(index), "names the policy \(other.digest)", in: path,
            commands: [
                ["verify"], ["verify", "--no-schema"], ["verify", "--since", "\(before)/checkpoint"],
                ["replay"],
                ["replay", "--from-genesis"], ["replay", "--with", "Policies"], ["show", "\(index)"],
            ])
        // Before the forged entry all is as it was.
        for command in [["verify"], ["replay"], ["replay", "--from-genesis"]] {
            let run = try await CommandLineRun(
                ["audit", command[0], before] + command.dropFirst() + ["--key", "\(before)/trail.pub"])
            #expect(run.status == 0, "\(command): \(run.output)\(run.errors)")
        }
        let shown = try await CommandLineRun("audit", "show", path, "7", "--key", "\(path)/trail.pub")
        #expect(shown.status == 0, "\(shown.errors)")
    }

    @Test func `a trail without its start names no policy`() async throws {
        let moved = try entries.dropFirst().enumerated().map { index, bytes in
            var entry = try TrailEntry(reading: bytes)
            entry.index = UInt64(index)
            return try entry.encoded().bytes
        }
        let path = try publish(moved)
        try await expectNamed(
            6, "no `start` or `policy` entry", in: path, commands: [["verify"], ["replay"]])
    }

    @Test(arguments: [
        ("caller", "payments", "grant_missing"), ("purpose", "social", "other_purpose"),
        ("method", "written_consent", "invalid_request"),
    ])
    func `a consent that the gate would refuse is named with its reason`(
        member: String, value: String, reason: String
    ) async throws {
        let place = try #require(
            try running.firstIndex { try TrailEntry(reading: $0).kind == .consent })
        var entry = try TrailEntry(reading: running[place])
        entry.members[member] = .string(value)
        // Its own digest of the ledger's first record is the empty one, so what follows goes with it.
        let path = try publish(Array(running[..<place]) + [entry.encoded().bytes])
        try await expectNamed(
            UInt64(place), "records what the gate refuses: \(reason)", in: path,
            commands: [["replay", "--from-genesis"]])
        let json = try await CommandLineRun(
            "audit", "replay", path, "--from-genesis", "--json", "--key", "\(path)/trail.pub")
        #expect(json.status == 3 && json.output.contains(#""reason":"\#(reason)""#), "\(json.output)")
        // The tree, the format and the decisions are all right: only the first entry on can tell.
        for command in [["verify"], ["replay"]] {
            let run = try await CommandLineRun(
                ["audit", command[0], path, "--key", "\(path)/trail.pub"])
            #expect(run.status == 0, "\(command): \(run.output)\(run.errors)")
        }
    }

    @Test func `a send that stands there twice is named by every command`() async throws {
        let place = try #require(
            try running.lastIndex { try TrailEntry(reading: $0).members["request"]?["id_tag"] != nil })
        var entry = try TrailEntry(reading: running[place])
        entry.index = UInt64(running.count)
        entry.time = try time(after: running.count)
        // The caller's id alone, under another `send_id` and another `message_id`.
        var renamed = entry
        renamed.members["send_id"] = "01a20bd3-f140-70bc-9384-ca8495bf38b7"
        renamed.members["deliveries"] = .array(
            (entry.members["deliveries"]?.arrayValue ?? []).map { delivery in
                var object = delivery.objectValue ?? [:]
                object["message_id"] = nil
                return .object(object)
            })
        for (forged, member) in [(entry, "send_id"), (renamed, "id_tag")] {
            let path = try publish(running + [forged.encoded().bytes])
            try await expectNamed(
                entry.index, "the same `\(member)` as entry \(place)", in: path,
                commands: [["verify"], ["verify", "--no-schema"], ["replay"], ["replay", "--from-genesis"]])
            try FileManager.default.removeItem(atPath: path)
        }
    }

    @Test func `a folder whose key file or keyset is another one is named`() async throws {
        let path = try publish(running)
        let key = Self.signer.verifierKey.text
        func verify() async throws -> (status: Int32, said: String) {
            let run = try await CommandLineRun("audit", "verify", path, "--key", key)
            return (run.status, run.output + run.errors)
        }
        #expect(try await verify().status == 0)
        let other = try #require(
            NoteSigner(
                name: "test.example/trail",
                key: try Ed25519PrivateKey(seed: SecretBytes(copying: [UInt8](repeating: 9, count: 32)))))
        try Data("\(other.verifierKey.text)\n".utf8).write(to: URL(filePath: "\(path)/trail.pub"))
        let swapped = try await verify()
        #expect(swapped.status == 3 && swapped.said.contains("`trail.pub`"), "\(swapped)")
        #expect(swapped.said.contains("hint: "), "\(swapped)")
        try Data("\(key)\n".utf8).write(to: URL(filePath: "\(path)/trail.pub"))
        try Data("what no authority signed\n".utf8).write(to: URL(filePath: "\(path)/keyset"))
        let garbage = try await verify()
        #expect(garbage.status == 3 && garbage.said.contains("`keyset` is no keyset"), "\(garbage)")
    }

    // MARK: Signed bundles

    /// Three keys, listed by the authority, and their signatures under a bundle.
    private func approvals(
        of bundle: PolicyBundle, as roles: [ApprovalRole] = ApprovalRole.allCases
    ) throws -> (approvals: [BundleApproval], keys: [Keyset.Key]) {
        var approvals: [BundleApproval] = []
        var keys: [Keyset.Key] = []
        for (number, role) in roles.enumerated() {
            let key = try Ed25519PrivateKey(
                seed: SecretBytes(copying: [UInt8](repeating: UInt8(40 + number), count: 32)))
            let id = Hexadecimal.encode(SHA256.digest(key.publicKey.rawBytes).bytes.prefix(8))
            keys.append(
                Keyset.Key(purpose: .policy, id: id, state: .active, publicKey: key.publicKey.rawBytes))
            let signer = try #require(NoteSigner(name: "policy-\(id)", key: key))
            let signature = try signer.sign(PolicySignature.Statement(role, of: bundle).text)
            approvals.append(
                BundleApproval(
                    key: "policy-\(id)", role: Code(role), signature: Base64.encode(signature.bytes)))
        }
        return (approvals, keys)
    }

    private func differences(_ approvals: [BundleApproval], listing keys: [Keyset.Key]) throws -> [String] {
        var audit = ApprovalAudit(
            try Keyset(gateway: "test.example", version: 1, issuedAt: 1, expiresAt: 2, keys: keys))
        let entry = PolicyEntry(policy: policy.digest, approvals: approvals, version: policy.bundle.version)
        let bytes = try entry.bytes(index: 9, time: Instant(milliseconds: 1))
        try audit.look(at: TrailEntry(reading: bytes)) { $0 == policy.digest ? policy : nil }
        return audit.differences
    }

    @Test func `a bundle in force is one that the listed policy keys signed in every role`() throws {
        let (approvals, keys) = try approvals(of: policy.bundle)
        #expect(try differences(approvals, listing: keys).isEmpty)
        // In development nobody signs, and no key that could is listed.
        #expect(try differences([], listing: []).isEmpty)
        #expect(try differences([], listing: keys).count == 3)
        for place in approvals.indices {
            let role = approvals[place].role
            var fewer = approvals
            fewer.remove(at: place)
            #expect(
                try differences(fewer, listing: keys)
                    == ["entry 9 puts a bundle in force that nobody approved as `\(role)`"])
            // A signature over another bundle, or as another role, or none.
            for signature in [try self.approvals(of: loosened().bundle).approvals[0].signature, nil, "AAAA"] {
                var forged = approvals
                forged[place].signature = signature
                let found = try differences(forged, listing: keys)
                #expect(
                    found.count == 1 && found[0].contains("has no signature by that key over it"), "\(found)")
            }
        }
        let unlisted = try differences(approvals, listing: Array(keys.dropLast()))
        #expect(unlisted.contains { $0.contains("which the keyset does not have as genuine") }, "\(unlisted)")
    }
}
