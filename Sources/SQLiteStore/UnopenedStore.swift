extension SQLiteStore {
    /// For a start that shall end before it has taken a port or proved a bundle: what it opens later, it locks.
    ///
    /// - Throws: ``StoreOpeningError/directoryInUse(path:processID:)`` while another process writes there;
    ///   ``StoreOpeningError/newerSchema(file:found:newestKnown:)`` where a newer build did.
    package static func requireUnused(_ directory: String) throws {
        try StateDirectory.requireUnused(at: directory)
        for schema in Schemas().all { try StateDirectory.requireKnownVersion(of: schema, in: directory) }
    }

    /// Whether a state directory has a setting, where it cannot be opened because a key is missing.
    ///
    /// - Warning: Without keys nothing verifies the answer. It is good for what a person is told, and for no decision.
    package static func hasUnverifiedSetting(_ name: String, in directory: String) -> Bool {
        let limits = SQLiteStoreLimits()
        // A connection makes a log beside a database, and beside that of a newer build nothing is made.
        guard
            (try? StateDirectory.requireKnownVersion(of: .gate, in: directory)) != nil,
            let gate = try? Connection(
                path: "\(directory)/\(Schema.gate.file)", file: Schema.gate.file, role: .reader,
                cacheByteCount: limits.readerCacheByteCount,
                busyTimeoutMilliseconds: limits.busyTimeoutMilliseconds)
        else { return false }
        defer { gate.close() }
        return gate.exclusively {
            (try? gate.first(unverifiedSetting, { $0.add(name) }) { _ in true }) ?? false
        }
    }

    private static let unverifiedSetting = StatementText(
        Schema.setting.name, "SELECT 1 FROM setting WHERE name = ?")
}
