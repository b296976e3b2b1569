package readsync

import "slices"

// Outbox holds the operations of one namespace on one server, oldest first. The zero value is
// empty.
type Outbox struct {
	ops    []Operation
	flight map[string]struct{} // sent, and not answered
	done   []string            // the last that came out as meant
}

// remembered bounds what an outbox knows of operations that are gone.
const remembered = 256

// Restore returns an outbox of operations that were written earlier, in their order.
func Restore(ops []Operation) Outbox { return Outbox{ops: slices.Clone(ops)} }

// Operations returns all operations, oldest first. The slice is the caller's.
func (o *Outbox) Operations() []Operation { return slices.Clone(o.ops) }

// Len is the number of operations.
func (o *Outbox) Len() int { return len(o.ops) }

// Concerns tells whether there is an operation of a session.
func (o *Outbox) Concerns(session string) bool { return o.last(session) >= 0 }

// View is what may be shown of a session: what the server said, with the operations on top.
type View struct {
	Session string `json:"session"`
	State
	// After is the operation that brings about the version; empty when the server has said it.
	After string `json:"after,omitempty"`
	// Base is the version that the server has said.
	Base Version `json:"base"`
	// Pending is the number of operations on top.
	Pending int `json:"pending"`
}

// View puts the operations of a session on top of what the server said. An operation changes the
// flag only where the version that it names is in force, so that nothing is shown which the server
// would not do.
func (o *Outbox) View(session string, said State) View {
	v := View{Session: session, State: said, Base: said.Version}
	holds := map[string]bool{"": true}
	for i := range o.ops {
		op := &o.ops[i]
		if op.Session != session {
			continue
		}
		v.Pending++
		wants := op.Kind == Unread
		if op.Kind == Read {
			v.ReadRevision = max(v.ReadRevision, op.Revision)
		}
		switch {
		case holds[op.After] && op.ExpectedVersion == v.Version:
			if v.ManualUnread != wants && (wants || op.Revision >= v.FromRevision) {
				v.ManualUnread, v.FromRevision, v.After = wants, 0, op.ID
				v.Version++
			}
			holds[op.ID] = true
		case op.Flips && o.started(op) && op.intended(v.State):
			// The event of it came before its answer, or that of another device's that did the
			// same. Either way the server has said it, and what is made now builds on that.
			holds[op.ID] = true
		}
	}
	return v
}

// started tells whether the operation may have reached the server.
func (o *Outbox) started(op *Operation) bool {
	_, flying := o.flight[op.ID]
	return flying || op.Attempts > 0
}

// NewRead makes a read of what was seen. The revision is that of the newest message seen,
// inclusive. Id and time are the caller's.
func NewRead(id string, seen View, revision Revision, createdAt int64) Operation {
	return Operation{
		ID: id, Session: seen.Session, Kind: Read, Revision: revision,
		ExpectedVersion: seen.Version, After: seen.After,
		Flips: seen.ManualUnread && revision >= seen.FromRevision, CreatedAt: createdAt,
	}
}

// NewUnread makes a manual mark on what was seen.
func NewUnread(id string, seen View, createdAt int64) Operation {
	return Operation{
		ID: id, Session: seen.Session, Kind: Unread, ExpectedVersion: seen.Version,
		After: seen.After, Flips: !seen.ManualUnread, CreatedAt: createdAt,
	}
}

