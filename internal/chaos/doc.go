// Package chaos kills server processes and judges what they leave. All of it is tests.
//
//	judging process                                  server process, one after the other
//	  clients  -- HTTP -->  engine, API, trap  -->  SQLite file
//	  watchers <-- SSE ---                              |
//	  journal: what was sent, what was answered         |
//	  judge   <----------- plain SQL -------------------+
//
// The judging process is the test. It keeps the log of acknowledgements, which no kill reaches:
// each client notes what it is about to send, and the answer once it is there. A server process
// is the test binary itself, started with childEnv set. It serves the product's own API on a
// loopback port, and ends with its standard input at the latest. In the soak the shipped program
// takes its place, too.
//
// # A round
//
//	start -> judge -> resend what was never answered -> judge -> arm the trap -> load -> kill -9
//
// Kills are counted in operations, statements and commits, never in time. A place names where:
// from outside under load or at rest, while a process starts, before a statement that reads, and
// at every step of a commit: before its transaction, after BEGIN, between its writes, before
// COMMIT, while COMMIT runs, after COMMIT before memory knows, and after memory knows before the
// caller does.
//
// # What is judged
//
//   - The file: seqs and revisions are dense; each acknowledged message is at its place, once,
//     with its content, unless something that was sent took it away; what was acknowledged as
//     gone is gone; memberships, levels, follows, blocks, marks and cursors are as their one
//     owner was told last, or as an act of unknown fate would have made them. LSN and term never
//     go back, and the LSN reaches whatever anybody was shown.
//   - The counts: every row and badge that any member is served equals a recount, which looks at
//     every message for every member and shares no code with the product.
//   - The resend: an act with a receipt that had been carried out answers with it, any other is
//     carried out now.
//   - The streams: what a client folded from its stream over all kills is what is served.
//
// # Invariants of the load
//
// Whatever can be set has one client that sets it, and a client has one act under way. So the
// order of what was acknowledged is known without asking the server. The random choices follow
// from the seed; how clients interleave and what a kill meets does not, so that a failure prints
// the last operations and the state of things beside the command to try again.
//
// A kill of the process does not lose what the operating system holds: that COMMIT syncs the disk
// is not shown here.
//
// # A cluster
//
//	clients  -- HTTP, SSE -->  central  -->  three nodes  -- lossy ways -->  PostgreSQL or MariaDB
//
// A round has one thing go wrong under load: an owner is killed or stopped beyond its lease, its way
// to the database is held up or cut, all sessions of the database end, or the central process is
// killed. What says that nobody answers counts as no answer. Then everything is mended, the nodes have
// their workspaces back, and the same judge looks at rows, counts, resends and streams.
//
// # Running
//
// A plain run makes a dozen kills. TIDEMARK_SOAK makes it two hundred, with scopes so long that
// taking them back needs several commits, and the shipped program after that.
// make chaos runs rounds against a cluster until its file of results has as many as asked for.
// TIDEMARK_CHAOS_SEED and TIDEMARK_CHAOS_KILLS choose others, and TIDEMARK_TRACE names a recorded
// trace for the replay.
package chaos
