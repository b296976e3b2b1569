//go:build unix

// Command services starts private database servers for tests and benchmarks, and stops them.
//
//	go run ./scripts/services [--only postgres,mysql,redis]
//	go run ./scripts/services [--only ...] run -- COMMAND...
//
// The first form prints one line for each server, NAME=DSN, then stays until it is interrupted
// or its standard input ends. The second one runs a command with these variables set, passes its
// exit code on, and stops the servers after it:
//
//	TIDEMARK_TEST_POSTGRES  PostgreSQL
//	TIDEMARK_TEST_MYSQL     MariaDB or MySQL
//	TIDEMARK_TEST_REDIS     Redis or Valkey
//
// Each server has a directory of its own, which is removed at the end, and listens on a port of
// the loopback interface that was free. No server of the system is asked, used or stopped: only
// processes that this program started are ended, by their ids. As root, a server that refuses to
// be root runs as the user its package made for it, or as nobody.
//
// A server that is not installed, or does not answer in time, is one clear line on the standard
// error and left out. With CI=true it is a failure: the exit code is 1 and no command is run.
package main
