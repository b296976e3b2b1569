package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
	"github.com/tidemark-im/tidemark/readstate"
)

// use has the owner of a device do something with it.
func (r *run) use(d *simDevice) {
	l := d.now
	list, _ := l.client.Sessions()
	if len(list) == 0 || l.dead.Load() {
		return
	}
	l.old = slices.DeleteFunc(l.old, func(s client.Session) bool { return l.replaced[s.ID] })
	s := list[r.IntN(len(list))]
	if n := len(l.old); n > 0 && r.IntN(4) == 0 {
		s = l.old[r.IntN(n)] // as it was seen some time ago
	} else if r.IntN(3) == 0 {
		l.old = append(l.old, s)
	}
	switch r.IntN(12) {
	case 0, 1:
		r.act(d, fmt.Sprintf("read %s through %d", s.ID, s.ContentRevision),
			[]*wish{r.seen(d, readsync.Read, s.Seen(), s.ContentRevision)},
			func() error { _, err := l.client.MarkRead(s); return err })
	case 2, 3, 4:
		if s.ManualUnread {
			return // no operation
		}
		r.act(d, fmt.Sprintf("mark %s at %d", s.ID, s.Version),
			[]*wish{r.seen(d, readsync.Unread, s.Seen(), 0)},
			func() error { _, err := l.client.MarkUnread(s); return err })
	case 5:
		r.readAll(d, list)
	case 6:
		r.openWindow(d, s.ID)
	case 7:
		l.client.Foreground()
	default:
		r.observe(d)
	}
}

func (r *run) readAll(d *simDevice, list []client.Session) {
	l := d.now
	if l.list != nil && r.IntN(2) == 0 {
		list = slices.DeleteFunc(l.list, func(s client.Session) bool { return l.replaced[s.ID] })
	}
	l.list = list
	var drafts []*wish
	for i := range list {
		if s := &list[i]; s.ManualUnread || s.ContentRevision > s.ReadRevision {
			drafts = append(drafts, r.seen(d, readsync.Read, s.Seen(), s.ContentRevision))
		}
	}
	r.act(d, fmt.Sprintf("read all %d", len(drafts)), drafts,
		func() error { return d.now.client.MarkAllRead(list) })
}

func (r *run) openWindow(d *simDevice, session string) {
	l := d.now
	if l.window != nil {
		l.window.Close()
	}
	var err error
	if l.window, err = l.client.OpenWindow(session); err != nil {
		r.fail("%s: open a window: %v", l, err)
	}
	l.views, l.epoch = nil, client.Snapshot{}
	r.note("%s: a window of %s", l, session)
}

// observe has somebody look at the window, as it is or as it was rendered some time ago.
func (r *run) observe(d *simDevice) {
	l := d.now
	if l.window == nil {
		return
	}
	o := looking(l.window)
	if n := len(l.views); n > 0 && r.IntN(2) == 0 {
		o.Snapshot = l.views[r.IntN(n)]
	} else {
		l.views = append(l.views, o.Snapshot)
	}
	if !o.Snapshot.Loaded || o.Snapshot.Session != l.window.Snapshot().Session {
		return
	}
	if r.down == 0 && r.gone[o.Snapshot.Session] == "" {
		r.checkReceipt(l, &o.Snapshot)
	}
	reading := l.window.Reading()
	w := r.seen(d, readsync.Read, readsync.View{
		Session: o.Snapshot.Session, After: reading.After,
		State: readsync.State{Version: reading.ExpectedVersion, ManualUnread: reading.Flips},
	}, o.Snapshot.Through)
	if op, err := l.look(o); op != "" || err != nil || l.dead.Load() {
		r.act(d, fmt.Sprintf("observe %s through %d", w.session, w.revision), []*wish{w},
			func() error { return err })
	}
}

func (l *life) look(o client.Observation) (string, error) { return l.window.Observe(o) }

// checkReceipt looks whether a window holds all that it has a receipt for, from its first message.
func (r *run) checkReceipt(l *life, s *client.Snapshot) {
	if len(s.Messages) == 0 {
		return
	}
	held := map[readstate.Seq]bool{}
	for i := range s.Messages {
		held[s.Messages[i].Seq] = true
	}
	for _, m := range r.messages(s.Session) {
		if m.Seq >= s.Messages[0].Seq && m.ContentRevision <= s.Through && m.ContentRevision > 0 &&
			!held[m.Seq] {
			r.fail("%s has a receipt of %s through %d without message %d", l, s.Session, s.Through, m.Seq)
		}
	}
}

