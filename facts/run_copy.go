package facts

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

// Sessions that come out of other sessions. Their entries are not told one by one to those who watch
// messages: whoever sees that a session came up or was replaced reads its newest page.

type forkSession struct{ ForkSession }

func (o *forkSession) name() string { return "fork session" }
func (o *forkSession) rows() int    { return batchEntries }

func (o *forkSession) gather(w *workspace, n *needs) {
	n.member(w, o.Owner)
	n.scope(w, SessionScope(o.Owner, o.From))
	if o.To != "" {
		n.scope(w, SessionScope(o.Owner, o.To))
	}
}

func (o *forkSession) resolve(*group, *workspace, *needs) {}

func (o *forkSession) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if o.Title != nil {
		if err := checkText("title", *o.Title); err != nil {
			return nil, err
		}
	}
	owner, r, done, err := g.sessionOp(ctx, w, o.Owner, o.OpID, digest(o.ForkSession))
	if done || err != nil {
		return r, err
	}
	from, err := g.scope(ctx, w, SessionScope(o.Owner, o.From))
	if err != nil {
		return nil, err
	}
	id := o.To
	if id == "" {
		id = g.newID()
	}
	name := SessionScope(o.Owner, id)
	if err := checkScopeID(name); err != nil {
		return nil, err
	}
	if _, exists, err := g.findScope(ctx, w, name); err != nil || exists {
		return nil, firstError(err, fmt.Errorf("session %q exists: %w", id, ErrMismatch))
	}
	entries, err := g.copied(ctx, from)
	if err != nil {
		return nil, err
	}
	g.touch(w)
	info := readstate.ScopeInfo{ID: name, Type: readstate.Session, Name: from.Info.Name}
	set(&info.Name, o.Title)
	to, x, err := g.newSession(ctx, w, owner, info)
	if err != nil {
		return nil, err
	}
	told := len(w.messages)
	for _, m := range entries {
		if !m.Live {
			continue
		}
		if _, err := g.copyEntry(ctx, w, to.Info.Key, m, m.ID, false); err != nil {
			return nil, err
		}
	}
	w.messages = w.messages[:told]
	if to, err = g.scopeByKey(ctx, to.Info.Key); err != nil {
		return nil, err
	}
	answer, err := g.sessionReceipt(ctx, w, to, x)
	answer.Outcome, answer.Created = readstate.Applied, true
	key := OpKey{w.Key, owner.Key, o.OpID}
	return answer, firstError(err, g.keep(key, digest(o.ForkSession), Receipt{Session: id, LSN: w.LSN}))
}

type mergeSession struct{ MergeSession }

func (o *mergeSession) name() string { return "merge session" }
func (o *mergeSession) rows() int    { return batchEntries }

func (o *mergeSession) gather(w *workspace, n *needs) {
	n.member(w, o.Owner)
	n.scope(w, SessionScope(o.Owner, o.From), SessionScope(o.Owner, o.Into))
}

func (o *mergeSession) resolve(g *group, w *workspace, n *needs) {
	gatherRow(g, w, n, SessionScope(o.Owner, o.From), o.Owner)
	gatherRow(g, w, n, SessionScope(o.Owner, o.Into), o.Owner)
}

func (o *mergeSession) run(ctx context.Context, g *group, w *workspace) (any, error) {
	owner, r, done, err := g.sessionOp(ctx, w, o.Owner, o.OpID, digest(o.MergeSession))
	if done || err != nil {
		return r, err
	}
	from, err := g.scope(ctx, w, SessionScope(o.Owner, o.From))
	if err != nil {
		return nil, err
	}
	to, err := g.scope(ctx, w, SessionScope(o.Owner, o.Into))
	if err != nil {
		return nil, err
	}
	if from.Info.Key == to.Info.Key {
		return nil, fmt.Errorf("%w: a session is not merged into itself", ErrInvalid)
	}
	entries, err := g.copied(ctx, from)
	if err != nil {
		return nil, err
	}
	source, _, err := g.state(ctx, RowKey{from.Info.Key, owner.Key})
	if err != nil {
		return nil, err
	}
	g.touch(w)
	m := readstate.MergeMap{
		SourceE: source.Row.Point.Base(from.Ranks.Floor), DestinationHead: to.Ranks.Head,
	}
	told := len(w.messages)
	if err := g.arrive(ctx, w, to.Info.Key, m, entries); err != nil {
		return nil, err
	}
	w.messages = w.messages[:told]
	if err := g.retire(ctx, w, from, source.RowKey, to.Info.Key); err != nil {
		return nil, err
	}
	// The row is gone, and nothing else says so to a memory that is read anew: a stream from before
	// must not go on as if it had been told.
	owner.MemberLSN = w.LSN
	g.storeMember(w, owner)
	if to, err = g.join(ctx, w, to.Info.Key, source.Row.Manual, m); err != nil {
		return nil, err
	}
	x, err := g.sessionRow(ctx, to.Info.Key)
	if err != nil {
		return nil, err
	}
	answer, err := g.sessionReceipt(ctx, w, to, x)
	answer.Outcome = readstate.Applied
	key := OpKey{w.Key, owner.Key, o.OpID}
	kept := Receipt{Session: o.Into, LSN: w.LSN}
	return answer, firstError(err, g.keep(key, digest(o.MergeSession), kept))
}

