package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// How an uncertain commit is read back: the lane stands still meanwhile.
const (
	readBackFirst = 10 * time.Millisecond
	readBackMost  = time.Second
)

// durable is implemented by operations that keep progress from one group to the next; the lane
// calls it once their last batch is durable.
type durable interface{ durable() }

// commitGroup runs what waits as one group and returns what is left over.
func (l *Lane) commitGroup(backlog []*request) []*request {
	ctx := context.Background()
	g := l.group
	started := l.cfg.Now()
	g.clock = started.UnixMilli()
	g.careful = max(0, g.careful-1)
	l.cause = nil
	if !l.serving() {
		l.withhold(backlog)
		return nil
	}
	l.crowd.open()
	l.crowd.came(backlog)
	backlog = l.join(backlog)
	var ran []*request
	rows := 0
	for len(backlog) > 0 && rows < l.cfg.GroupRows {
		n, part := 0, 0
		for n < len(backlog) && (n == 0 || rows+part < l.cfg.GroupRows) {
			part += backlog[n].op.rows()
			n++
		}
		batch := backlog[:n:n]
		backlog = backlog[n:]
		rows += part
		did, ok := l.runAll(ctx, batch)
		if ran = append(ran, batch[:did]...); !ok {
			l.breakGroup()
			return append(l.runAgain(ctx, ran), backlog...)
		}
		if did < n || g.full(l.cfg.GroupRows) {
			backlog, rows = slices.Concat(batch[did:], backlog), l.cfg.GroupRows
		}
		if len(backlog) == 0 && l.cfg.Now().Sub(started) < l.cfg.GroupWait {
			backlog = l.more(started)
		}
	}
	switch l.finish(ctx, ran) {
	case groupDurable:
		return append(l.hand(ran), backlog...)
	case groupBroken:
		return append(l.runAgain(ctx, ran), backlog...)
	}
	return backlog
}

// runAgain runs a broken group once more: in one piece where a fence refused, where the store rolled
// it back in favour of others or, carefully, when an operation id was taken that nobody had looked
// up; else one by one.
func (l *Lane) runAgain(ctx context.Context, ran []*request) []*request {
	g := l.group
	switch {
	case errors.Is(l.cause, ErrNotOwner):
	case errors.Is(l.cause, ErrAborted): // it was in another transaction's way, whatever is in it
	case errors.Is(l.cause, ErrTaken) && g.careful == 0:
		g.careful = carefulGroups
	default:
		return l.runSingly(ctx, ran)
	}
	did, ok := l.runAll(ctx, ran)
	if !ok {
		l.breakGroup()
		return l.runSingly(ctx, ran)
	}
	ran, rest := ran[:did:did], ran[did:]
	switch l.finish(ctx, ran) {
	case groupDurable:
		return append(l.hand(ran), rest...)
	case groupBroken:
		return append(l.runSingly(ctx, ran), rest...)
	}
	return rest
}

// runAll runs requests in order and returns how many: all of them, unless the group is full before
// its end, since what an operation writes to a task's audience shows only as it runs. False means
// that the group is broken and has to go with all its requests: the store failed, or an operation
// was refused after it had staged something.
func (l *Lane) runAll(ctx context.Context, batch []*request) (int, bool) {
	g := l.group
	if err := g.prepare(ctx, batch); err != nil {
		l.cfg.Log.Warn("group broken while loading", "error", err)
		l.cause = err
		return len(batch), false
	}
	for i, r := range batch {
		l.runOne(ctx, r)
		if errors.Is(r.err, errBroken) || (r.err != nil && !kept(r.err) && g.opStaged) {
			l.cfg.Log.Warn("group broken", "operation", r.op.name(), "error", r.err)
			l.cause = r.err
			return len(batch), false
		}
		if g.full(l.cfg.GroupRows) {
			return i + 1, true
		}
	}
	return len(batch), true
}

// kept reports an error that goes together with staged changes.
func kept(err error) bool { return errors.Is(err, errAgain) }

func (l *Lane) runOne(ctx context.Context, r *request) {
	g := l.group
	g.opStaged = false
	r.result, r.err = nil, nil
	if err := r.ctx.Err(); err != nil {
		r.err = err
		return
	}
	if r.after != nil && r.after.err != nil {
		r.err = fmt.Errorf("%s: %w", r.op.name(), ErrSkipped)
		return
	}
	w := g.workspaces[r.workspace]
	if w != nil && w.lost {
		r.err = fmt.Errorf("%s: workspace %q: %w", r.op.name(), r.workspace, ErrNotOwner)
		return
	}
	if w == nil {
		if err := l.unknown(r); err != nil {
			r.err = fmt.Errorf("%s: workspace %q: %w", r.op.name(), r.workspace, err)
			return
		}
	}
	r.result, r.err = r.op.run(ctx, g, w)
	if r.err != nil {
		r.err = fmt.Errorf("%s: %w", r.op.name(), r.err)
	}
}

// unknown is why an operation on a workspace that the lane does not have is refused; nil where the
// operation makes it. Whether a workspace of a shared store exists is not the lane's to say.
func (l *Lane) unknown(r *request) error {
	_, makes := r.op.(*putWorkspace)
	switch {
	case l.cfg.Shared:
		return ErrNotOwner
	case makes:
		return nil
	}
	return ErrNotFound
}

// ending is how a group ended. An uncertain commit is no ending: it is read back first.
type ending uint8

const (
	groupDurable ending = iota + 1
	groupBroken         // nothing of it happened, for certain
	groupLost           // another owner wrote; the callers are answered
)

