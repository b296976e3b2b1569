// Package facts keeps the durable truth: who wrote what, who is a member of what, how far each
// of them has read. It says what an operation means, in which order operations happen, and when
// they are durable. How rows are stored is a Store's business (package sqlstore, suite
// factstest).
//
// # The lane
//
//	callers -> queue -> group: gather, load, run each operation, write -> commit
//	                      |                                                  |
//	                      | broken: roll back, run each operation alone      v
//	                      <------------------------------- applier: Apply(commit), answer callers
//
// One goroutine runs all operations of a store, so that each sees the state the one before it
// left. It collects what waits into a group, which is one transaction and one fsync. A group
// closes when nothing waits, at GroupRows rows, or at GroupWait age. While it commits, the next
// operations gather in the queue: the slower the disk, the larger the groups.
//
// Before a group writes it raises the LSN of every workspace it has touched, in the order of their
// keys, if term and LSN are still those the lane knows. That statement is the fence against another
// owner, the order of commits, and the change number that everything downstream carries. What was
// read before it is as good as what is read after it: nobody else has written in between.
//
// # Invariants
//
//   - An operation validates before it stages. A refusal changes nothing; a refusal after a
//     staged change, or a failed statement, rolls the group back, and its operations run again
//     one by one, so that no operation pays for another.
//   - The working set remembers committed rows between groups, and nothing else: staged rows
//     become remembered rows after the commit, never before.
//   - Events are built while the group runs, at their own place in the order, and reach Apply
//     after the commit, in LSN order, from one goroutine. Callers are answered after Apply.
//   - A statement serves many rows. Seeks by index are the exception: a cursor moved to a place
//     that is not the head, and a row whose owner blocks somebody.
//   - Long work (rewind, trim, erasure) is a chain of commits, each correct by itself; what
//     others do between two of them is not affected.
//
// # Tasks and activities
//
// A message of a task is delivered to those who watch it, its assignee and whom it names, as far as
// they see the task when it is committed; who wrote it and for whom it was written are not told.
// Who they are is frozen in the commit. The humans of them are recipients of the message, have a
// row in the index of conversations and are counted; the agents are in the outbox row alone, which
// every readable message of a task has. With it goes one activity of type discussion_added, which
// counts for nobody: it says which activities somebody has seen who has read the message.
//
// Activities are a log of their own. The types that HighSignal lists count: in a task for those whom
// they are delivered to, which are its watchers and its assignee, elsewhere for everybody but their
// actor. All others are a record. Telemetry is refused.
//
//	post in a task    -> message + deliveries | discussion_added | outbox row | conversations
//	activity in one   -> activity + deliveries | outbox row | conversations
//	channel, thread   -> message, or activity: nothing for any member
//	dm                -> message | conversations of its members, if they are few
//
// # Inboxes
//
// Whom a message is addressed to gets an item of their inbox in the message's own transaction
// (addressed.go): everybody else in a dm, whom it names, whom a task delivers it to; with SendInbox a
// text alone. An item has the next position of its member's inbox. What takes the message or the
// mention back retracts it: it keeps its position, and the inbox's number of retractions rises.
// Package inbox has the rest, in transactions of its own.
//
// # Sessions
//
// A session is a scope of one member, who alone names it and reads it (session.go). No entry is
// neutral there, the kind and the content decide what is readable. Whatever leaves nothing unread
// moves the cursor to the head, in the same commit. Fork and merge copy entries in one commit; a
// merged session keeps its row of sessions, which names the one to go on with, and no row of a member.
//
// # Failures
//
//   - A caller's context ends: the caller gets its error, the operation may still happen. The
//     same operation id tells afterwards.
//   - A commit is refused for certain (ErrAborted): as a failed statement.
//   - A commit's answer is lost: the lane stands still and reads (term, LSN) back under lock.
//     The expected LSN: it happened, apply it. The old one: it did not, run it again. Anything
//     else: another owner writes; memory of those workspaces is dropped (LaneConfig.Dropped) and
//     the callers get ErrNotOwner.
//   - The store is gone: operations get ErrUnavailable, and nothing they asked for is in memory.
//   - The process dies: what was answered is durable; what was not may or may not be.
//
// # Duties of the caller
//
// Hold the store's ownership before NewLane, which raises every workspace's term. Do not call
// the lane from Apply. Close the lane before the store.
package facts