// elsewhere is what the program that answers does, and a third device without a client.
func (r *run) elsewhere() {
	if r.down > 0 {
		return
	}
	s := r.anySession()
	switch n := r.IntN(20); {
	case n < 9:
		r.post()
	case n < 11:
		r.mark(s)
	case n < 12:
		x := r.truth[s]
		r.do("PUT", s, "/read-state", object{
			"type": "read", "readRevision": uint64(x.Head), "expectedVersion": x.Row.Manual.Version,
		})
	case n < 13:
		r.do("PATCH", s, "", object{"active": true, "thinking": r.IntN(2) == 0, "title": r.newID("title")})
	case n < 14:
		r.do("POST", s, "/rewind", object{
			"opId": r.newID("op"), "throughSeq": uint64(r.lastSeq(s)) * 2 / 3,
		})
	case n < 15:
		r.fork(s)
	case n < 16:
		r.do("POST", s, "/import", object{"opId": r.newID("op"), "messages": []object{
			{"localId": r.newID("local"), "payload": "history"}, {"localId": r.newID("local"), "payload": "more"},
		}})
	case n < 18:
		r.merge(s)
	default:
		if all := r.messages(s); len(all) > 0 {
			m := all[r.IntN(len(all))]
			if err := r.server.remove(r.member, s, m.ID, r.newID("op")); err != nil {
				r.fail("%v", err)
			}
			r.note("elsewhere: remove message %d of %s", m.Seq, s)
			r.account("the removal", s)
		}
	}
}

func (r *run) do(method, session, rest string, body object) {
	status, text := r.server.do(method, "/api/sessions/"+session+rest, r.token, body)
	r.note("elsewhere: %s %s%s %v: %d", method, session, rest, body, status)
	if status > 201 {
		r.fail("%s %s%s: %d %s", method, session, rest, status, text)
	}
	touched := []string{session}
	if by := r.gone[session]; by != "" {
		touched = append(touched, by)
	}
	r.account(r.newID("elsewhere"), touched...)
}

func (r *run) post() {
	if r.down == 0 {
		session := r.anySession()
		if w := r.devices[r.IntN(2)].now.window; w != nil && r.IntN(2) == 0 {
			if s := w.Snapshot().Session; r.gone[s] == "" {
				session = s // that somebody looks at
			}
		}
		r.do("POST", session, "/messages", object{
			"localId": r.newID("local"), "payload": "an answer",
			"kind": []string{"text", "text", "tool"}[r.IntN(3)],
		})
	}
}

// mark is a manual mark, with or without the message that it begins at.
func (r *run) mark(session string) {
	x := r.truth[session]
	body := object{"type": "unread", "expectedVersion": x.Row.Manual.Version}
	if x.Head > 0 && r.IntN(2) == 0 {
		body["fromRevision"] = 1 + r.IntN(int(x.Head))
	}
	r.do("PUT", session, "/read-state", body)
}

func (r *run) newSession(answers int) {
	id := r.newID("s")
	r.server.want(http.StatusCreated, "POST", "/api/sessions", r.token, object{"id": id, "title": id})
	r.ids = append(r.ids, id)
	for range answers {
		r.do("POST", id, "/messages", object{"localId": r.newID("local"), "payload": "an answer"})
	}
}

func (r *run) fork(session string) {
	if len(r.live()) > 4 {
		return
	}
	id := r.newID("s")
	text := r.server.want(http.StatusCreated, "POST", "/api/sessions/"+session+"/fork", r.token,
		object{"opId": r.newID("op"), "id": id})
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(text, &made); err != nil || made.ID != id {
		r.fail("fork: %s", text)
	}
	r.ids = append(r.ids, id)
	r.note("elsewhere: fork %s to %s", session, id)
	r.account("the fork", id)
}

func (r *run) merge(session string) {
	into := r.anySession()
	if into == session || len(r.live()) < 3 {
		return
	}
	r.gone[session] = into
	r.do("POST", session, "/merge", object{"opId": r.newID("op"), "into": into})
}
