//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package slab

// mapMemory returns nil: here all segments are in the Go heap.
func mapMemory(int) []byte { return nil }

func unmapMemory([]byte) {}
