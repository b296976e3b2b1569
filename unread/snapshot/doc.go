// Package snapshot is what outlives memory where a program keeps its own facts: rows of the table
// member_scope_unread_runtime_snapshots, written behind by interval and trusted as hints after a
// restart. It knows the rows and the algebra, and nothing of the runtime that serves them.
//
// # What it holds
//
// A [Book] per workspace: the frontier of every scope that was looked at, which is where the scope
// stands and which of its revisions count for nobody, and the rows of members that changed and
// are not written yet, with some that are. A [Flusher] per process writes what is dirty to a
// [Store]. A scope's frontier is the table's row with an empty member id; a member's row has the
// effective point with the ranks and counters there, so that a message changes the frontier and
// the rows of those it names, however many members there are.
//
// # The loop
//
//	events --Needs--> Fetch (table) --Apply--> book --> the events as memory can take them
//	                                            |  \
//	          Flusher, each interval: Take --> Upsert --> Done, or Failed and a growing pause
//	                                            |
//	          pages of members: Page = rows of the table, the book's instead where it has them
//
// # Invariants
//
//   - What is in the book is as new as the table or newer, and what is not in the book is in the
//     table: a row leaves only after it was written, and not while a read of the table that began
//     before is under way.
//   - A row is dirty from its change until the table has that change: a failed flush and a change
//     during a flush leave it dirty. It waits once, however often it changes.
//   - An event that was told before changes nothing and makes nothing dirty.
//   - A page stands at the LSN of the book at the moment it is made.
//   - Entries that nobody told of count for nobody, and rows that were exact and count from below
//     them are withheld.
//   - A row that contradicts itself, its scope or its facts is withheld, never clamped and never
//     taken for zero. Rows of older programs, which have counts alone, are served from those.
//   - The Task columns are never written.
//
// # Duties of the caller
//
//  1. Call Fetch for what Needs names before Apply, from one goroutine at a time; Trim in
//     between, when nothing relies on what was fetched.
//  2. Hand what Apply returns to memory, under the same LSN, before anything else.
//  3. Apply a commit, if need be without events, when Restored says that rows may be shown again.
//
// # Failures
//
//   - The table cannot be read: Fetch and Page say so and change nothing.
//   - The table cannot be written: the rows stay dirty. Above the budget of the backlog, further
//     rows are withheld until there is room; nothing else fails.
//   - Rows or frontiers are damaged: they are counted, and withheld.
//   - Events need what no snapshot has, as blocks do: [ErrUnsupported].
package snapshot
