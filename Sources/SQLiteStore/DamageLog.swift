import GateSteps
import GatewayPipeline
import Synchronization

/// The rows that could not be read since the store opened. Kept in memory only: after a restart a row that is still
/// damaged is found again, and one that a restored key or backup has mended is not.
final class DamageLog: Sendable {
    /// Rows remembered. With more, a list helps no more: the remedy is a backup.
    static let rowCountMax = 256

    private struct Place: Hashable {
        var table: String
        var row: String?
    }
    private struct Found {
        var damages: [StoredDamage] = []
        var places: Set<Place> = []
        var closedTables: Set<String> = []
    }
    private let found = Mutex(Found())
    private let isFound: @Sendable (StoredDamage) -> Void

    /// - Parameter isFound: Called once for each row, on the thread that read it. Must not block.
    init(isFound: @escaping @Sendable (StoredDamage) -> Void = { _ in }) {
        self.isFound = isFound
    }

    /// Says whether rows of a table are damaged or missing, and no operator has accepted that.
    func setClosed(_ table: String, _ isClosed: Bool) {
        found.withLock { found in
            if isClosed { found.closedTables.insert(table) } else { found.closedTables.remove(table) }
        }
    }

    /// Call when a look-up found no row and the caller relies on that: in a damaged table, a missing row proves
    /// nothing.
    ///
    /// - Throws: `StoreError.damaged`.
    func refuseMiss(in table: String) throws {
        guard found.withLock({ $0.closedTables.contains(table) }) else { return }
        throw StoreError.damaged(
            table: table, "rows of it are damaged or missing, so what is not found may have been there")
    }

    var damages: [StoredDamage] { found.withLock { $0.damages } }

    func note(_ damage: StoredDamage) {
        let isNew = found.withLock { found in
            guard found.damages.count < Self.rowCountMax,
                // A row that was named says more than the table it is in.
                damage.row != nil || !found.damages.contains(where: { $0.table == damage.table }),
                found.places.insert(Place(table: damage.table, row: damage.row)).inserted
            else { return false }
            found.damages.append(damage)
            return true
        }
        if isNew { isFound(damage) }
    }

    /// Runs `body`; damage that it finds is given the row's name, where it has none, and noted.
    ///
    /// - Parameter table: Damage of another table keeps its own name or none.
    func noting<Result>(_ table: String, row: @autoclosure () -> String, _ body: () throws -> Result) throws
        -> Result
    {
        do {
            return try body()
        } catch let error as StoreError {
            guard var damage = error.damage else { throw error }
            if damage.table == table { damage.row = damage.row ?? row() }
            note(damage)
            throw StoreError.damaged(table: damage.table, row: damage.row, damage.what)
        }
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

    /// Gives damage in a joined column the name of the row that the column belongs to.
    static func placing<Result>(
        _ table: String, row: @autoclosure () -> String, _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch let error as StoreError {
            guard let damage = error.damage, damage.row == nil else { throw error }
            throw StoreError.damaged(table: table, row: row(), damage.what)
        }
    }

    /// The same for a row that the caller can leave out: `nil` when it is damaged.
    func readable<Result>(_ table: String, row: @autoclosure () -> String, _ body: () throws -> Result) throws
        -> Result?
    {
        do {
            return try noting(table, row: row(), body)
        } catch let error as StoreError where error.damage != nil {
            return nil
        }
    }
}
