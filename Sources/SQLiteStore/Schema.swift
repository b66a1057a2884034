import GatewayPipeline
import OpenSSLCrypto

/// One database file's schema: numbered steps that only go forward (SG-0083).
///
/// `application_id` says whose file it is and `user_version` how many steps have begun; both stand in clear in its first page. A
/// file with more steps than this build knows was written by a newer one and is refused; so is one of a layout that no step leads
/// on from.
///
/// - Warning: A step that was released never changes (`SchemaTests` pins each): what a later version needs is a step more.
struct Schema: Sendable {
    /// From the version before it to the next.
    enum Step: Sendable {
        /// Statements in one transaction, with the number.
        case script(String)
        /// Rewrites what is sealed in these tables in the layouts of this build, some rows at a time (``Migration``).
        case rows([SealedTable])
    }

    let file: String
    /// Four ASCII letters as a big-endian integer.
    let applicationID: Int32
    /// How many versions before the first step are refused.
    let refusedVersionCount: Int
    var steps: [Step]

    /// The version that this build writes.
    var version: Int { refusedVersionCount + steps.count }

    init(file: String, applicationID: Int32, refusedVersionCount: Int = 0, steps: [Step]) {
        (self.file, self.applicationID, self.refusedVersionCount) = (file, applicationID, refusedVersionCount)
        self.steps = steps
    }

    /// The step that leads to a version.
    func step(to version: Int) -> Step { steps[version - refusedVersionCount - 1] }

    /// Whether one of the steps behind a version is over rows.
    func hasStepOverRows(after version: Int) -> Bool {
        steps.dropFirst(max(version - refusedVersionCount, 0)).contains {
            if case .rows = $0 { true } else { false }
        }
    }

    /// Requires that a file is up to date, of which nothing may change.
    func require(_ connection: Connection) throws {
        let found = try version(of: connection)
        guard found == version, try Migration.place(in: connection) == nil else {
            throw StoreOpeningError.olderSchema(file: file, found: found, newestKnown: version)
        }
    }

    /// - Returns: The version of a file; 0 of an empty one. Where a step has begun and not ended, its number.
    /// - Throws: ``StoreOpeningError`` for one that no step leads on from.
    func version(of connection: Connection) throws -> Int {
        let found = Int32(try connection.pragma("PRAGMA application_id")) ?? 0
        let foundVersion = Int(try connection.pragma("PRAGMA user_version")) ?? 0
        let objectCount = Int(try connection.pragma("SELECT count(*) FROM sqlite_schema")) ?? 0
        guard found == applicationID || (found == 0 && foundVersion == 0 && objectCount == 0) else {
            throw StoreOpeningError.notOurs(file: file, applicationID: found)
        }
        try requireKnown(foundVersion)
        guard foundVersion == 0 || foundVersion > refusedVersionCount else {
            throw StoreOpeningError.earlierLayout(
                file: file, found: foundVersion, oldestKnown: refusedVersionCount + 1)
        }
        return foundVersion
    }

    /// - Throws: ``StoreOpeningError/newerSchema(file:found:newestKnown:)``.
    func requireKnown(_ found: Int) throws {
        guard found <= version else {
            throw StoreOpeningError.newerSchema(file: file, found: found, newestKnown: version)
        }
    }
}

/// The schemas of a state directory.
struct Schemas: Sendable {
    var gate = Schema.gate
    var subjects = Schema.subjects

    var all: [Schema] { [subjects, gate] }
}

/// The only declaration of a table's columns.
struct StoredTable: Sendable {
    let name: String
    private let columns: [(name: String, definition: String)]
    private let addedColumns: [(name: String, definition: String)]
    private let key: String?

    /// - Parameters:
    ///   - columns: Names and what SQLite must know of each.
    ///   - key: The primary key's columns of a table without row numbers; else one of the columns is the key.
    ///   - added: Columns that came after the version that made the table, each with a step of its own (``addition(of:)``).
    init(
        _ name: String, _ columns: KeyValuePairs<String, String>, key: String? = nil,
        added: KeyValuePairs<String, String> = [:]
    ) {
        self.name = name
        self.columns = columns.map { ($0.key, $0.value) }
        addedColumns = added.map { ($0.key, $0.value) }
        self.key = key
    }

