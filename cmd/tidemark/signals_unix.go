//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// A file that may not grow any more is an error of the write, like a full disk, not the end of
// the process.
func init() { signal.Ignore(syscall.SIGXFSZ) }
