package slab

import "golang.org/x/sys/unix"

// hugePage is the size in bytes below which large pages cannot help.
const hugePage = 2 << 20

// advise asks for large pages: items are found by index, in no order, and each would otherwise cost a
// miss in the translation cache besides the one in the data cache. A system without them says no, and
// nothing is lost.
func advise(mapped []byte) {
	if len(mapped) >= hugePage {
		_ = unix.Madvise(mapped, unix.MADV_HUGEPAGE)
	}
}
