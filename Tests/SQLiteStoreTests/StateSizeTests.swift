import BundleModel
import CompliancePolicy
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import GateRecords
import Testing

@testable import SQLiteStore

/// How large the one row of a person gets.
@Suite struct StateSizeTests {
    /// Twenty devices with a key each, twenty addresses, a word for each purpose of the repository's bundle at each address, and
    /// a choice for each of its categories and types at each device and address.
    ///
    /// - Parameter keyCount: Keys that were registered in all.
    private static func largest(keyCount: Int = 20) throws -> RecipientState {
        let bundle = try Repository.policy().bundle
        let subject = SubjectID.sample(1)
        let devices = (0..<20).map { number in
            DeviceRecord(
                subject: subject, tag: .sample(number), id: DestinationID("device-\(number)"),
                platform: .ios, app: "no.getdrop.app", token: String(repeating: "a", count: 64),
                region: RegionObservation(code: RegionCode("NO")!, source: .kyc, observedAt: .sample),
                timeZone: "Europe/Oslo", osPermission: .granted, criticalAlerts: true, isActive: true,
                seenAt: .sample)
        }
        let addresses = (0..<20).map { number in
            AddressRecord(
                subject: subject, tag: .sample(100 + number), id: DestinationID("address-\(number)"),
                channel: number.isMultiple(of: 2) ? .sms : .email, value: "someone.\(number)@example.com",
                verifiedAt: .sample, contestedAt: .sample, updatedAt: .sample)
        }
        let keys = (0..<keyCount).map { number in
            DeviceKeyRecord(
                key: .sample(1_000 + number), subject: subject, device: .sample(number % 20),
                suite: "P256_SHA256_AES256GCM", publicKey: [UInt8](repeating: 4, count: 65),
                state: "active", challenge: nil, createdAt: .sample, changedAt: .sample)
        }
        let places = devices.map { (Channel.push, $0.tag) } + addresses.map { ($0.channel, $0.tag) }
        let consents = Set(bundle.noticePurposes.values.joined()).flatMap { purpose in
            addresses.map { address in
                ConsentRecord(
                    subject: subject, id: "", idTag: address.tag, purpose: purpose, channel: address.channel,
                    address: address.tag, state: .given, eventTime: .sample, receivedAt: .sample,
                    method: .webForm, source: CallerName("product"), jurisdiction: nil, notice: nil,
                    expiresAt: .sample, withdraws: nil, previousHash: "")
            }
        }
        let scopes = Category.allCases.map(\.rawValue) + bundle.types.keys.map(\.text).sorted()
        let preferences = scopes.flatMap { scope in
            places.map { channel, tag in
                PreferenceRecord(
                    subject: subject, scope: scope, channel: channel, destination: tag, state: .userOff,
                    source: .inAppSettings, at: .sample, caller: CallerName("product"))
            }
        }
        var state = RecipientState(subject)
        state.apply(
            .recipient(
                RecipientRecord(
                    subject: subject, region: nil, age: .adult, locale: "nb-NO", timeZone: "Europe/Oslo",
                    privacy: .full, pushEnabled: true, quietHours: QuietHours(startMinute: 1, endMinute: 2),
                    registeredAt: .sample, updatedAt: .sample), action: .registered))
        for device in devices { state.apply(.device(device, action: .registered)) }
        for address in addresses { state.apply(.address(address, action: .registered, replaced: nil)) }
        for key in keys { state.apply(.deviceKey(key, proof: nil, by: nil)) }
        for consent in consents { state.apply(.consent(consent)) }
        for preference in preferences { state.apply(.preference(preference)) }
        return state
    }

    @Test func `the largest state that a person comes to is a third of what is held, and reads back`() throws
    {
        let state = try Self.largest()
        #expect(state.preferences.count > 2_500 && state.consentsInForce.byScope.count > 100)
        let byteCount = state.sealedFields.count
        #expect((RecipientState.byteCountMax / 10...RecipientState.byteCountMax / 3).contains(byteCount))
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { step in
            _ = try step.makeSubject(for: UserID("u"), subject: state.subject)
            try step.put(state)
        }
        #expect(try store.read { try $0.state(of: state.subject) } == state)
    }

