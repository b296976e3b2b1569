// Package snapshot is what outlives memory where a program keeps its own facts: rows of the table
// member_scope_unread_runtime_snapshots, written behind by interval and trusted as hints after a
// restart. It knows the rows and the algebra, and nothing of the runtime that serves them.
//
// # What it holds
//
// A [Book] per workspace: the frontier of every scope that was looked at lately, which is where the
// scope stands, which of its revisions count for nobody and what those wrote whom somebody blocks;
// the newest entries of each; and the rows of members that changed and are not written yet, with some
// that are. A [Flusher] per process writes what is dirty to a [Store].
//
//	row with           is
//	member and scope   a member in a scope: the effective point with the ranks and counters there
//	scope alone        the scope's frontier
//	member alone       the member apart from scopes: whom they block, whether anybody blocks them
//
// A message changes the frontier and the rows of those it names, however many members there are.
//
// # The loop
//
//	events --Needs--> Fetch (table) --Apply--> book --> the events as memory can take them
//	                                            |  \
//	          Flusher, each interval: Take --> Upsert --> Done, or Failed and a growing pause
//	          an outbox:           TakeThese --> Upsert, durable --> Done
//	                                            |
//	          pages of members: Page = rows of the table, the book's instead where it has them
//
// # Blocks
//
// A row counts everything, and its pairs say what of it is by members whom its own blocks. A scope
// numbers the entries of everybody whom somebody ever blocked from then on, so that a pair needs no
// ranks of its own; it has the few numbers that touch the row's own alone, and is left out where
// these are zero. Who blocks whom is looked at when a row is shown, so that lifting a block is exact
// at once. A new block needs what the blocked member wrote above each of the blocker's points: from
// the newest entries, or from the program. Rows of which nobody knows that are withheld.
//
// # Deliveries
//
// In scopes that count deliveries a row knows which entries it counts. Barriers write such rows alone,
// ahead of their scope, and what is told again after a crash counts once. Entries that a scope missed
// there may be told later than others.
//
// # Older programs
//
// A program of before the ranks knows the regular columns alone. While one process takes over from
// another it may write a row late, and leave ranks, detail and Task columns as they were:
//
//   - Ranks and detail have a sum of the regular columns that they belong to. Where that is of other
//     ones, somebody else wrote the row, and it is served from its counts. In scopes that count
//     deliveries these count until an entry of before is told: how far a row was brought does not say
//     what it counted.
//   - A barrier writes the whole row into the Task columns as well, with a number, and only over a row
//     that is the table's still. Regular columns that name the number know what is protected, and are
//     served. Others give only what is safe beside it: membership, level and mark of a newer
//     generation, and cursors that cover all of it. One that stops inside withholds the row.
//   - No barrier takes back where the row was brought to, a generation, a cursor, or an entry that
//     nobody read or took back.
//   - [Fold] is the way back: regular columns as this program would serve them.
//
// This is for one owner and the late write of an older one. Two owners that count at once are not
// brought together: numbers do not say what they are numbers of, and no line adds or compares those of
// two rows. That would take a list of what each counted, or a condition on what it counted it over.
//
// # Invariants
//
//   - What is in the book is as new as the table or newer, and what is not in the book is in the
//     table: a row leaves only after it was written, and not while a read of the table that began
//     before is under way. A scope leaves only after its rows.
//   - A row is dirty from its change until the table has that change: a failed flush and a change
//     during a flush leave it dirty. It waits once, however often it changes.
//   - No row is in the table ahead of its scope, and no block without what it needs; where deliveries
//     count, no scope is ahead of its rows. A crash between two batches leaves rows that can be shown.
//   - An event that was told before changes nothing and makes nothing dirty.
//   - Rows that a trim moved may go to the table after the floor: the scope names them until they do,
//     and after a crash the older ones are withheld.
//   - Rows, scopes and members keep the commit that last changed them, so that a stream is told of
//     everything since, whatever was let go meanwhile.
//   - A page stands at the LSN of the book at the moment it is made.
//   - Entries that nobody told of count for nobody, and rows that were exact and count from below
//     them are withheld.
//   - A row that contradicts itself, its scope or its facts is withheld, never clamped and never
//     taken for zero. Rows of older programs, which have counts alone, are served from those.
//   - The Task columns are written by barriers alone, with the regular ones and in one write; a flush
//     leaves them as they are, and so does everybody where they cannot be read.
//
// # Duties of the caller
//
//  1. Call Fetch for what Needs names before Apply; apply one commit at a time and whole, since rows
//     that are read in the middle of one look broken; Trim in between, when nothing relies on what was
//     fetched.
//  2. Hand what Apply returns to memory, under the same LSN, before anything else.
//  3. Apply a commit, if need be without events, when Restored says that rows may be shown again.
//  4. Before a block is applied: Blocking, then Pair for every row of the member, then the event.
//  5. Forget only scopes that Idle named and of which memory holds nothing.
//
// # Failures
//
//   - The table cannot be read: Fetch and Page say so and change nothing.
//   - The table cannot be written: the rows stay dirty. Above the budget of the backlog, further
//     rows are withheld until there is room; nothing else fails.
//   - Rows, frontiers or members are damaged: they are counted, and withheld.
//   - A row is not the table's any more when its barrier comes: [ErrConflict], and Reconsider looks
//     again. What may not be written is [ErrProtected] or [ErrUnaccounted], until something changes.
//   - Facts for a repair do not fit: [ErrFacts], and nothing changes.
package snapshot
