// Package replay loads a chat trace into a workspace as if it happened now, and counts what it
// leaves unread for everyone.
//
//	trace.Reader -> Planner -> batches -> the workspace's lane
//	                                      Count <- the served rows of every member
//
// # What a row becomes
//
// The [Planner] turns a row into operations and knows no input or output. In this order:
//
//   - a channel that is new is made;
//   - the sender and everyone named join the channel, unless they did before, so that the present
//     message can already count for them;
//   - the first message of a topic goes to the channel. With the second one its thread opens,
//     rooted in the first; that and all later ones go to the thread;
//   - every message is sent with its sender's cursor at what the scope held before it.
//
// Nobody else reads. Who follows a thread is left to the library: the root's author and those
// whom it names, then the author and the named of each reply.
//
// # Invariants
//
//   - Ids of members, scopes, messages and operations follow from the trace alone. So the same
//     trace again finds everything done, and one that was broken off goes on.
//   - Rows reach the lane in their order.
//   - Counts are read like any client reads them, page by page; a page that cannot be answered
//     exactly fails the count instead of adding a zero.
//
// # Failures
//
// [ErrOtherTrace] says that the workspace holds something else under one of the ids. Errors of
// the trace and of the engine come through wrapped with the row or the member. A load that fails
// has loaded a prefix; it may simply be run again.
package replay
