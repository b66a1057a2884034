import GateSteps
import Synchronization

/// The data keys of a store: the one that seals, and those that only open.
///
/// Another key seals from the end of a commit on, so what one transaction reads and writes is under one and the same
/// ``RowCipher``, which each takes when it begins.
final class DataKeys: Sendable {
    private let state: Mutex<RowCipher>

    init(_ cipher: RowCipher) { state = Mutex(cipher) }

    var cipher: RowCipher { state.withLock { $0 } }

    /// Adds a key that may be promoted later.
    func add(_ key: RowCipher.Key) { state.withLock { $0.add(key) } }

    /// Has `id` seal from now on; keys that were added meanwhile stay.
    func promote(_ id: String) {
        state.withLock { cipher in
            guard let next = cipher.promoting(id) else { return }
            cipher = next
        }
    }

    /// The setting that names the sealing key: files in the key directory do not say it.
    static let settingName = "data_key"

    private static let setting = StatementText(
        Schema.setting.name, "SELECT value FROM setting WHERE name = ?")

    /// The cipher with the key that sealed last, when the store has been told of one.
    ///
    /// - Throws: ``StoreOpeningError`` when that key is not loaded.
    static func resumed(_ cipher: RowCipher, in gate: Connection) throws -> RowCipher {
        guard let key = try gate.first(setting, { $0.add(settingName) }, read: { $0.text() }) else {
            return cipher
        }
        guard let resumed = cipher.promoting(key) else { throw StoreOpeningError.missingDataKey(id: key) }
        return resumed
    }
}
