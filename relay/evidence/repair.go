package evidence

import (
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Bounds of a repair.
const (
	BatchSize = 128 // channels in one read
	PageSize  = 500 // rows that it asks for
	// Margin is how far before the newest row of the last read the next one begins, in seconds: the
	// relay's tolerance of 900, and a minute for clocks and replicas.
	Margin = 960
)

// Repair plans how the messages of all channels are read again. It remembers from where on each batch
// has to be read. The zero value has read nothing. It is not safe for concurrent use.
type Repair struct {
	since      map[string]int64
	generation int
}

// Batch is one read of a repair.
type Batch struct {
	Channels   []string // sorted
	generation int
}

// Batches cuts channels into reads, in the order of their ids, so that a name that changes moves none.
func (r *Repair) Batches(channels []string) []Batch {
	var batches []Batch
	for ids := range slices.Chunk(slices.Sorted(slices.Values(channels)), BatchSize) {
		batches = append(batches, Batch{Channels: ids, generation: r.generation})
	}
	return batches
}

func (b Batch) key() string { return strings.Join(b.Channels, "\x00") }

// Filter is what a batch asks the relay for.
func (r *Repair) Filter(b Batch) nostrx.Filter {
	f := nostrx.Filter{
		Kinds: []int{nostrx.KindChat, nostrx.KindStream, nostrx.KindDiff},
		Tags:  map[string][]string{"h": b.Channels}, Limit: nostrx.Whole(PageSize), Aux: true,
	}
	if since, ok := r.since[b.key()]; ok {
		f.Since = nostrx.Whole(since)
	}
	return f
}

// Done notes what a batch returned at a moment. A page that was not full is followed by one that begins
// shortly before its newest row, or before the present, where that is earlier; a full one, or one from
// before marks were forgotten, by a whole one. An empty page says nothing.
func (r *Repair) Done(b Batch, events []nostrx.Event, now int64) {
	if b.generation != r.generation {
		return
	}
	rows, newest := 0, int64(0)
	for _, e := range events {
		if Content(e.Kind) {
			rows++
			newest = max(newest, e.CreatedAt)
		}
	}
	switch {
	case rows >= PageSize:
		delete(r.since, b.key())
	case rows > 0:
		if r.since == nil {
			r.since = make(map[string]int64)
		}
		r.since[b.key()] = max(min(newest, now)-Margin, 0)
	}
}

// Forget makes the next read of every batch a whole one, and what is under way set no marks. It is to be
// called when access changes, when evidence is cleared, and when somebody asks for a refresh.
func (r *Repair) Forget() {
	r.since = nil
	r.generation++
}
