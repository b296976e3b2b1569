package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// feeds are badges that a test tells.
type feeds struct {
	mu      sync.Mutex
	now     map[readstate.MemberID]Badge
	open    map[*feed]struct{}
	follows int
}

type feed struct {
	owner   *feeds
	members []readstate.MemberID
	news    chan []Badge
	broken  chan struct{}
}

func newFeeds() *feeds {
	return &feeds{now: map[readstate.MemberID]Badge{}, open: map[*feed]struct{}{}}
}

func (f *feeds) Follow(
	_ context.Context, w readstate.WorkspaceID, members []readstate.MemberID,
) (BadgeFeed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.follows++
	one := &feed{owner: f, members: members, news: make(chan []Badge, 100), broken: make(chan struct{})}
	for _, m := range members {
		if b, ok := f.now[m]; ok {
			b.Read = false
			one.news <- []Badge{b}
		}
	}
	f.open[one] = struct{}{}
	return one, nil
}

func (o *feed) Next(ctx context.Context) ([]Badge, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-o.broken:
		return nil, errInjected
	case b := <-o.news:
		return b, nil
	}
}

func (o *feed) Close() {
	o.owner.mu.Lock()
	defer o.owner.mu.Unlock()
	delete(o.owner.open, o)
}

// tell changes a badge and waits until it has been taken in.
func (f *feeds) tell(m readstate.MemberID, messages uint64, lsn readstate.LSN, read bool) {
	f.mu.Lock()
	b := Badge{Member: m, Messages: messages, Unread: messages > 0, LSN: lsn, Read: read}
	f.now[m] = b
	for one := range f.open {
		if slices.Contains(one.members, m) {
			one.news <- []Badge{b}
		}
	}
	f.mu.Unlock()
	synctest.Wait()
}

// breakOff ends every feed.
func (f *feeds) breakOff() {
	f.mu.Lock()
	for one := range f.open {
		close(one.broken)
	}
	f.mu.Unlock()
	pass(storeRetryMost)
	synctest.Wait()
}

func (w *world) webhook(b *Outbox, id string, threshold uint64, idle time.Duration, members ...readstate.MemberID) {
	w.t.Helper()
	w.ok(b.PutWebhook(w.t.Context(), space, Webhook{
		ID: id, Endpoint: Endpoint{URL: "https://example.com/", Secret: secretText},
		Threshold: threshold, Idle: idle, Members: members,
	}))
	synctest.Wait()
}

// fired returns what webhooks have queued, in order, and takes it away.
func (w *world) fired() []string {
	w.t.Helper()
	synctest.Wait()
	var out []string
	rows := w.query(`SELECT w.kind, w.actor & 0xffffffff, w.event, w.amount FROM wakes w
  WHERE w.recipient < 0 ORDER BY w.recipient DESC, w.wake`)
	for _, r := range rows {
		kind := "threshold"
		if facts.WakeKind(r[0].(int64)) == facts.WakeUnreadIdle {
			kind = "idle"
		}
		out = append(out, fmt.Sprintf("%s m%d at %d: %d", kind, r[1], r[2], r[3]))
	}
	w.exec(`DELETE FROM wakes WHERE recipient < 0`)
	return out
}

func (w *world) expect(what string, want ...string) {
	w.t.Helper()
	if got := w.fired(); !slices.Equal(got, want) {
		w.t.Errorf("%s: fired %q, want %q", what, got, want)
	}
}

// noSends keeps wakes where they are: the addresses of these tests are not reached.
func noSends(o *Options) { o.Limits.WakeAttempts = 1 << 30 }

// hooked runs an outbox whose webhooks a test feeds.
func hooked(t *testing.T, f func(w *world, b *Outbox, all *feeds)) {
	all := newFeeds()
	bubble(t, func(o *Options) { noSends(o); o.Badges = all }, func(w *world, b *Outbox) {
		b.client.Transport = refusing{}
		synctest.Wait()
		f(w, b, all)
	})
}

