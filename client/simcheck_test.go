package client_test

import (
	"cmp"
	"encoding/json"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

// look checks what a device shows at a moment at which nobody has anything to do.
func (r *run) look(d *simDevice) {
	l := d.now
	for _, e := range l.takeEvents() {
		switch e.Kind {
		case client.EventLost:
			r.told(l, e.Loss)
		case client.EventReplaced:
			r.note("%s: %s is replaced by %s", l, e.Session, e.By)
			if r.gone[e.Session] == "" {
				r.fail("%s tells that %s is replaced", l, e.Session)
			}
			if l.replaced[e.Session] {
				r.fail("%s tells twice that %s is replaced", l, e.Session)
			}
			l.replaced[e.Session] = true
		}
	}
	list, _ := l.client.Sessions()
	for i := range list {
		s := &list[i]
		if l.replaced[s.ID] {
			r.fail("%s shows %s again, which was merged away", l, s.ID)
		}
		if s.ReadRevision < d.read[s.ID] {
			r.fail("%s shows %s read through %d, and has shown %d", l, s.ID, s.ReadRevision, d.read[s.ID])
		}
		d.read[s.ID] = s.ReadRevision
	}
	if ops := l.client.Operations(); !slices.Equal(ops, l.ops) {
		l.ops = ops
		r.checkFile(d)
	}
	if l.window != nil {
		was, is := l.epoch, l.window.Snapshot()
		if was.Session == is.Session && is.Through < was.Through {
			r.fail("%s had a receipt of %s through %d, and has %d", l, is.Session, was.Through, is.Through)
		}
		l.epoch = is
	}
}

// shown is what everybody has to agree on.
type shown struct {
	ID, Title        string
	Active, Thinking bool
	Content, Read    readsync.Revision
	Manual, Unread   bool
	Version          readsync.Version
	From             readsync.Revision
}

// compare looks at the end: everybody shows the same, and every wish was fulfilled, or its loss told.
func (r *run) compare() {
	r.account("nothing", r.ids...)
	want := r.listed()
	for _, d := range r.devices {
		l := d.now
		var got []shown
		list, _ := l.client.Sessions()
		for i := range list {
			s := &list[i]
			got = append(got, shown{
				s.ID, s.Title, s.Active, s.Thinking, s.ContentRevision, s.ReadRevision,
				s.ManualUnread, s.Unread, s.Version, s.Seen().FromRevision,
			})
		}
		slices.SortFunc(got, func(a, b shown) int { return cmp.Compare(a.ID, b.ID) })
		if diff := gocmp.Diff(want, got); diff != "" {
			r.fail("%s shows something else than the server has (-server +device)\n%s", l, diff)
		}
		if left := l.client.Operations(); len(left) > 0 {
			r.fail("%s has %+v left", l, left)
		}
		r.checkFile(d)
		r.compareWindow(l)
	}
	for _, w := range r.wishes {
		r.fulfilled(w)
	}
}

// listed is what the server lists.
func (r *run) listed() (out []shown) {
	var page struct {
		Sessions []struct {
			ID               string `json:"id"`
			Title            string `json:"title"`
			Active, Thinking bool
			Unread           bool
			ContentRevision  readsync.Revision `json:"contentRevision"`
			ReadState        struct {
				ReadRevision readsync.Revision `json:"readRevision"`
				ManualUnread bool              `json:"manualUnread"`
				Version      readsync.Version  `json:"version"`
				FromRevision readsync.Revision `json:"fromRevision"`
			} `json:"readState"`
		} `json:"sessions"`
	}
	if err := json.Unmarshal(r.server.want(200, "GET", "/api/sessions?limit=500", r.token, nil), &page); err != nil {
		r.fail("%v", err)
	}
	for _, s := range page.Sessions {
		rs := &s.ReadState
		out = append(out, shown{
			s.ID, s.Title, s.Active, s.Thinking, s.ContentRevision, rs.ReadRevision,
			rs.ManualUnread, s.Unread, rs.Version, rs.FromRevision,
		})
	}
	slices.SortFunc(out, func(a, b shown) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// compareWindow looks whether a window has all messages of its session from its first one on, and
// may go on reading at the head.
func (r *run) compareWindow(l *life) {
	if l.window == nil {
		return
	}
	s := l.window.Snapshot()
	if by := r.gone[s.Session]; by != "" {
		r.fail("%s has a window of %s, which is now %s", l, s.Session, by)
	}
	if head := r.truth[s.Session].Head; s.Through != head {
		r.fail("%s has a receipt of %s through %d, and the head is %d", l, s.Session, s.Through, head)
	}
	r.checkReceipt(l, &s)
	all := r.messages(s.Session)
	if n := len(all); n > 0 {
		held := slices.ContainsFunc(s.Messages, func(m readsync.Message) bool { return m.ID == all[n-1].ID })
		if !held {
			r.fail("%s has no last message of %s", l, s.Session)
		}
	}
}

// fulfilled looks at what became of a wish. What was never shown may be done or not.
func (r *run) fulfilled(w *wish) {
	if r.gone[w.session] != "" || !w.shown {
		return
	}
	x := r.truth[w.session]
	switch {
	case w.kind == readsync.Read && x.Row.Read < w.revision:
		r.fail("%s read %s through %d, and the server has %d", w.id, w.session, w.revision, x.Row.Read)
	case w.kind == readsync.Unread && w.effects == 0 && w.lost == "" && !r.doneByAnother(w):
		r.fail("the mark %s is neither set nor lost: %+v", w.id, *w)
	}
}

// doneByAnother tells whether another mark made the version that this one wanted: it is in force then,
// and there is nothing to tell.
func (r *run) doneByAnother(w *wish) bool {
	by := r.marks[w.session][w.version+1]
	return by != "" && by != w.id
}
