import CanonicalJSON
import Dispatch
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import PayloadSealing
import RecipientModel
import SQLiteStore
import SealedFormat
import Synchronization

/// The rows one send leaves behind, as long as a real one's.
struct SendRows {
    var entry: [UInt8]
    /// Of the outbox: provider headers, provider body and facts, all canonical JSON.
    var headers: [UInt8]
    var body: [UInt8]
    var facts: [UInt8]

    /// - Parameters:
    ///   - entry: Of the trail.
    ///   - message: As it was handed over.
    init(entry: [UInt8], message: JSONObject) throws {
        guard case .object(let object) = try CanonicalJSON.read(entry) else {
            throw CommandFailure("an entry of the trail is not an object")
        }
        self.entry = entry
        headers = CanonicalJSON.write(.object(message["headers"]?.objectValue ?? [:]))
        body = CanonicalJSON.write(.object(message["body"]?.objectValue ?? [:]))
        // The outbox keeps one object where the entry keeps the shared facts and the destination's apart.
        facts =
            CanonicalJSON.write(.object(object["facts"]?.objectValue ?? [:]))
            + CanonicalJSON.write(
                .object(object["deliveries"]?.arrayValue?.first?["facts"]?.objectValue ?? [:]))
    }
}

/// What the machine could do with nothing in the way: the same rows, written in a bare loop.
struct BenchFloor {
    /// A fresh directory is made here, on the disk the gateway used.
    let folder: String

    /// People who exist before the loop starts, so that it does not pay for making them.
    private static let personCountMax = 10_000

    /// Sends a second when one thread writes their rows through the store port, `batch` to a transaction.
    ///
    /// - Parameters:
    ///   - refusedPercent: So many of a hundred leave an entry and a send, and nothing else.
    ///   - seconds: How long to write.
    func rowsPerSecond(
        _ rows: SendRows, batch: Int, refusedPercent: Int, people: Int, seconds: Double
    ) throws -> Double {
        let path = folder + "/floor"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let store = try SQLiteStore(
            directory: path,
            cipher: RowCipher(
                current: .init(id: "bench", key: try AES256GCMKey(SecretBytes.random(byteCount: 32)))),
            indexKey: HMACKey(try SecretBytes.random(byteCount: 32)))
        defer { store.close() }
        var random = SplitMix(state: 1)
        let start = Instant(seconds: Int64(Date().timeIntervalSince1970))
        let subjects = (0..<min(people, Self.personCountMax)).map { _ in
            SubjectID(high: random.next(), low: random.next())
        }
        try store.write { transaction in
            for subject in subjects {
                let record = RecipientRecord(
                    subject: subject, region: nil, age: nil, locale: nil, timeZone: nil, privacy: .full,
                    pushEnabled: true, quietHours: nil, registeredAt: start, updatedAt: start)
                try transaction.apply(.recipient(record, action: .registered), to: subject)
            }
        }
        let leaf = SHA256.digest(rows.entry).bytes
        let begin = Load.now()
        let end = begin + UInt64(seconds * 1e9)
        var count = 0
        while Load.now() < end {
            try store.write { transaction in
                for _ in 0..<batch {
                    let subject = subjects[Int(random.next() % UInt64(subjects.count))]
                    try Self.write(
                        rows, number: count, of: subject, isRefused: random.next() % 100 < refusedPercent,
                        leaf: leaf, at: start, in: transaction, &random)
                    count += 1
                }
            }
        }
        return Double(count) / (Double(Load.now() - begin) / 1e9)
    }

    private static func write(
        _ rows: SendRows, number: Int, of subject: SubjectID, isRefused: Bool, leaf: [UInt8],
        at now: Instant, in transaction: StepView, _ random: inout SplitMix
    ) throws {
        func bytes(_ count: Int) -> [UInt8] {
            (0..<(count / 8)).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
        }
        let send = SendID(high: random.next(), low: random.next())
        let tag = Tag(high: subject.low, low: subject.high)
        let type: TypeID = isRefused ? TypeID("promo.offer") : TypeID("statement.available")
        let category: GateVocabulary.Category = isRefused ? .marketing : .transactional
        let caller = DevelopmentGateway.caller
        transaction.append(
            try NewEntry(at: now, expectedIndex: transaction.upcomingIndex) { _, _ in rows.entry })
        try transaction.insertSend(
            SendRecord(
                id: send, caller: caller, idHash: bytes(16), contentMAC: bytes(32), subject: subject,
                type: type, category: category, channel: .push, receivedAt: now,
                entryIndex: UInt64(number), requestID: "bench-floor-\(number)",
                destinationNames: [tag: BenchGateway.device]))
        if isRefused { return }
        try transaction.insertOutbox(
            OutboxRecord(
                message: MessageID(high: random.next(), low: random.next()), send: send, subject: subject,
                destination: tag,
                request: AttestedRequest(caller: caller, type: type, channel: .push, critical: false),
                category: category, tier: .informational, state: .ready, form: .full,
                interruption: .active, key: nil, headers: rows.headers, body: rows.body, facts: rows.facts,
                decidedAt: now, notBefore: now, expiresAt: now.advanced(bySeconds: 86_400)))
        try transaction.countForward(of: subject, type: type, category: category, at: now, send: send)
        try transaction.appendEvent(
            EventRecord(
                caller: caller, send: send, subject: subject, event: .handedOver,
                destination: tag, at: now, reason: nil))
    }
}

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