// finish writes and commits the group.
func (l *Lane) finish(ctx context.Context, ran []*request) ending {
	g := l.group
	if err := g.flush(ctx); err != nil {
		l.cfg.Log.Warn("group broken while writing", "error", err)
		l.cause = err
		l.breakGroup()
		return groupBroken
	}
	if len(g.touched) == 0 {
		g.unchanged()
		return groupDurable
	}
	if !l.serving() { // it was stopped for longer than its lease
		_ = g.tx.Rollback()
		return l.abandon(ran, nil, ErrUnavailable)
	}
	err := g.tx.Commit(ctx)
	if err == nil {
		return groupDurable
	}
	l.cause = err
	if errors.Is(err, ErrAborted) {
		l.cfg.Log.Warn("commit aborted", "error", err)
		l.breakGroup()
		return groupBroken
	}
	l.cfg.Log.Warn("commit uncertain, reading back", "error", err)
	return l.settle(ctx, ran)
}

// breakGroup drops whatever is staged. Memory of the workspaces that somebody else turned out
// to own goes before any caller is told.
func (l *Lane) breakGroup() {
	g := l.group
	if len(g.touched) == 0 {
		g.unchanged()
		return
	}
	g.rolledBack()
	if len(g.taken) > 0 {
		l.applies <- l.losing(applied{}, g.taken)
		g.taken = nil
	}
}

// settle decides a commit whose answer was lost: the fences of the group's workspaces, read
// under lock, say whether it happened. All of them are of one transaction, so one speaks for all.
func (l *Lane) settle(ctx context.Context, ran []*request) ending {
	g := l.group
	_ = g.tx.Rollback()
	w := g.touched[0]
	fence, found, err := l.readBack(ctx, w.Key)
	switch {
	case err != nil:
		return l.abandon(ran, nil, ErrUnavailable)
	case found && fence == Fence{w.Term, w.LSN}:
		return groupDurable
	case w.isNew && !found, found && fence == Fence{w.before.Term, w.before.LSN}:
		g.tx = nil
		g.rolledBack()
		return groupBroken
	}
	// Somebody else wrote: whatever is remembered of these workspaces is worth nothing.
	var lost []WorkspaceRow
	for _, t := range g.touched {
		t.lost = true
		if !t.isNew {
			lost = append(lost, t.before)
		}
	}
	return l.abandon(ran, lost, ErrNotOwner)
}

// abandon answers a group of which nothing more can be done here. What had been refused stays
// refused for its own reason.
func (l *Lane) abandon(ran []*request, lost []WorkspaceRow, why error) ending {
	l.group.tx = nil
	l.group.rolledBack()
	for _, r := range ran {
		if r.err == nil || kept(r.err) {
			r.result, r.err = nil, fmt.Errorf("%s: workspace %q: %w", r.op.name(), r.workspace, why)
		}
	}
	l.applies <- l.losing(applied{requests: ran}, lost)
	return groupLost
}

// readBack repeats until the store answers; until then nothing can be known and nothing done. It
// fails only when the lane is closed meanwhile: then nobody will ever know here.
func (l *Lane) readBack(ctx context.Context, key WorkspaceKey) (Fence, bool, error) {
	wait := readBackFirst
	for {
		fences, err := l.cfg.Store.Fences(ctx, []WorkspaceKey{key})
		if err == nil {
			f, ok := fences[key]
			return f, ok, nil
		}
		l.cfg.Log.Warn("reading back failed", "error", err, "retry", wait)
		select {
		case <-time.After(wait):
		case <-l.stop:
			return Fence{}, false, ErrClosed
		}
		wait = min(2*wait, readBackMost)
	}
}

// hand passes a durable group on to memory and answers its callers, except those with more to
// do, which it returns.
func (l *Lane) hand(ran []*request) []*request {
	g := l.group
	var again, done []*request
	for _, r := range ran {
		if d, ok := r.op.(durable); ok && (r.err == nil || kept(r.err)) {
			d.durable()
		}
		if kept(r.err) {
			// What has begun is carried through, whether or not the caller still waits.
			r.ctx = context.WithoutCancel(r.ctx) //nolint:fatcontext // each request has its own
			again = append(again, r)
			continue
		}
		done = append(done, r)
	}
	a := applied{commits: g.commits(), requests: done}
	g.committed()
	l.crowd.answered(done, len(l.queue))
	l.applies <- a
	return again
}

// runSingly runs the operations of a broken group each in a group of its own, so that the one
// that breaks it harms nobody else.
func (l *Lane) runSingly(ctx context.Context, ran []*request) []*request {
	var again []*request
	for _, r := range ran {
		one := []*request{r}
		if _, ok := l.runAll(ctx, one); ok {
			switch l.finish(ctx, one) {
			case groupDurable:
				again = append(again, l.hand(one)...)
				continue
			case groupLost:
				continue
			}
		} else {
			l.breakGroup()
		}
		r.result, r.err = nil, l.classify(r)
		l.applies <- applied{requests: one}
	}
	return again
}

// classify turns a broken group of one into the answer of its caller: a refusal, or what the
// store failed with.
func (l *Lane) classify(r *request) error {
	if r.err != nil && !errors.Is(r.err, errBroken) && !kept(r.err) {
		return r.err
	}
	if errors.Is(l.cause, ErrNotOwner) {
		return fmt.Errorf("%s: workspace %q: %w", r.op.name(), r.workspace, ErrNotOwner)
	}
	l.cfg.Log.Error("operation failed", "operation", r.op.name(), "error", l.cause)
	return &storeError{r.op.name(), l.cause}
}
