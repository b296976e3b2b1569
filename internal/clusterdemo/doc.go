// Package clusterdemo runs a cluster that one can break: three nodes, a central process and private
// databases, all of them processes of their own, with somebody who writes all the time and a page that
// shows who owns what, has buttons to kill and pause nodes, and holds every count against what was
// acknowledged.
//
// # What goes on
//
//	writer of a workspace -> central -> owner: the same message again until it is acknowledged
//	looker: central -> what Ada has not read, and her dots; each node -> do you own it?
//	page: what the looker saw last; buttons -> signals to the nodes
//
// Ada reads nothing. So what she has not read is the number of messages: no fewer than were acknowledged
// before the question, and no more than were sent before the answer. A count outside is wrong, and is
// shown as such for good.
//
// # Failures
//
// A database that is missing ends the start with an error that names the package to install; without a
// Redis there are no dots. Processes end with the demo, whatever state they were brought into.
package clusterdemo
