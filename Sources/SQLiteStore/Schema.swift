import GatewayPipeline

/// One database file's schema: numbered steps that only go forward.
///
/// `application_id` says whose file it is and `user_version` how many steps have run. Each step runs in
/// a transaction with its number, so a crash leaves the file before it or after it. A file with more steps
/// than this build knows was written by a newer one and is refused.
struct Schema: Sendable {
    let file: String
    /// Four ASCII letters as a big-endian integer.
    let applicationID: Int32
    let steps: [String]

    /// Brings the file up to date. Call inside the writing connection.
    func prepare(_ connection: Connection) throws {
        let found = Int32(try connection.pragma("PRAGMA application_id")) ?? 0
        let version = Int(try connection.pragma("PRAGMA user_version")) ?? 0
        let objectCount = Int(try connection.pragma("SELECT count(*) FROM sqlite_schema")) ?? 0
        guard found == applicationID || (found == 0 && version == 0 && objectCount == 0) else {
            throw StoreOpeningError.notOurs(file: file, applicationID: found)
        }
        guard version <= steps.count else {
            throw StoreOpeningError.newerSchema(file: file, found: version, newestKnown: steps.count)
        }
        for (number, step) in steps.enumerated().dropFirst(version) {
            try connection.begin(writing: true)
            do {
                try connection.script(step)
                try connection.script("PRAGMA application_id = \(applicationID)")
                try connection.script("PRAGMA user_version = \(number + 1)")
                try connection.commit()
            } catch {
                connection.rollBack()
                throw error
            }
        }
    }
}

