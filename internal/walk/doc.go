// Package walk plays the whole story of the newly-unread badge against a real server on a loopback
// port with a private database, and says what it sees: arrivals, a repetition, an overview, the race
// of an arrival with an acknowledgement, an interrupted worker, a second device, strangers, malformed
// requests, and a source that is gone.
//
// [Inbox] checks every step itself and ends at the first one that is not as it has to be. Nothing is
// left behind.
package walk
