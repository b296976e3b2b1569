// Package scenario holds the small operation language of testdata/scenarios and the runner
// that plays it against a server over HTTP and server-sent events.
//
// # What it holds
//
// A scenario file retells a fault that a real product shipped: a title, the ids it covers, and
// numbered blocks. Every block is played on a workspace of its own. Inside a block, lines are
// operations ("post A m1 in c") and expectations ("expect B c unread=1"). The whole grammar is
// one table, forms (grammar.go); docs/scenario-language.md explains it to people, and a test
// keeps the two equal.
//
//	# covers: SC-008
//	Deleting one of two unread posts lowers the count, and devices hear it once
//
//	1. The deleted post was unread
//	    channel c: A B
//	    post A m1, m2 in c
//	    stream B as phone
//	    delete m2
//	    expect B c unread=1
//	    expect phone deltas c count=1 unread=1
//
// # Grammar
//
//	file       = { comment | blank } title { comment | blank } block { block }
//	comment    = "#" text              "# covers: SC-008 SC-009" names what the file covers
//	title      = text at column 1
//	block      = number "." text { comment | blank | needs | statement }
//	needs      = indent "needs:" part  an expected failure, see below
//	statement  = indent words { key "=" value | "@" member | flag } [ "->" answer ]
//	answer     = [ "ok" | "applied" | "unchanged" | "conflict" | "duplicate" | "error" code ]
//	             { key "=" value }
//
// A statement without an answer must simply succeed. Words may be listed with commas
// (m1, m2) and ranges (m1..m9). Names are declared before use, and one name means one thing in
// a block; only the name of a message may be used before the line that posts it, because a
// device can be ahead of the server.
//
// # How it runs
//
//	Parse -> File -> Runner.Run(block) -> world (workspace, members, devices, messages)
//	                     each statement -> one HTTP exchange -> compare
//
// The runner knows the wire contract and nothing else. It never sleeps and reads no clock:
// requests are answered after they took effect, and before a device is looked at, the runner
// makes a change only that device's member sees (it joins and leaves a scope made for this) and
// waits for both to arrive; whatever was sent before has arrived by then.
//
// Invariants checked without being asked, on every answer that carries them: the badge is the
// fold of the listed rows, one member's row is the same in the list, in the read state and in
// the query of many members, deltas of one scope carry rising positions, a device that merged
// its deltas shows what the list shows.
//
// # Expected failures
//
// "needs: client" says that a block cannot pass before that part exists. Such a block must fail,
// and at a statement that uses this part; when it passes, or fails elsewhere, Judge reports it,
// so that the line is removed on the day it became untrue.
//
// # Duties of the caller and failures
//
// Options.Token must answer for any workspace and member. The server must be empty, or
// Options.Prefix new, since a block creates its workspace by name. Runner is safe for use by
// several goroutines when Options.Restart is nil; each Run owns its streams and has closed them
// when it returns. A failed statement ends its block and is returned as *StatementError, which prints
// file and line, the operation, what was expected, what came, and the server's own explanation
// of the count.
package scenario
