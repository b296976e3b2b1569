package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/relay/evidence"
	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/journal"
)

// Kinds of choices.
const (
	chooseFollow = "follow"
	chooseLevel  = "level"
)

// Snapshot returns what is known of a target.
func (a *Agent) Snapshot(t Target) (Snapshot, error) {
	if err := t.Check(); err != nil {
		return Snapshot{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.core.view.Now = a.seconds()
	return a.core.snapshot(t), nil
}

// Badge sums all channels up.
func (a *Agent) Badge() Badge {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.badge()
}

// Channels lists the channels that the viewer is a confirmed member of.
func (a *Agent) Channels() []Channel {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.channels()
}

// Subscribe has a function called when a target's snapshot changes, after all of them did. The function
// returns at once. What Subscribe returns ends that.
func (a *Agent) Subscribe(t Target, onChange func()) (func(), error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.core.watched[t]
	if w == nil {
		w = &watch{last: a.core.snapshot(t), listeners: make(map[*func()]bool)}
		a.core.watched[t] = w
	}
	w.listeners[&onChange] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if delete(w.listeners, &onChange); len(w.listeners) == 0 && a.core.watched[t] == w {
			delete(a.core.watched, t)
		}
	}, nil
}

// SubscribeBadge has a function called when the badge changes.
func (a *Agent) SubscribeBadge(onChange func()) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.core.badges[&onChange] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.core.badges, &onChange)
	}
}

// Reading opens a lease for one surface: a channel, or a thread of it.
func (a *Agent) Reading(channel, root string) (frontier.LeaseID, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.core.window.Access(channel) {
		return 0, ErrDenied
	}
	return a.core.leases.Open(channel, root, a.core.record.Revision)
}

// Dispose ends a lease. What was begun under it and is not saved never will be.
func (a *Agent) Dispose(id frontier.LeaseID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.core.leases.Dispose(id)
}

// Observe saves that rows of a surface stayed in view for long enough: at the bottom, with the newest
// of them being the last row that there is, also what is caught up with. What arrives after the call
// takes no part in it. Ids that are not of the surface are passed over.
func (a *Agent) Observe(ctx context.Context, id frontier.LeaseID, ids []string, bottom bool) error {
	a.mu.Lock()
	lease, err := a.core.leases.Check(id, a.core.record.Manual)
	s := a.core.surface(lease.Channel, lease.Root)
	a.mu.Unlock()
	if err != nil {
		return err
	}
	return a.act(ctx, func(v frontier.View) (frontier.Plan, error) {
		a.mu.Lock()
		_, err := a.core.leases.Check(id, v.Manual)
		a.mu.Unlock()
		if err != nil {
			return frontier.Plan{}, err
		}
		plan, err := v.Observe(s, ids)
		if err != nil || !bottom {
			return plan, err
		}
		more, err := v.CatchUp(s, lastOf(s, ids))
		if errors.Is(err, frontier.ErrTarget) || errors.Is(err, frontier.ErrHistory) {
			return plan, nil // not the bottom: the rows count by themselves
		}
		if err != nil {
			return frontier.Plan{}, err
		}
		for k, t := range plan.Advance {
			if more.Advance == nil {
				more.Advance = make(map[frontier.Key]frontier.Time)
			}
			more.Advance[k] = max(more.Advance[k], t)
		}
		return more, nil
	})
}

// lastOf returns the row that is shown last.
func lastOf(s frontier.Surface, ids []string) string {
	var last frontier.Message
	for _, m := range s.Messages {
		if slices.Contains(ids, m.ID) && (last.ID == "" || frontier.CompareShown(m, last) > 0) {
			last = m
		}
	}
	return last.ID
}

// act saves a plan, and has it published after a quiet period.
func (a *Agent) act(ctx context.Context, plan func(frontier.View) (frontier.Plan, error)) error {
	_, err := a.o.Book.Act(ctx, a.evidence(), func(r journal.Record) (frontier.Plan, error) {
		return plan(r.View(a.seconds()))
	})
	if err != nil {
		return err
	}
	a.saved(ctx)
	return nil
}

// saved takes the record up, and starts the quiet period if something is to be published.
func (a *Agent) saved(ctx context.Context) {
	_ = a.reload(context.WithoutCancel(ctx)) // it is saved; the next reload shows it
	a.mu.Lock()
	waiting := a.core.record.Waiting()
	a.mu.Unlock()
	if waiting {
		a.sync.Saved()
	}
}

// granted returns the surface of a channel with the number of the access that it was taken under.
func (a *Agent) granted(channel string) (frontier.Surface, int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.core.window.Access(channel) {
		return frontier.Surface{}, 0, ErrDenied
	}
	return a.core.surface(channel, ""), a.core.epochs[channel], nil
}

// still tells whether access is the one that an action began under.
func (a *Agent) still(channel string, epoch int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.window.Access(channel) && a.core.epochs[channel] == epoch
}

