// Package redisset keeps prepared summaries of inboxes in Redis or Valkey, for reads that are cheaper
// than those of the store. It is an inbox.Summary.
//
// # What it holds
//
//	newly_unread:{N}        sorted set: a sender, with their greatest position as the score
//	newly_unread:{N}:state  hash: through, retractions, epoch, senders
//
// N is the number of the recipient. Senders are numbers, too: another name of theirs changes
// nothing here. Scores are positions, never times, and the count is that of scores above a bound, never of
// members. What is acknowledged is the store's: it is the bound, and nothing is removed for it.
//
// # Invariants
//
//   - Set and state change together, in a script. A score rises and never falls, but when the whole
//     set is replaced.
//   - A summary is used only in the epoch of the process that wrote it: another process, or the same
//     after a restart, writes its own first.
//   - A state that says another number of senders than the set has is nothing: a set that was lost
//     never looks like one without senders.
//
// # Failures
//
//   - The server cannot be reached, has lost a key or holds an old one: nothing is known, and the
//     caller asks the store. Sends and acknowledgements never come here. A server that is not there
//     when the process starts is looked for when it is wanted ([Dial]).
//   - A position above 2^53, which a score cannot hold exactly: [ErrRange], and the store answers.
//
// # Duties of the caller
//
// Close the client after the inbox. A server of version 6.2 or newer is needed.
package redisset
