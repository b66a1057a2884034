import GateVocabulary
import PayloadSealing
import Synchronization

/// Device keys as OpenSSL wants them, kept while they are in use: importing one costs a quarter of a seal.
///
/// Bounded; when full, everything is forgotten and what is used comes back.
package final class SealingKeys: Sendable {
    /// 16,384 keys, about 2 KiB each in OpenSSL.
    private static let countMax = 16_384

    private let keys = Mutex<[KeyID: DeviceSealingKey]>([:])

    package init() {}

    /// - Throws: When the stored bytes are no key, which registration made sure of once.
    func key(for record: DeviceKeyRecord) throws -> DeviceSealingKey {
        if let known = keys.withLock({ $0[record.key] }) { return known }
        let key = try DeviceSealingKey(
            DevicePublicKey(validatedBefore: record.publicKey, suite: BatchContext.suite(record.suite)))
        keys.withLock { keys in
            if keys.count >= Self.countMax { keys.removeAll(keepingCapacity: true) }
            keys[record.key] = key
        }
        return key
    }
}
