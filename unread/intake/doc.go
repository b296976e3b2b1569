// Package intake is the UnreadRuntime for programs that keep their own facts: they tell it what
// they have made durable, and it answers what members have not read, from memory.
//
// # What it holds
//
// For each open workspace a [snapshot.Book], an open workspace of an [unread.Runtime] whose pages
// come from the book, and the events that wait. The numbers of members and scopes are made here and
// mean nothing beyond the process. Members' ids stay in memory. Scopes are let go, the ones used least
// recently first, when there are more than the budget allows, nothing of them is dirty or waits, and
// no row of theirs is loaded: they come back from their row, and their number is the same then.
//
// # The loop
//
//	Tell(events) --(rows and roster at hand?)--> rows and frontiers --> Book --> Runtime
//	                 | no: they wait, in order, by scope                 |
//	                 v                                                   +--> flush, by interval
//	           one job a scope: rows by key, the roster by page
//	           one job for blocks: the member's rows by page
//
// A message needs the rows of those it names and, where a [Roster] is configured, the roster of
// its scope, which is read once, page by page, and gives those who have no row their first one.
// What is read is rows, frontiers and rosters: never a message, a count or anything that would
// repair one. [Intake.Repair] and [Intake.Compare] read the program's facts when an operator asks, of
// members of one scope by name; nothing else has a way to them.
//
// # How far a row may be relied on
//
//	ready            kept by events from a start that this process knows: a membership that began
//	                 here, a cursor at the head of a scope whose head is known
//	snapshot_serving came back from the table, or from a roster: shown, and perhaps behind
//	stale            missed something: events were lost, a change had no exact meaning, a cursor
//	                 stopped below the entries that are held. Withheld until a cursor settles it
//	unavailable      damaged, of an unknown format, or refused by the budget of the backlog
//
// Increments keep the state; only what settles the row makes it ready. Nothing else does: no
// read, no time, no restart.
//
// # Invariants
//
//   - Events of a scope are taken in one after the other, in the order in which they were told,
//     except that an archive and the next change of the roster go before those that wait.
//   - An event is taken in whole or not at all. Told again, it changes nothing.
//   - What ends somebody's access hides the row before Tell returns.
//   - No request reads or writes the table: workers read, the flusher writes. The one exception is
//     [Intake.Barrier], by which an outbox makes the rows of one delivery durable.
//   - Queues are bounded: events of the process and of a scope, scopes that are being read, members
//     of a cold roster, rows that wait for a flush. What does not fit is counted, and what it may
//     have changed is not ready. So is memory: rows, scopes, newest entries.
//
// # Duties of the caller
//
//  1. Tell after the transaction, never before, and one scope's events in their order.
//  2. Number readable entries of a scope 1, 2, 3 … without gaps; a gap is taken for a loss.
//  3. Say what type a scope has, at the latest with its first message.
//  4. Give edits, and rewinds, a generation if they may be told again after a restart.
//  5. Tell whom a member blocks as a complete list, with what the newly blocked wrote above the
//     member's cursors where that is at hand ([BlocksChanged]).
//  6. Call nothing delivered before its barrier has passed; tell it again, and ask again, until then.
//     Tell who is in the scope before: a recipient of whom nothing is known has no row that counts
//     it, and the delivery is deferred. One who came later is told of with the first revision.
//  7. Own a workspace in one process at a time.
//
// # Older programs
//
// What a barrier wrote stays, whatever a program of before the Task columns writes late; what that one
// knew is taken over as far as it is safe. A delivery that is told again counts in rows that lost it.
// There is still one owner: this is for the minutes in which an older one ends. See package snapshot.
//
// # Failures
//
//   - The table or the roster does not answer: events wait, and are tried again by interval.
//   - The table takes no rows: memory keeps them, at most four backlogs of them. Events beyond that are
//     dropped, as those are that no queue has room for.
//   - A stop takes in what waits, as far as there is time, and flushes. It is the last to write.
//   - A crash loses what was not flushed. The next event of a scope shows that entries are missing:
//     they count for nobody, and nothing goes looking for them.
//   - Events contradict memory: the workspace's memory is read again; Stats counts it.
package intake
