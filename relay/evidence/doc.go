// Package evidence holds what verified messages say: a bounded window of events of the channels that
// the viewer is a member of, how they refer to each other, whom they are for, and what counts in which
// conversation. Everything that the agent shows is observed from it, and nothing is ever counted that
// is not in it.
//
// # What is kept
//
//	window     messages and what was said about them; grows until it is full, then is cleared as a whole
//	structure  parents and roots that were fetched to know where a reply belongs; never counted
//	decisions  what lookups found out about conversations
//
// All three are bounded. A window that is full is cleared and says so: a part of it would look like all
// of it.
//
// # How a message is read
//
// [ParseRefs] is the one reading of channel, parent and root that unread, threads and rows share. A
// message has exactly one channel. A marked reply makes it a reply; of several marks the last valid one
// counts. The canonical root is found by following references through retained messages of the same
// channel, and is unknown when one is missing: a reference alone proves nothing.
//
// # Invariants
//
//   - Nothing enters that was not verified, and nothing of a channel that the viewer is not a confirmed
//     member of.
//   - A deletion counts if its author may delete every message that it names, and all are here.
//   - What a sender declares about agents is believed; what it declares about workflows only if the
//     relay itself has signed it.
//   - No text is read to find out whom it is for.
//
// # Duties of the caller
//
// Give [Window.Add] events of nostrx, which has verified them, or verify what comes from a disk. Call
// SetRoster with confirmed members only. A Window is not safe for concurrent use.
//
// # Failures
//
// ErrOverflow says that the window was cleared; what was known is unknown then, and a refresh reads it
// again. An event that does not belong here is passed over.
package evidence