// A threshold fires once on the way up, and again only after the badge was below it.
func TestThreshold(t *testing.T) {
	hooked(t, func(w *world, b *Outbox, all *feeds) {
		m := uint32(w.key("h0"))
		all.tell("h0", 3, 10, false)
		w.webhook(b, "hook", 5, 0, "h0", "h1")
		w.expect("below")
		all.tell("h0", 4, 11, false)
		w.expect("still below")
		all.tell("h0", 5, 12, false)
		w.expect("reached", fmt.Sprintf("threshold m%d at 12: 5", m))
		all.tell("h0", 9, 13, false)
		all.tell("h0", 5, 14, true)
		w.expect("above")
		all.tell("h0", 4, 15, true)
		w.expect("below again")
		all.tell("h0", 7, 16, false)
		w.expect("reached again", fmt.Sprintf("threshold m%d at 16: 7", m))
		// A member who is above it at the first look has not reached it.
		all.tell("h1", 100, 17, false)
		w.expect("first look")
		all.tell("h1", 0, 18, true)
		all.tell("h1", 6, 19, false)
		w.expect("the other", fmt.Sprintf("threshold m%d at 19: 6", uint32(w.key("h1"))))
		all.tell("h2", 100, 20, false)
		w.expect("somebody else")
		if s, _ := b.Stats(w.t.Context()); s.Thresholds != 3 || s.Webhooks != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// What is idle fires once, and a read begins the time anew.
func TestIdle(t *testing.T) {
	hooked(t, func(w *world, b *Outbox, all *feeds) {
		m := uint32(w.key("h0"))
		w.webhook(b, "hook", 0, time.Minute, "h0")
		all.tell("h0", 2, 10, false)
		pass(59 * time.Second)
		w.expect("not yet")
		all.tell("h0", 3, 11, false) // more, and no read
		pass(time.Second)
		w.expect("idle", fmt.Sprintf("idle m%d at 10: 3", m))
		pass(time.Hour)
		w.expect("once")
		all.tell("h0", 1, 12, true)
		pass(59 * time.Second)
		all.tell("h0", 1, 13, true)
		pass(59 * time.Second)
		w.expect("read in time")
		pass(time.Second)
		w.expect("idle again", fmt.Sprintf("idle m%d at 13: 1", m))
		all.tell("h0", 0, 14, true)
		pass(time.Hour)
		w.expect("nothing is unread")
		all.tell("h0", 1, 15, false)
		pass(time.Minute)
		w.expect("anew", fmt.Sprintf("idle m%d at 15: 1", m))
		if s, _ := b.Stats(w.t.Context()); s.Idles != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// What a webhook remembers survives feeds that break off, changes of the webhook, and restarts:
// nothing is fired twice, and what happened meanwhile is fired then.
func TestWebhookMemory(t *testing.T) {
	hooked(t, func(w *world, b *Outbox, all *feeds) {
		m := uint32(w.key("h0"))
		w.webhook(b, "hook", 5, time.Minute, "h0")
		all.tell("h0", 1, 10, false)
		all.tell("h0", 5, 11, false)
		w.expect("reached", fmt.Sprintf("threshold m%d at 11: 5", m))
		all.breakOff()
		w.expect("a feed breaks off")
		w.webhook(b, "hook", 5, time.Minute, "h0", "h1")
		w.expect("the webhook is changed")
		if infos, err := b.Webhooks(w.t.Context(), space); err != nil || len(infos) != 1 ||
			len(infos[0].Members) != 2 || infos[0].Threshold != 5 || infos[0].Idle != time.Minute {
			t.Errorf("%+v %v", infos, err)
		}
		b.Close()
		all.tell("h0", 9, 12, false) // while nobody looks
		all.tell("h1", 1, 12, false)
		w.reopen()
		again := w.outbox(func(o *Options) { noSends(o); o.Badges, o.Now = all, time.Now })
		again.client.Transport = refusing{}
		ended := make(chan error, 1)
		go func() { ended <- again.Run(w.t.Context()) }()
		synctest.Wait()
		w.expect("after the restart")
		pass(time.Minute)
		w.expect("idle since before the restart", fmt.Sprintf("idle m%d at 10: 9", m),
			fmt.Sprintf("idle m%d at 12: 1", uint32(w.key("h1"))))
		again.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A step that the store does not take is taken later, and once, also when only its answer is lost.
func TestWebhookStoreFails(t *testing.T) {
	all := newFeeds()
	var store *lossy
	bubble(t, func(o *Options) {
		noSends(o)
		store = &lossy{OutboxStore: o.Store}
		o.Badges, o.Store = all, store
	}, func(w *world, b *Outbox) {
		b.client.Transport = refusing{}
		m := uint32(w.key("h0"))
		w.webhook(b, "hook", 5, 0, "h0")
		all.tell("h0", 1, 10, false)
		for _, after := range []bool{false, true} {
			store.lose(3, after)
			all.tell("h0", 5, 11, false)
			pass(time.Minute)
			w.expect(fmt.Sprint("lost after: ", after), fmt.Sprintf("threshold m%d at 11: 5", m))
			all.tell("h0", 1, 12, true)
		}
	})
}

// lossy is a store that fails for a while, before or after it has done what it was asked.
type lossy struct {
	facts.OutboxStore
	mu    sync.Mutex
	n     int
	after bool
}

func (l *lossy) lose(n int, after bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n, l.after = n, after
}

// fails says whether to fail now, and whether that comes after the work.
func (l *lossy) fails() (now, after bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == 0 {
		return false, false
	}
	l.n--
	return !l.after, l.after
}

func (l *lossy) SettleWebhooks(
	ctx context.Context, s facts.WebhookSettlement,
) (facts.EffectsSettled, error) {
	now, after := l.fails()
	if now {
		return facts.EffectsSettled{}, errInjected
	}
	settled, err := l.OutboxStore.SettleWebhooks(ctx, s)
	if after && err == nil {
		err = errInjected
	}
	return settled, err
}

func (l *lossy) SettleEffects(
	ctx context.Context, s facts.EffectSettlement,
) (facts.EffectsSettled, error) {
	now, after := l.fails()
	if now {
		return facts.EffectsSettled{}, errInjected
	}
	settled, err := l.OutboxStore.SettleEffects(ctx, s)
	if after && err == nil {
		err = errInjected
	}
	return settled, err
}

func (l *lossy) SettleWakes(
	ctx context.Context, s facts.WakeSettlement,
) (facts.WakesSettled, error) {
	now, after := l.fails()
	if now {
		return facts.WakesSettled{}, errInjected
	}
	settled, err := l.OutboxStore.SettleWakes(ctx, s)
	if after && err == nil {
		err = errInjected
	}
	return settled, err
}

// Removing a webhook ends it; limits and mistakes are refused.
func TestWebhookAdministration(t *testing.T) {
	all := newFeeds()
	bubble(t, func(o *Options) { o.Badges, o.Limits.Webhooks = all, 2 }, func(w *world, b *Outbox) {
		ctx := w.t.Context()
		w.webhook(b, "one", 5, 0, "h0")
		w.webhook(b, "two", 5, 0, "h0")
		good := Webhook{
			ID: "three", Endpoint: Endpoint{URL: "https://example.com/", Secret: secretText},
			Threshold: 1, Members: []readstate.MemberID{"h0"},
		}
		if err := b.PutWebhook(ctx, space, good); !errors.Is(err, facts.ErrLimit) {
			t.Errorf("a third one: %v", err)
		}
		w.ok(b.RemoveWebhook(ctx, space, "one"))
		synctest.Wait()
		all.tell("h0", 1, 1, false)
		all.tell("h0", 9, 2, false)
		if got := w.fired(); len(got) != 1 {
			t.Errorf("fired %q", got)
		}
		if err := b.RemoveWebhook(ctx, space, "one"); !errors.Is(err, facts.ErrNotFound) {
			t.Errorf("removed twice: %v", err)
		}
		w.ok(b.PutWebhook(ctx, space, good))
		for name, spoil := range map[string]func(h *Webhook){
			"no id":        func(h *Webhook) { h.ID = "" },
			"no event":     func(h *Webhook) { h.Threshold = 0 },
			"no members":   func(h *Webhook) { h.Members = nil },
			"many members": func(h *Webhook) { h.Members = make([]readstate.MemberID, MaxWebhookMembers+1) },
			"half seconds": func(h *Webhook) { h.Idle = 1500 * time.Millisecond },
			"long idle":    func(h *Webhook) { h.Idle = MaxIdle + time.Second },
			"no address":   func(h *Webhook) { h.Endpoint.URL = "" },
			"no secret":    func(h *Webhook) { h.Endpoint.Secret = "" },
			"large":        func(h *Webhook) { h.Threshold = 1 << 60 },
		} {
			h := good
			spoil(&h)
			if err := b.PutWebhook(ctx, space, h); !errors.Is(err, facts.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		h := good
		h.Members = []readstate.MemberID{"nobody"}
		if err := b.PutWebhook(ctx, space, h); !errors.Is(err, facts.ErrNotFound) {
			t.Errorf("nobody: %v", err)
		}
	})
}

// A webhook whose address is gone is not watched any more, until it is set anew.
func TestWebhookGone(t *testing.T) {
	all, n := newFeeds(), newTown()
	n.hosts["example.com"] = after(0, 410)
	bubble(t, func(o *Options) { o.Badges = all }, func(w *world, b *Outbox) {
		b.client.Transport = n
		w.webhook(b, "hook", 5, 0, "h0")
		all.tell("h0", 1, 10, false)
		all.tell("h0", 5, 11, false)
		pass(time.Second)
		if s, _ := b.Stats(w.t.Context()); s.Webhooks != 0 || s.Gone != 1 || s.Gauges.Disabled != 1 {
			t.Errorf("%+v", s)
		}
		w.expect("the event is kept", fmt.Sprintf("threshold m%d at 11: 5", uint32(w.key("h0"))))
		all.tell("h0", 1, 12, true)
		w.webhook(b, "hook", 5, 0, "h0")
		all.tell("h0", 6, 13, false)
		w.expect("set anew", fmt.Sprintf("threshold m%d at 13: 6", uint32(w.key("h0"))))
	})
}