    /// Makes the table as its first version had it.
    var text: String {
        let lines =
            columns.map { "\($0.name) \($0.definition)" } + (key.map { ["PRIMARY KEY (\($0))"] } ?? [])
        return """
            CREATE TABLE \(name) (
                \(lines.joined(separator: ",\n    "))
            ) STRICT\(key == nil ? "" : ", WITHOUT ROWID");

            """
    }

    /// Adds a column that came later. SQLite takes one that may be NULL or has a default.
    func addition(of name: String) -> String {
        guard let column = addedColumns.first(where: { $0.name == name }) else {
            preconditionFailure("`\(self.name)` has no added column `\(name)`")
        }
        return "ALTER TABLE \(self.name) ADD COLUMN \(name) \(column.definition);\n"
    }

    /// A row is written by binding all its columns in their order, but its number last: both statements bind the same.
    var insertion: String {
        let names = boundColumns + ["number"]
        return """
            INSERT INTO \(name) (\(names.joined(separator: ", ")))
            VALUES (\(names.map { _ in "?" }.joined(separator: ", ")))
            """
    }

    var replacement: String {
        "UPDATE \(name) SET \(boundColumns.map { "\($0) = ?" }.joined(separator: ", ")) WHERE number = ?"
    }

    private var boundColumns: [String] { (columns + addedColumns).map(\.name).filter { $0 != "number" } }
}

extension Schema {
    private static func table(
        _ name: String, _ columns: KeyValuePairs<String, String>, key: String? = nil
    ) -> String { StoredTable(name, columns, key: key).text }

    private static let objects = StatementText(
        "sqlite_schema", "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
    private static func texts(of connection: Connection) throws -> [String: String] {
        Dictionary(
            try connection.every(objects) { ($0.text(), $0.text()) }, uniquingKeysWith: { one, _ in one })
    }

    /// Requires the tables and indexes that this build makes, made in memory: another build's have other columns, and without a
    /// constraint or an index gets in what it kept out.
    ///
    /// - Throws: ``StoreOpeningError/otherSchema(file:name:)`` for one that has another text in the file.
    func requireOwn(_ connection: Connection) throws {
        let scratch = try Connection(
            path: ":memory:", file: file, role: .scratch, cacheByteCount: 1 << 20, busyTimeoutMilliseconds: 0)
        defer { scratch.close() }
        let wanted = try scratch.exclusively {
            try Migration(self).run(on: scratch)
            return try Self.texts(of: scratch)
        }
        let found = try Self.texts(of: connection)
        for name in Set(wanted.keys).union(found.keys).sorted() where wanted[name] != found[name] {
            throw StoreOpeningError.otherSchema(file: file, name: name)
        }
    }
}

extension Schema {
    static let entry = StoredTable(
        "entry",
        [
            "number": "INTEGER PRIMARY KEY", "count": "INTEGER NOT NULL CHECK (count > 0)",
            "time": "INTEGER NOT NULL", "bytes": "BLOB NOT NULL",
        ])
    static let send = StoredTable(
        "send",
        [
            "number": "INTEGER PRIMARY KEY", "id": "BLOB NOT NULL",
            "caller": "INTEGER NOT NULL", "id_hash": "BLOB NOT NULL",
            "content_mac": "BLOB NOT NULL", "subject": "BLOB", "person": "INTEGER", "type": "INTEGER",
            "category": "INTEGER CHECK (category BETWEEN 0 AND 3)",
            "channel": "INTEGER NOT NULL CHECK (channel BETWEEN 0 AND 2)",
            "received_at": "INTEGER NOT NULL", "entry_index": "INTEGER NOT NULL",
            "forwarded_at": "INTEGER", "sealed": "BLOB NOT NULL",
        ])

