// Package slab keeps large numbers of small items where the garbage collector does not look.
//
// # What it holds
//
// A [Slab] holds single items, a [Runs] ranges of neighbouring items, a [Text] byte strings. All three
// are found by a 32-bit index, which takes half the room of a pointer and is no work for the
// collector. A [Column] holds what belongs to the items of a Runs and is kept apart from them. Item
// types hold no pointers. A [Memory] counts what any number of them have reserved.
//
// # Layout
//
// Items live in segments. Segment 0 has about 4 KiB, each further one twice as many items, up to
// 1<<20 items or 64 MiB, whichever is less; from there on all have that size:
//
//	segment     0    1      2          3           ...    k                    k+1
//	items     [ f ][ 2f ][   4f   ][      8f      ] ... [       largest      ][       largest      ]
//	index     0    f     3f        7f
//
// Index i is the offset i+f in a row that begins at f. There the place of the highest bit is the
// segment and the bits below it are the place within. Bitmaps before the items of a segment tell which
// of them are in use, or where ranges begin and which of those are in use.
//
// Segments from 64 KiB on are anonymous mappings where the system has them: they cost no physical
// memory until touched, are no part of the Go heap, and neither pace the collector nor count against
// GOMEMLIMIT. Smaller ones, all of them on other systems, and those for which the system refuses a
// mapping, are ordinary slices without pointers.
//
// # Invariants
//
//   - Items never move. Growth adds a segment and copies nothing but the table of segments.
//   - Index 0 belongs to nobody, so that 0 can say "none".
//   - What Take gives is zero, and what Drop takes back is zeroed at once, but for the link to the next
//     free item or range that is kept inside it. What is found at an index that is not in use is
//     therefore unspecified.
//   - A range lies in one segment, and no two ranges in use share an item.
//   - An index that was never given leads to a panic or to an item of this slab, never to other memory.
//   - Memory that has been reserved stays reserved as long as its slab is reachable.
//
// # Fragmentation
//
// Free items are all alike, so a Slab never needs more than its peak. Free ranges are kept by class,
// and the one freed last is used first. A class without a free range takes what is left of the newest
// segment, then cuts the smallest larger free range, and only then adds a segment; the rest of a cut
// and the tail of a segment that was too short become free ranges of smaller classes, without loss.
// Free ranges are not joined again. A population whose ranges only ever grow leaves the small ones
// behind: at worst each step of a growing range leaves its last size, which is why a range whose final
// size is known should be taken in that size.
//
// # Caller duties
//
// One goroutine at a time may call what is not named here. At, View, String and Equal may run beside
// each other and beside everything else, on items that are in use and stay so; how a reader learns of
// an index, and who writes an item, is for the caller to order. A [Memory] may be used by all.
//
// Items whose size is a multiple of four bytes are linked and wiped by atomic stores of four bytes. A
// reader that finds out afterwards whether an item was dropped meanwhile may read it too, if it reads
// atomically; what it saw is then of no use.
//
// Whoever uses a pointer or slice from At or View keeps the slab reachable meanwhile: the memory goes
// back to the system when the slab is collected, and a pointer into it does not hold it. A slab in a
// field of something that lives longer is enough; a local one needs runtime.KeepAlive. Collection
// takes as long as the collector does, so Memory.Bytes follows with a delay.
//
// No value here is to be copied.
//
// # Failures
//
// Everything that fails is a mistake of the caller and panics: item types with pointers, an item or
// range dropped twice or with another size, a run longer than MaxRun, a text longer than MaxText, and
// a Take when the 2^31 indexes are used up, which Room tells before. A Take that panics has changed
// nothing that is in use. Memory that the system does not have ends the process, as it does for all
// Go memory.
package slab
