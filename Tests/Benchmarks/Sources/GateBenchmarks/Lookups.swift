import GateSteps
import GateVocabulary
import GatewayPipeline
import Glibc
import OpenSSLCrypto
import GateRecords
import SQLiteStore

/// Loading what is known of one person, among ten thousand and among a million.
struct Lookups {
    private static let at = Instant(seconds: 1_772_485_200)
    private static let lookupsPerRead = 64

    /// - Parameter folder: An existing one with room: a million people take about 700 MB.
    static func finding(in folder: String, people counts: (few: Int, many: Int)) throws -> Finding {
        let few = try nanoseconds(in: "\(folder)/few", people: counts.few)
        let many = try nanoseconds(in: "\(folder)/many", people: counts.many)
        let share = few / many
        return Finding(
            what: "load one of \(counts.many) people", measured: "\(Int(many)) ns",
            floor: "\(Int(100 * share)) % of the speed among \(counts.few), \(Int(few)) ns",
            promise: "more than 60 %", isKept: share > 0.6)
    }

    private static func nanoseconds(in path: String, people: Int) throws -> Double {
        let store = try SQLiteStore(
            directory: path,
            cipher: RowCipher(
                current: .init(id: "test-data", key: try AES256GCMKey(SecretBytes.random(byteCount: 32)))),
            indexKey: HMACKey(try SecretBytes.random(byteCount: 32)))
        defer { store.close() }
        for start in stride(from: 0, to: people, by: 2_000) {
            try store.write { transaction in
                for number in start..<min(start + 2_000, people) {
                    try register(number, in: transaction)
                }
            }
        }
        // A full period of a linear congruence walks over everybody in an order no cache has foreseen.
        var number = 0
        return try Stopwatch.nanoseconds { _ in
            try store.read { reading in
                for _ in 0..<lookupsPerRead {
                    number = (number &* 1_664_525 &+ 1_013_904_223) & 0x7FFF_FFFF
                    try look(up: number % people, in: reading)
                }
            }
        } / Double(lookupsPerRead)
    }

    private static func register(_ number: Int, in transaction: GateMemory) throws {
        let subject = SubjectID(high: UInt64(number), low: ~UInt64(number))
        transaction.add(
            Subject(id: subject, tagKey: try SecretBytes.random(byteCount: Subject.tagKeyByteCount)),
            for: UserID("u_\(number)"))
        let region = RegionObservation(code: RegionCode("DE")!, source: .kyc, observedAt: at)
        try transaction.apply(
            .recipient(
                RecipientRecord(
                    subject: subject, region: region, age: .adult, locale: "nb", timeZone: "Europe/Berlin",
                    privacy: .generic, pushEnabled: true, quietHours: nil, registeredAt: at, updatedAt: at),
                action: .registered), to: subject)
        try transaction.apply(
            .device(
                DeviceRecord(
                    subject: subject, tag: Tag(high: UInt64(number), low: 1),
                    id: DestinationID("d_\(number)"),
                    platform: .ios, app: "no.getdrop.app", token: "token-of-\(number)", region: region,
                    timeZone: "Europe/Berlin", osPermission: .granted, criticalAlerts: false, isActive: true,
                    seenAt: at), action: .registered), to: subject)
        try transaction.apply(
            .preference(
                PreferenceRecord(
                    subject: subject, scope: "marketing", channel: .push, destination: nil, state: .userOn,
                    source: .inAppSettings, at: at, caller: CallerName("product"))), to: subject)
    }

    /// What a send asks of the store before it is decided.
    private static func look(up number: Int, in reading: any StoreReading) throws {
        guard let subject = try reading.subject(of: UserID("u_\(number)"))?.id,
            try reading.recipient(subject) != nil
        else { preconditionFailure("person \(number) is not there") }
        for device in try reading.devices(of: subject) {
            Stopwatch.consume(try reading.deviceKeys(of: subject, device: device.tag).count)
        }
        Stopwatch.consume(try reading.consentRecords(of: subject).count)
        Stopwatch.consume(try reading.preferences(of: subject).count)
        Stopwatch.consume(
            try reading.forwardCounts(
                of: subject, type: TypeID("transaction.remittance_sent"), typeSince: at,
                category: .transactional, categorySince: at, besides: nil
            ).type)
    }
}
