package readsync_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/client/readsync"
	"github.com/tidemark-im/tidemark/readstate"
)

// history is a server with one session, and devices on a network that loses, delays and repeats.
type history struct {
	*rand.Rand
	seed    uint64
	row     readstate.Row
	head    readsync.Revision
	marks   map[readsync.Version]string // the operation whose mark has the version
	told    []state                     // every state that there was
	devices []*phone
	read    readsync.Revision // the highest that anybody's outbox took in
	log     []string
	made    int
}

// phone is a device with a disk, and what is under way to it.
type phone struct {
	name    string
	box     readsync.Outbox
	disk    []readsync.Operation
	said    state
	seen    readsync.View     // of an opened window
	answers []func()          // not delivered yet
	belief  map[string]string // by operation: the mark that its maker saw
	lost    []readsync.Loss
}

func newHistory(seed uint64) *history {
	h := &history{
		Rand: rand.New(rand.NewPCG(seed, 0)), seed: seed, marks: map[readsync.Version]string{},
		told: []state{{}},
	}
	for _, name := range []string{"a", "b"} {
		h.devices = append(h.devices, &phone{name: name, belief: map[string]string{}, seen: readsync.View{Session: "s"}})
	}
	return h
}

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *history) fail(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Fatalf("seed %d: %s\n%s", h.seed, fmt.Sprintf(format, args...), strings.Join(h.log, "\n"))
}

func (h *history) state() state {
	return state{
		ContentRevision: h.head, ReadRevision: h.row.Read, ManualUnread: h.row.Manual.Set,
		Version: readsync.Version(h.row.Manual.Version),
	}
}

// commit writes a change and applies it, or is killed in between.
func (d *phone) commit(c readsync.Change, killed bool) {
	disk := readsync.Restore(d.disk)
	disk.Apply(c)
	d.disk = disk.Operations()
	d.lost = append(d.lost, c.Lost...)
	if killed {
		d.restart()
		return
	}
	d.box.Apply(c)
}

func (d *phone) restart() {
	d.box, d.said, d.answers = readsync.Restore(d.disk), state{}, nil
	d.seen = readsync.View{Session: "s"}
}

// serve carries an operation out, as the server does, and answers.
func (h *history) serve(t *testing.T, d *phone, op readsync.Operation) readsync.Answer {
	t.Helper()
	version := uint64(op.ExpectedVersion)
	before := h.row.Manual
	var err error
	if op.Kind == readsync.Read {
		_, err = h.row.MarkRead(h.head, readstate.ReadCommand{Revision: op.Revision, Version: &version})
		if before.Set && !h.row.Manual.Set {
			if whose := h.marks[readsync.Version(before.Version)]; whose != d.belief[op.ID] {
				h.fail(t, "%s %+v took away the mark of %s, and its maker had seen that of %q", d.name, op, whose, d.belief[op.ID])
			}
		}
	} else {
		_, err = h.row.MarkUnread(h.head, readstate.UnreadCommand{Version: &version})
	}
	if h.row.Manual.Version != before.Version {
		h.marks[readsync.Version(h.row.Manual.Version)] = op.ID
	}
	now := h.state()
	h.told = append(h.told, now)
	h.note("%s: served %+v: %v, now %+v", d.name, op, err, now)
	switch {
	case err == nil:
		return readsync.Answer{Status: 200, State: &now}
	case op.Kind == readsync.Unread:
		return readsync.Answer{Status: 409, Code: "version_conflict", State: &now}
	}
	return readsync.Answer{Status: 400, Code: "revision_in_future"}
}

// act makes somebody do something on a device.
func (h *history) act(t *testing.T, d *phone) {
	t.Helper()
	h.made++
	id := fmt.Sprintf("%s%d", d.name, h.made)
	now := d.box.View("s", d.said)
	var op readsync.Operation
	from := now
	switch h.IntN(4) {
	case 0:
		op = readsync.NewUnread(id, from, 0)
		if from.ManualUnread {
			return
		}
	case 1: // of a window that was opened some time ago
		from = d.seen
		op = readsync.NewRead(id, from, now.ContentRevision, 0)
	default:
		op = readsync.NewRead(id, from, now.ContentRevision, 0)
	}
	switch {
	case !from.ManualUnread:
	case from.After != "":
		d.belief[id] = from.After
	default:
		d.belief[id] = h.marks[from.Version]
	}
	c, standing, err := d.box.Add(op, from.Base)
	h.note("%s: %+v seen %+v: %s %v", d.name, op, from, standing, err)
	if err != nil {
		return
	}
	if op.Kind == readsync.Read {
		h.read = max(h.read, op.Revision)
	}
	d.commit(c, h.IntN(20) == 0)
}