    static let event = StoredTable(
        "event",
        [
            "cursor": "INTEGER PRIMARY KEY", "caller": "INTEGER NOT NULL",
            "send": "BLOB NOT NULL", "send_number": "INTEGER", "subject": "BLOB",
            "event": "INTEGER NOT NULL", "destination": "BLOB", "at": "INTEGER NOT NULL",
            "entry": "INTEGER", "sealed": "BLOB",
        ])

    static let outbox = StoredTable(
        "outbox",
        [
            "number": "INTEGER PRIMARY KEY", "message": "BLOB NOT NULL", "send": "BLOB NOT NULL",
            "subject": "BLOB NOT NULL", "rank": "INTEGER NOT NULL CHECK (rank BETWEEN 0 AND 7)",
            "caller": "INTEGER NOT NULL", "not_before": "INTEGER NOT NULL",
            "attempt_count": "INTEGER NOT NULL CHECK (attempt_count >= 0)", "attempted_at": "INTEGER",
            "byte_count": "INTEGER NOT NULL CHECK (byte_count >= 0)", "rest": "BLOB NOT NULL",
            "sealed": "BLOB NOT NULL",
        ])

    static let offered = StoredTable(
        "offered",
        [
            "number": "INTEGER PRIMARY KEY", "last": "INTEGER NOT NULL CHECK (last >= number)",
            "heads": "BLOB NOT NULL", "sealed": "BLOB NOT NULL",
        ])

    static let person = StoredTable(
        "person",
        [
            "number": "INTEGER PRIMARY KEY", "subject": "BLOB NOT NULL UNIQUE", "sealed": "BLOB NOT NULL",
        ])

    /// Events that are only appended: kind 0 consents, 1 choices; `position` counts from 1 without a gap.
    static let ledger = StoredTable(
        "ledger",
        [
            "person": "INTEGER NOT NULL", "kind": "INTEGER NOT NULL CHECK (kind IN (0, 1))",
            "position": "INTEGER NOT NULL", "sealed": "BLOB NOT NULL",
        ], key: "person, kind, position")

    static let erasure = StoredTable("erasure", ["subject": "BLOB NOT NULL"], key: "subject")

    static let setting = StoredTable(
        "setting", ["name": "TEXT NOT NULL", "value": "TEXT NOT NULL"], key: "name")

