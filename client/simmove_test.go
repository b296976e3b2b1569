package client_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/client/readsync"
	"github.com/tidemark-im/tidemark/readstate"
)

// deliverOldest delivers whatever is the first to be delivered; false when nothing waits.
func (r *run) deliverOldest() bool {
	if len(r.net.flying) > 0 {
		r.deliver(r.net.flying[0])
		return true
	}
	for _, s := range r.net.streams {
		if s.open && !s.isBroken() && s.waits() {
			r.flow(s, 100)
			return true
		}
	}
	return false
}

// deliver takes a parcel to where it goes.
func (r *run) deliver(p *parcel) {
	r.net.take(p)
	switch {
	case p.answer != nil:
		r.hand(p)
	case r.down > 0:
		r.note("nobody listens: %s", p)
		p.fail(errCut)
	case strings.HasPrefix(p.path, "/api/events"):
		r.note("%s after %q", p, p.last)
		if !p.of.dead.Load() && !p.waiter.gone() && p.last != p.of.resume {
			r.fail("%s goes on after %q, and it was told %q", p, p.last, p.of.resume)
		}
		r.net.send(r.net.begin(p, r.server.api, r.token))
	default:
		r.serve(p)
	}
}

// serve has the server carry out a request, and judges what it does.
func (r *run) serve(p *parcel) {
	var w *wish
	if p.method == http.MethodPut {
		w = r.checkSent(p)
	}
	rec := httptest.NewRecorder()
	r.server.api.ServeHTTP(rec, p.request(context.Background(), r.token))
	r.note("%s %s: %d", p, p.body, rec.Code)
	if w != nil {
		r.judge(w)
	}
	if p.waiter == nil {
		return // nobody waits for it
	}
	r.net.send(&parcel{
		of: p.of, method: p.method, path: p.path, op: p.op, waiter: p.waiter,
		answer: &reply{resp: rec.Result()},
	})
}

// hand gives an answer to the client that waits for it, or does not any more.
func (r *run) hand(p *parcel) {
	r.note("%s: %d", p, p.answer.resp.StatusCode)
	alive := !p.of.dead.Load() // what takes the answer may be killed over it
	taken := p.waiter.give(*p.answer)
	if w := r.wishes[p.op.ID]; w != nil && taken && alive {
		w.decided = p.answer.resp.StatusCode
	}
	if p.stream != nil {
		if p.stream.open = taken; !taken {
			p.stream.cut()
		}
	}
}

// flow hands at most so many events to the client.
func (r *run) flow(s *stream, most int) {
	frames := s.frames(most)
	if len(frames) == 0 {
		s.cut() // the handler has returned
		return
	}
	for _, frame := range frames {
		if frame != ":\n\n" {
			r.note("%s gets %s", s.of, strings.ReplaceAll(strings.TrimSpace(frame), "\n", " "))
		}
		if _, err := io.WriteString(s.out, frame); err != nil {
			return
		}
		if strings.HasPrefix(frame, "event: hello") && strings.Contains(frame, `"resumed":false`) {
			s.of.resume = ""
		}
		for line := range strings.Lines(frame) {
			if id, is := strings.CutPrefix(line, "id: "); is {
				s.of.resume = strings.TrimSpace(id)
			}
		}
	}
}

// judge looks at what the server has made of an operation.
func (r *run) judge(w *wish) {
	before := r.truth[w.session]
	if !r.account(w.id, w.session) {
		return
	}
	after := r.truth[w.session]
	if before.Row.Manual != after.Row.Manual {
		if w.effects++; w.effects > 1 {
			r.fail("%s was done twice", w.id)
		}
	}
	if before.Row.Manual.Set && !after.Row.Manual.Set {
		if whose := r.marks[w.session][readsync.Version(before.Row.Manual.Version)]; whose != w.mark {
			r.fail("%s took away the mark of %s, and its maker had seen %q", w.id, whose, w.mark)
		}
	}
	if allowed := max(before.Row.Read, w.revision); after.Row.Read > allowed {
		for _, m := range r.messages(w.session) {
			if m.ContentRevision > allowed {
				r.fail("%s is a read through %d, and the server has read %d", w.id, w.revision, after.Row.Read)
			}
		}
	}
}

// messages are all of a session that the server has.
func (r *run) messages(session string) []readsync.Message {
	var page readsync.Page
	r.server.list("/api/sessions/"+session+"/messages?limit=500", r.token, &page)
	return page.Messages
}

// account takes in what the server has of sessions now, and whose doing it is. It reports whether
// anything is another.
func (r *run) account(cause string, sessions ...string) (changed bool) {
	for _, id := range sessions {
		x, there := r.server.session(r.member, id)
		if !there {
			if r.gone[id] == "" {
				r.fail("the session %s is gone after %s", id, cause)
			}
			continue
		}
		known := r.truth[id]
		if x.Row.Read < known.Row.Read || x.Head < known.Head ||
			x.Row.Manual.Version < known.Row.Manual.Version {
			r.fail("after %s, %s falls from %+v to %+v", cause, id, known, x)
		}
		changed = changed || x.Row.Manual != known.Row.Manual || x.Row.Read != known.Row.Read
		if x.Row.Manual.Version > known.Row.Manual.Version && x.Row.Manual.Set {
			if r.marks[id] == nil {
				r.marks[id] = map[readsync.Version]string{}
			}
			r.marks[id][readsync.Version(x.Row.Manual.Version)] = cause
		}
		r.truth[id] = x
	}
	return changed
}

// live are the ids of sessions that were not merged away.
func (r *run) live() []string {
	return slices.DeleteFunc(slices.Clone(r.ids), func(id string) bool { return r.gone[id] != "" })
}

func (r *run) anySession() string {
	ids := r.live()
	return ids[r.IntN(len(ids))]
}

// seqs is the last seq of a session.
func (r *run) lastSeq(session string) readstate.Seq {
	if all := r.messages(session); len(all) > 0 {
		return all[len(all)-1].Seq
	}
	return 0
}