extension Schema {
    /// Everything but who is who. Keyed by pseudonym; what a person could be known by is in `sealed`
    /// columns (see `RowCipher`).
    ///
    /// Shaped by what a send touches, because every page it changes is 4 KiB of write-ahead log, and every
    /// page it reads of ten million people is a read from the disk:
    /// - a pseudonym is a number through `person`, whose row has the person's state as one value: read in one go, and
    ///   written only when the person changes. What only grows lies beside it in `ledger`;
    /// - `history` is the one random page a send changes: sends, counted forwards and events of a person side
    ///   by side. It replaces three indexes;
    /// - `send`, `event`, `entry` and the index of events by send grow at their end;
    /// - names that repeat (callers, registered types) are numbers through `word`. Only closed names go there:
    ///   a type that is not registered is text somebody chose, and stays sealed in its send.
    static let gate = Schema(
        file: "gate.db", applicationID: 0x5347_6174,
        steps: [
            """
            CREATE TABLE word (
                id INTEGER PRIMARY KEY,
                text TEXT NOT NULL UNIQUE
            ) STRICT;
            CREATE TABLE person (
                number INTEGER PRIMARY KEY,
                subject BLOB NOT NULL UNIQUE,
                sealed BLOB NOT NULL
            ) STRICT;
            -- What only grows: kind 0 consents, 1 choices; `position` counts from 1 without a gap.
            CREATE TABLE ledger (
                person INTEGER NOT NULL,
                kind INTEGER NOT NULL,
                position INTEGER NOT NULL,
                sealed BLOB NOT NULL,
                PRIMARY KEY (person, kind, position)
            ) STRICT, WITHOUT ROWID;
            -- Whose a key is, and whose a push token: HMAC-SHA256 of the token under the index key, of active devices.
            CREATE TABLE device_key (
                key BLOB PRIMARY KEY,
                person INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX device_key_by_person ON device_key (person);
            CREATE TABLE push_token (
                code BLOB PRIMARY KEY,
                person INTEGER NOT NULL,
                device BLOB NOT NULL
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX push_token_by_person ON push_token (person);
            -- Pseudonyms whose mapping in subjects.db is still to be destroyed.
            CREATE TABLE erasure (
                subject BLOB PRIMARY KEY
            ) STRICT, WITHOUT ROWID;

            CREATE TABLE send (
                number INTEGER PRIMARY KEY,
                id BLOB NOT NULL,
                caller INTEGER NOT NULL,
                id_hash BLOB NOT NULL,
                content_mac BLOB NOT NULL,
                subject BLOB,
                category INTEGER,
                channel INTEGER NOT NULL,
                received_at INTEGER NOT NULL,
                entry_index INTEGER NOT NULL,
                forwarded_at INTEGER,
                sealed BLOB NOT NULL
            ) STRICT;
            CREATE UNIQUE INDEX send_by_id ON send (id);
            CREATE UNIQUE INDEX send_by_hash ON send (id_hash, caller);
            -- kind 0: a send was received (number of `send`); 1: it counted as a forward (the same);
            -- 2: an event (its cursor). type and category are set for kind 1.
            CREATE TABLE history (
                person INTEGER NOT NULL,
                kind INTEGER NOT NULL,
                at INTEGER NOT NULL,
                number INTEGER NOT NULL,
                type INTEGER,
                category INTEGER,
                PRIMARY KEY (person, kind, at, number)
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE event (
                cursor INTEGER PRIMARY KEY,
                caller INTEGER NOT NULL,
                send BLOB NOT NULL,
                send_number INTEGER,
                subject BLOB,
                event TEXT NOT NULL,
                destination BLOB,
                at INTEGER NOT NULL,
                sealed BLOB
            ) STRICT;
            CREATE INDEX event_by_caller ON event (caller, cursor);
            -- By number, not by id: numbers rise, so the index grows at its end.
            CREATE INDEX event_by_send ON event (send_number) WHERE send_number IS NOT NULL;
            -- Of sends that are not, or no longer, known.
            CREATE INDEX event_by_stray_send ON event (send) WHERE send_number IS NULL;

            CREATE TABLE outbox (
                number INTEGER PRIMARY KEY,
                message BLOB NOT NULL,
                send BLOB NOT NULL,
                subject BLOB NOT NULL,
                destination BLOB NOT NULL,
                rank INTEGER NOT NULL,
                caller INTEGER NOT NULL,
                type INTEGER NOT NULL,
                channel INTEGER NOT NULL,
                critical INTEGER NOT NULL,
                category INTEGER NOT NULL,
                tier INTEGER NOT NULL,
                state INTEGER NOT NULL,
                form INTEGER NOT NULL,
                interruption INTEGER NOT NULL,
                key BLOB,
                decided_at INTEGER NOT NULL,
                not_before INTEGER NOT NULL,
                expires_at INTEGER NOT NULL,
                attempt_count INTEGER NOT NULL,
                attempted_at INTEGER,
                byte_count INTEGER NOT NULL,
                sealed BLOB NOT NULL
            ) STRICT;
            CREATE UNIQUE INDEX outbox_by_message ON outbox (message);
            CREATE INDEX outbox_by_send ON outbox (send);
            CREATE INDEX outbox_by_subject ON outbox (subject);
            CREATE INDEX outbox_due ON outbox (rank, caller, not_before, number, message);
            -- What waits, kept with every change, so that back-pressure never counts rows.
            CREATE TABLE outbox_tally (
                rank INTEGER NOT NULL,
                caller INTEGER NOT NULL,
                row_count INTEGER NOT NULL,
                byte_count INTEGER NOT NULL,
                PRIMARY KEY (rank, caller)
            ) STRICT, WITHOUT ROWID;

            CREATE TABLE entry (
                number INTEGER PRIMARY KEY,
                time INTEGER NOT NULL,
                leaf BLOB NOT NULL,
                bytes BLOB NOT NULL
            ) STRICT;
            -- One row: where each series stands, whatever of it has been deleted since.
            CREATE TABLE tail (
                only INTEGER PRIMARY KEY CHECK (only = 1),
                entry_count INTEGER NOT NULL,
                published_size INTEGER NOT NULL,
                newest_entry_time INTEGER,
                event_cursor INTEGER NOT NULL,
                send_number INTEGER NOT NULL,
                outbox_number INTEGER NOT NULL,
                person_number INTEGER NOT NULL
            ) STRICT;
            INSERT INTO tail VALUES (1, 0, 0, NULL, 0, 0, 0, 0);
            CREATE TABLE setting (
                name TEXT PRIMARY KEY,
                value TEXT NOT NULL
            ) STRICT, WITHOUT ROWID;
            -- A known text under each data key ever used here, to tell a wrong key at once.
            CREATE TABLE key_check (
                id TEXT PRIMARY KEY,
                sealed BLOB NOT NULL
            ) STRICT, WITHOUT ROWID;
            """,
            """
            -- What a person was told of, or acknowledged; `send` is NULL for the latter.
            CREATE TABLE told (
                person INTEGER NOT NULL,
                event BLOB NOT NULL,
                send BLOB,
                at INTEGER NOT NULL,
                PRIMARY KEY (person, event)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX told_by_time ON told (at);
            """,
            """
            -- What the clocks showed when the newest entry was recorded.
            ALTER TABLE tail ADD COLUMN clock_wall INTEGER;
            ALTER TABLE tail ADD COLUMN clock_uptime INTEGER;
            ALTER TABLE tail ADD COLUMN clock_boot TEXT;
            """,
            """
            -- How many rows the key has sealed, rounded up: written ahead, so that a crash forgets none.
            ALTER TABLE key_check ADD COLUMN seal_count INTEGER NOT NULL DEFAULT 0;
            """,
            """
            -- Duties to tell a person something; `state` 0 is owed, 1 is discharged.
            CREATE TABLE duty (
                person INTEGER NOT NULL,
                duty BLOB NOT NULL,
                state INTEGER NOT NULL,
                send BLOB NOT NULL,
                caller INTEGER NOT NULL,
                type INTEGER NOT NULL,
                must_go_by TEXT NOT NULL,
                within TEXT NOT NULL,
                due_at INTEGER NOT NULL,
                PRIMARY KEY (person, duty)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX duty_by_time ON duty (due_at);
            """,
            """
            -- HMAC-SHA256 of number and text under the index key: a name that was altered would lead every lookup to
            -- nothing, and a send that was made would be made again. NULL until the store opens the next time.
            ALTER TABLE word ADD COLUMN code BLOB;
            """,
        ])

    /// Who is who: HMAC-SHA256 of the user id under the index key, the pseudonym, and its key K_s, sealed.
    static let subjects = Schema(
        file: "subjects.db", applicationID: 0x5347_7375,
        steps: [
            """
            CREATE TABLE subject (
                number INTEGER PRIMARY KEY,
                user BLOB NOT NULL UNIQUE,
                subject BLOB NOT NULL UNIQUE,
                tag_key BLOB NOT NULL
            ) STRICT;
            -- HMAC of a constant under the index key, to tell a wrong key at once.
            CREATE TABLE index_check (
                only INTEGER PRIMARY KEY CHECK (only = 1),
                code BLOB NOT NULL
            ) STRICT;
            """
        ])
}
