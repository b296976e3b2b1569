package chaos

import (
	"fmt"
	"slices"
)

// fates is what the log of acknowledgements says about messages: for each, what may have
// happened to it and what must have.
type fates struct {
	posts []*act
	cuts  map[string][]*act   // by scope: rewinds and trims
	acts  map[placeMsg][]*act // by message: removes, moves, edits, in the order of sending
	lsn   uint64              // highest that was answered

	mortal map[string]bool // messages that expire, by id
}

// placeMsg is a message id in a scope.
type placeMsg struct{ scope, id string }

// fatesOf reads the log of one workspace.
func fatesOf(j *journal, workspace string) *fates {
	f := &fates{cuts: map[string][]*act{}, acts: map[placeMsg][]*act{}, mortal: map[string]bool{}}
	j.each(func(a *act) {
		if a.Workspace != workspace {
			return
		}
		f.lsn = max(f.lsn, a.Answer.LSN)
		if a.Done > 0 && !a.applied() && a.Kind != post {
			return // refused: nothing happened
		}
		switch a.Kind {
		case post:
			f.posts = append(f.posts, a)
			if a.Expires {
				f.mortal[a.Answer.MessageID] = true
			}
		case rewind, trim:
			f.cuts[a.Scope] = append(f.cuts[a.Scope], a)
		case remove, move, edit:
			for _, id := range a.Messages {
				at := placeMsg{a.Scope, id}
				f.acts[at] = append(f.acts[at], a)
			}
		}
	})
	return f
}

// verdict is what must and may be true of an entry.
type verdict struct {
	mayDie, mustDie bool
	mayGo, mustGo   bool // trimmed: not even a tombstone is left
	mayMove         bool // its id may have gone with it to another scope
}

// judge weighs everything that was sent against an entry that is known since the act born.
func (f *fates) judge(born *act, scope, id string, seq uint64) verdict {
	var v verdict
	for _, a := range f.acts[placeMsg{scope, id}] {
		v.mayMove = v.mayMove || a.Kind == move && a != born
		if a.Kind != edit && a != born {
			v.mayDie = v.mayDie || !a.before(born)
			v.mustDie = v.mustDie || a.applied() && born.before(a)
		}
	}
	for _, a := range f.cuts[scope] {
		switch {
		case a.before(born):
		case a.Kind == rewind && a.Through < seq:
			v.mayDie = true
			v.mustDie = v.mustDie || a.applied() && born.before(a)
		case a.Kind == trim && a.Through >= seq:
			v.mayGo = true
			v.mustGo = v.mustGo || a.applied() && born.before(a)
		}
	}
	v.mayDie = v.mayDie || f.mortal[id]
	return v
}

// check holds the rows of a database against the log.
func (f *fates) check(d *durable) []string {
	var out []string
	if d.lsn < f.lsn {
		out = append(out, fmt.Sprintf("LSN %d was answered, the file stands at %d", f.lsn, d.lsn))
	}
	for _, a := range f.posts {
		switch {
		case a.unknown():
		case !a.applied():
			if row := d.byOp[a.OpID]; row != nil {
				out = append(out, fmt.Sprintf("refused, and there at seq %d: %s", row.seq, a))
			}
		default:
			for _, fault := range f.checkPost(d, a) {
				out = append(out, fmt.Sprintf("%s: %s", fault, a))
			}
		}
	}
	for _, list := range f.cuts {
		for _, a := range list {
			if a.Kind == trim && a.applied() && d.scope(a.Scope).floorSeq < a.Through {
				out = append(out, fmt.Sprintf("floor at %d: %s", d.scope(a.Scope).floorSeq, a))
			}
		}
	}
	return append(out, f.checkMoves(d)...)
}

