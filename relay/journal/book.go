package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// ErrConflict says that another installation uses the own slot.
var ErrConflict = errors.New("another installation uses the slot")

// Book is one partition of a Journal. It is safe for concurrent use, also by several processes.
type Book struct {
	journal   *Journal
	partition Partition
	budget    budget
}

// Book returns a partition. Nothing is written before something is saved.
func (j *Journal) Book(p Partition) *Book {
	return &Book{journal: j, partition: p, budget: syncBudget}
}

// Load returns the record as it is stored; a fresh one is stored first, so that its slot and client id
// stay the same from now on.
func (b *Book) Load(ctx context.Context) (Record, error) {
	return b.change(ctx, "load", func(*Record) (bool, error) { return false, nil })
}

func (b *Book) change(ctx context.Context, what string, f func(*Record) (bool, error)) (Record, error) {
	r, err := b.journal.update(ctx, b.partition, f)
	if err != nil {
		return Record{}, fmt.Errorf("%s in %s: %w", what, b.partition.Scope, err)
	}
	return r, nil
}

// Act saves what one reading action changes. Decide is called inside the transaction, with the record
// as it is then: it checks what must still hold, as a lease, and returns the plan; its error saves
// nothing. What is saved is on disk when Act returns, and nothing has been signed for it before.
func (b *Book) Act(
	ctx context.Context, e Evidence, decide func(Record) (frontier.Plan, error),
) (Record, error) {
	return b.change(ctx, "save", func(r *Record) (bool, error) {
		plan, err := decide(*r)
		if err != nil || plan.Empty() {
			return false, err
		}
		return true, r.apply(plan, b.budget, e)
	})
}

// apply carries a plan out, as one revision.
func (r *Record) apply(plan frontier.Plan, budget budget, e Evidence) error {
	r.Revision++
	publishes := false
	for k, t := range plan.Advance {
		// What is in the reserve only comes back at the higher of both, and is news to nobody.
		if held, ok := r.Reserve[k]; ok && held > t {
			t = held
		}
		changed, err := r.State.Advance(k, t)
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		r.Recent[k] = r.Revision
		if !k.IsMessage() {
			r.Own[k] = max(r.Own[k], t)
			publishes = true
		}
	}
	for _, k := range plan.Clear {
		delete(r.Manual, k)
	}
	if !publishes && r.Accepted == r.Revision-1 {
		r.Accepted = r.Revision // nothing for anybody else
	}
	r.boundOwn()
	return r.retain(budget, e)
}

// boundOwn gives up the oldest of the own frontiers when there are too many: they are hints.
func (r *Record) boundOwn() {
	if len(r.Own) <= maxOwn {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(r.Own), func(a, b Key) int {
		if r.Own[a] != r.Own[b] {
			return int(int64(r.Own[a]) - int64(r.Own[b]))
		}
		return int(a.Scope()) - int(b.Scope())
	})
	for _, k := range oldest[:len(r.Own)-maxOwn] {
		delete(r.Own, k)
	}
}

// MarkUnread saves a local mark. It needs no evidence and no capability of the relay, and is never
// published.
func (b *Book) MarkUnread(ctx context.Context, k Key) (Record, error) {
	return b.change(ctx, "mark unread", func(r *Record) (bool, error) {
		if err := k.Check(); err != nil {
			return false, err
		}
		if _, ok := r.Manual[k]; !ok && len(r.Manual) >= maxManual {
			return false, fmt.Errorf("%w: %d local marks", frontier.ErrCapacity, maxManual)
		}
		r.Revision++
		r.Manual[k] = r.Revision
		if r.Accepted == r.Revision-1 {
			r.Accepted = r.Revision
		}
		return true, nil
	})
}

// Learn notes where messages were posted that receipts name, and looks again at what covers what. It
// changes nothing that is read, and nothing to publish.
func (b *Book) Learn(ctx context.Context, e Evidence) (Record, error) {
	return b.change(ctx, "learn", func(r *Record) (bool, error) {
		before := len(r.Homes)
		r.learnHomes(e)
		return len(r.Homes) != before, nil
	})
}

