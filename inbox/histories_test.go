package inbox

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// What callers at once have seen of one inbox is checked against what one caller at a time could
// have seen.

type call struct {
	kind     string // send, open, ack or badge
	sender   int
	boundary facts.Position // ack: what the snapshot showed
}

type result struct {
	at      facts.Position // send: position; open: observed; ack: acknowledged
	h, a    facts.Position // badge
	senders string
}

// sequential is an inbox that one caller at a time uses.
type sequential struct {
	h, a   facts.Position
	latest [3]facts.Position
}

func (s sequential) senders() string {
	var out []string
	for i, at := range s.latest {
		if at > s.a {
			out = append(out, senderNames[i])
		}
	}
	return fmt.Sprint(out)
}

var senderNames = [3]string{"Bo", "Cy", "Dee"}

var model = porcupine.Model{
	Init: func() any { return sequential{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(sequential), input.(call), output.(result)
		switch in.kind {
		case "send":
			s.h++
			s.latest[in.sender] = s.h
			return out.at == s.h, s
		case "open":
			return out.at == s.h, s
		case "ack":
			s.a = max(s.a, in.boundary)
			return out.at == s.a, s
		default:
			return out.h == s.h && out.a == s.a && out.senders == s.senders(), s
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// subject is an inbox to be tried out.
type subject interface {
	open() (id string, through facts.Position)
	ack(id string) facts.Position
	badge() (h, a facts.Position, senders string)
	sent(sender int, at facts.Position)
}

// product is the real one.
type product struct {
	w    *world
	b    *Inbox
	who  Access
	acks atomic.Int64
}

func (p *product) open() (string, facts.Position) {
	o, err := p.b.Open(context.Background(), p.who)
	if err != nil {
		p.w.t.Error(err)
	}
	return o.Snapshot, o.Observed
}

func (p *product) ack(id string) facts.Position {
	r, err := p.b.Acknowledge(context.Background(), p.who, Ack{
		OpID: fmt.Sprint(p.acks.Add(1)), Snapshot: id,
	})
	if err != nil {
		p.w.t.Error(err)
	}
	return r.Acknowledged
}

func (p *product) badge() (h, a facts.Position, senders string) {
	b, err := p.b.Badge(context.Background(), p.who)
	if err != nil {
		p.w.t.Error(err)
	}
	return b.Accepted, b.Acknowledged, fmt.Sprint(b.Senders)
}

func (p *product) sent(int, facts.Position) {}

// toHead acknowledges whatever there is instead of what was shown.
type toHead struct{ *product }

func (p *toHead) ack(string) facts.Position {
	id, _ := p.open()
	return p.product.ack(id)
}

// clearing keeps the senders with something new in a set, and clears it.
type clearing struct {
	*product
	mu  sync.Mutex
	new map[int]bool
}

func (p *clearing) sent(sender int, _ facts.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.new[sender] = true
}

func (p *clearing) ack(id string) facts.Position {
	p.mu.Lock()
	clear(p.new)
	p.mu.Unlock()
	return p.product.ack(id)
}

func (p *clearing) badge() (h, a facts.Position, senders string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, a, _ = p.product.badge()
	var out []string
	for i := range p.new {
		out = append(out, senderNames[i])
	}
	slices.Sort(out)
	return h, a, fmt.Sprint(out)
}

// history is what happened to one inbox.
type history struct {
	w     *world
	to    readstate.MemberID
	s     subject
	clock atomic.Int64
	mu    sync.Mutex
	all   []porcupine.Operation
}

func (h *history) do(client int, in call, f func() result) result {
	began := h.clock.Add(1)
	out := f()
	ended := h.clock.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, porcupine.Operation{
		ClientId: client, Input: in, Call: began, Output: out, Return: ended,
	})
	return out
}

func (h *history) send(client, sender int) {
	h.do(client, call{kind: "send", sender: sender}, func() result {
		r, err := h.w.lane.SendInbox(context.Background(), space, facts.SendInbox{
			To: h.to, Sender: readstate.MemberID(senderNames[sender]), OpID: h.w.id(), Text: "x",
			By: facts.Actor{Trusted: true},
		})
		if err != nil {
			h.w.t.Error(err)
		}
		h.s.sent(sender, facts.Position(r.Seq))
		return result{at: facts.Position(r.Seq)}
	})
}

func (h *history) open(client int) (id string, through facts.Position) {
	out := h.do(client, call{kind: "open"}, func() result {
		var at facts.Position
		id, at = h.s.open()
		return result{at: at}
	})
	return id, out.at
}

func (h *history) ack(client int, id string, through facts.Position) {
	h.do(client, call{kind: "ack", boundary: through}, func() result {
		return result{at: h.s.ack(id)}
	})
}

func (h *history) badge(client int) result {
	return h.do(client, call{kind: "badge"}, func() result {
		n, a, senders := h.s.badge()
		return result{h: n, a: a, senders: senders}
	})
}

// race plays the arrival of Dee's message against the acknowledgement of an overview that did not
// show it, beside two readers and a worker, and returns the badge at the end.
func (h *history) race(b *Inbox, worker bool) result {
	h.send(0, 0)
	h.send(0, 0)
	h.send(0, 1)
	id, through := h.open(0)
	start := make(chan struct{})
	var all sync.WaitGroup
	at := func(f func()) {
		all.Go(func() {
			<-start
			f()
		})
	}
	at(func() { h.send(1, 2) })
	at(func() { h.ack(2, id, through) })
	at(func() { h.badge(3); h.badge(3) })
	if worker {
		at(func() { _, _ = b.Work(context.Background()) }) // the badge is what counts
	}
	close(start)
	all.Wait()
	return h.badge(0)
}

func histories(n int) int {
	switch {
	case os.Getenv("TIDEMARK_SOAK") != "":
		return 10 * n
	case raced:
		return n / 8
	}
	return n
}

// recipients makes members to send to.
func recipients(w *world, n int) []readstate.MemberID {
	batch := w.lane.NewBatch(space)
	out := make([]readstate.MemberID, n)
	for i := range out {
		out[i] = readstate.MemberID(fmt.Sprint("r", i))
		batch.PutMember(facts.PutMember{ID: out[i]})
	}
	_, err := batch.Run(context.Background())
	w.ok(err)
	return out
}

// However an arrival and an acknowledgement meet, on real threads, it ends with the arrival new, and
// everybody has seen what one at a time could have seen.
//
// covers: IN-064 IN-114
func TestArrivalRaceHistories(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	n := histories(1000)
	for i, m := range recipients(w, n) {
		h := &history{w: w, to: m, s: &product{w: w, b: b, who: own(m)}}
		end := h.race(b, i%2 == 0)
		if end.h != 4 || end.a != 3 || end.senders != "[Dee]" {
			t.Fatalf("history %d ends with %+v", i, end)
		}
		if !porcupine.CheckOperations(model, h.all) {
			t.Fatalf("history %d: nobody at a time could have seen\n%+v", i, h.all)
		}
	}
}

// Both orders, forced.
//
// covers: IN-064
func TestArrivalRaceInBothOrders(t *testing.T) {
	for _, first := range []string{"send", "ack"} {
		w := newWorld(t)
		b := w.inbox()
		h := &history{w: w, to: "Ada", s: &product{w: w, b: b, who: ada}}
		h.send(0, 0)
		h.send(0, 0)
		h.send(0, 1)
		id, through := h.open(0)
		if first == "send" {
			h.send(0, 2)
		}
		h.ack(0, id, through)
		if first == "ack" {
			h.send(0, 2)
		}
		w.wantBadge(b, "H4 A3 P0 tail 4: Dee")
	}
}

// The checker reports both mistakes that are easy to make here.
//
// covers: IN-057
func TestPlantedFaultsAreReported(t *testing.T) {
	for name, plant := range map[string]func(p *product) subject{
		"acknowledge to the head": func(p *product) subject { return &toHead{p} },
		"clear all":               func(p *product) subject { return &clearing{product: p, new: map[int]bool{}} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			b := w.inbox()
			found := 0
			for _, m := range recipients(w, 10) {
				h := &history{w: w, to: m, s: plant(&product{w: w, b: b, who: own(m)})}
				h.send(0, 0)
				id, through := h.open(0)
				h.send(0, 2)
				h.ack(0, id, through)
				h.badge(0)
				if !porcupine.CheckOperations(model, h.all) {
					found++
				}
			}
			if found < 10 {
				t.Errorf("the fault was found in %d of 10 histories", found)
			}
		})
	}
}
