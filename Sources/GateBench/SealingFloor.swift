import Crypto
import Dispatch
import Foundation
import GateVocabulary
import OpenSSLCrypto
import PayloadSealing
import SealedFormat
import SealedPush
import Synchronization

/// Sealing and opening 512 bytes, against what neither can do without.
///
/// The gateway seals with OpenSSL and a phone opens with swift-crypto, so each is held against the same library's bare
/// operations.
struct SealingFloor {
    enum Direction: String, CaseIterable {
        /// The gateway's part. Its floor: an ephemeral key, the agreement, and an Ed25519 signature.
        case seal
        /// The phone's part. Its floor: reading the ephemeral key, the agreement, and verifying an Ed25519 signature.
        case open
    }

    /// Messages a second on one thread.
    struct Rate {
        var suite: SealingSuite
        var direction: Direction
        var perSecond: Double
        var floorPerSecond: Double
    }

    /// Both directions for each suite.
    var rates: [Rate]
    /// Sealed for the first suite, on two threads.
    var sealedPerSecondOnTwo: Double

    static let contentByteCount = 512

    /// - Parameter seconds: Of each measurement: four, each twice as long with its floor, and one on two threads.
    static func measure(seconds: Double) throws -> SealingFloor {
        var rates: [Rate] = []
        for suite in SealingSuite.allCases {
            let specimen = try SealingSpecimen(suite)
            for direction in Direction.allCases {
                let (perSecond, floor) =
                    switch direction {
                    case .seal: try specimen.sealing(seconds)
                    case .open: try specimen.opening(seconds)
                    }
                rates.append(
                    Rate(suite: suite, direction: direction, perSecond: perSecond, floorPerSecond: floor))
            }
        }
        let specimen = try SealingSpecimen(rates[0].suite)
        let both = Mutex<[Result<Double, any Error>]>([])
        DispatchQueue.concurrentPerform(iterations: 2) { _ in
            let result = Result { try specimen.sealed(seconds) }
            both.withLock { $0.append(result) }
        }
        let two = try both.withLock { try $0.reduce(0) { try $0 + $1.get() } }
        return SealingFloor(rates: rates, sealedPerSecondOnTwo: two)
    }
}

/// One suite's keys on both sides, and one content.
private struct SealingSpecimen: Sendable {
    private let suite: SealingSuite
    private let signer: Ed25519PrivateKey
    private let origin: OriginSigner
    private let recipient: DeviceSealingKey
    private let device: DeviceKey
    private let sharedSecret: @Sendable ([UInt8]) throws -> SharedSecret
    private let content: [UInt8]
    private let keyID = KeyID(high: 1, low: 1)
    private let now: UInt64 = 1_800_000_000
    private let expiresAt: UInt64 = 1_900_000_000

    /// Envelopes that are opened in turn: a phone has had some before.
    private static let envelopeCount = 64

    init(_ suite: SealingSuite) throws {
        self.suite = suite
        signer = try Ed25519PrivateKey.generate()
        origin = try OriginSigner(keyID: Array(signer.publicKey.rawBytes.prefix(8)), privateKey: signer)
        switch suite {
        case .p256:
            let key = P256.KeyAgreement.PrivateKey()
            device = try DeviceKey(keyID: IdentifierText.hexadecimal(keyID.bytes), privateKey: key)
            sharedSecret = {
                try key.sharedSecretFromKeyAgreement(
                    with: P256.KeyAgreement.PublicKey(x963Representation: $0))
            }
        case .x25519:
            let key = Curve25519.KeyAgreement.PrivateKey()
            device = try DeviceKey(keyID: IdentifierText.hexadecimal(keyID.bytes), privateKey: key)
            sharedSecret = {
                try key.sharedSecretFromKeyAgreement(
                    with: Curve25519.KeyAgreement.PublicKey(rawRepresentation: $0))
            }
        }
        recipient = try DeviceSealingKey(DevicePublicKey(validating: device.publicKey, suite: suite))
        // As a composed content, which states its own expiry.
        let start = #"{"expires_at":1900000000000,"text":""#
        let text = String(repeating: "x", count: SealingFloor.contentByteCount - start.utf8.count - 2)
        content = Array("\(start)\(text)\"}".utf8)
    }

