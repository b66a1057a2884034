import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto

@testable import SQLiteStore
import GateRecords

/// A folder that goes away with the test.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "sendgate-sqlite-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var state: String { path + "/state" }
}

/// Something a test throws on purpose.
struct Interrupted: Error, Equatable {}

extension RowCipher.Key {
    /// A data key told apart by a number.
    static func test(_ number: UInt8) throws -> RowCipher.Key {
        let key = try AES256GCMKey(SecretBytes(copying: [UInt8](repeating: number, count: 32)))
        return RowCipher.Key(id: "data-test-\(number)", key: key)
    }
}

extension HMACKey {
    static func test(_ number: UInt8 = 9) -> HMACKey {
        HMACKey(SecretBytes(copying: [UInt8](repeating: number, count: 32)))
    }
}

func openStore(
    _ path: String, key: UInt8 = 1, older: [UInt8] = [], index: UInt8 = 9,
    limits: SQLiteStoreLimits = SQLiteStoreLimits(readerCount: 2)
) throws -> SQLiteStore {
    try SQLiteStore(
        directory: path, cipher: RowCipher(current: .test(key), older: older.map { try .test($0) }),
        indexKey: .test(index), limits: limits)
}

/// A connection to one file with the key of its pages, as an attacker has who has that key.
/// The log of a closed store is not held against a mark afterwards.
///
/// - Parameter movingLog: Whether nothing is left in the log, as after a program that ended by itself.
func tamper<Value>(_ path: String, movingLog: Bool = false, _ body: (Connection) throws -> Value) throws
    -> Value
{
    let connection = try tampering(path, file: "tampered")
    defer { connection.close(movingLog: movingLog) }
    return try connection.exclusively {
        try connection.script(StoreTampering.begin)
        let result = Result { try body(connection) }
        try connection.script(StoreTampering.end)
        return try result.get()
    }
}

private func tampering(_ path: String, file: String) throws -> Connection {
    try? FileManager.default.removeItem(atPath: path + LogMark.suffix)
    return try Connection(
        path: path, file: file, role: .writer(byteCountMax: nil), cacheByteCount: 1 << 20,
        busyTimeoutMilliseconds: 100, pages: .test(path))
}

extension PageFile {
    /// The pages of a file that ``openStore(_:key:older:index:limits:)`` makes.
    static func test(_ path: String) throws -> PageFile {
        let keys = PageKeys(index: .test(), file: (path as NSString).lastPathComponent)
        return try PageFile(keys, logEnd: LogEnd())
    }
}

extension RandomIdentifier {
    static func sample(_ number: Int) -> Self { Self(high: 0x5EED, low: UInt64(number)) }
}

extension Instant {
    static let sample = Instant(seconds: 1_772_485_200)
}

/// Words that must never be readable in a file.
enum Canary {
    static let user = "canary-user-8812736"
    static let token = "canary-token-0f1e2d3c"
    static let device = "canary-device-name"
    static let phone = "+47 912 34 567 canary"
    static let address = "canary-address-name"
    static let request = "canary-request-id"
    static let headers = "canary-header-value"
    static let body = "canary-body Ahmad Karimi 5000.00 NOK"
    static let facts = "canary-facts"
    static let consent = "canary-consent-id"
    static let type = "canary.unknown.type"
    static let reason = "canary-reason-of-provider"
    static let locale = "canary-locale"
    static let zone = "Canary/Zone"
    static let proof = "canary-proof-canary-proof-32byte"
    static let scope = "canary-scope"

    static let all = [
        user, token, device, phone, address, request, headers, body, facts, consent, type, reason, locale,
        zone, proof, scope,
    ]
}

