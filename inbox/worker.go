package inbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Poke says that inboxes have changed. It costs next to nothing.
func (b *Inbox) Poke(members ...readstate.MemberKey) { b.pending.add(members...) }

// Run works until ctx ends or Close is called: it projects what is behind, and drops what retention
// does not keep. What is unfinished is taken up by the next Run, in this process or another.
func (b *Inbox) Run(ctx context.Context) error {
	b.mu.Lock()
	if b.isClosed() {
		b.mu.Unlock()
		return ErrClosed
	}
	if b.ended != nil {
		b.mu.Unlock()
		return errors.New("inbox: Run was called before")
	}
	ended := make(chan struct{})
	b.ended = ended
	b.mu.Unlock()
	defer close(ended)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	work.Go(func() {
		select {
		case <-b.closed:
			stop()
		case <-ctx.Done():
		}
	})
	b.loop(ctx)
	return nil
}

// Close ends Run and waits for its end. Reads go on. It is safe to call twice.
func (b *Inbox) Close() {
	b.mu.Lock()
	if !b.isClosed() {
		close(b.closed)
	}
	ended := b.ended
	b.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func (b *Inbox) isClosed() bool {
	select {
	case <-b.closed:
		return true
	default:
		return false
	}
}

// How long the worker pauses after a failure of the store.
const (
	pauseFirst = 50 * time.Millisecond
	pauseMost  = 5 * time.Second
)

func (b *Inbox) loop(ctx context.Context) {
	ticker := time.NewTicker(b.Limits.Rescan)
	defer ticker.Stop()
	pause := pauseFirst
	look := true
	for ctx.Err() == nil {
		var err error
		if look {
			if err = b.rescan(ctx); err == nil {
				look, err = false, b.upkeep(ctx)
			}
		}
		if err == nil {
			_, err = b.Work(ctx)
		}
		wait := time.Duration(-1)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			b.Log.Warn("inbox worker failed and tries again", "error", err, "pause", pause)
			wait, pause = pause, min(2*pause, pauseMost)
		default:
			pause = pauseFirst
		}
		look = b.wait(ctx, ticker.C, wait) || look
	}
}

// wait returns when there is something to do, or after a pause if one is given; true says that
// everything is to be looked through.
func (b *Inbox) wait(ctx context.Context, tick <-chan time.Time, pause time.Duration) bool {
	rings := b.pending.rings
	var after <-chan time.Time
	if pause >= 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		rings, after = nil, t.C // not before, however much comes
	}
	select {
	case <-ctx.Done():
	case <-rings:
		gather(ctx)
	case <-after:
		b.pending.ring()
	case <-tick:
		return true
	}
	return false
}

// gatherFor is how long the worker lets inboxes gather before it works: each of its transactions is a
// durable write that writers wait for, and nobody waits for it but reads with a long tail.
const gatherFor = 50 * time.Millisecond

