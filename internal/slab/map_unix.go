//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package slab

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapMemory returns zeroed memory of at least n bytes outside the Go heap, in whole pages, or nil when
// the system refuses.
func mapMemory(n int) []byte {
	page := os.Getpagesize()
	n = (n + page - 1) / page * page
	mapped, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	advise(mapped)
	return mapped
}

func unmapMemory(mapped []byte) {
	if err := unix.Munmap(mapped); err != nil {
		panic(fmt.Sprintf("slab: unmap %d bytes: %v", len(mapped), err))
	}
}