    /// Everything but the mapping of users to pseudonyms. Keyed by pseudonym; what a person could be known by is in `sealed`
    /// columns (see `RowCipher`).
    ///
    /// Shaped by what a send touches, because every page it changes is 2 KiB of write-ahead log, and every
    /// page it reads of ten million people is a read from the disk:
    /// - a pseudonym is a number through `person`, whose row has the person's state as one value: read in one go, and
    ///   written only when the person changes. What only grows lies beside it in `ledger`;
    /// - the random pages a send changes are one of the index of sends by hash and one of that by person, which also has
    ///   what a cap counts, so that no send is read for it. `history` has what that index cannot;
    /// - `send`, its index by id, `event`, `entry` and the index of events by send grow at their end;
    /// - names that repeat (callers, registered types) are numbers through `word`. Only closed names go there:
    ///   a type that is not registered is the caller's text, and stays sealed in its send.
    ///
    /// Constraints on values catch a slip; what is damaged is noticed by the code of its page (see ``PageFile``).
    static let gate = Schema(
        file: "gate.db", applicationID: 0x5347_6742, refusedVersionCount: 2,
        steps: [
            .script(
                [
                    table("word", ["id": "INTEGER PRIMARY KEY", "text": "TEXT NOT NULL UNIQUE"]),
                    person.text,
                    ledger.text,
                    // The owner of a key, and of a push token: HMAC-SHA256 of the token under the index key, of active devices.
                    table("device_key", ["key": "BLOB NOT NULL", "person": "INTEGER NOT NULL"], key: "key"),
                    "CREATE INDEX device_key_by_person ON device_key (person);\n",
                    table(
                        "push_token",
                        ["code": "BLOB NOT NULL", "person": "INTEGER NOT NULL", "device": "BLOB NOT NULL"],
                        key: "code"),
                    "CREATE INDEX push_token_by_person ON push_token (person);\n",
                    // The owner of a number or a mailbox: HMAC-SHA256 of it under the index key.
                    table(
                        "address_code", ["code": "BLOB NOT NULL", "person": "INTEGER NOT NULL"],
                        key: "code, person"),
                    "CREATE INDEX address_code_by_person ON address_code (person);\n",
                    // The answer to a reply of a recipient, by its id under the index key.
                    table(
                        "reply",
                        [
                            "caller": "INTEGER NOT NULL", "id_hash": "BLOB NOT NULL",
                            "content_mac": "BLOB NOT NULL", "entry": "INTEGER NOT NULL",
                            "effect": "INTEGER NOT NULL",
                            "at": "INTEGER NOT NULL", "address_hash": "BLOB", "locale": "TEXT",
                        ], key: "caller, id_hash"),
                    "CREATE INDEX reply_by_time ON reply (at);\n",
                    "CREATE INDEX reply_by_address ON reply (address_hash, at) WHERE address_hash IS NOT NULL;\n",
                    // Pseudonyms whose mapping in subjects.db is still to be destroyed.
                    erasure.text,

                    send.text,
                    """
                    CREATE UNIQUE INDEX send_by_id ON send (id);
                    CREATE UNIQUE INDEX send_by_hash ON send (id_hash, caller);
                    CREATE INDEX send_by_person ON send (person, received_at, type, category, id) WHERE person IS NOT NULL;

                    """,
                    // kind 0: a send counted as a forward, later than it was received (number of `send`); 1: an event of a send that
                    // is not, or no longer, known (its cursor). type and category are set for kind 0. A send that counted when it
                    // was received has its own `type`. Of a send in shadow the number of the type is negative, here and there.
                    table(
                        "history",
                        [
                            "person": "INTEGER NOT NULL", "kind": "INTEGER NOT NULL CHECK (kind IN (0, 1))",
                            "at": "INTEGER NOT NULL", "number": "INTEGER NOT NULL", "type": "INTEGER",
                            "category": "INTEGER CHECK (category BETWEEN 0 AND 3)",
                        ], key: "person, kind, at, number"),
                    event.text,
                    // By number, not by id: numbers rise, so the index grows at its end. The third is of sends that are not,
                    // or no longer, known.
                    """
                    CREATE INDEX event_by_caller ON event (caller, cursor);
                    CREATE INDEX event_by_send ON event (send_number) WHERE send_number IS NOT NULL;
                    CREATE INDEX event_by_stray_send ON event (send) WHERE send_number IS NULL;

                    """,
                    // The targets of unsubscribe links: one row for each category and destination, with the code of the mailbox that
                    // the link's messages went to.
                    table(
                        "unsubscribe_link",
                        [
                            "id": "BLOB NOT NULL", "person": "INTEGER NOT NULL",
                            "category": "INTEGER NOT NULL CHECK (category BETWEEN 0 AND 3)",
                            "channel": "INTEGER NOT NULL CHECK (channel BETWEEN 0 AND 2)",
                            "destination": "BLOB NOT NULL", "mailbox": "BLOB",
                        ], key: "id"),
                    "CREATE INDEX unsubscribe_link_by_person ON unsubscribe_link (person);\n",
                    // What a person was told of, or acknowledged; `send` is NULL for the latter.
                    table(
                        "dedupe",
                        [
                            "person": "INTEGER NOT NULL", "event": "BLOB NOT NULL", "send": "BLOB",
                            "at": "INTEGER NOT NULL",
                        ], key: "person, event"),
                    "CREATE INDEX dedupe_by_time ON dedupe (at);\n",
                    // Duties to tell a person something; `state` 0 is owed, 1 is discharged.
                    table(
                        "duty",
                        [
                            "person": "INTEGER NOT NULL", "duty": "BLOB NOT NULL",
                            "state": "INTEGER NOT NULL CHECK (state IN (0, 1))", "send": "BLOB NOT NULL",
                            "caller": "INTEGER NOT NULL", "type": "INTEGER NOT NULL",
                            "must_go_by": "TEXT NOT NULL", "within": "TEXT NOT NULL",
                            "due_at": "INTEGER NOT NULL",
                        ], key: "person, duty"),
                    "CREATE INDEX duty_by_time ON duty (due_at);\n",

                    outbox.text,
                    """
                    CREATE UNIQUE INDEX outbox_by_message ON outbox (message);
                    CREATE INDEX outbox_by_send ON outbox (send);
                    CREATE INDEX outbox_by_subject ON outbox (subject);
                    CREATE INDEX outbox_due ON outbox (rank, caller, not_before, number, message);

                    """,
                    // What went to the relay from memory, one row a commit: the numbers of its first and last message, what
                    // stands in clear of each, and what is sealed of all. Deleted when all have their results; until then `sequences`
                    // says which have. What has to wait after all goes on in `outbox`, under the same number.
                    offered.text,
                    // Counts of `outbox`, kept with every change, so that back-pressure never counts rows.
                    table(
                        "outbox_counters",
                        [
                            "rank": "INTEGER NOT NULL CHECK (rank BETWEEN 0 AND 7)",
                            "caller": "INTEGER NOT NULL",
                            "row_count": "INTEGER NOT NULL CHECK (row_count >= 0)",
                            "byte_count": "INTEGER NOT NULL CHECK (byte_count >= 0)",
                        ], key: "rank, caller"),

                    // Entries that one commit wrote: the index of the first, how many, the newest's time, and ``EntrySegment``.
                    entry.text,
                    // One row: where each series stands, whatever of it has been deleted since; how often `subjects.db` was
                    // changed; and what the clocks showed when the newest entry was recorded.
                    table(
                        "sequences",
                        [
                            "only": "INTEGER PRIMARY KEY CHECK (only = 1)", "entry_count": "INTEGER NOT NULL",
                            "published_size": "INTEGER NOT NULL", "newest_entry_time": "INTEGER",
                            "event_cursor": "INTEGER NOT NULL", "send_number": "INTEGER NOT NULL",
                            "outbox_number": "INTEGER NOT NULL", "person_number": "INTEGER NOT NULL",
                            "subjects_generation": "INTEGER NOT NULL", "ended_offers": "BLOB NOT NULL",
                            "clock_wall": "INTEGER", "clock_uptime": "INTEGER", "clock_boot": "TEXT",
                        ]),
                    "INSERT INTO sequences VALUES (1, 0, 0, NULL, 0, 0, 0, 0, 0, x'', NULL, NULL, NULL);\n",
                    setting.text,
                    // A known text under each data key ever used here, to tell a wrong key at once; and how many rows the key
                    // has sealed, rounded up: written ahead, so that a crash forgets none.
                    table(
                        "key_check",
                        [
                            "id": "TEXT NOT NULL", "sealed": "BLOB NOT NULL",
                            "seal_count": "INTEGER NOT NULL DEFAULT 0 CHECK (seal_count >= 0)",
                        ], key: "id"),
                ].joined()),
            // 4: the trace of the request that asked for a message.
            .rows([.outbox, .offered]),
        ])

    /// The mapping: HMAC-SHA256 of the user id under the index key, the pseudonym, and its key K_s, sealed.
    static let subject = StoredTable(
        "subject",
        [
            "number": "INTEGER PRIMARY KEY", "user": "BLOB NOT NULL UNIQUE",
            "subject": "BLOB NOT NULL UNIQUE", "tag_key": "BLOB NOT NULL",
        ])

    static let subjects = Schema(
        file: "subjects.db", applicationID: 0x5347_7342,
        steps: [
            .script(
                [
                    subject.text,
                    // HMAC of a constant under the index key, to tell a wrong key at once; and how often the file was changed,
                    // which `gate.db` remembers.
                    table(
                        "index_check",
                        [
                            "only": "INTEGER PRIMARY KEY CHECK (only = 1)", "code": "BLOB NOT NULL",
                            "generation": "INTEGER NOT NULL",
                        ]),
                ].joined())
        ])
}
