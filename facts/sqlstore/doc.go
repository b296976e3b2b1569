// Package sqlstore keeps the facts in a SQL database, through database/sql.
//
// # What it holds
//
// The tables of the migrations, and nothing in memory but prepared statements. A store has one
// writing session, which a transaction holds from Begin to its end, and a few reading sessions,
// which a view holds from View to Close. A view sees one snapshot, that of its first answer or of its
// beginning, and never waits for the writer, nor the writer for it.
//
//	Open -> own (a lock file, or a lock of the writing session) -> migrate -> Store
//	Store.Begin -> load, Write, seek, load ... -> Commit | Rollback
//	Store.View  -> answers of one moment       -> Close
//
// # How statements are made
//
// Each statement is a value with a name and a text, listed in one place for the tests that look
// at query plans. One over many keys starts from a relation of those keys, padded to a power of
// two, one that writes many rows comes in a few sizes; both are prepared once a size and
// session. So a group of any size costs a few statements a table, and a message table is only
// ever entered through an index. What differs between databases is a dialect:
//
//	SQLite      a file of this process, in WAL mode; keys are a list of values
//	PostgreSQL  keys and changed rows are one array a column, so that nothing is padded or cut; the
//	            planner is told to follow the order and the indexes of the statement
//	MySQL       and MariaDB, TiDB: statements are sent with their parameters in them, keys are a union
//	            of rows; what needs other words has them in one table
//
// # Invariants
//
//   - Ids are stored and compared as bytes, and on servers texts, too.
//   - On a server the writing session owns the database, by a lock that ends with it. A new session
//     exists only once the one before it is gone there, with whatever it was committing.
//   - What a load does not find is left out, never made up.
//   - After a failed statement a transaction refuses everything and commits nothing, because the
//     database may have rolled back by itself.
//
// # Failures
//
// All failures are facts.ErrUnavailable with a cause an operator knows ([ErrFull], [ErrWrite], [ErrCorrupt],
// [ErrReadOnly], [ErrBusy], [ErrNewer]), except that a database which somebody else owns is
// facts.ErrNotOwner and the end of a context is that context's error. A commit that certainly
// did not happen is facts.ErrAborted besides, and so is a transaction that the database rolled back in
// favour of another; after any other error of a commit [Store.Fences]
// tells what became of it.
//
// # Duties of the caller
//
// Close every view within one page and end every transaction; close the store last.
package sqlstore
