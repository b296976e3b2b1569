package unread

import (
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

// touch is a loaded row that an event names, with what its member is to the message: before an
// edit, and after it. Events other than edits use is alone.
type touch struct {
	entry   int32
	was, is readstate.Role
}

// apply takes one event of the commit lsn in. Events for what is not loaded change nothing:
// the next page has them.
func (st *state) apply(lsn readstate.LSN, ev readstate.Event) error {
	switch ev := ev.(type) {
	case readstate.MessageEvent:
		return st.applyMessage(lsn, &ev)
	case readstate.RemovalEvent:
		return st.applyRemoval(lsn, &ev)
	case readstate.EditEvent:
		return st.applyEdit(lsn, &ev)
	case readstate.FloorEvent:
		return st.applyFloor(lsn, &ev)
	case readstate.ActivityEvent:
		return st.applyActivity(lsn, &ev)
	case readstate.ScopeEvent:
		st.applyScope(lsn, &ev.Info)
	case readstate.MemberEvent:
		st.applyRow(lsn, &ev.MemberRow)
	case readstate.BlockEvent:
		st.applyBlock(&ev)
	case readstate.PrincipalEvent:
		st.applyPrincipal(&ev.Info)
	case readstate.RowGoneEvent:
		st.applyGone(lsn, &ev)
	case readstate.GapEvent:
		return st.applyGap(lsn, &ev)
	case readstate.RowFoundEvent:
		st.applyFound(&ev)
	case readstate.WriterEvent:
		st.applyWriter(&ev)
	default:
		return fmt.Errorf("unknown event %T", ev)
	}
	return nil
}

// fewTouches is how many rows of an event are found by looking at each.
const fewTouches = 8

// touchKey finds or adds the row of a member in the scratch; nil where it is not loaded, as for
// nobody. The pointer lasts until the next call.
func (st *state) touchKey(s int32, key readstate.MemberKey) *touch {
	if key == 0 {
		return nil // nobody
	}
	e := st.entryByKey(s, key)
	if e == none {
		return nil
	}
	n := len(st.touched)
	for i := range min(n, fewTouches) {
		if st.touched[i].entry == e {
			return &st.touched[i]
		}
	}
	if n >= fewTouches {
		if i, found := st.touchAt[e]; found {
			return &st.touched[i]
		}
		st.touchAt[e] = n
	}
	st.touched = append(st.touched, touch{entry: e})
	return &st.touched[n]
}

func (st *state) untouch() {
	if len(st.touched) > fewTouches {
		clear(st.touchAt)
	}
	st.touched = st.touched[:0]
}

// touchRoles gathers the loaded rows that a message names.
func (st *state) touchRoles(
	s int32, author, principal readstate.MemberKey, named, recipients []readstate.MemberKey,
) {
	if t := st.touchKey(s, author); t != nil {
		t.is.Author = true
	}
	if t := st.touchKey(s, principal); t != nil && principal != author {
		t.is.Principal = true
	}
	for _, k := range named {
		if t := st.touchKey(s, k); t != nil {
			t.is.Named = true
		}
	}
	for _, k := range recipients {
		if t := st.touchKey(s, k); t != nil {
			t.is.Recipient = true
		}
	}
}

func (st *state) applyMessage(lsn readstate.LSN, ev *readstate.MessageEvent) error {
	s := st.scopeByKey[ev.Scope]
	if s == none {
		return nil
	}
	sc := st.scopes.At(s)
	sc.latestSeq, sc.lastActivityAt, sc.lastLSN = ev.Seq, ev.At, lsn
	st.setLatest(sc, readstate.Latest{ID: ev.ID, At: ev.At})
	except := exempt{ev.Author, ev.Principal}
	if !sc.kind.NeutralWriters() {
		except = nobody
	}
	if ev.Revision == 0 {
		st.markScope(s, except)
		return nil
	}
	if ev.Revision != sc.head+1 {
		return fmt.Errorf("%w: scope %d: revision %d follows %d",
			ErrInvariant, ev.Scope, ev.Revision, sc.head)
	}
	sc.setHead(ev.Revision)
	sc.replies++
	if ev.Everyone {
		if err := st.sets.add(&sc.everyone, ev.Revision); err != nil {
			return fmt.Errorf("message in scope %d: %w", ev.Scope, err)
		}
		sc.settle()
	}
	if err := st.postBlocked(s, ev); err != nil {
		return err
	}
	st.touchRoles(s, ev.Author, ev.Principal, ev.Named, ev.Recipients)
	defer st.untouch()
	st.postTouched(sc.kind, ev)
	st.fireMessage(s, ev.Everyone)
	if !sc.kind.Targeted() {
		st.markScope(s, except)
	}
	return nil
}

// postTouched counts a message in the rows that it names.
func (st *state) postTouched(t readstate.ScopeType, ev *readstate.MessageEvent) {
	m := readstate.Message{Revision: ev.Revision, Everyone: ev.Everyone}
	for i := range st.touched {
		e, role := st.touched[i].entry, st.touched[i].is
		if role == (readstate.Role{Author: true}) && !ev.Everyone &&
			st.rows.raiseAuthor(e, ev.AuthorRank) {
			continue // nobody blocks themself: there is no pair
		}
		f := st.rows.load(e)
		if role.Author {
			f.writer.AuthorHead = ev.AuthorRank
		}
		if role.Principal {
			f.writer.PrincipalHead = ev.PrincipalRank
		}
		f.row.Point.Post(t, m, role)
		st.rows.store(e, &f)
		if p := st.pairFor(e, ev.Author); p != nil {
			p.counts.Post(t, m, role)
		}
	}
}

// postBlocked raises the record of an author whom somebody here blocks.
func (st *state) postBlocked(s int32, ev *readstate.MessageEvent) error {
	w, err := st.writerRecord(s, ev.Author, ev.AuthorRank == 1)
	if w == nil || err != nil {
		return err
	}
	w.authorHead = w.next(w.authorHead, ev.AuthorRank)
	if ev.Everyone {
		w.setEveryone(readstate.EveryoneRevision{
			Revision: ev.Revision, Principal: ev.Principal,
		}, true)
	}
	return nil
}

// fireMessage makes the rows candidates that a new message may have made unread.
func (st *state) fireMessage(s int32, everyone bool) {
	t := st.scopes.At(s).kind
	if t.Targeted() {
		for i := range st.touched {
			if r := st.touched[i].is; r.Recipient && !r.Author && !r.Principal {
				st.fireWaiting(st.touched[i].entry)
				st.markVisible(st.touched[i].entry, nobody)
			}
		}
		return
	}
	if !st.onlyNeutral(s, t) {
		kept := st.holdBack(s, t)
		st.fireAll(s)
		for _, e := range kept {
			st.push(st.scopes.At(s).waitAll, e)
		}
	}
	if everyone {
		st.fireNamed(s)
		return
	}
	for i := range st.touched {
		if r := st.touched[i].is; r.Named && !r.Neutral(t) {
			st.fireWaiting(st.touched[i].entry)
		}
	}
}

// onlyNeutral reports that nobody waits for the message but whom it is nothing new to, as when
// a scope's members have unread messages already.
func (st *state) onlyNeutral(s int32, t readstate.ScopeType) bool {
	l := st.scopes.At(s).waitAll
	left := st.lists.At(l).n
	for i := 0; i < len(st.touched) && left > 0; i++ {
		if st.touched[i].is.Neutral(t) && st.listOf(st.touched[i].entry) == l {
			left--
		}
	}
	return left == 0
}

// holdBack takes the neutral rows off the list that is about to fire, so that writing makes
// nobody's own row a candidate.
func (st *state) holdBack(s int32, t readstate.ScopeType) []int32 {
	var kept []int32
	for i := range st.touched {
		e := st.touched[i].entry
		if st.touched[i].is.Neutral(t) && st.listOf(e) == st.scopes.At(s).waitAll {
			st.unlist(e)
			kept = append(kept, e)
		}
	}
	return kept
}

func (st *state) applyRemoval(lsn readstate.LSN, ev *readstate.RemovalEvent) error {
	s := st.scopeByKey[ev.Scope]
	if s == none {
		return nil
	}
	sc := st.scopes.At(s)
	st.setLatest(sc, ev.Latest)
	sc.replies, sc.lastLSN = ev.Replies, lsn
	defer st.markScope(s, nobody)
	if ev.Revision == 0 || ev.Revision <= sc.floor {
		return nil
	}
	defer sc.settle()
	err := st.sets.add(&sc.removed, ev.Revision)
	if err == nil && ev.Everyone {
		err = st.sets.remove(&sc.everyone, ev.Revision)
	}
	if err != nil {
		return fmt.Errorf("removal in scope %d: %w", ev.Scope, err)
	}
	if w := st.blocked.writers[s][ev.Author]; w != nil {
		w.remove(ev.Revision)
	}
	st.touchRoles(s, ev.Author, ev.Principal, ev.Named, ev.Recipients)
	defer st.untouch()
	m := readstate.Message{Revision: ev.Revision, Everyone: ev.Everyone}
	t, floor := sc.kind, sc.floor
	for i := range st.touched {
		e, role := st.touched[i].entry, st.touched[i].is
		f := st.rows.load(e)
		above := ev.Revision > f.row.Point.Base(floor)
		f.row.Point.Remove(t, floor, m, role)
		st.rows.store(e, &f)
		if p := st.pairFor(e, ev.Author); p != nil {
			p.counts.Remove(t, above, m, role)
		}
		if err := st.checkCounters(e); err != nil {
			return err
		}
	}
	return nil
}

func (st *state) applyEdit(lsn readstate.LSN, ev *readstate.EditEvent) error {
	s := st.scopeByKey[ev.Scope]
	if s == none {
		return nil
	}
	sc := st.scopes.At(s)
	sc.lastLSN = lsn
	if ev.Revision == 0 || ev.Revision <= sc.floor {
		return nil
	}
	if err := st.editEveryone(s, ev); err != nil {
		return err
	}
	st.touchRoles(s, ev.Author, ev.Principal, ev.NamedAfter, ev.Recipients)
	for _, k := range ev.NamedBefore {
		st.touchKey(s, k)
	}
	defer st.untouch()
	for i := range st.touched {
		st.touched[i].was = st.touched[i].is
		st.touched[i].was.Named = false
	}
	for _, k := range ev.NamedBefore {
		if t := st.touchKey(s, k); t != nil {
			t.was.Named = true
		}
	}
	before := readstate.Message{Revision: ev.Revision, Everyone: ev.EveryoneBefore}
	after := readstate.Message{Revision: ev.Revision, Everyone: ev.EveryoneAfter}
	t, floor := sc.kind, sc.floor
	everyone := ev.EveryoneBefore != ev.EveryoneAfter
	for i := range st.touched {
		x := st.touched[i]
		f := st.rows.load(x.entry)
		above := ev.Revision > f.row.Point.Base(floor)
		f.row.Point.Edit(t, floor, before, after, x.was, x.is)
		st.rows.store(x.entry, &f)
		if p := st.pairFor(x.entry, ev.Author); p != nil {
			p.counts.Edit(t, above, before, after, x.was, x.is)
		}
		if err := st.checkCounters(x.entry); err != nil {
			return err
		}
		if x.is.Named && !x.was.Named {
			st.fireWaiting(x.entry)
		}
		if x.is.Named != x.was.Named && !everyone {
			st.markVisible(x.entry, nobody)
		}
	}
	if everyone {
		if ev.EveryoneAfter {
			st.fireNamed(s)
		}
		st.markScope(s, nobody)
	}
	return nil
}

func (st *state) editEveryone(s int32, ev *readstate.EditEvent) error {
	if ev.EveryoneBefore == ev.EveryoneAfter {
		return nil
	}
	change := st.sets.remove
	if ev.EveryoneAfter {
		change = st.sets.add
	}
	sc := st.scopes.At(s)
	if err := change(&sc.everyone, ev.Revision); err != nil {
		return fmt.Errorf("edit in scope %d: %w", ev.Scope, err)
	}
	sc.settle()
	if w := st.blocked.writers[s][ev.Author]; w != nil {
		w.setEveryone(readstate.EveryoneRevision{
			Revision: ev.Revision, Principal: ev.Principal,
		}, ev.EveryoneAfter)
	}
	return nil
}

func (st *state) applyActivity(lsn readstate.LSN, ev *readstate.ActivityEvent) error {
	s := st.scopeByKey[ev.Scope]
	if s == none {
		return nil
	}
	sc := st.scopes.At(s)
	sc.latestActivity, sc.lastActivityAt, sc.lastLSN = ev.Seq, ev.At, lsn
	if !ev.HighSignal {
		return nil
	}
	sc.setSignalHead(ev.SignalRank)
	w, err := st.writerRecord(s, ev.Actor, ev.ActorRank == 1)
	if err != nil {
		return err
	}
	if w != nil {
		w.actorHead = w.next(w.actorHead, ev.ActorRank)
	}
	if e := st.entryByKey(s, ev.Actor); e != none {
		f := st.rows.load(e)
		f.writer.ActorHead = ev.ActorRank
		st.rows.store(e, &f)
	}
	if !sc.kind.Targeted() {
		own := st.entryByKey(s, ev.Actor)
		waits := own != none && st.listOf(own) == sc.waitAll
		if waits {
			st.unlist(own) // an act of one's own is nothing new
		}
		st.fireAll(s)
		if waits {
			st.push(sc.waitAll, own)
		}
		st.markScope(s, exempt{ev.Actor})
		return nil
	}
	for _, k := range ev.Recipients {
		e := st.entryByKey(s, k)
		if e == none || k == ev.Actor {
			continue
		}
		f := st.rows.load(e)
		f.row.Activity.PostActivity(sc.kind, true, true, false)
		st.rows.store(e, &f)
		if p := st.pairFor(e, ev.Actor); p != nil {
			p.counts.ActivityTargets++
		}
		st.fireWaiting(e)
		st.markVisible(e, nobody)
	}
	return nil
}

// checkCounters finds a counter that an event took below zero.
func (st *state) checkCounters(e int32) error {
	p := st.rows.load(e).row.Point
	high := max(p.OwnRemoved, p.OwnEveryone, p.Direct, p.Targets)
	pairs := st.blocked.pairs[e]
	for i := range pairs {
		// Removed and Everyone are derived; those of the pair are not kept and may be anything.
		c := &pairs[i].counts
		high = max(high, c.Overlap, c.Direct, c.Targets)
	}
	if high > readstate.MaxCounter {
		return st.broken(e, fmt.Errorf("%w: counter of %+v", readstate.ErrNegative, p))
	}
	return nil
}
