// Package client is the Go SDK of a Tidemark server, for sessions and for scopes of the hub (channels,
// direct messages, threads, tasks): their lists with what is unread in them, windows of messages,
// reads and manual marks that survive everything.
//
// # Protocol
//
//	GET  /api/whoami                      the namespace: everything below is one member's
//	GET  /api/sessions                    the list, in pages
//	GET  /api/events                      the list and messages as they change (SSE, Last-Event-ID)
//	GET  /api/sessions/{id}/messages      a window: latest, before, after
//	PUT  /api/sessions/{id}/read-state    a read, or a manual mark
//	GET  /api/v1/workspaces/{ws}/events   scopes and messages as they change
//	GET  /api/v1/workspaces/{ws}/unread   the scopes, where there is no stream
//	     …/scopes/{s}/messages, read-state   as those of sessions
//	     …/members/{m}/inbox/badge, :open, /acks   the newly-unread badge, its overview, its receipt
//
// REST answers and events may come in any order. What is said of a scope carries the commit that it
// is of, and a newer one replaces it whole. Of sessions, revisions are merged by maximum, the manual
// flag by version; everything else is taken from an answer only if no event told of the session since
// the request was made. Package readsync has the rules, and no input or output.
//
// # Sessions and scopes
//
// Both have the same outbox, file and windows. A session is unread by its revisions, which everybody
// can compare. A scope is counted by the server alone: what a waiting read leaves of the count is
// shown only where it follows from what the server said, and is else not Exact. Scopes are followed
// from the first call that asks for them; whoever has sessions only opens no second stream.
//
// # A read, from the wish to the end
//
//	Observe, MarkRead, MarkUnread, MarkAllRead
//	  -> the operation is planned on top of the outbox
//	  -> written to the file (synchronous=FULL), with the exact revision and version seen
//	  -> shown
//	  -> a sender notes that it is under way, and sends it
//	  -> the answer settles this operation, in the file, and in what is shown
//
// A process may be killed between any two of these steps. What was shown is in the file, and is sent
// again; sending a read or a mark twice does what sending it once does.
//
// The server takes one session in a request. Four requests are under way at once, of four sessions,
// so that MarkAllRead of a long list does not wait for each in turn; the operations of one session
// are sent one after the other.
//
// # Invariants
//
//   - Nothing is shown as read or marked that is not in the file.
//   - An operation belongs to a server (its address) and to a namespace, which the server tells for
//     every new token before the token is used for anything else. It is sent nowhere else.
//   - An answer settles the operation that it answers. No operation is ever given a newer version
//     than the one that was seen when it was made.
//   - A number that is not known is not Exact, and never a zero instead.
//   - Only Observe reads by itself, and only if the caller asserts that somebody looks at a rendered
//     tail. Opening a window, listing sessions, or a state that arrives are no readings.
//
// # Failures
//
//	no answer, 429, 5xx, a proxy's page    sent again: a delay that doubles up to a minute, with
//	                                       jitter; at once on Foreground; also after a restart
//	another answer than asked for, pages   the same: nothing of it is taken in
//	that do not go on
//	401 of the server                      nothing is sent until Token returns another token
//	a token of another namespace           nothing is sent until there is one of the first
//	400, 403, 404, 409 of the server       the operation is lost: EventLost, and what is shown falls
//	                                       back to what the server says; a process that ends before it
//	                                       has told that leaves it to the next one
//	older than 29 days                     lost likewise, a day before the server forgets receipts;
//	                                       of a clock that was wrong, 29 days after it was set
//	the file cannot be written             the call fails, nothing is shown
//	a session was merged into another      its operations are lost, its windows become windows of
//	                                       the other session and load a fresh tail: EventReplaced
//	the stream breaks, or is silent        it is opened again where it ended; windows load what came
//	for two and a half heartbeats          meanwhile; what was edited or removed meanwhile stays in
//	                                       them as it was, until they are opened again; one that does
//	                                       not last ten seconds counts as a failure, with its delay
//	an event cannot be read                the stream begins anew, with the whole list
//
// A mark whose answer was lost is refused at the next attempt, because it is there: the refusal says
// the next version, marked, and beginning nowhere. What was wanted is in force then, whoever did it,
// and nothing is told. A mark that begins at a message is another device's for certain. Otherwise a
// state does not say whose operation made it, and the server keeps no name of one: the mark may be
// another device's, who made it a moment after ours was undone on this device. So a read that was made
// on top of the mark before it was settled is read to its revision and leaves the mark: a mark too
// many is seen and read again, one that was taken away from somebody is not. A state beyond the next
// version says that others changed it since, and the mark is told as lost, though it may have been
// there for a while.
//
// # What is remembered
//
// Sessions that were merged away are remembered for as long as a request or a stream is under way
// that began before that was known (gone.go): its answer would bring them back. A session that the
// list does not have any more is asked about, since a list in pages may miss one that was touched
// meanwhile.
//
// # Duties of the caller
//
// One Client at a time uses a file; another Open of it returns ErrInUse. To change the server or the
// member, Close first: it returns once everything that was begun is written. Call Foreground when
// the app comes to the front, and Renewed when there is a new token. OnEvent is called by one
// goroutine, in order; it may call the client, except for Close.
package client
