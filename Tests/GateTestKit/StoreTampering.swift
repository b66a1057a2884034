/// SQL with which an attacker without a key edits a database: the codes of rows stay as they are, or are edited like any
/// other column, and no constraint is checked.
package enum StoreTampering {
    package static let begin = """
        PRAGMA ignore_check_constraints = ON;
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql =
            replace(replace(sql, ' AS (row_mac(', ' /* AS (row_mac('), ')) STORED', ')) STORED */');
        PRAGMA writable_schema = RESET;
        """
    /// Leaves the schema as it was before ``begin``.
    package static let end = """
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql =
            replace(replace(sql, ' /* AS (row_mac(', ' AS (row_mac('), ')) STORED */', ')) STORED');
        PRAGMA writable_schema = RESET;
        """
}