// send takes the next operation of a device, and lets the network do something to it.
func (h *history) send(t *testing.T, d *phone, fair bool) bool {
	t.Helper()
	op, ready := d.box.Next(func(string) bool { return false })
	if !ready {
		return false
	}
	d.commit(d.box.Begin(op.ID), !fair && h.IntN(20) == 0)
	op, ready = d.box.Next(func(string) bool { return false })
	if ready && !fair { // killed: it is under way no more
		return true
	}
	op = d.disk[slices.IndexFunc(d.disk, func(x readsync.Operation) bool { return !ready || x.ID == op.ID })]
	settle := func(a readsync.Answer) {
		if a.State != nil {
			d.said = d.said.Merge(*a.State)
		}
		d.commit(d.box.Settle(op.ID, a), !fair && h.IntN(20) == 0)
	}
	fate := h.IntN(8)
	switch {
	case fair:
		settle(h.serve(t, d, op))
	case fate == 0:
		settle(readsync.Answer{Unsent: true})
	case fate == 1:
		settle(readsync.Answer{}) // the request was lost, and nobody knows
	case fate == 2:
		h.serve(t, d, op)
		settle(readsync.Answer{})
	case fate == 3:
		settle(readsync.Answer{Status: 503, Code: "unavailable"})
	default:
		a := h.serve(t, d, op)
		d.answers = append(d.answers, func() { settle(a) })
	}
	return true
}

func (h *history) step(t *testing.T) {
	t.Helper()
	d := h.devices[h.IntN(len(h.devices))]
	switch h.IntN(8) {
	case 0:
		h.head++
		h.told = append(h.told, h.state())
	case 1, 2:
		h.act(t, d)
	case 3, 4:
		h.send(t, d, false)
	case 5: // an event, or one from long ago
		d.said = d.said.Merge(h.told[h.IntN(len(h.told))])
		d.said = d.said.Merge(h.told[len(h.told)-1-h.IntN(min(2, len(h.told)))])
	case 6:
		if n := len(d.answers); n > 0 {
			i := h.IntN(n)
			answer := d.answers[i]
			d.answers = slices.Delete(d.answers, i, i+1)
			answer()
		}
	case 7:
		switch h.IntN(8) {
		case 0:
			h.note("%s: killed", d.name)
			d.restart()
		default:
			d.seen = d.box.View("s", d.said) // a window is opened
		}
	}
}

// settle lets the network be kind until nothing is left, and compares.
func (h *history) settle(t *testing.T) {
	t.Helper()
	h.note("the network is kind")
	for _, d := range h.devices {
		for _, answer := range d.answers {
			answer()
		}
		d.restart()
		for h.send(t, d, true) {
		}
	}
	want := h.state()
	for _, d := range h.devices {
		d.said = d.said.Merge(want)
		if got := d.box.View("s", d.said); got.State != want || got.Pending != 0 || len(d.disk) != 0 {
			h.fail(t, "%s shows %+v, the server has %+v", d.name, got, want)
		}
		for _, l := range d.lost {
			if l.Operation.Kind == readsync.Read {
				h.fail(t, "%s lost a read: %+v", d.name, l)
			}
		}
	}
	if want.ReadRevision != h.read {
		h.fail(t, "read through %d, and %d was taken in", want.ReadRevision, h.read)
	}
}

// Two devices in random histories: no read is lost, no mark is taken away by somebody who had not
// seen it, and at the end everybody shows the same.
//
// covers: SE-068 SE-069 SE-070 SE-103
func TestSimulatedHistories(t *testing.T) {
	seeds := uint64(2000)
	if n, err := strconv.ParseUint(os.Getenv("TIDEMARK_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	for seed := range seeds {
		h := newHistory(seed)
		for range 80 {
			h.step(t)
		}
		h.settle(t)
	}
}
