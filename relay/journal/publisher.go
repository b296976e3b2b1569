package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Bounds of publication.
const (
	FlushTimeout = 10 * time.Second // of one flush, the wait for the lock included
	// MaxLead is how far the clock of replaceable events may be ahead of the present.
	MaxLead = 60 * time.Second
	// OldAfter is the age from which an event that is refused for its time may be renewed: the
	// tolerance of relays.
	OldAfter = 900 * time.Second
)

// Errors of publication. Whatever was saved is still there, and is published by a later flush.
var (
	ErrClockAhead = errors.New("the clock is behind what was signed last")
	ErrUnobserved = errors.New("accepted; the relay does not show it yet")
	ErrRefused    = errors.New("the relay refused")
)

// Relay is what publication needs of a relay.
type Relay interface {
	// Publish sends an event. An error says that nobody knows its end.
	Publish(ctx context.Context, e nostrx.Event) (nostrx.Receipt, error)
	// Coordinates returns what stands at given slots of an author now, verified.
	Coordinates(ctx context.Context, author nostrx.PubKey, slots []string) ([]nostrx.Event, error)
}

// Room is what the last complete snapshot of the relay held. A relay that has one refuses snapshots
// beyond its limits, so no new slot may bring it there.
type Room struct{ Events, Bytes int }

// Publisher publishes a book. One process at a time does, whoever has the file open. It has no
// goroutine and keeps nothing in memory: everything that it is about stands in the journal.
type Publisher struct {
	Book  *Book
	Relay Relay
	Key   *nostrx.Key
	Now   func() time.Time
	Room  func() (room Room, known bool) // nil where there are no snapshots
}

// Flush publishes what is waiting and returns when the relay shows it, or why it does not. What was
// signed before goes first, with the same bytes. A flush that fails is not repeated by itself.
func (p *Publisher) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, FlushTimeout)
	defer cancel()
	release, err := takeLock(ctx, p.Book.partition.lockPath(p.Book.journal.path))
	if err != nil {
		return fmt.Errorf("publish in %s: %w", p.Book.partition.Scope, err)
	}
	f := flush{Publisher: p}
	err = f.run(ctx)
	if err = errors.Join(err, release()); err != nil {
		return fmt.Errorf("publish in %s: %w", p.Book.partition.Scope, err)
	}
	return nil
}

// flush is one Flush, under the lock.
type flush struct {
	*Publisher
	renewed bool // one replacement of a refused event is all that a flush makes
}

func (f *flush) run(ctx context.Context) error {
	for {
		f.step("load")
		r, err := f.Book.Load(ctx)
		if err != nil {
			return err
		}
		if r.Pending != nil {
			if err := f.settle(ctx, *r.Pending); err != nil {
				return err
			}
			continue
		}
		if !r.Waiting() {
			return nil
		}
		if err := f.round(ctx, r); err != nil {
			return err
		}
	}
}

// round publishes every slot that is due for what is saved now.
func (f *flush) round(ctx context.Context, r Record) error {
	if _, err := f.look(ctx, r.Slots()); err != nil {
		return err
	}
	var pages []page
	var revision uint64
	now := f.now()
	// New slots are on disk before anything stands in them.
	r, err := f.Book.change(ctx, "lay out", func(r *Record) (bool, error) {
		before := len(r.Spill)
		laid, err := r.layout(r.publishable(now), frontier.MaxBlobOut)
		pages, revision = laid, r.Revision
		return len(r.Spill) > before, err
	})
	if err != nil {
		return err
	}
	due := r.due(pages)
	if err := f.fits(r, due); err != nil {
		return err
	}
	for _, page := range due {
		pending, err := f.sign(ctx, page, revision, false)
		if err != nil {
			return err
		}
		if err := f.settle(ctx, pending); err != nil {
			return err
		}
	}
	_, err = f.Book.change(ctx, "finish", func(r *Record) (bool, error) {
		r.Accepted = max(r.Accepted, revision)
		return true, nil
	})
	return err
}