    private func seal(with sealer: inout Sealer, number: UInt64) throws -> [UInt8] {
        try sealer.seal(
            content, to: recipient, purpose: .notification, app: BenchGateway.app,
            device: DestinationID(BenchGateway.device), keyID: keyID,
            messageID: MessageID(high: 1, low: number), expiresAt: expiresAt, origin: origin)
    }

    /// Sealed a second on one thread.
    func sealed(_ seconds: Double) throws -> Double {
        var sealer = try Sealer()
        var number: UInt64 = 0
        return try Self.rates(seconds) {
            number += 1
            _ = try seal(with: &sealer, number: number)
        } floor: {
        }.perSecond
    }

    func sealing(_ seconds: Double) throws -> (perSecond: Double, floorPerSecond: Double) {
        let peer = try AgreementPublicKey(validatedBefore: device.publicKey, curve: curve)
        var agreement = try EphemeralAgreement(curve: curve)
        var sealer = try Sealer()
        var number: UInt64 = 0
        var publicKey = [UInt8](repeating: 0, count: curve.publicKeyByteCount)
        return try Self.rates(seconds) {
            number += 1
            _ = try seal(with: &sealer, number: number)
        } floor: {
            try agree(by: &agreement, with: peer, into: &publicKey)
            _ = try signer.sign(content)
        }
    }

    func opening(_ seconds: Double) throws -> (perSecond: Double, floorPerSecond: Double) {
        let peer = try AgreementPublicKey(validatedBefore: device.publicKey, curve: curve)
        var agreement = try EphemeralAgreement(curve: curve)
        var sealer = try Sealer()
        var envelopes: [[UInt8]] = []
        var publicKeys: [[UInt8]] = []
        for number in 1...Self.envelopeCount {
            envelopes.append(try seal(with: &sealer, number: UInt64(number)))
            var publicKey = [UInt8](repeating: 0, count: curve.publicKeyByteCount)
            try agree(by: &agreement, with: peer, into: &publicKey)
            publicKeys.append(publicKey)
        }
        let opener = try SealedPushOpener(
            app: BenchGateway.app, device: BenchGateway.device, keys: [device],
            origins: [
                OriginKey(
                    keyID: IdentifierText.hexadecimal(origin.keyID), publicKey: signer.publicKey.rawBytes)
            ],
            seen: InMemorySeenMessages())
        let signature = try signer.sign(content)
        let verifier = try Curve25519.Signing.PublicKey(rawRepresentation: signer.publicKey.rawBytes)
        var (opened, agreed) = (0, 0)
        return try Self.rates(seconds) {
            let message = try opener.open(envelopes[opened % Self.envelopeCount], now: now).message
            precondition(message.content == content, "what was opened is not what was sealed")
            opened += 1
        } floor: {
            _ = try sharedSecret(publicKeys[agreed % Self.envelopeCount])
            precondition(verifier.isValidSignature(signature, for: content), "a signature does not verify")
            agreed += 1
        }
    }

    private var curve: AgreementCurve {
        switch suite {
        case .p256: .p256
        case .x25519: .x25519
        }
    }

    private func agree(
        by agreement: inout EphemeralAgreement, with peer: AgreementPublicKey, into publicKey: inout [UInt8]
    ) throws {
        var secret = [UInt8](repeating: 0, count: AgreementCurve.sharedSecretByteCount)
        try publicKey.withUnsafeMutableBytes { publicKey in
            try secret.withUnsafeMutableBytes { secret in
                try agreement.agree(with: peer, publicKey: publicKey, sharedSecret: secret)
            }
        }
    }

    /// Both in turn, a few at a time, so that whatever else the machine does slows both.
    ///
    /// - Parameter seconds: How long `body` takes in all.
    private static func rates(
        _ seconds: Double, _ body: () throws -> Void, floor: () throws -> Void
    ) rethrows -> (perSecond: Double, floorPerSecond: Double) {
        let nanoseconds = UInt64(seconds * 1e9)
        var (spent, spentOnFloor) = (UInt64(0), UInt64(0))
        var count = 0
        repeat {
            let begin = Load.now()
            for _ in 0..<16 { try body() }
            let middle = Load.now()
            for _ in 0..<16 { try floor() }
            spent += middle - begin
            spentOnFloor += Load.now() - middle
            count += 16
        } while spent < nanoseconds
        return (Double(count) * 1e9 / Double(spent), Double(count) * 1e9 / Double(max(spentOnFloor, 1)))
    }
}
