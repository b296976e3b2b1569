package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/relay/evidence"
	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/journal"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

const (
	homeBatch   = 100
	maxRoster   = 20 // pages of the roster
	markerLimit = 500
)

// observe reads everything once. What an earlier part brought stays when a later one fails.
func (a *Agent) observe(ctx context.Context, j *job) error {
	err := a.learn(ctx)
	if j.retry {
		_ = a.sync.Retry(ctx) // Sync tells
	} else {
		_ = a.sync.Load(ctx)
	}
	if err == nil {
		err = a.readRoster(ctx)
	}
	if err == nil {
		err = a.readMessages(ctx)
	}
	a.change(func(c *core) {
		if overflowed := errors.Is(c.failed, evidence.ErrOverflow) && !j.full; overflowed {
			return // until somebody asks for everything
		}
		c.failed, c.freshness = err, Observed
		if err != nil {
			c.freshness = Stale
		}
	})
	if err == nil {
		a.findHomes(ctx)
	}
	return err
}

// learn asks for the relay's document, once.
func (a *Agent) learn(ctx context.Context) error {
	a.mu.Lock()
	has := a.hasInfo
	a.mu.Unlock()
	if has {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, nostrx.Timeout)
	defer cancel()
	info, err := a.web.Info(ctx)
	if err != nil {
		return err
	}
	a.change(func(c *core) {
		a.info, a.hasInfo = info, true
		c.window.Trust(info.Self, a.o.Moderators)
	})
	return nil
}

// markers reads what is published: a complete snapshot where the relay has them, else as much as it
// shows, which is complete of nothing.
func (a *Agent) markers(ctx context.Context) error {
	if err := a.learn(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, nostrx.Timeout)
	defer cancel()
	a.mu.Lock()
	descriptor := a.info.Snapshot
	a.mu.Unlock()
	var events []nostrx.Event
	var asked []string
	if descriptor != nil {
		s, err := a.web.Snapshot(ctx, descriptor)
		if err != nil {
			return err
		}
		events = s.Events
		room := journal.Room{Events: len(events)}
		for _, e := range events {
			room.Bytes += len(e.Encode()) + 1
		}
		a.mu.Lock()
		a.room, a.hasRoom = room, true
		asked = a.core.record.Slots()
		a.mu.Unlock()
	} else {
		var err error
		events, err = a.client.Query(ctx, nostrx.Filter{
			Kinds: []int{nostrx.KindAppData}, Authors: []nostrx.PubKey{a.o.Key.Public()},
			Tags: map[string][]string{"t": {"read-state"}}, Limit: nostrx.Whole(markerLimit),
		})
		if err != nil {
			return err
		}
	}
	if err := a.merge(ctx, events, asked); err != nil {
		return err
	}
	a.change(func(c *core) { c.markers = true })
	return nil
}

// merge joins published read state into the journal.
func (a *Agent) merge(ctx context.Context, events []nostrx.Event, asked []string) error {
	seen, err := journal.Decode(a.o.Key, events)
	if err != nil {
		return err
	}
	before, err := a.o.Book.Load(ctx)
	if err != nil {
		return err
	}
	after, err := a.o.Book.Observe(ctx, a.seconds(), seen, asked, a.evidence())
	if err != nil {
		return err
	}
	if after.Revision != before.Revision {
		a.sync.Saved() // something has to be published again
	}
	return a.reload(ctx)
}

func (a *Agent) roomLeft() (journal.Room, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.room, a.hasRoom
}

// readRoster reads all channels that the relay says there are.
func (a *Agent) readRoster(ctx context.Context) error {
	a.mu.Lock()
	self := a.info.Self
	a.mu.Unlock()
	if self == "" {
		return errors.New("the relay names no key of its own, so that its roster proves nothing")
	}
	events, err := a.pages(ctx, nostrx.Filter{
		Kinds: []int{kindMembers}, Authors: []nostrx.PubKey{self},
		Tags: map[string][]string{"p": {string(a.o.Key.Public())}},
	})
	if err != nil {
		return fmt.Errorf("roster: %w", err)
	}
	var ids []string
	for _, e := range events {
		ids = append(ids, e.Value("d"))
	}
	slices.Sort(ids)
	for batch := range slices.Chunk(slices.Compact(ids), evidence.BatchSize) {
		about, err := a.pages(ctx, nostrx.Filter{
			Kinds: []int{kindChannel}, Authors: []nostrx.PubKey{self}, Tags: map[string][]string{"d": batch},
		})
		if err != nil {
			return fmt.Errorf("roster: %w", err)
		}
		events = append(events, about...)
	}
	a.change(func(c *core) { c.learn(events, true) })
	return nil
}

// pages asks for everything that a filter selects, the newest first.
func (a *Agent) pages(ctx context.Context, f nostrx.Filter) ([]nostrx.Event, error) {
	f.Limit = nostrx.Whole(evidence.PageSize)
	seen := make(map[nostrx.EventID]bool)
	var all []nostrx.Event
	for range maxRoster {
		events, err := a.query(ctx, f)
		if err != nil {
			return nil, err
		}
		grown := len(all)
		oldest := int64(frontier.MaxTime)
		for _, e := range events {
			oldest = min(oldest, e.CreatedAt)
			if !seen[e.ID] {
				seen[e.ID], all = true, append(all, e)
			}
		}
		if len(events) < evidence.PageSize {
			return all, nil
		}
		if grown == len(all) {
			oldest-- // more in one second than a page has: the rest of it is out of reach
		}
		f.Until = nostrx.Whole(oldest)
	}
	return nil, fmt.Errorf("more than %d pages", maxRoster)
}

