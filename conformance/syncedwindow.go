package conformance

import (
	"encoding/json"
	"fmt"

	"github.com/tidemark-im/tidemark/client/readsync"
)

func (d *synced) window(session string) (*readsync.Window, error) {
	if w := d.windows[session]; w != nil {
		return w, nil
	}
	return nil, fmt.Errorf("no window is open on %q", session)
}

func (d *synced) open(s *ClientStep, _ map[string]any) error {
	w := readsync.Open(s.Session)
	d.windows[s.Session] = &w
	return nil
}

func (d *synced) close(s *ClientStep, _ map[string]any) error {
	delete(d.windows, s.Session)
	return nil
}

// here is what can be noted of a window now.
func here(w *readsync.Window) note {
	through, _ := w.Receipt()
	return note{window: w, epoch: w.Epoch(), asked: w.Asked(), rendered: through}
}

func (d *synced) ask(s *ClientStep, _ map[string]any) error {
	w, err := d.window(s.Session)
	if err == nil {
		d.notes[s.As] = here(w)
	}
	return err
}

func (d *synced) render(s *ClientStep, out map[string]any) error { return d.ask(s, out) }

func (d *synced) see(s *ClientStep, _ map[string]any) error {
	views := map[string]readsync.View{}
	for id := range d.said {
		views[id] = d.view(id)
	}
	d.notes[s.As] = note{views: views}
	return nil
}

// noted is what was noted, or what there is now.
func (d *synced) noted(s *ClientStep) (note, error) {
	if s.Note != "" {
		n := d.notes[s.Note]
		if n.window == nil {
			return n, fmt.Errorf("no window was noted as %q", s.Note)
		}
		return n, nil
	}
	w, err := d.window(s.Session)
	if err != nil {
		return note{}, err
	}
	return here(w), nil
}

// page takes in a page. One that was asked for before the window came to be of another session is
// dropped.
func (d *synced) page(s *ClientStep, _ map[string]any) error {
	n, err := d.noted(s)
	if err != nil || n.window.Epoch() != n.epoch {
		return err
	}
	var body struct {
		Messages []readsync.Message `json:"messages"`
		Page     struct {
			HasMore             bool              `json:"hasMore"`
			ReadThroughRevision readsync.Revision `json:"readThroughRevision"`
		} `json:"page"`
	}
	if err := json.Unmarshal(s.Answer, &body); err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	page := readsync.Page{
		Messages: body.Messages, HasMore: body.Page.HasMore,
		ReadThroughRevision: body.Page.ReadThroughRevision,
	}
	switch s.Page {
	case "latest":
		n.window.Latest(n.asked, page, d.view(n.window.Session()))
	case "before":
		n.window.Before(page)
	case "after":
		n.window.CatchUp(n.asked, readsync.Seq(s.After), page)
	default:
		return fmt.Errorf("no page is called %q", s.Page)
	}
	return nil
}

func (d *synced) message(s *ClientStep, _ map[string]any) error {
	var m readsync.Message
	if err := json.Unmarshal(s.Message.Message, &m); err != nil {
		return fmt.Errorf("read message: %w", err)
	}
	w := d.windows[s.Message.Session]
	if w == nil {
		return nil // nobody looks
	}
	switch s.Message.Op {
	case "added":
		w.Added(m)
	case "edited":
		w.Edited(m)
	case "removed":
		w.Removed(m.ID)
	}
	return nil
}

func (d *synced) interrupted(*ClientStep, map[string]any) error {
	for _, w := range d.windows {
		w.Interrupted()
	}
	return nil
}

func (d *synced) replacedStep(s *ClientStep, _ map[string]any) error {
	return d.replaced(s.Session, s.By)
}

// replaced makes the windows of a session windows of the one in its place; what was meant for it is
// lost.
func (d *synced) replaced(session, by string) error {
	if w := d.windows[session]; w != nil {
		w.Replaced(by)
		delete(d.windows, session)
		d.windows[by] = w
	}
	delete(d.said, session)
	return d.commit(d.outbox.Supersede(session))
}

// look is somebody who looks at a window, as far as the step says so.
func (d *synced) look(s *ClientStep, out map[string]any) error {
	n, err := d.noted(s)
	if err != nil {
		return err
	}
	o := readsync.Observation{
		Visible: holds(s.Visible), Foreground: holds(s.Foreground), Loaded: holds(s.Loaded),
		TailInView: holds(s.TailInView), Epoch: n.epoch, Through: n.rendered,
	}
	w := n.window
	revision, reads := w.Observe(o, d.view(w.Session()).State)
	if out["reading"] = nil; !reads {
		return nil
	}
	op, base := w.Reading(s.Op, revision, d.now)
	if err := d.add(op, base, out); err != nil {
		return err
	}
	w.Acknowledged(revision)
	out["reading"] = revision
	return nil
}

// holds tells whether something holds; it does where a step does not say otherwise.
func holds(said *bool) bool { return said == nil || *said }

func describeWindow(w *readsync.Window) map[string]any {
	ids := []any{}
	for _, m := range w.Messages() {
		ids = append(ids, m.ID)
	}
	out := map[string]any{"messages": ids, "earlier": w.Earlier(), "receipt": nil, "needs": "nothing"}
	if through, synced := w.Receipt(); synced {
		out["receipt"] = through
	}
	after, behind := w.NeedsCatchUp()
	switch {
	case w.NeedsTail():
		out["needs"] = "latest"
	case behind:
		out["needs"], out["after"] = "after", after
	}
	return out
}
