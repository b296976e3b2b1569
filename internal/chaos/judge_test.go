package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
)

// page is a page of a member's scopes as it comes over the wire.
type page struct {
	HasUnread bool           `json:"hasUnread"`
	State     string         `json:"state"`
	Badge     badge          `json:"badge"`
	Complete  bool           `json:"complete"`
	LSN       uint64         `json:"lsn"`
	Next      string         `json:"next"`
	Scopes    map[string]row `json:"scopes"`
}

// row is one scope of a member as it comes over the wire.
type row struct {
	Type            string    `json:"type"`
	Notification    string    `json:"notification"`
	Archived        bool      `json:"archived"`
	Unread          uint64    `json:"unread"`
	Attention       uint64    `json:"attention"`
	Activity        uint64    `json:"activity"`
	ManualUnread    bool      `json:"manualUnread"`
	Shown           bool      `json:"shown"`
	ShownUnread     uint64    `json:"shownUnread"`
	State           string    `json:"state"`
	ContentRevision uint64    `json:"contentRevision"`
	ReplyCount      uint64    `json:"replyCount"`
	LatestMessage   latest    `json:"latestMessage"`
	ReadState       readState `json:"readState"`
}

// seen is the row in the form of the recount.
func (r *row) seen() seen {
	return seen{
		Type: r.Type, Notification: r.Notification, Archived: r.Archived,
		Unread: r.Unread, Attention: r.Attention, Activity: r.Activity,
		Manual: r.ManualUnread, Shown: r.Shown, ShownUnread: r.ShownUnread,
		Head: r.ContentRevision, Replies: r.ReplyCount, Latest: r.LatestMessage.ID,
		Read: r.ReadState.ReadRevision, Version: r.ReadState.Version,
		FromMark: r.ReadState.FromRevision,
	}
}

type latest struct {
	ID string `json:"id"`
}

// tries bounds how often something is read again that was caught in between: the sweeper of
// expired messages may commit at any time.
const tries = 50

// judge compares what the server has with what was acknowledged, and what it serves with a
// recount. Nobody sends anything meanwhile.
func (s *siege) judge(when string) map[string]*durable {
	s.t.Helper()
	var durables map[string]*durable
	for range tries {
		durables = readDurable(s.t, s.store)
		if s.checkServed(when, durables) {
			s.checkLog(when, durables)
			return durables
		}
	}
	s.fail(when, "the server does not come to rest")
	return nil
}

// checkLog holds the file against the log of acknowledgements.
func (s *siege) checkLog(when string, durables map[string]*durable) {
	s.t.Helper()
	for _, w := range s.worlds {
		d := durables[w.name]
		if d == nil {
			s.fail(when, "the workspace "+w.name+" is gone")
		}
		faults := d.broken()
		faults = append(faults, fatesOf(s.journal, w.name).check(d)...)
		faults = append(faults, choicesOf(s.journal, w).check(d)...)
		if d.term <= s.terms[w.name] && when == restarted {
			faults = append(faults, fmt.Sprintf("term %d follows %d", d.term, s.terms[w.name]))
		}
		if d.lsn < s.lsns[w.name] {
			faults = append(faults, fmt.Sprintf("LSN %d follows %d", d.lsn, s.lsns[w.name]))
		}
		s.terms[w.name], s.lsns[w.name] = d.term, d.lsn
		if len(faults) > 0 {
			s.fail(when, faults...)
		}
	}
}

// checkServed compares every member's counts with a recount; false when they are of another
// commit than the rows.
func (s *siege) checkServed(when string, durables map[string]*durable) bool {
	s.t.Helper()
	for i, w := range s.worlds {
		d := durables[w.name]
		boards := map[string]board{}
		for _, key := range slices.Sorted(maps.Keys(d.members)) {
			id := d.members[key].id
			got, lsn := s.served(w, id)
			if lsn != d.lsn {
				return false
			}
			if diff := cmp.Diff(d.recount(key, time.Now()), got); diff != "" {
				s.fail(when, fmt.Sprintf("counts of %s in %s at LSN %d, recount and served:\n%s",
					id, w.name, lsn, diff))
			}
			s.counted += len(got.Scopes)
			boards[id] = got
		}
		s.checkLists(when, w, d)
		if !s.catchUp(s.watchers[i], boards, d.lsn) {
			return false
		}
	}
	return true
}

