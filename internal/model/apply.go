package model

import (
	"fmt"
	"slices"
)

// Apply performs one operation. It returns what it did, or an error that matches
// one of the Err variables; then nothing has changed.
func (w *World) Apply(op Op) (Outcome, error) {
	out, err := w.apply(op)
	if err != nil {
		return Outcome{}, fmt.Errorf("apply %q: %w", op.String(), err)
	}
	return out, nil
}

func (w *World) apply(op Op) (Outcome, error) {
	switch op.Kind {
	case OpCreate:
		return w.create(op)
	case OpPost:
		return w.post(op)
	case OpEdit:
		return w.edit(op)
	case OpRemove:
		return w.remove(op)
	case OpRewind:
		return w.rewind(op)
	case OpTrim:
		return w.trim(op)
	case OpMove:
		return w.move(op)
	case OpAdvanceClock, OpExpire:
		return w.expire(op)
	case OpJoin:
		return w.join(op)
	case OpLeave, OpShow, OpHide:
		return w.membership(op)
	case OpRead:
		return w.read(op)
	case OpReadAll:
		return w.readAll(op)
	case OpMarkUnread:
		return w.markUnread(op)
	case OpSetLevel:
		return w.setLevel(op)
	case OpFollow, OpUnfollow:
		return w.follow(op)
	case OpArchive, OpUnarchive:
		return w.archive(op)
	case OpBlock, OpUnblock:
		return w.block(op)
	case OpActivity:
		return w.recordActivity(op)
	case OpActivityRead:
		return w.readActivity(op)
	case OpTask:
		return w.task(op)
	case OpRunState:
		return w.runState(op)
	case OpMerge:
		return w.merge(op)
	case OpFork:
		return w.fork(op)
	}
	return Outcome{}, ErrInvalid
}

// open returns a scope that still stands for itself.
func (w *World) open(id ScopeID) (*scope, error) {
	s := w.scopes[id]
	switch {
	case s == nil:
		return nil, ErrNotFound
	case s.replacedBy != 0:
		return nil, ErrReplaced
	}
	return s, nil
}

func (w *World) create(op Op) (Outcome, error) {
	if op.Scope < 1 {
		return Outcome{}, ErrInvalid
	}
	if old := w.scopes[op.Scope]; old != nil {
		if old.kind != op.Type || old.shared != op.Shared || old.parent != op.To ||
			old.root != op.Seq || old.owner != op.Member || old.planned != op.Planned {
			return Outcome{}, ErrMismatch
		}
		return Outcome{}, nil
	}
	if op.Planned && op.Type != Task {
		return Outcome{}, ErrInvalid
	}
	s := &scope{id: op.Scope, kind: op.Type, planned: op.Planned, rows: map[MemberID]*row{}}
	switch op.Type {
	case Channel, DM, Task:
		s.shared = op.Shared
		w.scopes[s.id] = s
	case Thread:
		return w.createThread(s, op)
	case Session:
		if op.Member < 1 {
			return Outcome{}, ErrInvalid
		}
		w.addSession(s, op.Member)
	default:
		return Outcome{}, ErrInvalid
	}
	return Outcome{Changed: true}, nil
}

func (w *World) createThread(s *scope, op Op) (Outcome, error) {
	parent, err := w.open(op.To)
	if err != nil {
		return Outcome{}, err
	}
	if parent.kind != Channel && parent.kind != DM {
		return Outcome{}, ErrInvalid
	}
	s.parent = parent.id
	var root *entry
	if op.Seq != 0 {
		root = parent.entry(op.Seq)
		if root == nil || !root.live {
			return Outcome{}, ErrNotFound
		}
		for _, t := range w.scopes {
			if t.parent == parent.id && t.root == root.seq {
				return Outcome{}, ErrMismatch
			}
		}
		s.root = root.seq
	}
	w.scopes[s.id] = s
	if root != nil {
		w.autoFollow(s, root.author, 1)
		for _, m := range root.mentions {
			w.autoFollow(s, m, 1)
		}
	}
	return Outcome{Changed: true}, nil
}

func (w *World) archive(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	want := op.Kind == OpArchive
	changed := s.archived != want
	s.archived = want
	return Outcome{Changed: changed}, nil
}

func (w *World) block(op Op) (Outcome, error) {
	if op.Member < 1 || op.Other < 1 || op.Member == op.Other {
		return Outcome{}, ErrInvalid
	}
	mine := w.blocks[op.Member]
	changed := mine[op.Other] != (op.Kind == OpBlock)
	if op.Kind == OpUnblock {
		delete(mine, op.Other)
		return Outcome{Changed: changed}, nil
	}
	if mine == nil {
		mine = map[MemberID]bool{}
		w.blocks[op.Member] = mine
	}
	mine[op.Other] = true
	return Outcome{Changed: changed}, nil
}

func (w *World) recordActivity(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	if op.Member < 1 || badIDs(op.Recipients) || (!s.addressed() && len(op.Recipients) > 0) {
		return Outcome{}, ErrInvalid
	}
	a := &activity{
		seq: s.latestActivity() + 1, actor: op.Member, low: op.LowSignal,
		recipients: set(op.Recipients),
	}
	if s.planned && !a.low {
		a.recipients = w.plan(s, nil, a.actor)
	}
	s.activities = append(s.activities, a)
	return Outcome{Changed: true, Activity: a.seq}, nil
}

// addressed reports a scope whose operations say who the recipients are.
func (s *scope) addressed() bool { return s.kind == Task && !s.planned }

func badIDs(ids []MemberID) bool {
	return slices.ContainsFunc(ids, func(m MemberID) bool { return m < 1 })
}
