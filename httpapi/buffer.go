package httpapi

import (
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tidemark-im/tidemark/live"
)

// buffer is what an answer is encoded into.
type buffer struct{ data []byte }

// buffers are used again; the collector takes those that nobody needed for some time.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

// keptBuffer bounds an unused buffer in bytes: the largest page of ordinary names fits.
const keptBuffer = 512 << 10

func takeBuffer() *buffer { return buffers.Get().(*buffer) }

// release gives an empty buffer back. It must not be used afterwards.
func (b *buffer) release() {
	if cap(b.data) <= keptBuffer {
		b.data = b.data[:0]
		buffers.Put(b)
	}
}

// written is a T that was encoded while its values could be read.
type written[T any] struct{ *buffer }

func (w written[T]) whole() *buffer { return w.buffer }

// AppendJSON implements live.Appender, for what holds the answer in something bigger.
func (w written[T]) AppendJSON(b []byte) []byte { return append(b, w.data...) }

// Schema implements huma.SchemaProvider.
func (written[T]) Schema(r huma.Registry) *huma.Schema {
	t := reflect.TypeFor[T]()
	return r.Schema(t, true, t.Name())
}

// encode writes an answer. What MarshalJSON would have looked through once more is encoded
// directly.
func encode(answer any) (*buffer, error) {
	if s, ok := answer.(interface{ body() any }); ok {
		answer = s.body()
	}
	if w, ok := answer.(interface{ whole() *buffer }); ok {
		return w.whole(), nil
	}
	b := takeBuffer()
	var err error
	b.data, err = live.Append(b.data, answer)
	return b, err
}
