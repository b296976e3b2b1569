package slab

import "sync/atomic"

// mapFrom is the size in bytes from which a segment is mapped rather than made.
const mapFrom = 64 << 10

// Memory counts the segments of the slabs that were made with it. The zero value is ready, and all
// methods may be called by many goroutines. It must not be copied.
type Memory struct {
	bytes atomic.Int64
}

// Bytes returns how many bytes are reserved by segments in use. What a collected slab had reserved is
// taken off when its memory has been given back.
func (m *Memory) Bytes() int64 { return m.bytes.Load() }

// block is the memory of one segment, as its cleanup needs it. It does not refer to the slab.
type block struct {
	memory *Memory
	bytes  int64
	mapped []byte // nil when the segment is in the Go heap
}

// release gives the block back. Nothing can reach the segment any more.
func (b block) release() {
	if b.mapped != nil {
		unmapMemory(b.mapped)
	}
	b.memory.bytes.Add(-b.bytes)
}
