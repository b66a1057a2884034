import Dispatch
import GateVocabulary
import OpenSSLCrypto
import PayloadSealing
import SealedFormat
import Synchronization

/// Sealing 512 bytes to a P-256 key, against what no sealing can do without.
struct SealingFloor {
    /// Messages a second on one thread, and on two.
    var sealedPerSecond: Double
    var sealedPerSecondOnTwo: Double
    /// P-256 key generation, ECDH and an Ed25519 signature, on one thread.
    var floorPerSecond: Double

    static let contentByteCount = 512

    static func measure(seconds: Double) throws -> SealingFloor {
        let signer = try Ed25519PrivateKey.generate()
        let origin = try OriginSigner(keyID: Array(signer.publicKey.rawBytes.prefix(8)), privateKey: signer)
        let device = try AgreementPrivateKey.generate(curve: .p256).publicKey
        let key = try DeviceSealingKey(DevicePublicKey(validating: device.rawBytes, suite: .p256))
        let content = [UInt8](repeating: UInt8(ascii: "x"), count: contentByteCount)

        let seal: @Sendable () throws -> Double = {
            var sealer = try Sealer()
            var number: UInt64 = 0
            return try rate(seconds) {
                number += 1
                _ = try sealer.seal(
                    content, to: key, purpose: .notification, app: BenchGateway.app,
                    device: DestinationID(BenchGateway.device), keyID: KeyID(high: 1, low: 1),
                    messageID: MessageID(high: 1, low: number), expiresAt: 1_900_000_000, origin: origin)
            }
        }
        var agreement = try EphemeralAgreement(curve: .p256)
        var publicKey = [UInt8](repeating: 0, count: AgreementCurve.p256.publicKeyByteCount)
        var secret = [UInt8](repeating: 0, count: AgreementCurve.sharedSecretByteCount)
        let floor = try rate(seconds) {
            try publicKey.withUnsafeMutableBytes { publicKey in
                try secret.withUnsafeMutableBytes { secret in
                    try agreement.agree(with: device, publicKey: publicKey, sharedSecret: secret)
                }
            }
            _ = try signer.sign(content)
        }
        let one = try seal()
        let both = Mutex<[Result<Double, any Error>]>([])
        DispatchQueue.concurrentPerform(iterations: 2) { _ in
            let result = Result { try seal() }
            both.withLock { $0.append(result) }
        }
        let two = try both.withLock { try $0.reduce(0) { try $0 + $1.get() } }
        return SealingFloor(sealedPerSecond: one, sealedPerSecondOnTwo: two, floorPerSecond: floor)
    }

    private static func rate(_ seconds: Double, _ body: () throws -> Void) rethrows -> Double {
        let begin = Load.now()
        let end = begin + UInt64(seconds * 1e9)
        var count = 0
        repeat {
            for _ in 0..<16 { try body() }
            count += 16
        } while Load.now() < end
        return Double(count) / (Double(Load.now() - begin) / 1e9)
    }
}
