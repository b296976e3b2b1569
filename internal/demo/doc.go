// Package demo fills a server with something to look at: people, channels, threads, direct
// messages, and others who go on writing.
//
//	Seed      once: the workspace, who is in it, what was said and read so far
//	Traffic   goes on: somebody writes, replies, names somebody, takes something back
//	Agent     goes on: Otto is woken by an outbox and answers who names him in the task
//	Page      a plain page on the public API: no build step, nothing from other hosts
//	Link      an address that signs in at the web app
//
// Everything goes through the library or the public API like in any other product; nothing here
// is known to the server. [Traffic] and [Agent] start no goroutine: their owner calls Run and ends
// it by the context. The page signs in with a token that comes in the fragment of its address, which
// browsers do not send to servers.
//
// # Failures
//
// Seed and Traffic end with their first error, since a demo that cannot write is broken.
package demo
