package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// sendOrKeep sends a call now, or keeps it under the name it was prepared as.
func (w *world) sendOrKeep(ctx context.Context, s *Statement, c call) error {
	if s.has("prepared") {
		w.calls[s.one("prepared")] = c
		return nil
	}
	return w.send(ctx, c, s.Answer)
}

func (w *world) playSend(ctx context.Context, s *Statement) error {
	c, ok := w.calls[s.one("call")]
	if !ok {
		return fmt.Errorf("%s was not prepared", s.one("call"))
	}
	return w.send(ctx, c, s.Answer)
}

func (w *world) playRepeat(ctx context.Context, s *Statement) error {
	if w.last.method == "" {
		return errors.New("nothing was sent yet")
	}
	return w.send(ctx, w.last, s.Answer)
}

// playRead reads through a mark, with the version the actor would see right now.
func (w *world) playRead(ctx context.Context, s *Statement) error {
	in, err := w.scopeOf(s)
	if err != nil {
		return err
	}
	actor, mark := s.one("actor"), s.one("mark")
	body := object{"type": "read"}
	m, named := w.messages[mark], validName.MatchString(mark) && mark != "head"
	if s.flag("by-message") || named && (m == nil || m.seq == 0) {
		body["throughMessage"] = mark
	} else {
		revision, err := w.revision(ctx, actor, mark, in)
		if err != nil {
			return err
		}
		body["readRevision"] = revision
	}
	if err := w.addVersion(ctx, s, in, body); err != nil {
		return err
	}
	if threads, ok := s.field("threads"); ok {
		items := []object{}
		for _, thread := range list(threads) {
			state, err := w.readState(ctx, actor, thread)
			if err != nil {
				return err
			}
			items = append(items, object{"scope": thread, "readRevision": state.ContentRevision,
				"expectedVersion": state.ReadState.Version})
		}
		body["threads"] = items
	}
	return w.putReadState(ctx, s, in, body)
}

func (w *world) playUnread(ctx context.Context, s *Statement) error {
	in, err := w.scopeOf(s)
	if err != nil {
		return err
	}
	body := object{"type": "unread"}
	if mark := s.one("mark"); mark != "" {
		key, value := "fromMessage", any(mark)
		if !s.flag("by-message") {
			key = "fromRevision"
			if value, err = w.revision(ctx, s.one("actor"), mark, in); err != nil {
				return err
			}
		}
		body[key] = value
	}
	if err := w.addVersion(ctx, s, in, body); err != nil {
		return err
	}
	return w.putReadState(ctx, s, in, body)
}

// addVersion names the version the actor knows: the present one, or what the line says.
func (w *world) addVersion(ctx context.Context, s *Statement, in string, body object) error {
	switch version, written := s.field("version"); {
	case version == "none":
	case written:
		n, err := strconv.ParseUint(version, 10, 64)
		body["expectedVersion"] = n
		return err
	default:
		state, err := w.readState(ctx, s.one("actor"), in)
		var unknown *refused
		if errors.As(err, &unknown) && s.Answer != nil && s.Answer.Outcome == "error" {
			err = nil // the line says that this is refused, so let the write itself be
		}
		body["expectedVersion"] = state.ReadState.Version
		return err
	}
	return nil
}

func (w *world) putReadState(ctx context.Context, s *Statement, in string, body object) error {
	path := []string{"scopes", in, "read-state"}
	actor := s.one("actor")
	if !w.viaService(s) {
		c, err := w.as(actor, http.MethodPut, body, path...)
		if err != nil {
			return err
		}
		return w.sendOrKeep(ctx, s, c)
	}
	c, err := w.asBackend(http.MethodPut, body, path...)
	if err != nil {
		return err
	}
	c.query = url.Values{"member": {w.member(actor)}}
	return w.sendOrKeep(ctx, s, c)
}

// playReadAll reads every listed scope to the head it has now.
func (w *world) playReadAll(ctx context.Context, s *Statement) error {
	actor := s.one("actor")
	rows, err := w.list(ctx, actor)
	if err != nil {
		return err
	}
	items := []object{}
	for _, name := range slices.Sorted(maps.Keys(rows.Scopes)) {
		r := rows.Scopes[name]
		items = append(items, object{"scope": name, "readRevision": r.ContentRevision,
			"expectedVersion": r.ReadState.Version})
	}
	c, err := w.as(actor, http.MethodPost, object{"scopes": items}, "read-all")
	if err != nil {
		return err
	}
	return w.sendOrKeep(ctx, s, c)
}

func (w *world) playOpenInbox(ctx context.Context, s *Statement) error {
	actor := s.one("actor")
	c, err := w.as(actor, http.MethodPost, object{}, "members", w.member(actor), "inbox:open")
	if err != nil {
		return err
	}
	var opened struct {
		SnapshotID string `json:"snapshotId"`
	}
	err = w.must(ctx, c, &opened)
	w.snaps[s.one("new-call")] = opened.SnapshotID
	return err
}

func (w *world) playAckInbox(ctx context.Context, s *Statement) error {
	body := object{"opId": w.nextOp(), "snapshotId": w.snaps[s.one("call")]}
	return w.actorDoes(ctx, s, http.MethodPost, body,
		"members", w.member(s.one("actor")), "inbox", "acks")
}
