package frontier

import (
	"errors"
	"fmt"
	"slices"
)

// MaxObserved is how many messages one observation may name.
const MaxObserved = 128

// Errors of reading. They are refusals: nothing is to be saved.
var (
	ErrTarget  = errors.New("the message does not belong to what is to be marked")
	ErrHistory = errors.New("something newer is here than what was caught up with")
	ErrTooMany = errors.New("too many messages in one observation")
)

// Plan is what one reading action changes, all of it or nothing. The zero value changes nothing.
type Plan struct {
	Advance map[Key]Time // frontiers to raise
	Clear   []Key        // local marks to take away, sorted
}

// Empty tells that there is nothing to save.
func (p Plan) Empty() bool { return len(p.Advance) == 0 && len(p.Clear) == 0 }

// advance raises a frontier in the plan, unless the state has it.
func (p *Plan) advance(v View, k Key, t Time) {
	if f, ok := v.State.Frontiers[k]; ok && f >= t {
		return
	}
	if p.Advance == nil {
		p.Advance = make(map[Key]Time)
	}
	if f, ok := p.Advance[k]; !ok || f < t {
		p.Advance[k] = t
	}
}

// broad raises a frontier that covers more than one message, and no further than the present: a
// message from the future would silence everything until then. Such messages are covered one by one.
func (p *Plan) broad(v View, k Key, t Time, messages []Message) {
	p.advance(v, k, min(t, v.Now))
	for _, m := range messages {
		if m.At > v.Now && m.At <= t && !m.Deleted && !v.Covered(m) {
			p.advance(v, m.Key(), m.At)
		}
	}
}

// clear takes a local mark away, if there is one.
func (p *Plan) clear(v View, k Key) {
	if _, ok := v.Manual[k]; ok {
		if i, found := slices.BinarySearch(p.Clear, k); !found {
			p.Clear = slices.Insert(p.Clear, i, k)
		}
	}
}

// Surface is what a reader has in front of them: a channel with everything that is retained of it, or
// one thread of it.
type Surface struct {
	Channel  string
	Root     string // of the thread that is read; "" for the channel itself
	DM       bool
	Messages []Message // of the channel, all that are retained, in any order
}

// find returns a message of the surface.
func (s Surface) find(id string) (Message, bool) {
	i := slices.IndexFunc(s.Messages, func(m Message) bool { return m.ID == id && !m.Deleted })
	if i < 0 {
		return Message{}, false
	}
	return s.Messages[i], true
}

// newest returns the latest time among messages that a condition holds for.
func (s Surface) newest(of func(Message) bool) (t Time, found bool) {
	for _, m := range s.Messages {
		if !m.Deleted && of(m) {
			t, found = max(t, m.At), true
		}
	}
	return t, found
}

// inThread tells the messages of the thread in front of the reader.
func (s Surface) inThread(m Message) bool { return m.Reply && m.Root == s.Root || m.ID == s.Root }

// Observe plans what is read by messages that stayed in view: each of them by itself, and in a dm the
// whole of it. Ids that are unknown, deleted or of another channel are passed over.
func (v View) Observe(s Surface, ids []string) (Plan, error) {
	if len(ids) > MaxObserved {
		return Plan{}, fmt.Errorf("%w: %d, at most %d", ErrTooMany, len(ids), MaxObserved)
	}
	var p Plan
	seen := false
	for _, id := range ids {
		m, ok := s.find(id)
		if !ok || m.Channel != s.Channel || s.Root != "" && !s.inThread(m) {
			continue
		}
		seen = true
		if !s.DM && !v.Covered(m) {
			p.advance(v, m.Key(), m.At)
		}
	}
	if s.DM && seen {
		return v.readDM(s), nil
	}
	return p, nil
}

// readDM plans what a dwell in a dm reads: everything, or, in front of one of its threads, everything
// before the first message outside that thread which would be read unseen.
func (v View) readDM(s Surface) Plan {
	var p Plan
	newest, found := s.newest(func(m Message) bool { return s.Root == "" || s.inThread(m) })
	if !found {
		return p
	}
	if s.Root != "" {
		for _, m := range s.Messages {
			// One that is marked unread stays so whatever the frontier says.
			_, marked := v.Manual[m.Key()]
			if !s.inThread(m) && !marked && v.Verdict(m).Counts && m.At <= newest {
				if m.At == 0 {
					return p
				}
				newest = min(newest, m.At-1)
			}
		}
	}
	p.broad(v, ChannelKey(s.Channel), newest, s.Messages)
	p.clear(v, ChannelKey(s.Channel))
	return p
}

