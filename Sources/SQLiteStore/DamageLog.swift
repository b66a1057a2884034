import GateSteps
import GatewayPipeline
import Synchronization

/// What was found damaged since the store opened, above all pages. Kept in memory only: after a restart a page that is still
/// damaged is found again, and one that a backup has mended is not.
final class DamageLog: Sendable {
    /// With more, a list helps no more: the remedy is a backup.
    static let countMax = 256

    private let found = Mutex<[StoredDamage]>([])
    private let isFound: @Sendable (StoredDamage) -> Void

    /// - Parameter isFound: Called once for each, on the thread that read it. Must not block.
    init(isFound: @escaping @Sendable (StoredDamage) -> Void = { _ in }) {
        self.isFound = isFound
    }

    var damages: [StoredDamage] { found.withLock { $0 } }

    func note(_ damage: StoredDamage) {
        let isNew = found.withLock { found in
            guard found.count < Self.countMax, !found.contains(damage) else { return false }
            found.append(damage)
            return true
        }
        if isNew { isFound(damage) }
    }

    /// Notes damage that is found after the store has read a row, and rethrows it.
    func noting<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as StoreError {
            if let damage = error.damage { note(damage) }
            throw error
        }
    }
}
