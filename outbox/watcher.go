package outbox

import (
	"context"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// watcher drives one webhook. It belongs to one goroutine; a second one reads the feed.
//
// What a member's badge does moves the state that the webhook has of them:
//
//	threshold   unseen --(first look)--> armed | fired
//	            armed --(messages >= threshold)--> fired, an event
//	            fired --(messages < threshold)--> armed
//	idle        none --(something unread)--> waiting since then
//	            waiting --(idle time is over)--> fired, an event
//	            waiting, fired --(a read)--> waiting since then, or none when nothing is left
//
// States and events are stored in one transaction, and only what is stored is remembered: a crash
// before it repeats the step with the same event, one after it does not.
type watcher struct {
	b       *Outbox
	hook    facts.WebhookRow
	members map[readstate.MemberID]int // in hook.Members
	seen    []seen                     // beside hook.Members
	next    int64                      // when the first idle time is over, or earlier; zero for never
}

// seen is what the present feed has told of a member.
type seen struct {
	any      bool
	messages uint64
}

func newWatcher(b *Outbox, hook facts.WebhookRow) *watcher {
	w := &watcher{b: b, hook: hook, members: make(map[readstate.MemberID]int, len(hook.Members))}
	for i := range hook.Members {
		w.members[hook.Members[i].MemberID] = i
	}
	return w
}

// run watches until ctx ends. A feed that breaks off is begun anew.
func (w *watcher) run(ctx context.Context) {
	for failed := 0; ctx.Err() == nil; failed++ {
		began := w.b.now()
		err := w.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if w.b.now()-began > time.Minute.Milliseconds() {
			failed = 0
		}
		w.b.Log.Info("the badges of a webhook are followed anew", "webhook", w.hook.ID,
			"reason", err)
		w.b.pause(ctx, backoff(w.b.Rand, storeRetryFirst, storeRetryMost, failed))
	}
}

// follow handles what one feed brings.
func (w *watcher) follow(ctx context.Context) error {
	ids := make([]readstate.MemberID, 0, len(w.members))
	for id := range w.members {
		ids = append(ids, id)
	}
	w.seen, w.next = make([]seen, len(w.hook.Members)), 0
	feed, err := w.b.Badges.Follow(ctx, w.hook.WorkspaceID, ids)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	news, broken := make(chan []Badge), make(chan error, 1)
	go func() {
		defer close(news)
		defer feed.Close()
		for {
			badges, err := feed.Next(ctx)
			if err != nil {
				broken <- err
				return
			}
			select {
			case news <- badges:
			case <-ctx.Done():
				broken <- ctx.Err()
				return
			}
		}
	}()
	defer func() {
		stop()
		for range news { // the reader ends before we do
		}
	}()
	for {
		timer := time.NewTimer(pauseOf(w.b.now(), w.next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case badges, ok := <-news:
			timer.Stop()
			if !ok {
				return <-broken
			}
			if err := w.take(ctx, badges); err != nil {
				return err
			}
		case <-timer.C:
			if err := w.tick(ctx); err != nil {
				return err
			}
		}
	}
}

// changes is a step that is not stored yet.
type changes struct {
	states  []facts.WebhookState
	firings []facts.Firing
}

// take brings badges in.
func (w *watcher) take(ctx context.Context, badges []Badge) error {
	var c changes
	now := w.b.now()
	for _, badge := range badges {
		i, ok := w.members[badge.Member]
		if !ok {
			continue
		}
		w.seen[i] = seen{any: true, messages: badge.Messages}
		before := w.hook.Members[i]
		after := before
		w.threshold(&after, badge, &c)
		w.idle(&after, badge, now)
		if after != before {
			c.states = append(c.states, after)
		}
		w.expect(&after)
	}
	return w.store(ctx, c)
}

func (w *watcher) threshold(s *facts.WebhookState, badge Badge, c *changes) {
	first := !s.Seen
	s.Seen = true
	if w.hook.Threshold == 0 {
		return
	}
	switch reached := badge.Messages >= w.hook.Threshold; {
	case !reached:
		s.Armed = true
	case s.Armed && !first:
		s.Armed = false
		c.firings = append(c.firings, facts.Firing{
			Webhook: w.hook.Key, Member: s.Member, Kind: facts.WakeUnreadThreshold,
			LSN: badge.LSN, Amount: badge.Messages,
		})
	}
}

func (w *watcher) idle(s *facts.WebhookState, badge Badge, now int64) {
	switch {
	case w.hook.Idle == 0:
	case !badge.Unread:
		s.IdleSince, s.IdleLSN, s.IdleFired = 0, 0, false
	case s.IdleSince == 0 || badge.Read:
		s.IdleSince, s.IdleLSN, s.IdleFired = now, badge.LSN, false
	}
}

// tick fires for those whose idle time is over.
func (w *watcher) tick(ctx context.Context) error {
	var c changes
	now := w.b.now()
	w.next = 0
	for i := range w.hook.Members {
		s := w.hook.Members[i]
		at := w.over(&s)
		if at == 0 || !w.seen[i].any {
			continue
		}
		if at > now {
			w.expect(&s)
			continue
		}
		s.IdleFired = true
		c.states = append(c.states, s)
		c.firings = append(c.firings, facts.Firing{
			Webhook: w.hook.Key, Member: s.Member, Kind: facts.WakeUnreadIdle, LSN: s.IdleLSN,
			Amount: w.seen[i].messages,
		})
	}
	return w.store(ctx, c)
}

// over is when a member's idle time is over; zero for never.
func (w *watcher) over(s *facts.WebhookState) int64 {
	if w.hook.Idle == 0 || s.IdleSince == 0 || s.IdleFired {
		return 0
	}
	return s.IdleSince + w.hook.Idle
}

// expect has tick called in time for a state.
func (w *watcher) expect(s *facts.WebhookState) {
	if at := w.over(s); at != 0 && (w.next == 0 || at < w.next) {
		w.next = at
	}
}

// store makes a step durable, then remembers it. It goes on trying: the feed gathers meanwhile
// what is new.
func (w *watcher) store(ctx context.Context, c changes) error {
	if len(c.states) == 0 {
		return nil
	}
	b := w.b
	var settled facts.EffectsSettled
	for failed := 0; ; failed++ {
		var err error
		settled, err = b.Store.SettleWebhooks(ctx, facts.WebhookSettlement{
			Terms: b.Terms, Now: b.now(), States: c.states, Firings: c.firings,
			QueueLimit: b.Limits.Queue,
		})
		if err == nil {
			break
		}
		b.complain(ctx, "storing what a webhook has seen failed", err)
		if !b.pause(ctx, backoff(b.Rand, storeRetryFirst, storeRetryMost, failed)) {
			return ctx.Err()
		}
	}
	for _, s := range c.states {
		w.hook.Members[w.members[s.MemberID]] = s
		w.expect(&s)
	}
	for _, f := range c.firings {
		if f.Kind == facts.WakeUnreadIdle {
			b.metrics.idles.Add(1)
		} else {
			b.metrics.thresholds.Add(1)
		}
	}
	b.metrics.wakes.Add(uint64(settled.Wakes))
	b.metrics.overflow.Add(uint64(settled.Overflow))
	b.sends.set()
	return nil
}