// sessionOp finds the owner, and answers an operation that was accepted before.
func (g *group) sessionOp(
	ctx context.Context, w *workspace, owner readstate.MemberID, opID string, d Digest,
) (info readstate.MemberInfo, r SessionReceipt, done bool, err error) {
	if err := CheckID("opId", opID); err != nil {
		return info, r, false, err
	}
	if info, err = g.member(ctx, w, owner); err != nil {
		return info, r, false, err
	}
	before, found, err := g.repeated(ctx, OpKey{w.Key, info.Key, opID}, d, w, true)
	if err != nil || !found {
		return info, r, false, err
	}
	receipt, ok := before.(Receipt)
	if !ok || receipt.Session == "" {
		return info, r, false, fmt.Errorf("operation %q: %w", opID, ErrMismatch)
	}
	scope, err := g.scope(ctx, w, SessionScope(owner, receipt.Session))
	if err != nil {
		return info, r, true, err
	}
	x, err := g.sessionRow(ctx, scope.Info.Key)
	if err != nil {
		return info, r, true, err
	}
	r, err = g.sessionReceipt(ctx, w, scope, x)
	r.Duplicate = true
	return info, r, true, err
}

// copied returns the entries of a session, tombstones included, ascending. They are copied in one
// commit, so that there may only be so many.
func (g *group) copied(ctx context.Context, s ScopeRow) ([]*MessageRow, error) {
	if n := s.Ranks.LatestSeq - s.FloorSeq; n > MaxSessionCopied {
		return nil, fmt.Errorf("%w: at most %d entries are copied, the session has %d",
			ErrInvalid, MaxSessionCopied, n)
	}
	var out []*MessageRow
	for low := s.FloorSeq; low < s.Ranks.LatestSeq; {
		batch, err := g.between(ctx, s.Info.Key, low, s.Ranks.LatestSeq, false)
		if err != nil || len(batch) == 0 {
			return out, err
		}
		out = append(out, batch...)
		low = batch[len(batch)-1].Seq
	}
	return out, nil
}

// copyEntry appends a copy of an entry to another session. Its receipt stays where it was.
func (g *group) copyEntry(
	ctx context.Context, w *workspace, to readstate.ScopeKey, m *MessageRow, id string, readable bool,
) (*MessageRow, error) {
	scope, err := g.scopeByKey(ctx, to)
	if err != nil {
		return nil, err
	}
	c := *m
	c.ID, c.Live, c.Revision = id, true, 0
	c.Op, c.OpDigest, c.LocalID = OpKey{}, Digest{}, ""
	return g.appendEntry(ctx, w, scope, c, readable)
}

// arrive appends the entries of a session that is merged. Those that were removed there are
// removed here.
func (g *group) arrive(
	ctx context.Context, w *workspace, to readstate.ScopeKey, m readstate.MergeMap, from []*MessageRow,
) error {
	ids := make([]string, len(from))
	for i, e := range from {
		ids[i] = e.ID
	}
	if err := g.loadMessages(ctx, to, ids); err != nil {
		return err
	}
	var gone []*MessageRow
	for _, e := range from {
		id := e.ID
		if g.messages.byID[messageName{to, id}] != (Place{}) {
			id = g.newID()
		}
		want, counts := m.Revision(e.Revision)
		c, err := g.copyEntry(ctx, w, to, e, id, counts)
		if err != nil {
			return err
		}
		if c.Revision != want {
			return broken("merge", fmt.Errorf("entry %d arrives at %d, mapped to %d",
				e.Seq, c.Revision, want))
		}
		if !e.Live {
			gone = append(gone, c)
		}
	}
	_, err := g.takeBack(ctx, w, gone)
	return err
}

// retire ends a session that has been merged.
func (g *group) retire(
	ctx context.Context, w *workspace, from ScopeRow, key RowKey, to readstate.ScopeKey,
) error {
	x, err := g.sessionRow(ctx, from.Info.Key)
	if err != nil {
		return err
	}
	x.ReplacedBy = to
	g.sessions.put(x.Scope, x)
	g.states.drop(key)
	g.changes.GoneStates = append(g.changes.GoneStates, key)
	w.emit(readstate.RowGoneEvent{Scope: key.Scope, Member: key.Member})
	from.RosterGeneration++
	from.Ranks.LastLSN = w.LSN
	g.scopes.put(from.Info.Key, from)
	return nil
}

// join takes the manual mark of a merged session over. A start that comes with it lies above the head
// that the destination had, so that its point stays.
func (g *group) join(
	ctx context.Context, w *workspace, to readstate.ScopeKey, source readstate.Manual,
	m readstate.MergeMap,
) (ScopeRow, error) {
	scope, err := g.scopeByKey(ctx, to)
	if err != nil {
		return scope, err
	}
	row, _, err := g.state(ctx, RowKey{to, scope.Owner})
	if err != nil {
		return scope, err
	}
	row.Row.Manual = readstate.MergeManual(source, row.Row.Manual, m)
	if err := g.storeRow(ctx, w, scope, row); err != nil {
		return scope, err
	}
	return scope, g.settle(ctx, w, to)
}
