import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateTestKit
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import PolicyProof
import Testing

@testable import sendgate

/// A proof that an earlier start made counts for the same bundle, build and gateway, and for nothing else.
@Suite struct KeptProofsTests {
    private let folder: TemporaryFolder
    private let key: HMACKey
    private let proofs: KeptProofs

    init() throws {
        folder = try TemporaryFolder()
        key = HMACKey(try .random(byteCount: 32))
        proofs = KeptProofs(in: folder.root, key: key)
    }

    private func digest(_ number: Int) -> PolicyDigest {
        PolicyDigest(String(repeating: "0", count: 60) + String(1000 + number))
    }

    @Test func `what was added is found again, by its own digest and grain alone`() {
        #expect(!proofs.contains(digest(1), grain: .reasons))
        proofs.add(digest(1), grain: .reasons)
        #expect(KeptProofs(in: folder.root, key: key).contains(digest(1), grain: .reasons))
        #expect(!proofs.contains(digest(1), grain: .effects))
        #expect(!proofs.contains(digest(2), grain: .reasons))
    }

    @Test func `a line of another gateway's, or one that was edited, is no proof`() throws {
        proofs.add(digest(1), grain: .reasons)
        #expect(
            !KeptProofs(in: folder.root, key: HMACKey(try .random(byteCount: 32))).contains(
                digest(1), grain: .reasons))
        try folder.edit(KeptProofs.fileName, digest(1).text, digest(2).text)
        #expect(!proofs.contains(digest(1), grain: .reasons))
        #expect(!proofs.contains(digest(2), grain: .reasons))
    }

    @Test func `a proof of another build is none, and without a build nothing is kept`() throws {
        let old = KeptProofs(in: folder.root, key: key, build: SHA256.digest(Array("the build before".utf8)))
        old.add(digest(1), grain: .reasons)
        #expect(old.contains(digest(1), grain: .reasons))
        #expect(!proofs.contains(digest(1), grain: .reasons))
        let unknown = KeptProofs(in: folder.root, key: key, build: nil)
        unknown.add(digest(2), grain: .reasons)
        #expect(
            !unknown.contains(digest(1), grain: .reasons) && !unknown.contains(digest(2), grain: .reasons))
    }

    @Test func `only the newest are kept, and a file of anything is no obstacle`() throws {
        _ = try folder.file(KeptProofs.fileName, String(repeating: "x\n\u{0}", count: 50_000))
        for number in 0...KeptProofs.countMax { proofs.add(digest(number), grain: .reasons) }
        #expect(!proofs.contains(digest(0), grain: .reasons))
        for number in 1...KeptProofs.countMax { #expect(proofs.contains(digest(number), grain: .reasons)) }
    }

    @Test func `the log hears of a proof each second from the first on, and not of its end`() {
        let start = ContinuousClock.now
        var progress = ProofProgress(from: start)
        func line(_ done: UInt64, after milliseconds: Int64) -> String? {
            progress.line(done, of: 1_000, at: start + .milliseconds(milliseconds))
        }
        #expect(line(10, after: 999) == nil)
        #expect(line(20, after: 1_000)?.hasSuffix(": 2 % of 1000 states") == true)
        #expect(line(500, after: 1_999) == nil)
        #expect(line(999, after: 2_000)?.hasSuffix(": 99 % of 1000 states") == true)
        #expect(line(1_000, after: 3_000) == nil)
    }

    /// The bundle of the tests breaks statutes, so that only a kept proof can let it pass.
    @Test func `a kept proof is asked before a bundle is proved, and a forged one proves nothing`() throws {
        let policy = try TestBundle.minimal.compile()
        let forged = KeptProofs(in: folder.root, key: HMACKey(try .random(byteCount: 32)))
        forged.add(policy.digest, grain: ProvedBundles.grain)
        #expect(throws: PolicyDiagnostics.self) { try ProvedBundles.demand(policy, keptIn: proofs) }
        proofs.add(policy.digest, grain: ProvedBundles.grain)
        try ProvedBundles.demand(policy, keptIn: proofs)
    }

    @Test func `what was refused is refused again, with kept proofs and without, and leaves none`() throws {
        let policy = try TestBundle.minimal.setting("bundle.yaml", "name", to: "refused-again").compile()
        for kept in [nil, proofs, nil, proofs] {
            #expect(throws: PolicyDiagnostics.self) { try ProvedBundles.demand(policy, keptIn: kept) }
        }
        #expect(!proofs.contains(policy.digest, grain: ProvedBundles.grain))
    }

    @Test func `a gateway's first start keeps the proof of its bundle`() async throws {
        let gateway = try await GatewayFixture(in: folder.root)
        let text = try String(
            contentsOfFile: folder.path("gate/state/\(KeptProofs.fileName)"), encoding: .utf8)
        #expect(text.split(separator: "\n").count == 1)
        #expect(text.hasPrefix(gateway.wiring.policy.current.digest.text + " "))
        try await gateway.stop()
    }
}