// MarkThrough marks everything of a target up to a message read, what is not loaded included.
func (a *Agent) MarkThrough(ctx context.Context, t Target, message string) error {
	if err := t.Check(); err != nil {
		return err
	}
	s, epoch, err := a.granted(t.ChannelID)
	if err != nil {
		return err
	}
	return a.act(ctx, func(v frontier.View) (frontier.Plan, error) {
		if !a.still(t.ChannelID, epoch) {
			return frontier.Plan{}, ErrDenied
		}
		return v.MarkThrough(t.key(), s, message)
	})
}

// MarkChannelRead marks a channel read up to now.
func (a *Agent) MarkChannelRead(ctx context.Context, channel string) error {
	s, epoch, err := a.granted(channel)
	if err != nil {
		return err
	}
	return a.markRead(ctx, s, epoch, a.seconds())
}

func (a *Agent) markRead(ctx context.Context, s frontier.Surface, epoch int, now frontier.Time) error {
	return a.act(ctx, func(v frontier.View) (frontier.Plan, error) {
		if !a.still(s.Channel, epoch) {
			return frontier.Plan{}, ErrDenied
		}
		v.Now = now
		return v.MarkChannelRead(s, true), nil
	})
}

// MarkAllChannelsRead marks every channel read that has something unread, as all of them are now. One
// that fails does not keep the others; the first error is returned.
func (a *Agent) MarkAllChannelsRead(ctx context.Context) error {
	type turn struct {
		surface frontier.Surface
		epoch   int
	}
	now := a.seconds()
	var turns []turn
	a.mu.Lock()
	for _, ch := range a.core.channels() {
		if s := a.core.surface(ch.ID, ""); a.core.view.NeedsRead(s) {
			turns = append(turns, turn{s, a.core.epochs[ch.ID]})
		}
	}
	a.mu.Unlock()
	var first error
	for _, t := range turns {
		err := a.markRead(ctx, t.surface, t.epoch, now)
		if err != nil && !errors.Is(err, ErrDenied) && first == nil {
			first = err
		}
	}
	return first
}

// MarkUnread marks a target unread on this device.
func (a *Agent) MarkUnread(ctx context.Context, t Target) error {
	if err := t.Check(); err != nil {
		return err
	}
	a.mu.Lock()
	access := a.core.window.Access(t.ChannelID)
	id := t.RootID + t.MessageID
	m, here := a.core.window.Message(id)
	a.mu.Unlock()
	if !access {
		return ErrDenied
	}
	if id != "" && here && m.Channel != t.ChannelID || t.Kind == "message" && (!here || m.Quiet || m.Deleted) {
		return ErrMessage
	}
	if _, err := a.o.Book.MarkUnread(ctx, t.key()); err != nil {
		return err
	}
	return a.reload(context.WithoutCancel(ctx))
}

// Following tells whether replies of a thread count for the viewer.
func (a *Agent) Following(channel, root string) (following, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.window.Following(channel, root)
}

// Follow saves a choice, on this device. It changes nothing when it cannot be saved.
func (a *Agent) Follow(ctx context.Context, channel, root string, following bool) error {
	if err := (Target{Kind: "thread", ChannelID: channel, RootID: root}).Check(); err != nil {
		return err
	}
	if dm, _ := a.dm(channel); dm {
		return ErrTarget
	}
	if _, _, err := a.granted(channel); err != nil {
		return err
	}
	value := "no"
	if following {
		value = "yes"
	}
	if err := a.o.Book.Choose(ctx, chooseFollow, channel+":"+root, value); err != nil {
		return err
	}
	choices, err := a.o.Book.Choices(context.WithoutCancel(ctx), chooseFollow)
	if err != nil {
		return err
	}
	a.change(func(c *core) { c.setFollows(choices) })
	return nil
}

// setFollows takes choices as they are saved.
func (c *core) setFollows(choices map[string]string) {
	c.follows = make(map[evidence.FollowKey]bool, len(choices))
	for name, value := range choices {
		if i := strings.LastIndexByte(name, ':'); i > 0 {
			c.follows[evidence.FollowKey{Channel: name[:i], Root: name[i+1:]}] = value == "yes"
		}
	}
	c.window.Follow(c.follows)
}

// SetLevel saves on this device what a channel's badge counts: all, mentions or none; inherit is all.
func (a *Agent) SetLevel(ctx context.Context, channel, level string) error {
	if !slices.Contains([]string{"all", "mentions", "none", "inherit"}, level) {
		return ErrTarget
	}
	if _, _, err := a.granted(channel); err != nil {
		return err
	}
	value := level
	if level == "inherit" || level == "all" {
		value = ""
	}
	if err := a.o.Book.Choose(ctx, chooseLevel, channel, value); err != nil {
		return err
	}
	a.change(func(c *core) {
		levels := maps.Clone(c.levels)
		levels[channel] = value
		c.levels = levels
	})
	return nil
}

func (a *Agent) message(id string) (frontier.Message, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.window.Message(id)
}
