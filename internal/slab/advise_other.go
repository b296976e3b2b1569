//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package slab

// advise does nothing: these systems choose page sizes themselves.
func advise([]byte) {}