// Add plans to take an operation in, and returns the id of the one that stands for it: its own, or
// that of a read that waits and is raised to cover it. Base is the version that the server had said
// when the state was seen. It returns ErrFull, or ErrStale for a mark on top of something that did
// not come about.
func (o *Outbox) Add(op Operation, base Version) (Change, string, error) {
	if op.After != "" && !o.brings(op.After, op.ExpectedVersion) {
		switch {
		case slices.Contains(o.done, op.After):
			op.After = ""
		case op.Kind == Unread:
			return Change{}, "", ErrStale
		default:
			// A version that is over for sure, or zero, at which there was no mark.
			op.After, op.ExpectedVersion, op.Flips = "", max(base, 1)-1, false
		}
	}
	if i := o.last(op.Session); i >= 0 && o.folds(&o.ops[i], &op) {
		waiting := o.ops[i]
		if waiting.Revision >= op.Revision {
			return Change{}, waiting.ID, nil
		}
		waiting.Revision, waiting.CreatedAt = op.Revision, op.CreatedAt
		return Change{Put: []Operation{waiting}}, waiting.ID, nil
	}
	if len(o.ops) >= MaxOperations {
		return Change{}, "", ErrFull
	}
	return Change{Put: []Operation{op}}, op.ID, nil
}

// brings tells whether a waiting operation is to bring about a version. One whose own foundation is
// gone names an older version by now, and what was seen on top of it will not come about.
func (o *Outbox) brings(id string, v Version) bool {
	i := o.index(id)
	return i >= 0 && o.ops[i].ExpectedVersion+1 == v
}

// folds tells whether a waiting operation and a new one are reads that differ in the revision only,
// so that the higher of them does what both do.
func (o *Outbox) folds(waiting, op *Operation) bool {
	_, flying := o.flight[waiting.ID]
	return !flying && waiting.Kind == Read && op.Kind == Read && waiting.After == op.After &&
		waiting.ExpectedVersion == op.ExpectedVersion && waiting.Flips == op.Flips
}

// Next returns the oldest operation that may be sent: the first of its session, not under way, and
// not held back.
func (o *Outbox) Next(held func(session string) bool) (Operation, bool) {
	seen := make(map[string]struct{})
	for _, op := range o.ops {
		if _, later := seen[op.Session]; later {
			continue
		}
		seen[op.Session] = struct{}{}
		if _, flying := o.flight[op.ID]; !flying && !held(op.Session) {
			return op, true
		}
	}
	return Operation{}, false
}

// Begin notes that an operation is being sent, and plans to write what has to be known of it if
// its answer is never seen.
func (o *Outbox) Begin(id string) Change {
	i := o.index(id)
	if i < 0 {
		return Change{}
	}
	if o.flight == nil {
		o.flight = make(map[string]struct{})
	}
	o.flight[id] = struct{}{}
	op := o.ops[i]
	if op.Kind == Read || op.Attempts == 2 {
		return Change{}
	}
	op.Attempts++
	return Change{Put: []Operation{op}}
}

// Settle plans what an answer to an operation means, which is not under way from then on, whether
// or not the plan can be written. One that is gone already is settled.
func (o *Outbox) Settle(id string, a Answer) Change {
	delete(o.flight, id)
	i := o.index(id)
	if i < 0 {
		return Change{}
	}
	op := o.ops[i]
	switch a.Verdict() {
	case Accepted:
		if op.Flips && !op.intended(*a.State) {
			return o.without(op)
		}
		return o.fulfilled(op)
	case Rejected:
		c := o.without(op)
		// A mark whose answer was lost is refused the second time, because it is there. That is no
		// loss, since what was wanted is in force. But a state does not say whose mark it is, and
		// another device's may have come after what builds on ours: nothing may build on it.
		if op.Attempts > 1 && a.Code == codeConflict && a.State != nil && op.intended(*a.State) {
			return c
		}
		c.Lost = append([]Loss{{Operation: op, Reason: Refused, Answer: a}}, c.Lost...)
		return c
	}
	if op.Attempts == 1 && !a.uncertain() {
		op.Attempts = 0
		return Change{Put: []Operation{op}}
	}
	return Change{}
}