extension GateMemory {
    /// Puts every canary where it belongs: one person, one send, one waiting message.
    @discardableResult
    func putCanaries(_ number: Int = 1) throws -> SubjectID {
        let subject = try makeSubject(for: UserID(Canary.user + "-\(number)"), subject: .sample(number)).id
        try putRecipient(
            RecipientRecord(
                subject: subject,
                region: RegionObservation(code: RegionCode("DE")!, source: .kyc, observedAt: .sample),
                age: .minor, locale: Canary.locale, timeZone: Canary.zone, privacy: .generic,
                pushEnabled: true, quietHours: QuietHours(startMinute: 1, endMinute: 2),
                registeredAt: .sample, updatedAt: .sample))
        try putDevice(
            DeviceRecord(
                subject: subject, tag: .sample(1), id: DestinationID(Canary.device), platform: .android,
                app: "no.getdrop.app", token: Canary.token, region: nil, timeZone: Canary.zone,
                osPermission: .granted, criticalAlerts: false, isActive: true, seenAt: .sample))
        try putAddress(
            AddressRecord(
                subject: subject, tag: .sample(2), id: DestinationID(Canary.address), channel: .sms,
                value: Canary.phone, verifiedAt: .sample, contestedAt: .sample, updatedAt: .sample))
        try putDeviceKey(
            DeviceKeyRecord(
                key: .sample(1000 + number), subject: subject, device: .sample(1),
                suite: "P256_SHA256_AES256GCM", publicKey: [UInt8](repeating: 4, count: 65),
                state: "pre_activation",
                challenge: DeviceKeyRecord.PendingChallenge(
                    expectedProof: Array(Canary.proof.utf8), expectedOldKeyProof: nil, oldKey: nil,
                    expiresAt: .sample),
                createdAt: .sample, changedAt: .sample))
        try appendConsent(
            ConsentRecord(
                subject: subject, id: Canary.consent, idTag: .sample(3), purpose: .marketing, channel: .push,
                address: nil, state: .given, eventTime: .sample, receivedAt: .sample, method: .inAppToggle,
                source: CallerName("app"), jurisdiction: "DE", notice: nil, expiresAt: nil, withdraws: nil,
                previousHash: ""))
        try appendPreference(
            PreferenceRecord(
                subject: subject, scope: Canary.scope, channel: .push, destination: nil, state: .userOff,
                source: .inAppSettings, at: .sample, caller: CallerName("app")))
        insertSend(
            SendRecord(
                id: .sample(number), caller: CallerName("payments"), idHash: Tag.sample(number).bytes,
                contentMAC: [UInt8](repeating: 5, count: 32), subject: subject, type: TypeID(Canary.type),
                category: .transactional, channel: .push, receivedAt: .sample, entryIndex: 0,
                requestID: Canary.request, destinationNames: [.sample(1): Canary.device]))
        insertOutbox(.canary(number, of: number))
        appendEvent(
            EventRecord(
                caller: CallerName("payments"), send: .sample(number), subject: subject, event: .failed,
                destination: .sample(1), at: .sample, reason: Canary.reason))
        try appendEntry(
            StoredEntry(index: upcomingIndex, time: .sample, bytes: Array("{}".utf8)))
        return subject
    }
}

extension OutboxRecord {
    /// A message of the send and the person of a number.
    static func canary(_ message: Int, of number: Int) -> OutboxRecord {
        OutboxRecord(
            message: .sample(message), send: .sample(number), subject: .sample(number),
            destination: .sample(1),
            request: AttestedRequest(
                caller: CallerName("payments"), type: TypeID("transaction.failed"), channel: .push,
                critical: false),
            category: .transactional, tier: .important, state: .deferred, form: .full, interruption: .active,
            key: nil, headers: Array(Canary.headers.utf8), body: Array(Canary.body.utf8),
            facts: Array(Canary.facts.utf8), decidedAt: .sample, notBefore: .sample, expiresAt: .sample)
    }
}

/// Names of the files in a folder whose bytes contain `needle`.
func files(in folder: String, containing needle: [UInt8]) throws -> [String] {
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    return try names.sorted().filter { name in
        let bytes = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name))
        return bytes.range(of: Data(needle)) != nil
    }
}