// Homeless returns the messages that receipts name without anybody knowing where they were posted, as
// far as the receipt of a channel could stand for them: sorted, for requests in batches.
func (r Record) Homeless() []string {
	var highest Time
	channels := false
	for _, keys := range []map[Key]Time{r.State.Frontiers, r.Reserve} {
		for k, t := range keys {
			if k.Scope() == frontier.Channel {
				highest, channels = max(highest, t), true
			}
		}
	}
	found := make(map[string]bool)
	for _, keys := range []map[Key]Time{r.State.Frontiers, r.Reserve} {
		for k, t := range keys {
			id := k.Event()
			if _, known := r.Homes[id]; id != "" && !known && channels && t <= highest {
				found[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Observed is a blob that the relay holds in a slot of the viewer.
type Observed struct {
	Slot      string
	CreatedAt int64
	Blob      frontier.Blob
}

// Observe joins what the relay holds. Values in the own slots are taken back as own, so that a journal
// that was restored never publishes less than it once did. An own slot that was asked for and is not
// among what was seen holds nothing; when all of them were asked for, what the relay has lost is waiting
// to be published again. A slot that another installation uses is given up for a new one.
func (b *Book) Observe(
	ctx context.Context, now Time, seen []Observed, asked []string, e Evidence,
) (Record, error) {
	return b.change(ctx, "observe", func(r *Record) (bool, error) {
		before, err := r.encode()
		if err != nil {
			return false, err
		}
		whole := !slices.ContainsFunc(r.Slots(), func(s string) bool { return !slices.Contains(asked, s) })
		if err := r.observe(seen, asked); err != nil {
			return false, err
		}
		if whole && !r.Waiting() && r.lacks(now) {
			r.Revision++
		}
		if err := r.retain(b.budget, e); err != nil {
			return false, err
		}
		after, err := r.encode()
		return string(after) != string(before), err
	})
}

func (r *Record) observe(seen []Observed, asked []string) error {
	carried := make(map[string]map[Key]Time)
	conflict := false
	for _, o := range seen {
		joined, err := frontier.Join(r.State, o.Blob.State)
		if err != nil {
			return err
		}
		r.State = joined
		own := slices.Contains(r.Slots(), o.Slot)
		switch {
		case own && o.Blob.ClientID != r.ClientID:
			conflict = true
			r.replace(o.Slot)
		case own:
			carried[o.Slot] = o.Blob.State.Frontiers
			for k, t := range o.Blob.State.Frontiers {
				if !k.IsMessage() {
					r.Own[k] = max(r.Own[k], t)
				}
			}
			r.LastCreatedAt = max(r.LastCreatedAt, o.CreatedAt)
		}
	}
	for _, slot := range r.Slots() {
		if held, ok := carried[slot]; ok {
			r.Carried[slot] = maps.Clone(held)
		} else if slices.Contains(asked, slot) {
			delete(r.Carried, slot)
		}
	}
	if conflict {
		r.Revision++ // what it held has to be published again
	}
	r.boundOwn()
	return nil
}

// lacks tells whether the relay was not seen to hold everything that is published.
func (r *Record) lacks(now Time) bool {
	for k, t := range r.publishable(now) {
		i := r.carrier(k)
		if i < 0 || r.Carried[r.Slots()[i]][k] < t {
			return true
		}
	}
	return false
}

// replace gives a slot up for a new one.
func (r *Record) replace(slot string) {
	fresh := newSlot()
	if r.Slot == slot {
		r.Slot = fresh
	}
	for i := range r.Spill {
		if r.Spill[i] == slot {
			r.Spill[i] = fresh
		}
	}
	delete(r.Carried, slot)
	if p := r.Pending; p != nil {
		if at, _ := slotOf(p.Event); at == slot {
			r.Pending = nil // it would overwrite somebody else's
		}
	}
}

// Decode opens the read state among events of the viewer: verified, of the own key, and of the form of
// read state. Events of other applications are passed over. One that is recognised and cannot be read
// fails all of it, with the slot named: it is not an empty state.
func Decode(key *nostrx.Key, events []nostrx.Event) ([]Observed, error) {
	newest := make(map[string]nostrx.Event)
	for _, e := range events {
		slot, ok := slotOf(e)
		if !ok || e.PubKey != key.Public() {
			continue
		}
		if old, ok := newest[slot]; !ok || nostrx.Compare(e, old) < 0 {
			newest[slot] = e
		}
	}
	var seen []Observed
	for _, slot := range slices.Sorted(maps.Keys(newest)) {
		o, err := decodeOne(key, slot, newest[slot])
		if err != nil {
			return nil, fmt.Errorf("slot %s: %w", slot, err)
		}
		seen = append(seen, o)
	}
	return seen, nil
}

func decodeOne(key *nostrx.Key, slot string, e nostrx.Event) (Observed, error) {
	if err := e.Verify(); err != nil {
		return Observed{}, err
	}
	text, err := key.Open(e.Content)
	if err != nil {
		return Observed{}, err
	}
	blob, err := frontier.ParseBlob([]byte(text))
	if err != nil {
		return Observed{}, err
	}
	return Observed{Slot: slot, CreatedAt: e.CreatedAt, Blob: blob}, nil
}
