// The C interface of SQLite 3.40 and newer, for SQLiteStore, and for the floor that `sendgate bench` compares it with.
#ifndef SENDGATE_CSQLITE_SHIM_H
#define SENDGATE_CSQLITE_SHIM_H

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

// Whether a database keeps its log when its last connection closes. SQLite would move it, whatever key the connection was given.
static inline int sendgate_keep_log_at_close(sqlite3 *database, int keeps) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps, (int *)0);
}

// Of every database of the store, which opens no other.
#define SENDGATE_PAGE_BYTE_COUNT 2048

// What SQLite leaves free at the end of each page, for a code.
#define SENDGATE_PAGE_CODE_BYTE_COUNT 16

// The page that SQLite leaves out of every file (sqlite.org/fileformat2.html, section 1.3.2).
static const unsigned int SENDGATE_LOCK_BYTE_PAGE = 0x40000000 / SENDGATE_PAGE_BYTE_COUNT + 1;

// The functions of the cache of pages that SQLite will use, and others in their place. Before the first connection is opened:
// SQLite refuses it afterwards. sqlite3_config takes variable arguments, too.
static inline int sendgate_get_page_cache(sqlite3_pcache_methods2 *methods) {
    return sqlite3_config(SQLITE_CONFIG_GETPCACHE2, methods);
}

static inline int sendgate_set_page_cache(const sqlite3_pcache_methods2 *methods) {
    return sqlite3_config(SQLITE_CONFIG_PCACHE2, methods);
}

// SQLite's own cache of pages.
static inline sqlite3_pcache_methods2 *sendgate_page_cache(void) {
    static sqlite3_pcache_methods2 methods;
    return &methods;
}

// Gives a page of the cache another number. While SQLite exchanges the numbers of two pages, one of them has the number of the
// lock-byte page, which makes the cache look through all of its pages at the next commit (SG-0062). Page 0, which is in no file
// either, stands in for it.
static inline void sendgate_page_cache_rekey(
    sqlite3_pcache *cache, sqlite3_pcache_page *page, unsigned int from, unsigned int to) {
    if (from == SENDGATE_LOCK_BYTE_PAGE) from = 0;
    if (to == SENDGATE_LOCK_BYTE_PAGE) to = 0;
    sendgate_page_cache()->xRekey(cache, page, from, to);
}

// Sets the process-wide options of SQLite, which refuses them once a connection is open.
static inline int sendgate_configure_process(void) {
    // No memory is counted, which would take a lock for every piece of it.
    int code = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (code == SQLITE_OK) code = sendgate_get_page_cache(sendgate_page_cache());
    if (code != SQLITE_OK) return code;
    sqlite3_pcache_methods2 methods = *sendgate_page_cache();
    methods.xRekey = sendgate_page_cache_rekey;
    return sendgate_set_page_cache(&methods);
}

#endif
