// Package redisdots keeps red dots in Redis or Valkey. It is a substrate.Store.
//
// # What it holds
//
//	tidemark:{W}:dot:M   string: v1 TERM LSN UNREAD MESSAGES CONVERSATIONS ATTENTION, for a while
//	tidemark:{W}:term    string: the highest term that has written, for a month
//	tidemark:{W}:wanted  sorted set: members whose dots are wanted, with the server's time of their end
//	tidemark:wanted      sorted set: workspaces of them, likewise
//
// W and M are the ids in base64 for addresses, so that no id is taken for something else. The channels
// are tidemark:wants (W and members) and tidemark:dots (W, M and the value).
//
// # Invariants
//
//   - A dot is compared and written in one script, with the term that all dots of its workspace share.
//   - What does not read as written above is nothing: a dot is absent, a term is none, a set of
//     another type is replaced.
//   - The sets are bounded by [MaxMembers] and [MaxWorkspaces]. Times are the server's.
//
// # Failures
//
// Everything that the server does not answer, or answers otherwise than expected, is an error, and
// nothing is known then. The first connection is made by Listen, and made again by it: until then
// everything fails with substrate.ErrAway, at once.
//
// # Duties of the caller
//
// Keep Listen running, and Close when nothing else runs. A server of version 6.2 or newer is needed,
// alone or behind sentinels.
package redisdots
