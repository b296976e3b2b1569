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
	default:
		return fmt.Errorf("unknown event %T", ev)
	}
	return nil
}

// touchKey finds or adds the row of a member in the scratch; nil where it is not loaded, as for
// nobody. The pointer lasts until the next call.
func (st *state) touchKey(s int32, key readstate.MemberKey) *touch {
	e := st.entryByKey(s, key)
	if e == none {
		return nil
	}
	en := st.entries.at(e)
	if en.touch == 0 {
		st.touched = append(st.touched, touch{entry: e})
		en.touch = int32(len(st.touched))
	}
	return &st.touched[en.touch-1]
}

func (st *state) untouch() {
	for i := range st.touched {
		st.entries.at(st.touched[i].entry).touch = 0
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
	sc := st.scopes.at(s)
	sc.ranks.LatestSeq = ev.Seq
	sc.ranks.Latest = readstate.Latest{ID: ev.ID, At: ev.At}
	sc.ranks.LastActivityAt = ev.At
	sc.ranks.LastLSN = lsn
	except := exempt{ev.Author, ev.Principal}
	if !sc.info.Type.NeutralWriters() {
		except = nobody
	}
	if ev.Revision == 0 {
		st.markScope(s, except)
		return nil
	}
	if ev.Revision != sc.ranks.Head+1 {
		return fmt.Errorf("%w: scope %d: revision %d follows %d",
			ErrInvariant, ev.Scope, ev.Revision, sc.ranks.Head)
	}
	sc.ranks.Head = ev.Revision
	sc.ranks.Replies++
	m := readstate.Message{Revision: ev.Revision, Everyone: ev.Everyone}
	if ev.Everyone {
		if err := sc.everyone.add(ev.Revision); err != nil {
			return fmt.Errorf("message in scope %d: %w", ev.Scope, err)
		}
	}
	if err := st.postBlocked(s, ev); err != nil {
		return err
	}
	st.touchRoles(s, ev.Author, ev.Principal, ev.Named, ev.Recipients)
	defer st.untouch()
	t := sc.info.Type
	for i := range st.touched {
		e, role := st.touched[i].entry, st.touched[i].is
		en := st.entries.at(e)
		if role.Author {
			en.writer.AuthorHead = ev.AuthorRank
		}
		if role.Principal {
			en.writer.PrincipalHead = ev.PrincipalRank
		}
		en.row.Point.Post(t, m, role)
		if p := st.pairFor(e, ev.Author); p != nil {
			p.counts.Post(t, m, role)
		}
	}
	st.fireMessage(s, ev.Everyone)
	if !t.Targeted() {
		st.markScope(s, except)
	}
	return nil
}

// postBlocked raises the record of an author whom somebody here blocks.
func (st *state) postBlocked(s int32, ev *readstate.MessageEvent) error {
	w, err := st.writerRecord(s, ev.Author, ev.AuthorRank == 1)
	if w == nil || err != nil {
		return err
	}
	w.authorHead = ev.AuthorRank
	if ev.Everyone {
		w.setEveryone(readstate.EveryoneRevision{
			Revision: ev.Revision, Principal: ev.Principal,
		}, true)
	}
	return nil
}

// fireMessage makes the rows candidates that a new message may have made unread.
func (st *state) fireMessage(s int32, everyone bool) {
	t := st.scopes.at(s).info.Type
	if t.Targeted() {
		for i := range st.touched {
			if r := st.touched[i].is; r.Recipient && !r.Author && !r.Principal {
				st.fireWaiting(st.touched[i].entry)
				st.markVisible(st.touched[i].entry, nobody)
			}
		}
		return
	}
	kept := st.holdBack(s, t)
	st.fireAll(s)
	for _, e := range kept {
		st.push(st.scopes.at(s).waitAll, e)
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

// holdBack takes the neutral rows off the list that is about to fire, so that writing makes
// nobody's own row a candidate.
func (st *state) holdBack(s int32, t readstate.ScopeType) []int32 {
	var kept []int32
	for i := range st.touched {
		e := st.touched[i].entry
		if st.touched[i].is.Neutral(t) && st.entries.at(e).list == st.scopes.at(s).waitAll {
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
	sc := st.scopes.at(s)
	sc.ranks.Latest, sc.ranks.Replies, sc.ranks.LastLSN = ev.Latest, ev.Replies, lsn
	defer st.markScope(s, nobody)
	if ev.Revision == 0 || ev.Revision <= sc.ranks.Floor {
		return nil
	}
	err := sc.removed.add(ev.Revision)
	if err == nil && ev.Everyone {
		err = sc.everyone.remove(ev.Revision)
	}
	if err != nil {
		return fmt.Errorf("removal in scope %d: %w", ev.Scope, err)
	}
	w := sc.blocked[ev.Author]
	if w != nil {
		w.remove(ev.Revision)
	}
	st.touchRoles(s, ev.Author, ev.Principal, ev.Named, ev.Recipients)
	defer st.untouch()
	m := readstate.Message{Revision: ev.Revision, Everyone: ev.Everyone}
	t, floor := sc.info.Type, sc.ranks.Floor
	for i := range st.touched {
		e, role := st.touched[i].entry, st.touched[i].is
		en := st.entries.at(e)
		above := ev.Revision > en.row.Point.Base(floor)
		en.row.Point.Remove(t, floor, m, role)
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
	sc := st.scopes.at(s)
	sc.ranks.LastLSN = lsn
	if ev.Revision == 0 || ev.Revision <= sc.ranks.Floor {
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
	t, floor := sc.info.Type, sc.ranks.Floor
	everyone := ev.EveryoneBefore != ev.EveryoneAfter
	for i := range st.touched {
		x := st.touched[i]
		en := st.entries.at(x.entry)
		above := ev.Revision > en.row.Point.Base(floor)
		en.row.Point.Edit(t, floor, before, after, x.was, x.is)
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
	sc := st.scopes.at(s)
	change := sc.everyone.remove
	if ev.EveryoneAfter {
		change = sc.everyone.add
	}
	if err := change(ev.Revision); err != nil {
		return fmt.Errorf("edit in scope %d: %w", ev.Scope, err)
	}
	if w := sc.blocked[ev.Author]; w != nil {
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
	sc := st.scopes.at(s)
	sc.ranks.LatestActivity = ev.Seq
	sc.ranks.LastActivityAt = ev.At
	sc.ranks.LastLSN = lsn
	if !ev.HighSignal {
		return nil
	}
	sc.ranks.SignalHead = ev.SignalRank
	w, err := st.writerRecord(s, ev.Actor, ev.ActorRank == 1)
	if err != nil {
		return err
	}
	if w != nil {
		w.actorHead = ev.ActorRank
	}
	if e := st.entryByKey(s, ev.Actor); e != none {
		st.entries.at(e).writer.ActorHead = ev.ActorRank
	}
	if !sc.info.Type.Targeted() {
		st.fireAll(s)
		st.markScope(s, exempt{ev.Actor})
		return nil
	}
	for _, k := range ev.Recipients {
		e := st.entryByKey(s, k)
		if e == none || k == ev.Actor {
			continue
		}
		st.entries.at(e).row.Activity.PostActivity(sc.info.Type, true, true, false)
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
	en := st.entries.at(e)
	p := &en.row.Point
	high := max(p.OwnRemoved, p.OwnEveryone, p.Direct, p.Targets)
	if en.side != none {
		for i := range *st.sides.at(en.side) {
			c := &(*st.sides.at(en.side))[i].counts
			// Removed and Everyone are derived; those of the pair are not kept and may be anything.
			high = max(high, c.Overlap, c.Direct, c.Targets)
		}
	}
	if high > readstate.MaxCounter {
		return st.broken(e, fmt.Errorf("%w: counter of %+v", readstate.ErrNegative, *p))
	}
	return nil
}
