// The C interface of SQLite 3.40 and newer, for SQLiteStore, and for the floor that `sendgate bench` compares it with.
#ifndef SENDGATE_CSQLITE_SHIM_H
#define SENDGATE_CSQLITE_SHIM_H

// Debian, Ubuntu and Fedora build SQLite with this hook (sqlite.org/c3ref/preupdate_blobwrite.html).
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include <sqlite3.h>

// sqlite3_db_config takes variable arguments, which Swift cannot call.
//
// Without this setting SQLite reads a misspelt column in double quotes as a string
// (sqlite.org/quirks.html, section 8).
static inline int sendgate_refuse_double_quoted_strings(sqlite3 *database) {
    int code = sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DDL, 0, (int *)0);
    if (code == SQLITE_OK) {
        code = sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
    }
    return code;
}

// Before the first connection is opened. sqlite3_config takes variable arguments, too.
static inline int sendgate_count_no_memory(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

#endif
