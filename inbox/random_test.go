package inbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// recount is an inbox as plainly as possible: a list of items, counted by looking at all of them.
type recount struct {
	items        []recounted
	acknowledged int
	inactive     map[readstate.MemberID]bool
	blocked      map[readstate.MemberID]bool
}

type recounted struct {
	sender  readstate.MemberID
	message string // "" for what was sent to the inbox
	live    bool
}

func (r *recount) senders() string {
	fresh := map[readstate.MemberID]bool{}
	for i, item := range r.items {
		if item.live && i+1 > r.acknowledged && !r.inactive[item.sender] && !r.blocked[item.sender] {
			fresh[item.sender] = true
		}
	}
	var out []string
	for s := range fresh {
		out = append(out, string(s))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// shown is an overview that was opened: all that an acknowledgement of it may clear.
type shown struct {
	id       string
	boundary int
}

// play is one random history: the product beside the recount.
type play struct {
	*world
	rng     *rand.Rand
	inbox   *Inbox
	fail    bool
	want    recount
	shown   []shown
	acks    []acked
	senders []readstate.MemberID
	log     []string
}

type acked struct {
	op      Ack
	through facts.Position
}

// The badge and a recount of all items are equal after each of many random operations, whether the
// worker runs, lags, is interrupted or does not run at all; and an acknowledgement covers what its
// overview showed and nothing else.
//
// covers: IN-168 IN-169
func TestRandomHistories(t *testing.T) {
	histories, steps := 6, 200
	if raced {
		histories = 1
	}
	if os.Getenv("TIDEMARK_SOAK") != "" {
		histories, steps = 100, 1000
	}
	for seed := range uint64(histories) {
		p := newPlay(t, seed)
		for range steps {
			p.step()
			if t.Failed() {
				t.Fatalf("seed %d, %d operations, the last of them:\n%s", seed, len(p.log),
					strings.Join(p.log[max(0, len(p.log)-40):], "\n"))
			}
		}
		p.close()
	}
}

func newPlay(t *testing.T, seed uint64) *play {
	p := &play{
		world: newWorld(t), rng: rand.New(rand.NewPCG(seed, 7)),
		want: recount{
			inactive: map[readstate.MemberID]bool{}, blocked: map[readstate.MemberID]bool{},
		},
		senders: []readstate.MemberID{"Bo", "Cy", "Dee"},
	}
	p.scope("d", readstate.DM, "Ada", "Bo", "Cy", "Dee")
	p.scope("c", readstate.Channel, "Ada", "Bo", "Cy", "Dee")
	p.start()
	return p
}

func (p *play) start() {
	p.inbox = p.world.inbox(func(o *Options) {
		o.Limits.BatchRows = 1 + p.rng.IntN(4)
		o.OnProject = func(context.Context) error {
			if p.fail {
				return errInjected
			}
			return nil
		}
	})
	p.ok(p.inbox.rescan(p.t.Context()))
}

// step does something at random and compares.
func (p *play) step() {
	sender := p.senders[p.rng.IntN(len(p.senders))]
	n := p.rng.IntN(100)
	switch {
	case n < 22:
		p.note("send %s", sender)
		if p.want.inactive[sender] {
			p.refusedSend(sender)
			return
		}
		p.send(sender)
		p.want.items = append(p.want.items, recounted{sender, "", true})
	case n < 34:
		id := p.post("d", sender)
		p.note("dm %s %s", sender, id)
		p.want.items = append(p.want.items, recounted{sender, "d/" + id, true})
	case n < 42:
		id := p.post("c", sender, "Ada")
		p.note("mention %s %s", sender, id)
		p.want.items = append(p.want.items, recounted{sender, "c/" + id, true})
	case n < 52:
		p.retract()
	case n < 60:
		p.toggle(p.want.inactive, sender, func(on bool) { p.member(sender, !on) })
	case n < 64:
		p.toggle(p.want.blocked, sender, func(on bool) { p.block("Ada", sender, on) })
	case n < 72:
		p.open()
	case n < 80:
		p.ack()
	case n < 90:
		p.note("work")
		p.step1()
	case n < 94:
		p.interrupt()
	case n < 97:
		p.note("rebuild")
		p.ok(p.inbox.Rebuild(p.t.Context(), ada, facts.Position(len(p.want.items))))
	default:
		p.note("restart")
		p.reopen()
		p.start()
	}
	p.compare()
}

func (p *play) refusedSend(sender readstate.MemberID) {
	_, err := p.lane.SendInbox(p.t.Context(), space, facts.SendInbox{
		To: "Ada", Sender: sender, OpID: p.id(), Text: "x", By: facts.Actor{Trusted: true},
	})
	if !errors.Is(err, facts.ErrForbidden) {
		p.t.Errorf("a send by an inactive account: %v", err)
	}
	p.compare()
}

func (p *play) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *play) step1() {
	if _, err := p.inbox.Work(p.t.Context()); err != nil {
		p.t.Error(err)
	}
}

func (p *play) interrupt() {
	p.note("interrupt")
	p.fail = true
	_, _ = p.inbox.Work(p.t.Context()) // as the store is left, so it is compared
	p.fail = false
}

func (p *play) toggle(of map[readstate.MemberID]bool, m readstate.MemberID, set func(on bool)) {
	on := !of[m]
	of[m] = on
	p.note("toggle %s %t", m, on)
	set(on)
}

// retract takes back a message, or a mention and gives it back.
func (p *play) retract() {
	var messages []int
	for i, item := range p.want.items {
		if item.message != "" && item.live {
			messages = append(messages, i)
		}
	}
	if len(messages) == 0 {
		return
	}
	i := messages[p.rng.IntN(len(messages))]
	item := &p.want.items[i]
	s, id, _ := strings.Cut(item.message, "/")
	p.note("retract %d %s", i+1, item.message)
	if s == "c" && p.rng.IntN(2) == 0 {
		none, again := []readstate.MemberID{}, []readstate.MemberID{"Ada"}
		p.edit(id, &none)
		if p.rng.IntN(2) == 0 {
			p.edit(id, &again)
			return
		}
	} else {
		p.remove(readstate.ScopeID(s), id)
	}
	item.live = false
}

func (p *play) edit(id string, named *[]readstate.MemberID) {
	_, err := p.lane.Edit(p.t.Context(), space, facts.Edit{
		Scope: "c", Message: id, OpID: p.id(), Mentions: named,
	})
	p.ok(err)
}

func (p *play) open() {
	p.note("open")
	o := p.open1(p.inbox)
	if int(o.Observed) != len(p.want.items) {
		p.t.Errorf("observed through %d of %d", o.Observed, len(p.want.items))
	}
	p.shown = append(p.shown, shown{o.Snapshot, len(p.want.items)})
}

func (p *play) ack() {
	if len(p.shown) == 0 {
		return
	}
	if len(p.acks) > 0 && p.rng.IntN(4) == 0 { // again, as a client does that had no answer
		a := p.acks[p.rng.IntN(len(p.acks))]
		r, err := p.inbox.Acknowledge(p.t.Context(), ada, a.op)
		if err != nil || !r.Duplicate || r.Acknowledged != a.through {
			p.t.Errorf("repetition: %+v, %v, want %d", r, err, a.through)
		}
		return
	}
	s := p.shown[p.rng.IntN(len(p.shown))]
	p.note("ack through %d", s.boundary)
	op := Ack{OpID: p.id(), Snapshot: s.id}
	r, err := p.inbox.Acknowledge(p.t.Context(), ada, op)
	p.ok(err)
	p.want.acknowledged = max(p.want.acknowledged, s.boundary)
	if int(r.Acknowledged) != p.want.acknowledged {
		p.t.Errorf("acknowledged through %d, want %d", r.Acknowledged, p.want.acknowledged)
	}
	p.acks = append(p.acks, acked{op, r.Acknowledged})
}

func (p *play) compare() {
	got, err := p.inbox.Badge(p.t.Context(), ada)
	if err != nil {
		p.t.Error(err)
		return
	}
	_, who, _ := strings.Cut(textOf(got), ": ")
	if who != p.want.senders() || int(got.Accepted) != len(p.want.items) ||
		int(got.Acknowledged) != p.want.acknowledged {
		p.t.Errorf("the badge is %s, want H%d A%d: %s", textOf(got), len(p.want.items),
			p.want.acknowledged, p.want.senders())
	}
}