// CatchUp plans what is read by a dwell at the bottom, with the newest message of the surface in
// view: ordinary backlog of a channel, with the mentions and broadcasts above that row, or the replies
// of a thread. ErrHistory says that the row is not the newest: a window into history has no bottom.
func (v View) CatchUp(s Surface, bottom string) (Plan, error) {
	row, ok := s.find(bottom)
	if !ok || row.Channel != s.Channel {
		return Plan{}, ErrTarget
	}
	if s.DM {
		return v.readDM(s), nil
	}
	if s.Root != "" {
		return v.catchUpThread(s, row)
	}
	onSurface := func(m Message) bool { return m.TopLevel() || m.Broadcast }
	if !onSurface(row) {
		return Plan{}, ErrTarget
	}
	var p Plan
	for _, m := range s.Messages {
		if m.Deleted || !onSurface(m) {
			continue
		}
		if CompareShown(m, row) > 0 {
			return Plan{}, ErrHistory
		}
		// What the mark below does not read is read by itself: whatever is not ordinary, and what is
		// dated after the present.
		if (!m.ordinary() || m.At > v.Now) && !m.Own && !m.Quiet && !v.Covered(m) {
			p.advance(v, m.Key(), m.At)
		}
	}
	newest, _ := s.newest(func(Message) bool { return true }) // replies too
	newest = min(newest, v.Now)
	if f, ok := v.State.Frontiers[ChannelKey(s.Channel)]; !ok || f < newest {
		p.advance(v, ActivityKey(s.Channel), newest)
	}
	p.clear(v, ChannelKey(s.Channel))
	return p, nil
}

func (v View) catchUpThread(s Surface, row Message) (Plan, error) {
	if !row.Reply || row.Root != s.Root {
		return Plan{}, ErrTarget
	}
	var p Plan
	var replies []Message
	for _, m := range s.Messages {
		if m.Deleted || !m.Reply || m.Root != s.Root {
			continue
		}
		if CompareShown(m, row) > 0 {
			return Plan{}, ErrHistory
		}
		replies = append(replies, m)
	}
	for _, k := range []Key{ThreadKey(s.Root), ChannelKey(s.Channel)} {
		if f, ok := v.State.Frontiers[k]; ok && f >= row.At {
			return p, nil
		}
	}
	p.broad(v, ThreadActivityKey(s.Root), row.At, replies)
	return p, nil
}

// MarkThrough plans an explicit prefix: everything of the channel, thread or message up to a message
// that belongs to it. On a channel that is a message of its top level or a broadcast. What is not
// loaded is read as well.
func (v View) MarkThrough(target Key, s Surface, id string) (Plan, error) {
	m, ok := s.find(id)
	if !ok || m.Channel != s.Channel {
		return Plan{}, ErrTarget
	}
	var p Plan
	switch {
	case target == ChannelKey(s.Channel) && (m.TopLevel() || m.Broadcast):
		p.broad(v, target, m.At, s.Messages)
	case target.Scope() == Thread && m.Root != "" && target == ThreadKey(m.Root):
		p.broad(v, target, m.At, slices.DeleteFunc(slices.Clone(s.Messages), func(o Message) bool {
			return o.Root != m.Root
		}))
	case target == m.Key():
		p.advance(v, target, m.At)
	default:
		return Plan{}, ErrTarget
	}
	p.clear(v, target)
	return p, nil
}

// MarkChannelRead plans an explicit read of a whole channel at the moment of the View: everything up
// to now, and whatever is retained. The local marks that are known to belong to the channel go with
// it. Without the ability to keep frontiers only the channel's own mark does.
func (v View) MarkChannelRead(s Surface, frontiers bool) Plan {
	var p Plan
	if frontiers {
		newest, _ := s.newest(func(Message) bool { return true })
		p.broad(v, ChannelKey(s.Channel), max(newest, v.Now), s.Messages)
	}
	p.clear(v, ChannelKey(s.Channel))
	if len(s.Messages) == 0 {
		return p
	}
	for _, m := range s.Messages {
		if m.Deleted {
			continue
		}
		p.clear(v, m.Key())
		switch {
		case m.TopLevel():
			p.clear(v, ThreadKey(m.ID))
		case m.Root != "":
			p.clear(v, MessageKey(m.Root))
			p.clear(v, ThreadKey(m.Root))
		}
	}
	return p
}

// NeedsRead tells whether a sweep over all channels has anything to do in one: unread evidence, or a
// local mark of its own or of its messages and threads.
func (v View) NeedsRead(s Surface) bool {
	return v.Count(s.Messages).Observed > 0 || len(v.MarkChannelRead(s, false).Clear) > 0
}
