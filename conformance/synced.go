package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// synced is package readsync as a client under test: what a client has in memory and on its disk,
// with nobody at the other end but the case.
type synced struct {
	outbox  readsync.Outbox
	written []byte // the operations on disk
	broken  bool   // the disk takes nothing
	lost    []readsync.Loss
	holds   string // why nothing is sent, empty for nothing
	now     int64

	said    map[string]told
	windows map[string]*readsync.Window // by their session
	notes   map[string]note
}

// told is what a server said of a session.
type told struct {
	readsync.State
	active, thinking bool
}

// note is what a case noted for later.
type note struct {
	views    map[string]readsync.View
	window   *readsync.Window
	epoch    uint64
	asked    uint64
	rendered readsync.Revision
}

// Why nothing is sent.
const (
	untilLater = "later"
	untilToken = "token"
)

var errUnsaved = errors.New("unsaved")

// NewReadsync returns a new client made of package client/readsync.
func NewReadsync() Client { return newSynced() }

func newSynced() *synced {
	return &synced{
		written: []byte("[]"), said: map[string]told{},
		windows: map[string]*readsync.Window{}, notes: map[string]note{},
	}
}

// acts are what can happen, by what cases call it. Each adds what only this step can tell.
var acts = map[string]func(d *synced, s *ClientStep, out map[string]any) error{
	"hear": (*synced).hear, "open": (*synced).open, "close": (*synced).close,
	"ask": (*synced).ask, "page": (*synced).page, "message": (*synced).message,
	"interrupted": (*synced).interrupted, "replaced": (*synced).replacedStep,
	"render": (*synced).render, "look": (*synced).look, "see": (*synced).see,
	"markRead": (*synced).mark, "markUnread": (*synced).mark,
	"send": (*synced).send, "answer": (*synced).answer,
	"wait": (*synced).lift, "foreground": (*synced).lift, "token": (*synced).lift,
	"restart": (*synced).restart, "disk": (*synced).disk, "clock": (*synced).clock,
}

// Do implements Client.
func (d *synced) Do(s *ClientStep) (map[string]any, error) {
	act := acts[s.Do]
	if act == nil {
		return nil, fmt.Errorf("no client does %q", s.Do)
	}
	out := map[string]any{}
	switch err := act(d, s, out); {
	case errors.Is(err, errUnsaved):
		out["error"] = "unsaved"
	case errors.Is(err, readsync.ErrStale):
		out["error"] = "stale"
	case err != nil:
		return nil, err
	}
	d.describe(out)
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("describe the client: %w", err)
	}
	got, err := decode(text)
	return got.(map[string]any), err
}

// view is what is shown of a session.
func (d *synced) view(session string) readsync.View {
	return d.outbox.View(session, d.said[session].State)
}

// commit writes a change, then carries it out.
func (d *synced) commit(c readsync.Change) error {
	if c.Empty() {
		return nil
	}
	if d.broken {
		return errUnsaved
	}
	d.outbox.Apply(c)
	text, err := json.Marshal(d.outbox.Operations())
	if err != nil {
		return fmt.Errorf("write operations: %w", err)
	}
	d.written = text
	d.lost = append(d.lost, c.Lost...)
	return nil
}

func (s *Said) state() (readsync.State, bool) {
	if s == nil || s.ContentRevision == nil || s.ReadState == nil {
		return readsync.State{}, false
	}
	r := s.ReadState
	return readsync.State{
		ContentRevision: readsync.Revision(*s.ContentRevision),
		ReadRevision:    readsync.Revision(r.ReadRevision), ManualUnread: r.ManualUnread,
		Version: readsync.Version(r.Version), FromRevision: readsync.Revision(r.FromRevision),
	}, true
}

func (d *synced) hear(s *ClientStep, _ map[string]any) error {
	if s.Said == nil {
		return errors.New("nothing is said")
	}
	t := d.said[s.Session]
	if state, ok := s.Said.state(); ok {
		t.State = t.Merge(state)
	}
	t.active, t.thinking = s.Said.Active, s.Said.Thinking
	d.said[s.Session] = t
	return nil
}

// mark takes in what somebody does to the list: on what is shown now, or on what was seen earlier.
func (d *synced) mark(s *ClientStep, out map[string]any) error {
	seen := d.view(s.Session)
	if s.Note != "" {
		seen = d.notes[s.Note].views[s.Session]
	}
	op := readsync.NewUnread(s.Op, seen, d.now)
	if s.Do == "markRead" {
		op = readsync.NewRead(s.Op, seen, seen.ContentRevision, d.now)
	}
	return d.add(op, seen.Base, out)
}

