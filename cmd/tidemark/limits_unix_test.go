//go:build unix

package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func limitFiles() {
	text := os.Getenv(fileSize)
	if text == "" {
		return
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: n})
	}
	if err != nil {
		panic(err)
	}
}
