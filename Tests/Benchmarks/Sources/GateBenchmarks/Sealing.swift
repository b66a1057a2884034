import Foundation
import GateVocabulary
import OpenSSLCrypto
import SealedFormat
import Synchronization

/// Sealing 512 bytes to a P-256 key, against the three operations no sealing can do without.
struct Sealing {
    private static let calls = 2_000
    private let origin: OriginSigner
    private let signer: Ed25519PrivateKey
    private let device: AgreementPublicKey
    private let key: DeviceSealingKey
    private let content = [UInt8](repeating: UInt8(ascii: "x"), count: 512)

    init() throws {
        signer = try Ed25519PrivateKey.generate()
        origin = try OriginSigner(keyID: Array(signer.publicKey.rawBytes.prefix(8)), privateKey: signer)
        device = try AgreementPrivateKey.generate(curve: .p256).publicKey
        key = try DeviceSealingKey(DevicePublicKey(validating: device.rawBytes, suite: .p256))
    }

    func findings() throws -> [Finding] {
        var agreement = try EphemeralAgreement(curve: .p256)
        var publicKey = [UInt8](repeating: 0, count: AgreementCurve.p256.publicKeyByteCount)
        var secret = [UInt8](repeating: 0, count: AgreementCurve.sharedSecretByteCount)
        let floor = try Stopwatch.nanoseconds { _ in
            try publicKey.withUnsafeMutableBytes { publicKey in
                try secret.withUnsafeMutableBytes { secret in
                    try agreement.agree(with: device, publicKey: publicKey, sharedSecret: secret)
                }
            }
            Stopwatch.consume(try signer.sign(content).count)
        }
        var sealer = try Sealer()
        let one = try Stopwatch.nanoseconds { call in
            Stopwatch.consume(try seal(with: &sealer, number: call))
        }
        // Two threads are measured by the clock on the wall, or their waiting for each other would not show.
        let alone = try wallSeconds(threads: 1)
        let together = try wallSeconds(threads: 2)
        let scaling = 2 * alone / together
        return [
            .ratio(
                "seal 512 B, P-256, one thread", nanoseconds: one, floor: floor,
                "key generation + ECDH + Ed25519", atLeast: 0.8),
            Finding(
                what: "seal 512 B, P-256, two threads",
                measured: "\(Int(2 * Double(Self.calls) / together))/s",
                floor: "\(Int(100 * scaling)) % of one thread", promise: "at least 180 %, on two free cores",
                isKept: scaling >= 1.8),
        ]
    }

    private func seal(with sealer: inout Sealer, number: Int) throws -> Int {
        try sealer.seal(
            content, to: key, purpose: .notification, app: "no.getdrop.app", device: DestinationID("d_1"),
            keyID: KeyID(high: 1, low: 1), messageID: MessageID(high: 1, low: UInt64(number)),
            expiresAt: 1_900_000_000, origin: origin
        ).count
    }

    /// The best of three rounds in which every thread seals ``calls`` contents.
    private func wallSeconds(threads: Int) throws -> Double {
        var best = Double.infinity
        for _ in 0..<3 {
            let failure = Mutex<(any Error)?>(nil)
            let time = ContinuousClock().measure {
                DispatchQueue.concurrentPerform(iterations: threads) { _ in
                    do {
                        var sealer = try Sealer()
                        for call in 0..<Self.calls {
                            Stopwatch.consume(try seal(with: &sealer, number: call))
                        }
                    } catch {
                        failure.withLock { $0 = error }
                    }
                }
            }
            if let error = failure.withLock({ $0 }) { throw error }
            best = min(best, time / .seconds(1))
        }
        return best
    }
}
