package facts

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

type markRead struct{ MarkRead }

func (o *markRead) name() string { return "mark read" }
func (o *markRead) rows() int    { return 1 + len(o.Threads) }

func (o *markRead) gather(w *workspace, n *needs) {
	n.member(w, o.Member)
	n.scope(w, o.Scope)
	for _, t := range o.Threads {
		n.scope(w, t.Scope)
	}
}

func (o *markRead) resolve(g *group, w *workspace, n *needs) {
	gatherRow(g, w, n, o.Scope, o.Member)
	for _, t := range o.Threads {
		gatherRow(g, w, n, t.Scope, o.Member)
	}
}

// reading is one checked advance: nothing is staged before every part of the request is.
type reading struct {
	scope   ScopeRow
	row     StateRow
	outcome readstate.Outcome
}

func (o *markRead) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if o.Revision == nil && o.Through == "" && o.ActivitySeq == nil {
		return nil, fmt.Errorf("%w: nothing says how far", ErrInvalid)
	}
	if len(o.Threads) > MaxThreadReads {
		return nil, fmt.Errorf("%w: at most %d threads", ErrInvalid, MaxThreadReads)
	}
	main, err := o.check(ctx, g, w)
	if err != nil {
		return nil, err
	}
	all := []reading{main}
	seen := map[readstate.ScopeID]bool{}
	for _, t := range o.Threads {
		if seen[t.Scope] {
			return nil, fmt.Errorf("%w: thread %q is named twice", ErrInvalid, t.Scope)
		}
		seen[t.Scope] = true
		r, err := o.checkThread(ctx, g, w, main.scope, t)
		if err != nil {
			return nil, fmt.Errorf("thread %q: %w", t.Scope, err)
		}
		all = append(all, r)
	}
	for i := range all {
		if err := g.carryOut(ctx, w, &all[i]); err != nil {
			return nil, err
		}
	}
	main = all[0]
	if err := g.settleRead(ctx, w, &main); err != nil {
		return nil, err
	}
	return ReadResult{
		Outcome: main.outcome, Head: main.scope.Ranks.Head, Row: main.row.Row, LSN: w.LSN,
	}, nil
}

func (o *markRead) check(ctx context.Context, g *group, w *workspace) (reading, error) {
	scope, row, err := g.reach(ctx, w, o.Scope, o.Member, o.Trusted)
	if err != nil {
		return reading{}, err
	}
	r := reading{scope: scope, row: row}
	if o.Revision != nil || o.Through != "" {
		revision, err := o.through(ctx, g, scope)
		if err != nil {
			return r, err
		}
		out, err := r.row.Row.MarkRead(scope.Ranks.Head, readstate.ReadCommand{
			Revision: revision, Version: o.Version, Trusted: o.Trusted,
		})
		if err != nil {
			return r, refusal(err)
		}
		r.outcome = out
		if o.ActivitySeq == nil && scope.Info.Type == readstate.Task {
			seq, err := g.pairedActivity(ctx, scope, revision)
			if err != nil {
				return r, err
			}
			return r, g.readActivity(ctx, &r, seq)
		}
	}
	if o.ActivitySeq == nil {
		return r, nil
	}
	return r, g.readActivity(ctx, &r, *o.ActivitySeq)
}

// pairedActivity returns the activity up to which somebody has seen a task who has read through a
// revision: the one that goes with the newest message of it (RT-147).
func (g *group) pairedActivity(
	ctx context.Context, s ScopeRow, through readstate.Revision,
) (readstate.Seq, error) {
	if s.Ranks.LatestActivity == 0 || through == 0 {
		return 0, nil
	}
	if p, _, known := g.paired.get(s.Info.Key); known && p.revision <= through {
		return p.activity, nil
	}
	if err := g.flush(ctx); err != nil {
		return 0, err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return 0, err
	}
	seq, err := tx.PairedActivity(ctx, s.Info.Key, through)
	if err != nil {
		return 0, broken("paired activity", err)
	}
	if through == s.Ranks.Head {
		g.paired.loaded(s.Info.Key, pairing{through, seq}, true)
	}
	return seq, nil
}

// readActivity advances the activity cursor of a reading. At the newest activity nothing has to be
// looked up.
func (g *group) readActivity(ctx context.Context, r *reading, to readstate.Seq) error {
	k, at := &r.scope.Ranks, &r.row.Row.Activity
	var crossed readstate.ActivityCrossed
	switch {
	case to == k.LatestActivity:
		wr, err := g.writer(ctx, r.row.RowKey)
		if err != nil {
			return err
		}
		crossed = readstate.ActivityCrossed{
			Signal: k.SignalHead, Actor: wr.Writer.ActorHead, Targets: at.Targets,
		}
	case to > at.Read && to < k.LatestActivity:
		if err := g.flush(ctx); err != nil {
			return err
		}
		tx, err := g.open(ctx)
		if err != nil {
			return err
		}
		if crossed, err = tx.ActivityAt(ctx, r.row.RowKey, at.Read, to); err != nil {
			return broken("activity ranks", err)
		}
	}
	out, err := r.row.Row.MarkActivityRead(to, k.LatestActivity, crossed)
	if out == readstate.Applied {
		r.outcome = out
	}
	return refusal(err)
}