func (a *Agent) query(ctx context.Context, f nostrx.Filter) ([]nostrx.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, nostrx.Timeout)
	defer cancel()
	return a.client.Query(ctx, f)
}

// readMessages repairs the evidence, batch after batch.
func (a *Agent) readMessages(ctx context.Context) error {
	a.mu.Lock()
	var ids []string
	for _, ch := range a.core.channels() {
		ids = append(ids, ch.ID)
	}
	batches := a.core.repair.Batches(ids)
	a.mu.Unlock()
	for i, b := range batches {
		a.mu.Lock()
		f := a.core.repair.Filter(b)
		a.mu.Unlock()
		events, err := a.query(ctx, f)
		if err != nil {
			return fmt.Errorf("messages, batch %d of %d: %w", i+1, len(batches), err)
		}
		a.change(func(c *core) { err = c.took(b, events, int64(a.seconds())) })
		if err != nil {
			return err
		}
	}
	return nil
}

// findHomes asks once a session where messages were posted that receipts name. What it finds out changes
// no read.
func (a *Agent) findHomes(ctx context.Context) {
	a.mu.Lock()
	ids := a.core.record.Homeless()
	again := a.homed
	a.homed = true
	a.mu.Unlock()
	if again {
		return
	}
	found := make(map[string]frontier.Message)
	for batch := range slices.Chunk(ids, homeBatch) {
		events, err := a.query(ctx, structure(batch))
		if err != nil {
			return // the receipts stay as they are
		}
		for _, e := range events {
			if refs := evidence.ParseRefs(e); evidence.Content(e.Kind) && refs.Channel != "" {
				found[string(e.ID)] = frontier.Message{
					ID: string(e.ID), Channel: refs.Channel, At: journal.Time(e.CreatedAt),
				}
			}
		}
	}
	if len(found) == 0 {
		return
	}
	_, err := a.o.Book.Learn(ctx, journal.Evidence{
		Message: func(id string) (frontier.Message, bool) { m, ok := found[id]; return m, ok }, DM: a.dm,
	})
	if err == nil {
		_ = a.reload(ctx) // the next one shows it
	}
}

// lookUp asks what decides about replies.
func (a *Agent) lookUp(ctx context.Context, in inquiry) {
	roots := make(map[string][]string)
	var missing, ids []string
	a.mu.Lock()
	for _, p := range in.parents {
		roots[p] = a.core.window.Marked(in.channel, p)
		for _, id := range append([]string{p}, roots[p]...) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
				if !a.core.window.Knows(id) {
					missing = append(missing, id)
				}
			}
		}
	}
	a.mu.Unlock()
	fetched := []nostrx.Event{}
	var err error
	for batch := range slices.Chunk(missing, homeBatch) {
		var events []nostrx.Event
		if events, err = a.query(ctx, structure(batch)); err != nil {
			break
		}
		fetched = append(fetched, events...)
	}
	if err == nil {
		var own []nostrx.Event
		own, err = a.ownReplies(ctx, in.channel, in.parents, roots)
		fetched = append(fetched, own...)
	}
	a.change(func(c *core) {
		if !c.asks.done(in, err != nil, a.o.Now()) {
			return
		}
		c.window.AddStructure(fetched...)
		for _, p := range in.parents {
			known := slices.Clone(fetched)
			for _, id := range append([]string{p}, roots[p]...) {
				if e, ok := c.window.Event(id); ok {
					known = append(known, e)
				}
			}
			c.window.Decide(in.channel, p, judge(c.viewer, question{in.channel, p}, roots[p], known))
		}
	})
}

// ownReplies fetches what the viewer wrote below parents and their roots. A full page is cut in two
// until one parent is left, and that is followed back in time.
func (a *Agent) ownReplies(
	ctx context.Context, channel string, parents []string, roots map[string][]string,
) ([]nostrx.Event, error) {
	var ids []string
	for _, p := range parents {
		ids = append(append(ids, p), roots[p]...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var all []nostrx.Event
	var until *int64
	for range maxPages {
		page, err := a.query(ctx, ownReplies(a.o.Key.Public(), channel, ids, until))
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		rows, oldest := 0, int64(frontier.MaxTime)
		for _, e := range page {
			if evidence.Content(e.Kind) {
				rows, oldest = rows+1, min(oldest, e.CreatedAt)
			}
		}
		switch {
		case rows < evidence.PageSize:
			return all, nil
		case len(parents) > 1:
			half := len(parents) / 2
			first, err := a.ownReplies(ctx, channel, parents[:half], roots)
			if err != nil {
				return nil, err
			}
			second, err := a.ownReplies(ctx, channel, parents[half:], roots)
			return append(first, second...), err
		case judge(a.o.Key.Public(), question{channel, parents[0]}, roots[parents[0]], all).Inside:
			return all, nil
		}
		until = nostrx.Whole(oldest - 1)
	}
	return all, nil
}
