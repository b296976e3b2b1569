// Package servers starts private database servers and stops them: each in a directory of its own, which
// is removed at the end, on a port of the loopback interface that was free. No server of the system is
// asked, used or stopped. As root, a server that refuses to be root runs as the user its package made
// for it, or as nobody.
//
// A server that is not installed, or that does not answer in time, is an error that says so, with the
// Debian package that has it. Whoever starts one stops it.
package servers