// look reads own slots and joins what they hold. State that bears marks of other clients is not
// touched in this release: it is neither understood well enough to be kept, nor to be overwritten.
func (f *flush) look(ctx context.Context, slots []string) (Record, error) {
	events, err := f.Relay.Coordinates(ctx, f.Key.Public(), slots)
	if err != nil {
		return Record{}, fmt.Errorf("look at the own slots: %w", err)
	}
	seen, err := Decode(f.Key, events)
	if err != nil {
		return Record{}, fmt.Errorf("look at the own slots: %w", err)
	}
	for _, o := range seen {
		if slices.Contains(slots, o.Slot) && len(o.Blob.State.Overrides) > 0 {
			return Record{}, frontier.ErrOverride
		}
	}
	return f.Book.Observe(ctx, f.now(), seen, slots, Evidence{})
}

// fits looks before the first send whether the relay could still cut a snapshot after each of them.
func (f *flush) fits(r Record, due []page) error {
	if f.Room == nil {
		return nil
	}
	room, known := f.Room()
	if !known {
		return nil
	}
	for _, p := range due {
		size, err := f.size(r, p)
		if err != nil {
			return err
		}
		if _, there := r.Carried[p.slot]; !there {
			room.Events++
		}
		room.Bytes += size // what it replaces may be smaller than it was
		if room.Events > nostrx.MaxSnapshotEvents || room.Bytes > nostrx.MaxSnapshotBytes {
			return ErrSlots
		}
	}
	return nil
}

// size returns how large the event of a page is going to be.
func (f *flush) size(r Record, p page) (int, error) {
	text, err := encodePage(r, p)
	if err != nil {
		return 0, err
	}
	e := template(p.slot, strings.Repeat("x", sealedSize(len(text))), int64(frontier.MaxTime))
	e.ID, e.PubKey = nostrx.EventID(strings.Repeat("0", 64)), f.Key.Public()
	e.Sig = strings.Repeat("0", 128)
	return len(e.Encode()) + 1, nil
}

// sealedSize returns how many characters of base64 a text of n bytes becomes when it is encrypted.
func sealedSize(n int) int {
	padded := 32
	if n > 32 {
		power := 64
		for power < n {
			power *= 2
		}
		chunk := max(32, power/8)
		padded = (n + chunk - 1) / chunk * chunk
	}
	return (1 + 32 + 2 + padded + 32 + 2) / 3 * 4
}

func encodePage(r Record, p page) ([]byte, error) {
	state := frontier.State{Frontiers: p.values}
	return frontier.Blob{ClientID: r.ClientID, State: state}.Encode(frontier.MaxBlobOut)
}

func template(slot, content string, at int64) nostrx.Event {
	return nostrx.Event{
		Kind: nostrx.KindAppData, CreatedAt: at, Content: content,
		Tags: []nostrx.Tag{{"d", slotPrefix + slot}, {"t", "read-state"}},
	}
}

// sign makes the event of a page and saves it, before anybody sees it. Signing is a part of the
// transaction: what was signed and not saved has left nothing behind.
func (f *flush) sign(ctx context.Context, p page, revision uint64, replaces bool) (Pending, error) {
	now := f.Now().Unix()
	var pending Pending
	_, err := f.Book.change(ctx, "sign", func(r *Record) (bool, error) {
		if r.Pending != nil && !replaces {
			return false, errors.New("something else is pending, in spite of the lock")
		}
		at := max(now, r.LastCreatedAt+1)
		if at > now+int64(MaxLead.Seconds()) || at > int64(frontier.MaxTime) {
			return false, fmt.Errorf("%w: by %d s", ErrClockAhead, at-now)
		}
		text, err := encodePage(*r, p)
		if err != nil {
			return false, err
		}
		sealed, err := f.Key.Seal(string(text))
		if err != nil {
			return false, err
		}
		e, err := f.Key.Sign(template(p.slot, sealed, at))
		if err != nil {
			return false, err
		}
		// What will be read is what was meant, or it is not sent.
		if opened, err := f.Key.Open(e.Content); err != nil || opened != string(text) {
			return false, errors.Join(errors.New("what was signed is not what was meant"), err)
		}
		f.step("signed")
		pending = Pending{Event: e, Revision: min(revision, r.Revision)}
		r.Pending, r.LastCreatedAt = &pending, at
		return true, nil
	})
	return pending, err
}

