//go:build unix

package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// fileSize, when set, bounds the size of files that the program may write.
const fileSize = "TIDEMARK_TEST_FILE_SIZE"

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
