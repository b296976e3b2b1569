package agent

import (
	"slices"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/relay/evidence"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Bounds of lookups.
const (
	maxParents   = 50 // of one batch
	maxPages     = 10 // of the viewer's replies to one parent
	firstDelay   = time.Second
	longestDelay = time.Minute
)

// question is a parent in the channel that a reply to it was posted to.
type question struct{ channel, parent string }

// lookups is what has to be asked, and what is being asked. The zero value has nothing.
type lookups struct {
	open       map[question]bool // true while it is under way
	delay      time.Duration     // after the last failure
	after      time.Time         // nothing is asked before
	generation int
}

// inquiry is one batch, all of one channel.
type inquiry struct {
	channel    string
	parents    []string
	generation int
}

func (l *lookups) add(q question) {
	if l.open == nil {
		l.open = make(map[question]bool)
	}
	if _, known := l.open[q]; !known && len(l.open) < evidence.MaxEvents {
		l.open[q] = false
	}
}

// restart throws away what is under way and everything that waits: what is still undecided is added
// again by the next projection.
func (l *lookups) restart() {
	l.open, l.delay, l.after = nil, 0, time.Time{}
	l.generation++
}

// next takes a batch out; false when there is nothing to ask now.
func (l *lookups) next(now time.Time) (inquiry, bool) {
	if now.Before(l.after) {
		return inquiry{}, false
	}
	var waiting []question
	for q, flying := range l.open {
		if !flying {
			waiting = append(waiting, q)
		}
	}
	if len(waiting) == 0 {
		return inquiry{}, false
	}
	slices.SortFunc(waiting, func(a, b question) int {
		return strings.Compare(a.channel+"\x00"+a.parent, b.channel+"\x00"+b.parent)
	})
	in := inquiry{channel: waiting[0].channel, generation: l.generation}
	for _, q := range waiting {
		if q.channel == in.channel && len(in.parents) < maxParents {
			in.parents = append(in.parents, q.parent)
			l.open[q] = true
		}
	}
	return in, true
}

// wait says when something can be asked; false when nothing waits.
func (l *lookups) wait(now time.Time) (time.Duration, bool) {
	for _, flying := range l.open {
		if !flying {
			return max(l.after.Sub(now), 0), true
		}
	}
	return 0, false
}

// done ends a batch; false when its answer is of no use any more. A batch that failed waits, twice as
// long each time.
func (l *lookups) done(in inquiry, failed bool, now time.Time) bool {
	if in.generation != l.generation {
		return false
	}
	for _, p := range in.parents {
		q := question{in.channel, p}
		if failed {
			l.open[q] = false
		} else {
			delete(l.open, q)
		}
	}
	l.delay = min(max(2*l.delay, firstDelay), longestDelay)
	l.after = now.Add(l.delay)
	if !failed {
		l.delay, l.after = 0, time.Time{}
	}
	return !failed
}

// structure is the filter for parents and roots that are not here.
func structure(ids []string) nostrx.Filter {
	f := nostrx.Filter{Kinds: contentKinds, Aux: true, Limit: nostrx.Whole(evidence.PageSize)}
	for _, id := range ids {
		f.IDs = append(f.IDs, nostrx.EventID(id))
	}
	return f
}

// ownReplies is the filter for what the viewer wrote below parents and roots.
func ownReplies(viewer nostrx.PubKey, channel string, ids []string, until *int64) nostrx.Filter {
	return nostrx.Filter{
		Kinds: contentKinds, Authors: []nostrx.PubKey{viewer}, Aux: true,
		Tags: map[string][]string{"h": {channel}, "e": ids}, Until: until, Limit: nostrx.Whole(evidence.PageSize),
	}
}

var contentKinds = []int{nostrx.KindChat, nostrx.KindStream, nostrx.KindDiff}

// judge decides about a parent by what was fetched: the viewer wrote it, or its root, or something that
// replies to it or below its root and was not taken back.
func judge(viewer nostrx.PubKey, q question, roots []string, fetched []nostrx.Event) evidence.Decision {
	gone := make(map[string]bool)
	for _, e := range fetched {
		if e.Kind == nostrx.KindDelete && e.PubKey == viewer {
			for _, id := range e.Values("e") {
				gone[id] = true
			}
		}
	}
	for _, e := range fetched {
		refs := evidence.ParseRefs(e)
		if !evidence.Content(e.Kind) || e.PubKey != viewer || refs.Channel != q.channel || gone[string(e.ID)] {
			continue
		}
		id := string(e.ID)
		switch {
		case slices.Contains(roots, id):
			return evidence.Decision{Inside: true, Root: id}
		case id == q.parent:
			root := refs.Root
			if !refs.Reply {
				root = id
			}
			return evidence.Decision{Inside: true, Root: root}
		case refs.Reply && (refs.Parent == q.parent || slices.Contains(roots, refs.Root)):
			return evidence.Decision{Inside: true, Root: refs.Root}
		}
	}
	return evidence.Decision{}
}
