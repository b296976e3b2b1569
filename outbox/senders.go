package outbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/facts"
)

const (
	// A queue is put back for so long when enough others wait for its host already. The more are
	// put back, the longer each of them: they come again when it may be their turn.
	bouncedFor  = time.Second
	bouncedMost = time.Minute
	// maxWaiting bounds the claimed queues that wait for their hosts, of all hosts together.
	maxWaiting = 2048
)

// waitingPerPlace is how many claimed queues of a host wait for each of its places. The quick have
// their turn soon; the slow need not be claimed before it.
var waitingPerPlace = [classes]int{quick: 32, slow: 4}

// Queues are of one of two classes, each with places of its own: those whose last answer came in
// time, whatever it was, and those whose last answer came late or not at all. What is refused at
// once takes no time from others; its pauses are its own.
const (
	quick = iota
	slow
	classes
)

// senders decide which queues are sent to now. A queue takes a place of its class, and one of its
// host in that class. So whoever is slow waits for the slow only, one slow host leaves most places
// of either class to others, and on a host that serves many the slow leave most places to the
// quick. A host that has given nothing but late answers for a while is slow as a whole: then also
// those of its queues belong to the slow that were not asked yet.
type senders struct {
	b       *Outbox
	mu      sync.Mutex
	running [classes]int
	hosts   map[string]*host
	queued  map[*host]struct{} // those for which something waits
	waiting int                // queues
	all     sync.WaitGroup
	// attempts bounds requests; stop keeps queues from going on to their next wake.
	attempts, stop context.Context
}

// host is what is known of a host that is sent to, or that is slow.
type host struct {
	name    string
	running [classes]int
	waiting [classes][]*job
	bounced [classes]int // put back, less the room there was since
	misses  int          // late answers since the last one in time
}

// job is a claimed queue.
type job struct {
	queue facts.WakeQueue
	lease facts.Lease
	host  *host
}

func (j *job) class() int {
	if j.queue.Slow {
		return slow
	}
	return quick
}

func newSenders(b *Outbox) *senders {
	return &senders{b: b, hosts: map[string]*host{}, queued: map[*host]struct{}{}}
}

// places is how many queues of each class are sent to at once.
func (s *senders) places() [classes]int {
	return [classes]int{quick: s.b.Limits.Senders, slow: s.b.Limits.SlowSenders}
}

// placesOfHost is the same for one host.
func (s *senders) placesOfHost() [classes]int {
	return [classes]int{quick: s.b.Limits.PerHost, slow: max(1, s.b.Limits.PerHost/4)}
}

func (s *senders) late(h *host) bool { return h.misses >= s.b.Limits.PerHost }

// room returns how many more queues of each class can be sent to.
func (s *senders) room() (out [classes]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for class, n := range s.places() {
		out[class] = max(0, n-s.running[class])
	}
	return out
}

// sendLoop claims queues that are due as far as there is room, until ctx ends.
func (b *Outbox) sendLoop(ctx context.Context) {
	attempts, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	b.senders.attempts, b.senders.stop = attempts, ctx
	failed := 0
	for ctx.Err() == nil {
		n, next, err := b.claimSends(ctx)
		if err != nil {
			failed++
			b.complain(ctx, "claiming wakes failed", err)
			b.pause(ctx, backoff(b.Rand, storeRetryFirst, storeRetryMost, failed))
			continue
		}
		failed = 0
		if n > 0 {
			continue
		}
		timer := b.until(next, b.Limits.Rescan)
		select {
		case <-ctx.Done():
		case <-b.sends:
		case <-timer.C:
		}
		timer.Stop()
	}
	b.senders.release()
	patience := time.AfterFunc(b.Limits.Drain, cancel)
	defer patience.Stop()
	b.senders.all.Wait()
}

// claimSends claims queues and begins to send to them. It returns how many there were, and when
// the next is due.
func (b *Outbox) claimSends(ctx context.Context) (n int, next int64, err error) {
	room := b.senders.room()
	if room[quick]+room[slow] == 0 {
		return 0, 0, nil
	}
	now := b.now()
	claim := facts.WakeClaim{
		Terms: b.Terms, Lease: b.lease(), Now: now, Quick: room[quick], Slow: room[slow],
		Burst: b.Limits.Burst, Oldest: now - b.Limits.WakeAge.Milliseconds(),
	}
	batch, err := b.Store.ClaimWakes(ctx, claim)
	if err != nil {
		return 0, 0, err
	}
	b.metrics.expired.Add(uint64(batch.Expired))
	for i := range batch.Queues {
		b.senders.take(&job{queue: batch.Queues[i], lease: claim.Lease})
	}
	return len(batch.Queues), batch.NextDue, nil
}

// take begins to send to a queue, or has it wait for its host, or puts it back.
func (s *senders) take(j *job) {
	s.mu.Lock()
	name := hostOf(j.queue.URL)
	h := s.hosts[name]
	if h == nil {
		h = &host{name: name}
		s.hosts[name] = h
	}
	j.host = h
	class := j.class()
	room := waitingPerPlace[class] * s.placesOfHost()[class]
	switch {
	case s.late(h) && class == quick:
		s.mu.Unlock()
		s.b.metrics.moved.Add(1)
		s.putBack(j, true, 0)
		return
	case s.free(h, class) == 0 && (len(h.waiting[class]) >= room || s.waiting >= maxWaiting):
		pause := min(bouncedMost, bouncedFor+bouncedFor*time.Duration(h.bounced[class])/time.Duration(room))
		h.bounced[class]++
		s.mu.Unlock()
		s.b.metrics.bounced.Add(1)
		s.putBack(j, j.queue.Slow, s.b.now()+pause.Milliseconds())
		return
	}
	h.bounced[class] = max(0, h.bounced[class]-room)
	h.waiting[class] = append(h.waiting[class], j)
	s.waiting++
	s.pump(h)
	s.mu.Unlock()
}

