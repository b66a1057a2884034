import SealedFormat

/// Which of its keys an app holds: the active one, and those it replaced while messages to them may be under way.
///
/// A value without private keys, to be stored where the app and its extension both read it. After the gateway confirmed
/// a new key, the app calls ``rotate(to:now:)`` and stores the result before it deletes anything.
public struct KeptDeviceKeys: Sendable, Hashable {
    /// The app's record of one key.
    public struct Key: Sendable, Hashable {
        /// As the gateway answered when the key was registered: 32 lower-case hexadecimal digits.
        public let keyID: String
        /// The suite it was registered with; see ``DeviceKey/suiteName``.
        public let suiteName: String
        /// Where the private key is: the Secure Enclave's `dataRepresentation`, which opens on this device alone, or the
        /// tag of a keychain item.
        ///
        /// - Warning: Never the private key's own bytes. What is stored here lies in a file.
        public let reference: [UInt8]
        /// Unix seconds by the device's clock; `nil` for the active key.
        public fileprivate(set) var retiredAt: UInt64?

        /// - Throws: ``SealedPushError/malformedConfiguration(detail:)`` for an id, a suite or a reference that cannot be one.
        public init(keyID: String, suiteName: String, reference: [UInt8]) throws(SealedPushError) {
            try self.init(keyID: keyID, suiteName: suiteName, reference: reference, retiredAt: nil)
        }

        private init(
            keyID: String, suiteName: String, reference: [UInt8], retiredAt: UInt64?
        ) throws(SealedPushError) {
            guard IdentifierText.bytes(hexadecimal: keyID)?.count == SealedLimits.identifierByteCount else {
                throw .malformedConfiguration(
                    detail: "a key id is 32 lower-case hexadecimal digits, not `\(keyID)`")
            }
            guard SealingSuite(rawValue: suiteName) != nil else {
                throw .malformedConfiguration(detail: "there is no suite `\(suiteName)`")
            }
            guard (1...KeptDeviceKeys.referenceByteCountMax).contains(reference.count) else {
                throw .malformedConfiguration(
                    detail: "a reference has 1 to \(KeptDeviceKeys.referenceByteCountMax) bytes")
            }
            self.keyID = keyID
            self.suiteName = suiteName
            self.reference = reference
            self.retiredAt = retiredAt
        }

        private enum CodingKeys: String, CodingKey {
            case keyID = "key_id"
            case suiteName = "suite"
            case reference
            case retiredAt = "retired_at"
        }
    }

    /// 28 days: the longest life of a message, which is what FCM and the gateway allow
    /// (`NotificationType.ttlSecondsMax`). The last message sealed to a key has expired this long after its retirement.
    public static let secondsKeptAfterRetirement: UInt64 = 28 * 86_400

    /// Retired keys that are kept: enough for one rotation a day for as long as a key is kept. Of more, the oldest is dropped.
    public static let retiredCountMax = 32

    /// The Secure Enclave's representation has about 300 bytes.
    public static let referenceByteCountMax = 4096

    /// The registered key; `nil` before the first registration.
    public private(set) var active: Key?
    /// Replaced keys, the latest first.
    public private(set) var retired: [Key]

    /// No keys, as before the first registration.
    public init() {
        active = nil
        retired = []
    }

    /// All that a message may still be sealed to, the active one first.
    public var all: [Key] { (active.map { [$0] } ?? []) + retired }

    /// Makes `key` the active one and retires the one before it. Called when the gateway has confirmed `key`.
    ///
    /// - Parameter now: Unix seconds by the device's clock.
    /// - Returns: The keys that are dropped. Delete what their references name, after the new value is stored.
    /// - Throws: ``SealedPushError/malformedConfiguration(detail:)`` for a key id that is kept already.
    public mutating func rotate(to key: Key, now: UInt64) throws(SealedPushError) -> [Key] {
        guard !all.contains(where: { $0.keyID == key.keyID }) else {
            throw .malformedConfiguration(detail: "the key `\(key.keyID)` is kept already")
        }
        guard key.retiredAt == nil else {
            throw .malformedConfiguration(detail: "the key `\(key.keyID)` was retired")
        }
        if var replaced = active {
            replaced.retiredAt = now
            retired.insert(replaced, at: 0)
        }
        active = key
        var dropped = dropExpired(now: now)
        while retired.count > Self.retiredCountMax { dropped.append(retired.removeLast()) }
        return dropped
    }

    /// Drops the keys that no unexpired message can be sealed to. Called at every start of the app.
    ///
    /// - Parameter now: Unix seconds by the device's clock. A clock that was set back drops nothing early.
    /// - Returns: The keys that are dropped. Delete what their references name, after the new value is stored.
    public mutating func dropExpired(now: UInt64) -> [Key] {
        func isOver(_ key: Key) -> Bool {
            guard let retiredAt = key.retiredAt, now >= retiredAt else { return false }
            return now - retiredAt >= Self.secondsKeptAfterRetirement
        }
        let dropped = retired.filter(isOver)
        retired.removeAll(where: isOver)
        return dropped
    }
}

extension KeptDeviceKeys.Key: Codable {
    /// Holds what was stored to the rules of the initializer.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        try self.init(
            keyID: values.decode(String.self, forKey: .keyID),
            suiteName: values.decode(String.self, forKey: .suiteName),
            reference: values.decode([UInt8].self, forKey: .reference),
            retiredAt: values.decodeIfPresent(UInt64.self, forKey: .retiredAt))
    }
}

extension KeptDeviceKeys: Codable {
    private enum CodingKeys: String, CodingKey { case active, retired }

    /// Refuses a record that this type does not write.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        active = try values.decodeIfPresent(Key.self, forKey: .active)
        retired = try values.decode([Key].self, forKey: .retired)
        guard active?.retiredAt == nil, retired.allSatisfy({ $0.retiredAt != nil }),
            retired.count <= Self.retiredCountMax, Set(all.map(\.keyID)).count == all.count
        else {
            throw SealedPushError.malformedConfiguration(
                detail: "the record of kept keys has one active key, at most \(Self.retiredCountMax) retired "
                    + "ones and no key twice")
        }
    }
}