    @Test func `ten thousand registrations of one device leave a state of a few kilobytes`() throws {
        let subject = SubjectID.sample(1)
        let device = try #require(try Self.largest().devices.first)
        var state = RecipientState(subject)
        state.apply(.device(device, action: .registered))
        var byteCountMax = 0
        for number in 0..<10_000 {
            // As a step does: a registration, and the security team's word for it.
            for key in state.surplusKeys() { state.apply(.deviceKeyForgotten(key)) }
            let now = Instant.sample.advanced(bySeconds: Int64(number))
            if var old = state.keys.last {
                (old.state, old.changedAt) = ("deactivated", now)
                state.apply(.deviceKey(old, proof: nil, by: .init(event: .deactivate, cause: .rotation)))
            }
            let key = DeviceKeyRecord(
                key: .sample(1_000 + number), subject: subject, device: device.tag,
                suite: "P256_SHA256_AES256GCM", publicKey: [UInt8](repeating: 4, count: 65), state: "active",
                challenge: nil, createdAt: now, changedAt: now)
            state.apply(.deviceKey(key, proof: nil, by: .init(event: .promote)))
            if number.isMultiple(of: 50) { byteCountMax = max(byteCountMax, state.sealedFields.count) }
        }
        let kept = RecipientState.endedKeyCountMax + 2
        #expect(state.keys.map(\.key) == (10_000 - kept..<10_000).map { .sample(1_000 + $0) })
        #expect(state.keys.map(\.state).filter { $0 == "active" }.count == 1)
        #expect(byteCountMax < 16 * 1024, "\(byteCountMax)")
    }

    @Test func `a state from before there was a bound comes under it step by step`() throws {
        var state = try Self.largest(keyCount: 0)
        let removed = (0..<4_000).map { number in
            DeviceKeyRecord(
                key: .sample(1_000 + number), subject: state.subject, device: .sample(500 + number % 7),
                suite: "P256_SHA256_AES256GCM", publicKey: [UInt8](repeating: 4, count: 65), state: "active",
                challenge: nil, createdAt: .sample, changedAt: .sample)
        }
        for key in removed { state.apply(.deviceKey(key, proof: nil)) }
        while true {
            let surplus = state.surplusKeys()
            guard !surplus.isEmpty else { break }
            #expect(surplus.count <= RecipientState.surplusKeyCountMax)
            // What had not ended is destroyed by what lets go of it.
            #expect(surplus.allSatisfy { $0.state == "destroyed" })
            for key in surplus { state.apply(.deviceKeyForgotten(key)) }
        }
        // Those that were registered last stay, for the limit of registrations.
        #expect(state.keys == removed.suffix(RecipientState.removedDeviceKeyCountMax))
    }

    @Test
    func
        `all the keys that are kept of a person take the largest state to no more than half of what is held`()
        throws
    {
        // Of each of 20 devices: one in use, four to be proved, those that ended; and those of removed devices.
        let count = 20 * (RecipientState.endedKeyCountMax + 6) + RecipientState.removedDeviceKeyCountMax
        let byteCount = try Self.largest(keyCount: count).sealedFields.count
        #expect(byteCount < RecipientState.byteCountMax / 2, "\(byteCount)")
    }

    @Test func `a state beyond what is held is refused in words, and the one before stays`() throws {
        let state = try Self.largest()
        let beyond = try Self.largest(keyCount: 10_000)
        #expect(beyond.sealedFields.count > RecipientState.byteCountMax)
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { step in
            _ = try step.makeSubject(for: UserID("u"), subject: state.subject)
            try step.put(state)
        }
        let refusal = #expect(throws: (any Error).self) { try store.write { try $0.put(beyond) } }
        #expect("\(try #require(refusal))".contains("at most \(RecipientState.byteCountMax) are held"))
        #expect(try store.read { try $0.state(of: state.subject) } == state)
    }
}
