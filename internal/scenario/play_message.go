package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// batchFrom is the number of messages in one line from which they travel as a batch. Batches
// are a backend's, so such a line is sent with the rights of a service.
const (
	batchFrom = 11
	batchMost = 1000
)

func (w *world) playPost(ctx context.Context, s *Statement) error {
	names := s.slots["new-message"]
	if s.has("prepared") {
		if len(names) != 1 {
			return errors.New("one message can be prepared at a time")
		}
		c, err := w.postCall(ctx, s, names)
		w.calls[s.one("prepared")] = c
		return err
	}
	size := 1
	if len(names) >= batchFrom {
		size = batchMost
	}
	for chunk := range slices.Chunk(names, size) {
		c, err := w.postCall(ctx, s, chunk)
		if err != nil {
			return err
		}
		if err := w.send(ctx, c, s.Answer); err != nil {
			return err
		}
	}
	return nil
}

// postCall builds one post, or one batch when there are several names.
func (w *world) postCall(ctx context.Context, s *Statement, names []string) (call, error) {
	actor, in := s.one("actor"), s.one("scope")
	bodies := make([]object, len(names))
	for i, name := range names {
		body, err := w.messageBody(ctx, s, name)
		if err != nil {
			return call{}, err
		}
		bodies[i] = body
		w.messages[name] = &message{scope: in, author: w.member(actor)}
	}
	var c call
	var err error
	switch {
	case len(names) > 1:
		for _, body := range bodies {
			body["scope"], body["author"] = in, w.member(actor)
		}
		c, err = w.asBackend(http.MethodPost, object{"messages": bodies}, "messages:batch")
	case w.viaService(s):
		bodies[0]["author"] = w.member(actor)
		c, err = w.asBackend(http.MethodPost, bodies[0], "scopes", in, "messages")
	default:
		c, err = w.as(actor, http.MethodPost, bodies[0], "scopes", in, "messages")
	}
	c.sent, c.scope = names, in
	return c, err
}

// viaService tells whether a line asks for, or cannot do without, the rights of a backend.
func (w *world) viaService(s *Statement) bool {
	via, _ := s.field("via")
	_, principal := s.field("principal")
	return via == "service" || principal || s.flag("baseline")
}

func (w *world) messageBody(ctx context.Context, s *Statement, name string) (object, error) {
	actor := s.one("actor")
	payload := object{"text": name}
	if offset, bent := w.clocks[actor]; bent {
		payload["clientTime"] = devicesBegin.Add(offset).Format(time.RFC3339)
	}
	body := object{"opId": w.nextOp(), "messageId": name, "payload": payload}
	mentions, everyone := splitMentions(s.Mentions)
	body.set("mentions", mentions, len(mentions) > 0)
	body.set("mentionsEveryone", true, everyone)
	body.set("readable", s.flag("readable"), s.flag("readable") || s.flag("unreadable"))
	for _, flag := range []string{"silent", "baseline", "broadcast"} {
		body.set(flag, true, s.flag(flag))
	}
	if kind, ok := s.field("kind"); ok {
		body["kind"] = kind
	}
	if principal, ok := s.field("principal"); ok {
		body["notifyPrincipal"] = principal
	}
	if seen, ok := s.field("seen"); ok {
		revision, err := w.revision(ctx, actor, seen, s.one("scope"))
		if err != nil {
			return nil, err
		}
		body["advanceCursor"] = object{"observedRevision": revision}
	}
	return body, nil
}

func splitMentions(names []string) (members []string, everyone bool) {
	members = []string{}
	for _, name := range names {
		if name == "everyone" {
			everyone = true
			continue
		}
		members = append(members, name)
	}
	return members, everyone
}

// onMessage builds a call on one message, as its author or via=service.
func (w *world) onMessage(s *Statement, name, method string, body object) (call, error) {
	m := w.messages[name]
	if m == nil {
		return call{}, fmt.Errorf("%s is not posted yet", name)
	}
	path := []string{"scopes", m.scope, "messages", name}
	if w.viaService(s) {
		return w.asBackend(method, body, path...)
	}
	return w.as(m.author, method, body, path...)
}

func (w *world) playEdit(ctx context.Context, s *Statement) error {
	name := s.one("message")
	body := object{"opId": w.nextOp(), "payload": object{"text": name, "edited": w.ops}}
	if mentions, everyone := splitMentions(s.Mentions); len(s.Mentions) > 0 ||
		s.flag("no-mentions") {
		body["mentions"], body["mentionsEveryone"] = mentions, everyone
	}
	c, err := w.onMessage(s, name, http.MethodPatch, body)
	if err != nil {
		return err
	}
	return w.sendOrKeep(ctx, s, c)
}

func (w *world) playDelete(ctx context.Context, s *Statement) error {
	for _, name := range s.slots["message"] {
		c, err := w.onMessage(s, name, http.MethodDelete, object{"opId": w.nextOp()})
		if err != nil {
			return err
		}
		if err := w.sendOrKeep(ctx, s, c); err != nil {
			return err
		}
	}
	return nil
}

// playCut performs rewind and trim, which both name a position.
func (w *world) playCut(ctx context.Context, s *Statement) error {
	m := w.messages[s.one("message")]
	if m == nil {
		return fmt.Errorf("%s is not posted yet", s.one("message"))
	}
	return w.backendDoes(ctx, s.Answer, http.MethodPost,
		object{"opId": w.nextOp(), "throughSeq": m.seq}, "scopes", s.one("scope"), s.Verb())
}

func (w *world) playMove(ctx context.Context, s *Statement) error {
	names, to := s.slots["message"], s.one("scope")
	first := w.messages[names[0]]
	if first == nil {
		return fmt.Errorf("%s is not posted yet", names[0])
	}
	from := first.scope
	body := object{"opId": w.nextOp(), "messages": names, "to": to}
	body.set("countMoved", true, s.flag("counted"))
	if err := w.backendDoes(ctx, s.Answer, http.MethodPost, body,
		"scopes", from, "messages:move"); err != nil {
		return err
	}
	for _, name := range names {
		if m := w.messages[name]; m != nil {
			m.scope = to
		}
	}
	return nil
}

func (w *world) playReact(ctx context.Context, s *Statement) error {
	m := w.messages[s.one("message")]
	if m == nil {
		return fmt.Errorf("%s is not posted yet", s.one("message"))
	}
	return w.backendDoes(ctx, s.Answer, http.MethodPost, object{"opId": w.nextOp(),
		"actor": w.member(s.one("actor")), "type": "reaction", "ref": s.one("message")},
		"scopes", m.scope, "activities")
}
