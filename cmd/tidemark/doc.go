// Command tidemark is the unread server and its tools.
//
//	tidemark serve      the server
//	tidemark demo       the server with people, traffic and a page to look at
//	tidemark chat       a terminal client
//	tidemark replay     loads a chat trace and prints the totals of all counts
//	tidemark trace      writes a generated trace
//	tidemark token      signs a token
//	tidemark migrate    brings a database to this program's schema
//	tidemark backup     copies a database that may be in use
//	tidemark doctor     looks at configuration, clock, disk, limits and database
//	tidemark version    says what this is
//
// This package holds flags and wiring only. [Main] is the whole program without the process
// around it: arguments, streams and the clock come in, an exit code comes out, so that tests run
// it in process.
//
// Flags of budgets are made from the table of internal/settings, which also says what they mean.
//
// Without a command, or with help, it prints how it is used.
//
// Each flag may also be given by the environment (TIDEMARK_ and its name) or by the JSON file
// that --config names. That includes switches: TIDEMARK_CHECK=true is --check. A flag wins over
// the environment, and that over the file. Exit codes are 0 for done, 1 for a failure or a failed
// check, and 2 for a command line or configuration that is not understood. A failure is one line
// on the standard error stream.
package main
