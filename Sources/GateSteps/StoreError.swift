/// The store misbehaving. Its description is for operators; see `EngineFailure` for what a caller is told.
package enum StoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Disk full, read-only, locked by another process, I/O error: nothing was written.
    case unavailable(String)
    /// What was read back does not authenticate or does not parse: stop trusting this row.
    case damaged(table: String, row: String? = nil, String)
    /// A commit whose durability is unknown. The process must stop; a restart reads what is true.
    case lostDurability(String)

    /// The row that is what is wrong; `nil` when it is the store.
    package var damage: StoredDamage? {
        guard case .damaged(let table, let row, let what) = self else { return nil }
        return StoredDamage(table: table, row: row, what: what)
    }

    package var description: String {
        switch self {
        case .unavailable(let what): "the store cannot be used: \(what)"
        case .damaged(let table, let row, let what):
            "\(StoredDamage(table: table, row: row, what: what))"
        case .lostDurability(let what): "what was committed may not be on disk: \(what)"
        }
    }
}

/// A stored row that does not authenticate or does not parse. Names the place, never what the row holds.
package struct StoredDamage: Sendable, Hashable, CustomStringConvertible {
    package var table: String
    /// The row's key: a number, or the hexadecimal digits of an id. `nil` when the whole table is concerned.
    package var row: String?
    package var what: String

    package init(table: String, row: String?, what: String) {
        self.table = table
        self.row = row
        self.what = what
    }

    package var description: String {
        "`\(table)`\(row.map { " row \($0)" } ?? "") is damaged: \(what)"
    }
}