// served reads a member's counts, page by page.
func (s *siege) served(w *world, member string) (board, uint64) {
	s.t.Helper()
	out := board{Scopes: map[string]seen{}}
	token := ""
	var lsn uint64
	for range tries {
		var p page
		path := "unread?limit=7&member=" + url.QueryEscape(member) + token
		s.wire.get(s.t, w.service, address(w.name, path), &p)
		if p.State != "ready" {
			token = "" // nothing was said; the read itself waited for what is being loaded
			continue
		}
		if lsn != 0 && p.LSN != lsn {
			return out, 0
		}
		lsn = p.LSN
		out.HasUnread, out.Badge = p.HasUnread, p.Badge
		for id, r := range p.Scopes {
			if r.State != "ready" {
				s.fail("serving", fmt.Sprintf("%s in %s is %s", member, id, r.State))
			}
			out.Scopes[id] = r.seen()
		}
		if p.Next == "" && p.Complete {
			return out, lsn
		}
		token = "&pageToken=" + url.QueryEscape(p.Next)
	}
	s.fail("serving", fmt.Sprintf("the counts of %s in %s never become complete", member, w.name))
	return out, 0
}

// checkLists compares the messages that the server lists with the rows.
func (s *siege) checkLists(when string, w *world, d *durable) {
	s.t.Helper()
	type entry struct {
		ID              string `json:"id"`
		Seq             uint64 `json:"seq"`
		ContentRevision uint64 `json:"contentRevision"`
	}
	for _, key := range slices.Sorted(maps.Keys(d.scopes)) {
		scope := d.scopes[key]
		var want, got []entry
		for _, m := range scope.messages {
			if m.live {
				want = append(want, entry{m.id, m.seq, m.revision})
			}
		}
		if len(want) > 100 {
			want = want[len(want)-100:]
		}
		var body struct {
			Messages []entry `json:"messages"`
		}
		s.wire.get(s.t, w.service, address(w.name, "scopes", url.PathEscape(scope.id), "messages"),
			&body)
		got = append(got, body.Messages...)
		if diff := cmp.Diff(want, got); diff != "" {
			fresh := readDurable(s.t, s.store)[w.name]
			if fresh.lsn == d.lsn {
				s.fail(when, fmt.Sprintf("messages of %s in %s:\n%s", scope.id, w.name, diff))
			}
		}
	}
}

// resolve sends again whatever was never answered, and compares the answers with what the file
// held before.
func (s *siege) resolve(before map[string]*durable) {
	s.t.Helper()
	open := s.journal.open()
	// Sends first: what a trim takes away has no operation id any more.
	slices.SortStableFunc(open, func(a, b *act) int { return late(a) - late(b) })
	s.unanswered += len(open)
	cursors := map[*act]cursor{}
	for _, w := range s.worlds {
		c := choicesOf(s.journal, w)
		for _, a := range open {
			if a.Workspace == w.name {
				cursors[a] = *at(c.cursors, placeOf{a.Member, a.Scope})
			}
		}
	}
	for _, a := range open {
		c := s.clients[a.Client]
		if !c.do(s.t.Context(), s.wire, a) {
			s.fail("resending", "no answer: "+a.String())
		}
		if c.fault != nil {
			s.fail("resending", c.fault.Error())
		}
		parts := a.Items
		if len(parts) == 0 {
			parts = []*act{a}
		}
		for _, p := range parts {
			s.unknown++
			if fault := s.repeated(before[a.Workspace], p, cursors[a]); fault != "" {
				s.fail("resending", fault+": "+p.String())
			}
		}
	}
}

func late(a *act) int {
	if a.Kind == post || a.Kind == batch {
		return 0
	}
	return 1
}

// repeated says what is wrong with the answer to an act that was sent again. An act with an
// operation id was either carried out, and answers as it would have then, or it was not.
func (s *siege) repeated(before *durable, a *act, cur cursor) string {
	switch a.Kind {
	case post:
		row := before.byOp[a.OpID]
		if row == nil {
			return first(a.Answer.Duplicate, "a duplicate of nothing")
		}
		s.survived++
		same := a.Answer.Duplicate && a.Answer.MessageID == row.id && a.Answer.Seq == row.seq &&
			a.Answer.ContentRevision == row.revision
		if row.peerScope != 0 {
			same = same && a.Answer.Channel != nil && a.Answer.Channel.Seq == row.peerSeq
		}
		return first(!same, fmt.Sprintf("not the receipt of %+v", *row))
	case edit, remove, rewind, trim, move:
		text, done := before.receipts[a.OpID]
		if !done {
			return first(a.Answer.Duplicate, "a duplicate of nothing")
		}
		s.survived++
		var want answer
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			return err.Error()
		}
		same := a.Answer.Duplicate && a.Answer.LSN == want.LSN && a.Answer.Seq == want.Seq
		return first(!same, "not the receipt "+text)
	case markUnread:
		was := cur.mark.Version
		if a.Status != http.StatusConflict || cur.loose || a.Version == nil || *a.Version != was {
			return "" // it never was the version to name
		}
		s.survived++
		is := *a.Answer.ReadState
		same := is.ManualUnread && is.FromRevision == a.Revision && is.Version == was+1
		return first(!same, "a conflict with something else than itself")
	}
	return ""
}

func first(bad bool, what string) string {
	if bad {
		return what
	}
	return ""
}
