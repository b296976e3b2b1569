package readsync

// Observation is what a caller asserts of the moment in which somebody looks at a window. Only all
// of it together is a reading; selecting a session, or a state that arrives, is none.
type Observation struct {
	Visible    bool `json:"visible"`    // the messages are on the screen, nothing hides them
	Foreground bool `json:"foreground"` // the app or tab is the one in use
	Loaded     bool `json:"loaded"`     // the messages were loaded without an error
	TailInView bool `json:"tailInView"` // the newest message is laid out and within the view
	// Epoch and Through are those of the window when it was rendered.
	Epoch   uint64   `json:"epoch"`
	Through Revision `json:"through"`
}

// Observe tells whether an observation is a reading that the server does not know of, and of what:
// the revision rendered, never the head. Shown is what is shown of the session now.
//
// A manual mark is taken away by the opening of a window only, and only if it was there then. One
// that arrives while the window is open stays, whatever is read next to it.
func (w *Window) Observe(o Observation, shown State) (revision Revision, reads bool) {
	looked := o.Visible && o.Foreground && o.Loaded && o.TailInView
	if !looked || !w.synced || o.Epoch != w.epoch {
		return 0, false
	}
	revision = min(o.Through, w.through)
	marked := !w.observed && w.opening.ManualUnread && shown.ManualUnread &&
		shown.Version == w.opening.Version
	return revision, marked && revision >= shown.FromRevision ||
		revision > max(shown.ReadRevision, w.acked)
}

// Reading makes the operation of a reading that Observe told of. It names the version that was
// shown when the window's tail became known. Id and time are the caller's; base is for Outbox.Add.
func (w *Window) Reading(id string, revision Revision, createdAt int64) (op Operation, base Version) {
	op = NewRead(id, w.opening, revision, createdAt)
	op.Session = w.session
	op.Flips = op.Flips && !w.observed
	return op, w.opening.Base
}

// Acknowledged notes that a reading has been taken in, or that there was nothing to take in.
func (w *Window) Acknowledged(revision Revision) {
	w.acked, w.observed = max(w.acked, revision), true
}
