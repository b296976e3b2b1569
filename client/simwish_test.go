package client_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing/synctest"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

// wish is what somebody wanted on a device, as known from what was shown: the judge of the
// operation that the client makes of it.
type wish struct {
	id, device, session string

	kind     readsync.Kind
	revision readsync.Revision // that was shown, of a read
	version  readsync.Version  // that was shown
	mark     string            // whose mark was shown; empty for none
	shown    bool              // the call returned, so that it is shown

	sent    int    // how often the server got it
	effects int    // how often it changed the flag
	decided int    // the status of an answer that reached the device
	lost    string // why, as the device was told
}

// seen makes a wish of what is shown of a session.
func (r *run) seen(d *simDevice, kind readsync.Kind, v readsync.View, revision readsync.Revision) *wish {
	w := &wish{
		device: d.name, session: v.Session, kind: kind, revision: revision, version: v.Version,
	}
	if kind == readsync.Unread {
		w.revision = 0
	}
	switch {
	case !v.ManualUnread:
	case v.After != "":
		w.mark = v.After
	default:
		w.mark = r.marks[v.Session][v.Version]
		if w.mark == "" {
			r.fail("%s shows a mark that nobody made: %+v", d.name, v)
		}
	}
	return w
}

// made connects wishes with what their call made of them. Ops are those of the device now, oldest
// first: the last of a session is the one that stands for a wish, its own or one that was raised.
func (r *run) made(d *simDevice, drafts []*wish, ops []readsync.Operation, shown bool) {
	for _, draft := range drafts {
		var op *readsync.Operation
		for i := range ops {
			if ops[i].Session == draft.session {
				op = &ops[i]
			}
		}
		if op == nil {
			continue // nothing was to be done
		}
		w := r.wishes[op.ID]
		switch {
		case w == nil:
			w = draft
			w.id, r.wishes[op.ID] = op.ID, w
		case w.kind != draft.kind, op.Revision < draft.revision:
			if shown && !d.now.dead.Load() {
				r.fail("%s: nothing became of the wish %+v", d.name, *draft)
			}
			continue // that is of an older call
		default:
			w.revision = max(w.revision, draft.revision)
		}
		w.shown = w.shown || shown
		if op.Kind != w.kind || op.Revision > w.revision || op.ExpectedVersion > w.version {
			r.fail("%s: of the wish %+v became %+v", d.name, *w, *op)
		}
	}
}

// adopt looks for what the last call before a kill has left in the file.
func (r *run) adopt(d *simDevice, before *life, stored []readsync.Operation) {
	if before.where != "" {
		r.made(d, r.drafts, stored, false)
	}
	for _, op := range stored {
		if r.wishes[op.ID] == nil {
			r.fail("%s has %+v in its file, which nobody wished", d.name, op)
		}
	}
}

// act has somebody do something on a device. The drafts say what is to come of it.
func (r *run) act(d *simDevice, what string, drafts []*wish, do func() error) {
	r.drafts = drafts
	err := do()
	synctest.Wait() // nothing is answered meanwhile
	r.note("%s: %s: %v", d.now, what, err)
	switch {
	case d.now.dead.Load():
		r.made(d, drafts, d.now.atEnd, true) // shown before the end
	case err == nil:
		ops := d.now.client.Operations()
		r.made(d, drafts, ops, true)
		stored := r.stored(d)
		for _, op := range ops {
			if !slices.ContainsFunc(stored, func(x readsync.Operation) bool { return x.ID == op.ID }) {
				r.fail("%s shows %+v, and its file has %+v", d.now, op, stored)
			}
		}
	}
}

// stored is what is in the file of a device.
func (r *run) stored(d *simDevice) []readsync.Operation {
	ops, err := d.now.client.Stored(client.Namespace{Workspace: "W", Member: r.member})
	if err != nil {
		r.fail("%s: %v", d.now, err)
	}
	return ops
}

// checkFile compares what a device shows with what is in its file, while nobody has anything to do.
func (r *run) checkFile(d *simDevice) {
	l := d.now
	if l.dead.Load() {
		return
	}
	stored := r.stored(d)
	if shown := l.client.Operations(); !slices.Equal(shown, stored) {
		r.fail("%s shows %+v, and its file has %+v", l, shown, stored)
	}
}

// checkSent compares a request with the wish that it is to fulfil.
func (r *run) checkSent(p *parcel) *wish {
	var body struct {
		Type            readsync.Kind     `json:"type"`
		ReadRevision    readsync.Revision `json:"readRevision"`
		ExpectedVersion *readsync.Version `json:"expectedVersion"`
	}
	if err := json.Unmarshal(p.body, &body); err != nil {
		r.fail("%s: %v", p, err)
	}
	w := r.wishes[p.op.ID]
	switch {
	case w == nil && p.op.ID == "" && r.gone[strings.Split(p.path, "/")[3]] != "":
		return nil // it was dropped, with its session, as it was about to be sent
	case w == nil:
		r.fail("%s: nobody wished it", p)
	case body.Type != w.kind || body.ReadRevision > w.revision:
		r.fail("%s: sent %s for %+v", p, p.body, *w)
	case body.ExpectedVersion == nil || *body.ExpectedVersion > w.version:
		r.fail("%s: sent %s, a version that was never seen, for %+v", p, p.body, *w)
	}
	w.sent++
	return w
}

// told takes in what a device tells of operations that will never be done.
func (r *run) told(l *life, loss *readsync.Loss) {
	w := r.wishes[loss.Operation.ID]
	if w == nil {
		r.fail("%s tells of the loss of %+v, which nobody wished", l, loss)
	}
	w.lost = string(loss.Reason)
	r.note("%s: lost %s: %s %d %s", l, w.id, loss.Reason, loss.Answer.Status, loss.Answer.Code)
	_, gone := r.gone[w.session]
	switch {
	case gone: // whatever was meant for it
	case w.kind == readsync.Read:
		r.fail("%s lost a read: %+v", l, loss)
	case loss.Reason == readsync.Dependent && w.effects > 0:
		r.fail("%s tells that %s is lost, and the server did it", l, w.id)
	case loss.Reason == readsync.Refused && w.effects > 0:
		if at := loss.Answer.State; at == nil || at.Version == loss.Operation.ExpectedVersion+1 {
			r.fail("%s tells that its mark %s is lost, and it stands: %+v", l, w.id, loss)
		}
	case loss.Reason != readsync.Refused && loss.Reason != readsync.Dependent:
		r.fail("%s: %s is lost because %s", l, w.id, loss.Reason)
	}
}
