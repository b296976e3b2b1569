// Package sqlsnap keeps snapshot rows of the UnreadRuntime in a SQLite file.
//
// # What it holds
//
// The table member_scope_unread_runtime_snapshots, one row for each member and scope, one with an
// empty member id for each scope, and one with an empty scope id for each member who blocks or is
// blocked, and nothing in memory but prepared statements. The
// table is the one that a facts store has, too, with one column more, which is added to a table
// that lacks it.
//
//	OpenSQLite -> table -> Store.Load (pages by primary key) | Store.Upsert (one transaction)
//
// # Invariants
//
//   - Ids are stored and compared as bytes.
//   - Every Load is a range or a few points of the primary key, bounded by its limit.
//   - An upsert writes all of its rows or none. It leaves the Task columns alone but of rows that ask
//     for it, which it compares with those of the file in the same transaction.
//   - An upsert with a row that asks for it is on the disk when it returns, with all before it.
//
// # The way back
//
// [Store.Fold] brings Task columns back into the regular ones for programs that know no others, and
// [Store.Folding] says what would stop it. The file's lock keeps every writer out meanwhile.
//
// # Failures
//
// A file that another process has open is [ErrOwned]: one process owns the snapshots of its
// workspaces. Every other failure is that of the database, wrapped with the operation. A crash of
// the machine may lose the newest rows that did not ask to be durable, since what they say is a hint.
//
// # Duties of the caller
//
// Close the store after the last flush.
package sqlsnap