// settle sends what is pending and waits until the relay shows it.
func (f *flush) settle(ctx context.Context, p Pending) error {
	f.step("send")
	receipt, err := f.Relay.Publish(ctx, p.Event)
	f.step("sent")
	if err != nil {
		return err
	}
	if !receipt.Accepted {
		if f.mayRenew(p, receipt.Reason) {
			return f.renew(ctx, p)
		}
		return fmt.Errorf("%w: %q", ErrRefused, receipt.Reason)
	}
	shown, err := f.shown(ctx, p)
	if err != nil {
		return err
	}
	if !shown {
		return ErrUnobserved
	}
	return f.reconcile(ctx, p)
}

// shown looks whether the relay holds everything that an event says, in its slot.
func (f *flush) shown(ctx context.Context, p Pending) (bool, error) {
	slot, _ := slotOf(p.Event)
	meant, err := decodeOne(f.Key, slot, p.Event)
	if err != nil {
		return false, err
	}
	r, err := f.look(ctx, []string{slot})
	if err != nil {
		return false, err
	}
	f.step("looked")
	held, ok := r.Carried[slot]
	return ok && frontier.State{Frontiers: held}.Covers(meant.Blob.State), nil
}

// reconcile forgets what was pending.
func (f *flush) reconcile(ctx context.Context, p Pending) error {
	_, err := f.Book.change(ctx, "reconcile", func(r *Record) (bool, error) {
		if r.Pending == nil || r.Pending.Event.ID != p.Event.ID {
			return false, nil
		}
		r.Pending = nil
		return true, nil
	})
	return err
}

// timestampRefusal is what relays say of an event whose time is too far from theirs, word for word.
const timestampRefusal = "invalid: event timestamp too far from server time"

// mayRenew tells whether a refused event may be replaced by one of a fresh time. An event of the
// present or the future is not: it would run away into the future.
func (f *flush) mayRenew(p Pending, reason string) bool {
	age := f.Now().Unix() - p.Event.CreatedAt
	return reason == timestampRefusal && age > int64(OldAfter.Seconds()) && !f.renewed
}

// renew recovers from an event that became too old to be accepted. The old one stays saved until the
// relay is seen to hold what it says, or until its replacement is saved.
func (f *flush) renew(ctx context.Context, p Pending) error {
	f.renewed = true
	shown, err := f.shown(ctx, p)
	if err != nil {
		return err
	}
	if shown {
		return f.reconcile(ctx, p)
	}
	slot, _ := slotOf(p.Event)
	var pages []page
	now := f.now()
	if _, err := f.Book.change(ctx, "lay out", func(r *Record) (bool, error) {
		before := len(r.Spill)
		var err error
		pages, err = r.layout(r.publishable(now), frontier.MaxBlobOut)
		return len(r.Spill) > before, err
	}); err != nil {
		return err
	}
	for _, page := range pages {
		if page.slot != slot {
			continue
		}
		fresh, err := f.sign(ctx, page, p.Revision, true)
		if err != nil {
			return err
		}
		return f.settle(ctx, fresh)
	}
	return f.reconcile(ctx, p) // the slot is another installation's by now
}

func (f *flush) now() Time { return Time(min(max(f.Now().Unix(), 0), int64(frontier.MaxTime))) }

func (f *flush) step(name string) { f.Book.journal.onStep(name) }