// Expire plans to give up what is too old at a time in milliseconds since 1970. Of an operation from
// the future, or from before the clock was ever set, the age counts from now on: it would never be
// too old, or at once.
func (o *Outbox) Expire(now int64) Change {
	misdated := func(op *Operation) bool {
		return op.CreatedAt-now >= clockSlack || op.CreatedAt < clockFloor && now >= clockFloor
	}
	old := func(op *Operation) bool { return !misdated(op) && now-op.CreatedAt >= GiveUpAfter }
	if !slices.ContainsFunc(o.ops, func(op Operation) bool { return old(&op) || misdated(&op) }) {
		return Change{} // as nearly always, and it is asked before each sending
	}
	rest := Restore(o.ops)
	for i := range rest.ops {
		if misdated(&rest.ops[i]) {
			rest.ops[i].CreatedAt = now
		}
	}
	return o.drop(rest, TooOld, old)
}

// Supersede plans to drop what was meant for a session that is no more: revisions are never sent to
// the session in its place.
func (o *Outbox) Supersede(session string) Change {
	mine := func(op *Operation) bool { return op.Session == session }
	return o.drop(Restore(o.ops), Superseded, mine)
}

// drop plans to lose the operations that which picks, one after the other. Rest is the outbox as it
// is to be otherwise.
func (o *Outbox) drop(rest Outbox, why Reason, which func(*Operation) bool) Change {
	var c Change
	for i := range o.ops {
		op := o.ops[i]
		if !which(&op) || rest.index(op.ID) < 0 {
			continue // or it went with one that it builds on
		}
		step := rest.without(op)
		rest.Apply(step)
		c.Remove = append(c.Remove, step.Remove...)
		c.Lost = append(append(c.Lost, Loss{Operation: op, Reason: why}), step.Lost...)
	}
	for _, op := range rest.ops {
		if op != o.ops[o.index(op.ID)] {
			c.Put = append(c.Put, op)
		}
	}
	return c
}

// fulfilled removes an operation that came out as it was meant to: what builds on it stands.
func (o *Outbox) fulfilled(op Operation) Change {
	c := Change{Remove: []string{op.ID}}
	if op.Flips {
		c.Done = []string{op.ID} // another one brings about no version to build on
	}
	for _, later := range o.ops {
		if later.After == op.ID {
			later.After = ""
			c.Put = append(c.Put, later)
		}
	}
	return c
}

// without removes an operation that did not come out as it was meant to. What builds on it was made
// by somebody who saw what never was: a read keeps its revision and names the older version, which
// cannot clear a newer mark; a mark is lost.
func (o *Outbox) without(op Operation) Change {
	c := Change{Remove: []string{op.ID}}
	broken := map[string]struct{}{op.ID: {}}
	for _, later := range o.ops {
		if _, builds := broken[later.After]; !builds || later.After == "" {
			continue
		}
		broken[later.ID] = struct{}{}
		if later.Kind == Unread {
			c.Remove = append(c.Remove, later.ID)
			c.Lost = append(c.Lost, Loss{Operation: later, Reason: Dependent})
			continue
		}
		later.After, later.ExpectedVersion, later.Flips = "", op.ExpectedVersion, false
		c.Put = append(c.Put, later)
	}
	return c
}

// Apply carries out a change that has been written.
func (o *Outbox) Apply(c Change) {
	o.ops = slices.DeleteFunc(o.ops, func(op Operation) bool {
		return slices.Contains(c.Remove, op.ID)
	})
	for _, id := range c.Remove {
		delete(o.flight, id)
	}
	for _, op := range c.Put {
		if i := o.index(op.ID); i >= 0 {
			o.ops[i] = op
		} else {
			o.ops = append(o.ops, op)
		}
	}
	o.done = append(o.done, c.Done...)
	if n := len(o.done) - remembered; n > 0 {
		o.done = slices.Delete(o.done, 0, n)
	}
}

func (o *Outbox) index(id string) int {
	return slices.IndexFunc(o.ops, func(op Operation) bool { return op.ID == id })
}

// last is the index of the newest operation of a session, -1 for none.
func (o *Outbox) last(session string) int {
	for i, op := range slices.Backward(o.ops) {
		if op.Session == session {
			return i
		}
	}
	return -1
}