// checkPost looks for an acknowledged message, and for the channel's copy of it.
func (f *fates) checkPost(d *durable, a *act) []string {
	main := f.judge(a, a.Scope, a.Answer.MessageID, a.Answer.Seq)
	var twin verdict
	if a.Answer.Channel != nil {
		twin = f.judge(a, a.Broadcast, a.Answer.MessageID, a.Answer.Channel.Seq)
	}
	// The two entries of a broadcast reply die together while both are there.
	v := main
	v.mayDie = main.mayDie || twin.mayDie
	v.mustDie = main.mustDie || twin.mustDie && !twin.mayGo
	v.mayMove = main.mayMove || twin.mayMove
	out := f.checkEntry(d, a, a.Scope, a.Answer.Seq, a.Answer.ContentRevision, v)
	if a.Answer.Channel != nil {
		twin.mayDie, twin.mayMove = v.mayDie, v.mayMove
		twin.mustDie = twin.mustDie || main.mustDie && !main.mayGo
		c := a.Answer.Channel
		out = append(out, f.checkEntry(d, a, a.Broadcast, c.Seq, c.ContentRevision, twin)...)
	}
	return out
}

func (f *fates) checkEntry(
	d *durable, a *act, scope string, seq, revision uint64, v verdict,
) []string {
	row := d.scope(scope).bySeq[seq]
	if row == nil {
		if !v.mayGo {
			return []string{"acknowledged and missing in " + scope}
		}
		return nil
	}
	var out []string
	complain := func(bad bool, format string, args ...any) {
		if bad {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	complain(v.mustGo, "trimmed and still there in %s", scope)
	complain(row.live && v.mustDie, "taken back and still live in %s", scope)
	complain(!row.live && !v.mayDie, "dead in %s, and nobody took it back", scope)
	complain(row.revision != revision, "has revision %d in %s", row.revision, scope)
	complain(row.id != a.Answer.MessageID && (row.live || !v.mayMove), "is %q in %s", row.id, scope)
	complain(row.author != d.memberKeys[a.Member] || row.principal != d.memberKeys[a.Principal],
		"has author %d and principal %d", row.author, row.principal)
	complain(scope == a.Scope && row.op != a.OpID, "belongs to operation %q", row.op)
	if row.live {
		complain(!f.content(d, a, row), "says %+v, names %v, everyone %v", row.payload, row.named,
			row.everyone)
	}
	return out
}

// content reports that a live entry says what it was posted with or edited to.
func (f *fates) content(d *durable, a *act, row *messageRow) bool {
	says := func(edit string, named []string, everyone bool) bool {
		if row.payload != (payload{a.OpID, edit}) || row.everyone != everyone {
			return false
		}
		return len(named) == len(row.named) && !slices.ContainsFunc(named, func(m string) bool {
			return !slices.Contains(row.named, d.memberKeys[m])
		})
	}
	last, named, everyone := "", a.Named, a.Everyone
	for _, e := range f.acts[placeMsg{a.Scope, a.Answer.MessageID}] {
		if e.Kind != edit {
			continue
		}
		next, nextNamed, nextEveryone := e.OpID, named, everyone
		if e.Renames {
			nextNamed, nextEveryone = e.Named, e.Everyone
		}
		if e.unknown() { // the last one of its client
			return says(last, named, everyone) || says(next, nextNamed, nextEveryone)
		}
		last, named, everyone = next, nextNamed, nextEveryone
	}
	return says(last, named, everyone)
}

// checkMoves looks for moved messages at their targets.
func (f *fates) checkMoves(d *durable) []string {
	var out []string
	seen := map[*act]bool{}
	for _, acts := range f.acts {
		for _, a := range acts {
			if a.Kind != move || seen[a] {
				continue
			}
			seen[a] = true
			there, gone := 0, false
			for _, c := range f.cuts[a.To] {
				gone = gone || c.Kind == trim && !c.before(a)
			}
			for _, id := range a.Messages {
				row := d.scope(a.To).byID[id]
				if row == nil || row.peerScope != 0 {
					continue // the copy of a broadcast reply, which keeps the move away
				}
				there++
				if v := f.judge(a, a.To, id, row.seq); !row.live && !v.mayDie {
					out = append(out, fmt.Sprintf("%s is dead, and nobody took it back: %s", id, a))
				}
			}
			none := there == 0 && a.unknown()
			if there != len(a.Messages) && !none && !gone {
				out = append(out, fmt.Sprintf("%d of the moved are there: %s", there, a))
			}
		}
	}
	return out
}