func (d *synced) add(op readsync.Operation, base readsync.Version, out map[string]any) error {
	change, id, err := d.outbox.Add(op, base)
	if err != nil {
		return err
	}
	if err := d.commit(change); err != nil {
		return err
	}
	out["op"] = id
	return nil
}

// send sends what may be sent now, one operation.
func (d *synced) send(_ *ClientStep, out map[string]any) error {
	out["request"] = nil
	op, ready := d.outbox.Next(func(string) bool { return d.holds != "" })
	if !ready {
		return nil
	}
	if err := d.commit(d.outbox.Begin(op.ID)); err != nil {
		d.outbox.Settle(op.ID, readsync.Answer{Unsent: true})
		return err
	}
	body := map[string]any{"type": op.Kind, "expectedVersion": op.ExpectedVersion}
	if op.Kind == readsync.Read {
		body["readRevision"] = op.Revision
	}
	out["request"] = map[string]any{
		"op": op.ID, "method": "PUT", "path": "/api/sessions/" + op.Session + "/read-state", "body": body,
	}
	return nil
}

// answer settles the operation that it answers, and is a statement besides.
func (d *synced) answer(s *ClientStep, _ map[string]any) error {
	var body struct {
		Code       string `json:"code"`
		ReplacedBy string `json:"replacedBy"`
		Said
	}
	a := readsync.Answer{Status: s.Status, Unsent: s.Unsent}
	if json.Unmarshal(s.Answer, &body) == nil { // anything else is a page of somebody else
		a.Code = body.Code
		if state, ok := body.state(); ok {
			a.State = &state
		}
	}
	i := slices.IndexFunc(d.outbox.Operations(), func(op readsync.Operation) bool { return op.ID == s.Op })
	session := s.Session
	if i >= 0 {
		session = d.outbox.Operations()[i].Session
	}
	if err := d.commit(d.outbox.Settle(s.Op, a)); err != nil {
		return err
	}
	if a.State != nil && session != "" {
		t := d.said[session]
		t.State = t.Merge(*a.State)
		d.said[session] = t
	}
	switch a.Verdict() {
	case readsync.Accepted, readsync.Rejected:
		d.holds = ""
	case readsync.Credentials:
		d.holds = untilToken
	case readsync.Postponed:
		d.holds = untilLater
	}
	if a.Code == readsync.CodeReplaced && body.ReplacedBy != "" {
		return d.replaced(session, body.ReplacedBy)
	}
	return nil
}

// lift ends what holds everything back: time that passed and the front of the screen do that to
// delays, a token to the want of one.
func (d *synced) lift(s *ClientStep, _ map[string]any) error {
	if (s.Do == "token") == (d.holds == untilToken) {
		d.holds = ""
	}
	return nil
}

// restart leaves what is on disk.
func (d *synced) restart(*ClientStep, map[string]any) error {
	var ops []readsync.Operation
	if err := json.Unmarshal(d.written, &ops); err != nil {
		return fmt.Errorf("read operations: %w", err)
	}
	again := newSynced()
	again.outbox, again.written = readsync.Restore(ops), d.written
	again.now, again.lost = d.now, d.lost
	*d = *again
	return nil
}

func (d *synced) disk(s *ClientStep, _ map[string]any) error {
	if s.Works == nil {
		return errors.New("does it work?")
	}
	d.broken = !*s.Works
	return nil
}

func (d *synced) clock(s *ClientStep, _ map[string]any) error {
	d.now = s.At
	return d.commit(d.outbox.Expire(d.now))
}

// describe adds what holds whatever happened.
func (d *synced) describe(out map[string]any) {
	ops := []any{}
	ids := map[string]bool{}
	for _, op := range d.outbox.Operations() {
		o := map[string]any{
			"op": op.ID, "session": op.Session, "type": op.Kind, "expectedVersion": op.ExpectedVersion,
		}
		if op.Kind == readsync.Read {
			o["readRevision"] = op.Revision
		}
		ops = append(ops, o)
		ids[op.Session] = true
	}
	for id := range d.said {
		ids[id] = true
	}
	sessions := map[string]any{}
	for id := range maps.Keys(ids) {
		v, t := d.view(id), d.said[id]
		sessions[id] = map[string]any{
			"contentRevision": v.ContentRevision, "readRevision": v.ReadRevision,
			"manualUnread": v.ManualUnread, "version": v.Version, "pending": v.Pending,
			"unread": v.Unread(t.active, t.thinking),
		}
	}
	lost := []any{}
	for _, l := range d.lost {
		lost = append(lost, map[string]any{"op": l.Operation.ID, "reason": l.Reason})
	}
	windows := map[string]any{}
	for id, w := range d.windows {
		windows[id] = describeWindow(w)
	}
	out["sessions"], out["outbox"], out["lost"], out["windows"] = sessions, ops, lost, windows
}
