package snapshot

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/tidemark-im/tidemark/readstate"
)

// TaskFormat is the version of the Task columns that this program writes, and the only one that it
// reads. None, or zero, is a row without them.
const TaskFormat = 1

// ErrConflict refuses a write whose rows the table no longer has as the writer knows them.
var ErrConflict = errors.New("snapshot row was written by somebody else")

// shadow is what a barrier protects of a row: format 1 of the Task columns, as JSON. It is the whole
// row as it was when the barrier wrote it, so that nothing of it depends on the regular columns,
// which programs that do not know it write on their own.
type shadow struct {
	// Barrier counts the row's barriers. Regular columns that name it were written by a program
	// that knew what it protects.
	Barrier         uint64      `json:"barrier"`
	Unread          int64       `json:"unread"`
	Activity        int64       `json:"activity"`
	Manual          int64       `json:"manual"`
	Read            int64       `json:"read"`
	ActivityRead    int64       `json:"activityRead"`
	Effective       int64       `json:"effectiveFrom"`
	Through         int64       `json:"through"`         // the protected frontier of messages,
	ActivityThrough int64       `json:"activityThrough"` // and that of activities
	Notification    string      `json:"notification"`
	Visibility      string      `json:"visibility"`
	Generations     Generations `json:"generations"`
	Ranks           *Ranks      `json:"ranks"`
	Detail          rowDetail   `json:"detail"`
}

// shadowOf is what protects a row that is about to be written.
func shadowOf(r *Row, d *rowDetail) *shadow {
	return &shadow{
		Barrier: d.Barrier, Unread: r.MessageUnread, Activity: r.ActivityUnread,
		Manual: r.ManualUnread, Read: r.MessageRead, ActivityRead: r.ActivityRead,
		Effective: r.EffectiveFrom, Through: r.MessageAccounted,
		ActivityThrough: r.ActivityAccounted, Notification: r.Notification,
		Visibility: r.Visibility, Generations: r.Generations, Ranks: r.Ranks, Detail: *d,
	}
}

// row is what the table would have of the row if nobody had written it since.
func (s *shadow) row(of *Row) Row {
	return Row{
		Workspace: of.Workspace, Member: of.Member, Scope: of.Scope,
		MessageUnread: s.Unread, ActivityUnread: s.Activity, ManualUnread: s.Manual,
		MessageRead: s.Read, ActivityRead: s.ActivityRead, EffectiveFrom: s.Effective,
		MessageAccounted: s.Through, ActivityAccounted: s.ActivityThrough,
		Notification: s.Notification, Visibility: s.Visibility, Generations: s.Generations,
		Ranks: s.Ranks, Detail: encodeJSON(s.Detail),
	}
}

// protect gives a row its Task columns.
func (r *Row) protect(s *shadow) {
	format := int64(TaskFormat)
	r.TaskFormat, r.TaskText, r.Protect = &format, encodeJSON(s), true
}

// decodeShadow reads the Task columns. It is nil where there are none.
func decodeShadow(r *Row) (*shadow, error) {
	switch {
	case r.TaskFormat == nil || *r.TaskFormat == 0:
		return nil, nil //nolint:nilnil // a row without one is as good as any
	case *r.TaskFormat != TaskFormat:
		return nil, fmt.Errorf("%w: task format %d is unknown", ErrDamaged, *r.TaskFormat)
	}
	s := new(shadow)
	if err := json.Unmarshal([]byte(r.TaskText), s); err != nil {
		return nil, fmt.Errorf("%w: task columns: %w", ErrDamaged, err)
	}
	if s.Barrier == 0 || s.Ranks == nil {
		return nil, fmt.Errorf("%w: task columns %q", ErrDamaged, r.TaskText)
	}
	row := s.row(r)
	_, bad := unpack[readstate.Revision](s.Detail.Entries)
	_, worse := unpack[readstate.Seq](s.Detail.Acts)
	if err := errors.Join(row.check(), bad, worse); err != nil {
		return nil, fmt.Errorf("%w: task columns: %w", ErrDamaged, err)
	}
	return s, nil
}

// genuine is the row without ranks and detail that are those of another write: a program that does
// not know these columns leaves them as they were. What remains is served from its counts.
func (r *Row) genuine() (Row, rowDetail, error) {
	d := rowDetail{Epoch: 1}
	if err := decodeJSON(r.Detail, &d); err != nil {
		return *r, d, err
	}
	out := *r
	if d.Sum != 0 && d.Sum != r.sum() {
		out.Ranks, out.Detail, d = nil, "", rowDetail{Epoch: 1}
	}
	return out, d, nil
}

// sum stands for the regular columns from which a row is served: neither the generations, which
// serve nothing, nor updated_at.
func (r *Row) sum() uint64 {
	b := appendInts(nil, r.MessageUnread, r.ActivityUnread, r.ManualUnread, r.MessageRead,
		r.ActivityRead, r.EffectiveFrom, r.MessageAccounted, r.ActivityAccounted)
	return hashOf(strconv.AppendQuote(strconv.AppendQuote(b, r.Notification), r.Visibility))
}

func appendInts(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// taskSum stands for the Task columns; rows without them have the same.
func (r *Row) taskSum() uint64 {
	if r.TaskFormat == nil || *r.TaskFormat == 0 {
		return 0
	}
	return hashOf(strconv.AppendQuote(strconv.AppendInt(nil, *r.TaskFormat, 10), r.TaskText))
}

// Fingerprint stands for all that a program writes of a row, the Task columns included. It is never
// zero, which stands for a row that is not there.
func (r *Row) Fingerprint() uint64 { return r.fingerprint(r.taskSum()) }

func (r *Row) fingerprint(task uint64) uint64 {
	b := binary.LittleEndian.AppendUint64(nil, r.sum())
	b = binary.LittleEndian.AppendUint64(b, task)
	g := &r.Generations
	b = appendInts(b, r.UpdatedAt, g.Roster, g.Message, g.Activity, g.Membership, g.Notification,
		g.Manual, g.Rewind)
	return hashOf(strconv.AppendQuote(b, r.Detail))
}

func hashOf(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return max(1, h.Sum64())
}

// kept is what a book knows of the table's row, beside what it serves: whoever wants to write the
// Task columns has to know which row they replace.
type kept struct {
	protected *shadow // what the table protects of the row
	odd       bool    // the Task columns are of no format that this program knows
	seen      uint64  // the row's fingerprint, zero where there is none
	task      uint64  // and that of its Task columns
	repaired  bool    // facts say what the row counts, whatever was protected
}

// keep notes what the table has. A shadow that cannot be read is an error.
func (k *kept) keep(r *Row) (err error) {
	k.seen, k.task = r.Fingerprint(), r.taskSum()
	k.protected, err = decodeShadow(r)
	k.odd = err != nil
	return err
}

// barrier is the number of the row's newest barrier.
func (k *kept) barrier() uint64 {
	if k.protected == nil {
		return 0
	}
	return k.protected.Barrier
}

// wrote notes what the table has after a write that did not fail. A write that gave way to another
// row is found out by the next barrier.
func (k *kept) wrote(r *Row, s *shadow) {
	if r.IfAbsent {
		return
	}
	if r.Protect {
		k.protected, k.task, k.repaired = s, r.taskSum(), false
	}
	k.seen = r.fingerprint(k.task)
}

// through is where a row was brought up to.
func (e *entry) through(f *frontier) (readstate.Revision, readstate.Seq) {
	return max(f.ranks.Head, e.got.entriesTo), max(f.ranks.LatestActivity, e.got.actsTo)
}