func gather(ctx context.Context) {
	t := time.NewTimer(gatherFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// page is how many inboxes one statement lists.
const page = 1000

// rescan finds the inboxes that are behind.
func (b *Inbox) rescan(ctx context.Context) error {
	return b.each(ctx, func(_ facts.WorkspaceKey, r facts.InboxLag) error {
		if r.Behind > 0 {
			b.pending.add(r.Member)
		}
		return nil
	})
}

// each visits the inboxes of the workspaces that this process owns, a page at a time.
func (b *Inbox) each(
	ctx context.Context, visit func(facts.WorkspaceKey, facts.InboxLag) error,
) error {
	var after readstate.MemberKey
	for {
		rows, err := b.Store.InboxesAfter(ctx, after, page)
		if err != nil {
			return err
		}
		for _, r := range rows {
			after = r.Member
			w := facts.WorkspaceKey(r.Member >> 32)
			if _, owned := b.Terms(w); !owned {
				continue
			}
			if err := visit(w, r); err != nil {
				return err
			}
		}
		if len(rows) < page {
			return nil
		}
	}
}

// Work projects what is known to be behind, batch by batch, until nothing is, and returns how many
// items that were. Run does it by itself; it is for programs that do without Run.
func (b *Inbox) Work(ctx context.Context) (projected int, err error) {
	for {
		w, some := b.pending.take(b.Limits.BatchInboxes)
		if len(some) == 0 {
			return projected, nil
		}
		n, err := b.batch(ctx, w, some)
		projected += n
		if err != nil {
			return projected, err
		}
	}
}

// batch projects some inboxes of a workspace in one transaction. What it does not finish is pending
// again.
func (b *Inbox) batch(ctx context.Context, w facts.WorkspaceKey, some []due) (int, error) {
	var steps []step
	room := b.Limits.BatchRows
	err := b.write(ctx, w, func(t facts.InboxTx) error {
		steps, room = nil, b.Limits.BatchRows
		for _, d := range some {
			if room == 0 {
				steps = append(steps, step{due: d, more: true})
				continue
			}
			s, err := b.project(ctx, t, d, room)
			if errors.Is(err, ErrGap) {
				b.metrics.gaps.Add(1)
				b.Log.Error("an inbox cannot be projected", "member", uint64(d.member), "error", err)
				continue
			}
			if err != nil {
				return err
			}
			room -= s.rows
			steps = append(steps, s)
		}
		if b.OnProject != nil {
			return b.OnProject(ctx)
		}
		return nil
	})
	switch {
	case errors.Is(err, facts.ErrNotOwner):
		return 0, nil // it is somebody else's to do
	case err != nil:
		for _, d := range some {
			b.pending.put(d.whole, d.member)
		}
		return 0, fmt.Errorf("project inboxes: %w", err)
	}
	n := 0
	for i := range steps {
		n += steps[i].rows
		b.metrics.progress(b.Now().UnixMilli(), &steps[i])
		b.summarize(ctx, &steps[i])
		if steps[i].more {
			b.pending.put(steps[i].whole, steps[i].member)
		}
	}
	b.metrics.projected.Add(uint64(n))
	b.moved.tell()
	return n, nil
}

// step is what one transaction did to one inbox.
type step struct {
	due
	rows    int
	more    bool
	lag     facts.Position // that is left
	oldest  int64          // when the first of the items was accepted; zero for none
	summary Summarized
}

// project takes the next items of an inbox in order and raises their senders' greatest positions
// together with P.
func (b *Inbox) project(
	ctx context.Context, t facts.InboxTx, d due, room int,
) (step, error) {
	s := step{due: d}
	rows, err := t.Inboxes(ctx, []readstate.MemberKey{d.member})
	if err != nil || len(rows) == 0 {
		return s, err
	}
	row := rows[0]
	through, err := t.Projected(ctx, d.member)
	if err != nil {
		return s, err
	}
	from := through
	raised := map[readstate.MemberKey]facts.Position{}
	if through < row.Floor {
		if through, err = row.Floor, vouched(ctx, t, row, raised); err != nil {
			return s, err
		}
	}
	items, err := t.Items(ctx, d.member, through, room)
	if err != nil {
		return s, err
	}
	for _, item := range items {
		if item.Position != through+1 {
			return s, fmt.Errorf("%w: %d follows %d", ErrGap, item.Position, through)
		}
		through = item.Position
		if item.Live {
			raised[item.Sender] = item.Position
		}
	}
	if len(items) < room && through < row.Accepted {
		return s, fmt.Errorf("%w: %d follows %d", ErrGap, row.Accepted, through)
	}
	s.rows, s.more, s.lag = len(items), through < row.Accepted, row.Accepted-through
	if len(items) > 0 {
		s.oldest = items[0].CreatedAt
	}
	senders, err := b.store(ctx, t, d.member, raised, through, len(items) > 0)
	if err != nil {
		return s, err
	}
	s.summary = Summarized{
		From: from, Through: through, Retractions: row.Retractions, Senders: senders,
	}
	if b.Summary != nil && d.whole && !s.more {
		s.summary.Whole = true
		s.summary.Senders, err = greatest(ctx, t, d.member)
	}
	return s, err
}

// store writes the positions that rise, and P where it does.
func (b *Inbox) store(
	ctx context.Context, t facts.InboxTx, m readstate.MemberKey,
	raised map[readstate.MemberKey]facts.Position, through facts.Position, moved bool,
) ([]facts.SenderPosition, error) {
	if len(raised) == 0 && !moved {
		return nil, nil
	}
	keys := make([]readstate.MemberKey, 0, len(raised))
	for k := range raised {
		keys = append(keys, k)
	}
	keys = distinct(keys) // in an order that is always the same
	known, err := t.Maxima(ctx, m, keys)
	if err != nil {
		return nil, err
	}
	for _, s := range known {
		if s.Position >= raised[s.Sender] {
			delete(raised, s.Sender)
		}
	}
	var out []facts.SenderPosition
	for _, k := range keys {
		if at, ok := raised[k]; ok {
			out = append(out, facts.SenderPosition{Sender: k, Position: at})
		}
	}
	return out, t.Project(ctx, m, out, through)
}

// vouched adds what is known of history below the floor.
func vouched(
	ctx context.Context, t facts.InboxTx, row facts.InboxRow,
	to map[readstate.MemberKey]facts.Position,
) error {
	below, err := t.Vouched(ctx, row.Member, row.Floor)
	for _, s := range below {
		to[s.Sender] = s.Position
	}
	return err
}

// greatest returns a projection as a whole.
func greatest(
	ctx context.Context, t facts.InboxTx, m readstate.MemberKey,
) ([]facts.SenderPosition, error) {
	all, err := t.MaximaAbove(ctx, m, 0)
	out := make([]facts.SenderPosition, len(all))
	for i, s := range all {
		out[i] = s.SenderPosition
	}
	return out, err
}

// summarize brings the prepared summary to what was committed. A failure costs a read from the store
// until the next time.
func (b *Inbox) summarize(ctx context.Context, s *step) {
	if b.Summary == nil || b.summaryRests() || s.summary.Through == 0 || s.rows == 0 && !s.summary.Whole {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, summaryTime)
	defer cancel()
	taken, err := b.Summary.Put(ctx, s.member, s.summary)
	if err != nil {
		b.summaryFailed()
		b.Log.Debug("a summary was not written", "error", err)
	} else if !taken && !s.summary.Whole {
		b.pending.refresh(s.member) // it is written as a whole
	}
}
