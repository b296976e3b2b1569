// Package sqlstore keeps the facts in a SQL database, through database/sql.
//
// # What it holds
//
// The tables of the migrations, and nothing in memory but prepared statements. A store has one
// writing session, which a transaction holds from Begin to its end, and a few reading sessions,
// which a view holds from View to Close. On SQLite, the one database there is for now, they are
// connections in WAL mode: a view sees the snapshot of its first answer and never waits for the
// writer, nor the writer for it.
//
//	OpenSQLite -> lock file -> migrate -> Store
//	Store.Begin -> load, Write, seek, load ... -> Commit | Rollback
//	Store.View  -> answers of one moment       -> Close
//
// # How statements are made
//
// Each statement is a value with a name and a text, listed in one place for the tests that look
// at query plans. One over many keys starts from a relation of those keys, padded to a power of
// two, one that writes many rows comes in a few sizes; both are prepared once a size and
// session. So a group of any size costs a few statements a table, and a message table is only
// ever entered through an index. What differs between databases is a dialect.
//
// # Invariants
//
//   - Ids are stored and compared as bytes.
//   - What a load does not find is left out, never made up.
//   - After a failed statement a transaction refuses everything and commits nothing, because the
//     database may have rolled back by itself.
//
// # Failures
//
// All failures are facts.ErrUnavailable with a cause an operator knows ([ErrFull], [ErrWrite], [ErrCorrupt],
// [ErrReadOnly], [ErrBusy], [ErrNewer]), except that a database which somebody else owns is
// facts.ErrNotOwner and the end of a context is that context's error. A commit that certainly
// did not happen is facts.ErrAborted besides; after any other error of a commit [Store.Fences]
// tells what became of it.
//
// # Duties of the caller
//
// Close every view within one page and end every transaction; close the store last.
package sqlstore