// free returns how many more queues of a host can be sent to now. Under the lock.
func (s *senders) free(h *host, class int) int {
	return max(0, min(s.places()[class]-s.running[class], s.placesOfHost()[class]-h.running[class]))
}

// pump starts what waits for a host as far as there is room. Under the lock.
func (s *senders) pump(h *host) {
	for class := range classes {
		n := min(len(h.waiting[class]), s.free(h, class))
		for _, j := range h.waiting[class][:n] {
			h.running[class]++
			s.running[class]++
			s.all.Go(func() { s.run(j) })
		}
		h.waiting[class] = slices.Delete(h.waiting[class], 0, n)
		s.waiting -= n
	}
	if len(h.waiting[quick])+len(h.waiting[slow]) > 0 {
		s.queued[h] = struct{}{}
	} else {
		delete(s.queued, h)
	}
}

// run sends a queue's wakes and hands on how far it came.
func (s *senders) run(j *job) {
	outcome, sent := s.b.burst(s.attempts, s.stop, j)
	s.b.settler.put(settleItem{outcome: outcome})
	s.end(j, sent, outcome.Slow)
}

// end gives the places of a queue to others.
func (s *senders) end(j *job, sent, late bool) {
	h := j.host
	s.mu.Lock()
	h.running[j.class()]--
	s.running[j.class()]--
	switch {
	case sent && late:
		h.misses++
	case sent:
		h.misses = 0
	}
	var moved []*job
	if s.late(h) {
		moved, h.waiting[quick] = h.waiting[quick], nil
		s.waiting -= len(moved)
	}
	s.pump(h)
	for other := range s.queued {
		s.pump(other)
	}
	s.forget(h)
	s.mu.Unlock()
	for _, w := range moved {
		s.b.metrics.moved.Add(1)
		s.putBack(w, true, 0)
	}
	s.b.sends.set()
}

// forget drops what need not be known of a host. Under the lock.
func (s *senders) forget(h *host) {
	busy := h.running[quick] + h.running[slow] + len(h.waiting[quick]) + len(h.waiting[slow])
	if busy == 0 && (!s.late(h) || len(s.hosts) > maxHosts) {
		delete(s.hosts, h.name)
	}
}

// putBack gives a claimed queue up without an attempt.
func (s *senders) putBack(j *job, slow bool, due int64) {
	q := &j.queue
	s.b.settler.put(settleItem{outcome: facts.WakeOutcome{
		Recipient: q.Recipient, Lease: j.lease, DueAt: due, Slow: slow, Attempts: q.Attempts,
		Streak: q.Streak, Error: q.Error,
	}})
}

// release puts everything back that waits for its host.
func (s *senders) release() {
	s.mu.Lock()
	var all []*job
	for _, h := range s.hosts {
		for class := range classes {
			all = append(all, h.waiting[class]...)
			h.waiting[class] = nil
		}
	}
	s.waiting = 0
	s.mu.Unlock()
	for _, j := range all {
		s.putBack(j, j.queue.Slow, 0)
	}
}

// burst sends the wakes of a queue in order until one is refused, the lease nears its end, or
// stop ends. It reports whether there was any attempt.
func (b *Outbox) burst(ctx, stop context.Context, j *job) (o facts.WakeOutcome, sent bool) {
	q := &j.queue
	o = facts.WakeOutcome{
		Recipient: q.Recipient, Lease: j.lease, Slow: q.Slow, Attempts: q.Attempts,
		Streak: q.Streak, Error: q.Error,
	}
	margin := (b.Limits.WakeTimeout + b.Limits.WakeTimeout/4).Milliseconds()
	for i := range q.Wakes {
		w := &q.Wakes[i]
		began := b.Now()
		if stop.Err() != nil || began.UnixMilli()+margin > j.lease.Until {
			return o, sent
		}
		a := b.post(ctx, q, w)
		if ctx.Err() != nil && a.verdict == refused {
			return o, sent // broken off by ourselves
		}
		sent = true
		took := b.Now().Sub(began)
		b.metrics.attempt(a.verdict, took)
		o.Slow = took > b.Limits.SlowAfter
		if a.verdict == accepted {
			o.Through, o.Attempts, o.Streak, o.Error = w.Key, 0, 0, ""
			continue
		}
		b.setback(&o, w, a)
		return o, sent
	}
	return o, sent
}

// setback records an attempt that was not accepted.
func (b *Outbox) setback(o *facts.WakeOutcome, w *facts.Wake, a answer) {
	o.Error = short(a.err)
	switch a.verdict {
	case waiting:
		o.DueAt = b.now() + a.after.Milliseconds()
		return
	case gone:
		o.Disable = true
		return
	}
	o.Attempts++
	o.Streak++
	if o.Attempts >= b.Limits.WakeAttempts {
		o.Dead = w.Key
	}
	wait := backoff(b.Rand, b.Limits.RetryFirst, b.Limits.RetryMost, o.Streak-1)
	o.DueAt = b.now() + wait.Milliseconds()
}