// through resolves what the read names: a revision, or the newest revision at or before a
// message, whose own it is even if it has been removed.
func (o *markRead) through(
	ctx context.Context, g *group, s ScopeRow,
) (readstate.Revision, error) {
	if o.Revision != nil {
		return *o.Revision, nil
	}
	m, err := g.message(ctx, s.Info.Key, o.Through)
	if err != nil {
		return 0, err
	}
	if m == nil {
		return 0, notFound("message", o.Through)
	}
	if m.Revision > 0 {
		return m.Revision, nil
	}
	if err := g.flush(ctx); err != nil {
		return 0, err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return 0, err
	}
	r, err := tx.RevisionThrough(ctx, s.Info.Key, m.Seq)
	if err != nil {
		return 0, broken("revision through", err)
	}
	return max(r, s.Ranks.Floor), nil
}

func (o *markRead) checkThread(
	ctx context.Context, g *group, w *workspace, channel ScopeRow, t ThreadRead,
) (reading, error) {
	scope, row, err := g.reach(ctx, w, t.Scope, o.Member, o.Trusted)
	if err != nil {
		return reading{}, err
	}
	if scope.Info.Parent != channel.Info.Key {
		return reading{}, fmt.Errorf("%w: it hangs under another scope", ErrInvalid)
	}
	r := reading{scope: scope, row: row}
	r.outcome, err = r.row.Row.MarkRead(scope.Ranks.Head, readstate.ReadCommand{
		Revision: t.Revision, Version: t.Version, Trusted: o.Trusted,
	})
	return r, refusal(err)
}

// carryOut stages a checked reading. One that changes nothing leaves no trace.
func (g *group) carryOut(ctx context.Context, w *workspace, r *reading) error {
	if r.outcome == readstate.Unchanged {
		return nil
	}
	g.touch(w)
	if err := g.movePoint(ctx, r.scope, &r.row); err != nil {
		return err
	}
	return g.storeRow(ctx, w, r.scope, r.row)
}

// settleRead is settle after a reading, whose answer says what came of it.
func (g *group) settleRead(ctx context.Context, w *workspace, r *reading) error {
	if r.scope.Info.Type != readstate.Session || r.outcome == readstate.Unchanged {
		return nil
	}
	if err := g.settle(ctx, w, r.scope.Info.Key); err != nil {
		return err
	}
	var err error
	r.row, _, err = g.state(ctx, r.row.RowKey)
	return err
}

type markUnread struct{ MarkUnread }

func (o *markUnread) name() string { return "mark unread" }
func (o *markUnread) rows() int    { return 1 }

func (o *markUnread) gather(w *workspace, n *needs) {
	n.member(w, o.Member)
	n.scope(w, o.Scope)
}

func (o *markUnread) resolve(g *group, w *workspace, n *needs) {
	gatherRow(g, w, n, o.Scope, o.Member)
}

func (o *markUnread) run(ctx context.Context, g *group, w *workspace) (any, error) {
	scope, row, err := g.reach(ctx, w, o.Scope, o.Member, o.Trusted)
	if err != nil {
		return nil, err
	}
	from := o.From
	if o.FromMessage != "" {
		if from, err = o.fromMessage(ctx, g, scope); err != nil {
			return nil, err
		}
	}
	r := reading{scope: scope, row: row}
	r.outcome, err = r.row.Row.MarkUnread(scope.Ranks.Head, readstate.UnreadCommand{
		From: from, Version: o.Version,
	})
	answer := ReadResult{Head: scope.Ranks.Head, Row: row.Row, LSN: w.LSN}
	if err != nil {
		err = refusal(err)
		if errors.Is(err, ErrConflict) {
			return answer, err
		}
		return nil, err
	}
	if err := g.carryOut(ctx, w, &r); err != nil {
		return nil, err
	}
	if err := g.settleRead(ctx, w, &r); err != nil {
		return nil, err
	}
	if k := &scope.Ranks; scope.Info.Type == readstate.Task && r.outcome == readstate.Applied {
		g.talk(w, scope.Info.Key, readstate.Task, k.LatestSeq, k.LatestActivity,
			[]readstate.MemberKey{r.row.Member})
	}
	answer.Outcome, answer.Row, answer.LSN = r.outcome, r.row.Row, w.LSN
	return answer, nil
}

// fromMessage resolves a message to the first revision at or after it.
func (o *markUnread) fromMessage(
	ctx context.Context, g *group, s ScopeRow,
) (readstate.Revision, error) {
	m, err := g.message(ctx, s.Info.Key, o.FromMessage)
	if err != nil {
		return 0, err
	}
	if m == nil {
		return 0, notFound("message", o.FromMessage)
	}
	if m.Revision > 0 {
		return m.Revision, nil
	}
	return 0, fmt.Errorf("%w: message %q has no revision", ErrInvalid, o.FromMessage)
}
