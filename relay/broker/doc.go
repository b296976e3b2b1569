// Package broker serves a relay agent to windows: any number of pages and programs on the same machine
// see one agent's snapshots and tell it what was read. It is the wire of the capability session.unread.
//
// # Routes
//
//	GET    /v1/unread/events            a stream (SSE): hello with its id, then snapshots, badge, sync, roster
//	POST   /v1/unread/subscribe         {stream, targets}: what the stream carries from now on
//	POST   /v1/unread/reading           {channelId, rootId?} -> {lease}
//	POST   /v1/unread/reading/{lease}/observe   {messageIds, bottom}
//	DELETE /v1/unread/reading/{lease}
//	POST   /v1/unread/mark-through | mark-channel-read | mark-all-read | mark-unread | follow | level
//	POST   /v1/unread/ensure | refresh | retry-sync
//	GET    /v1/unread/following         ?channelId=&rootId=
//	GET    /v1/unread/diagnostics
//	GET    /v1/channels,  GET and POST /v1/channels/{id}/messages
//	GET    /                            the diagnostics page, without a token: it asks for one
//
// # Invariants
//
//   - Every /v1 request carries the token, compared in constant time. The Host is the broker's own, and an
//     Origin, if there is one, one that was allowed: a page of somebody else, and a name that was pointed
//     at this machine, get nowhere.
//   - Bodies, targets of a stream and streams are bounded. A stream that is not read loses steps and never
//     holds the agent up: each step is the present, whole.
//   - A request that is refused changes nothing.
//
// # Duties of the caller
//
// Listen on a loopback address only, hand the token to whom it is meant for, and end the server's context
// to end its streams.
//
// # Failures
//
// Errors are {"error": {"code", "message"}}: 400 what is malformed, 401 no token, 403 a wrong Host or
// Origin and a channel without access, 404, 409 a reading that has ended, 413, 422 a message that does not
// belong to its target, 429 too many streams or readings, 502 the relay, 500 the journal.
package broker
