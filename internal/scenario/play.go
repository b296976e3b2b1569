package scenario

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// play performs one statement.
func (w *world) play(ctx context.Context, s *Statement) error {
	handler, ok := handlers[s.Verb()]
	if !ok {
		return fmt.Errorf("the runner cannot play %q", s.Verb())
	}
	return handler(w, ctx, s)
}

type handler func(*world, context.Context, *Statement) error

var handlers map[string]handler

func init() { // a literal would be an initialization cycle: random plays statements
	handlers = map[string]handler{
		"member":    (*world).playMember,
		"bot":       (*world).playMember,
		"channel":   (*world).playScope,
		"dm":        (*world).playScope,
		"thread":    (*world).playThread,
		"join":      (*world).playJoin,
		"leave":     (*world).playLeave,
		"hide":      (*world).playVisible,
		"show":      (*world).playVisible,
		"archive":   (*world).playArchive,
		"unarchive": (*world).playArchive,
		"erase":     (*world).playErase,
		"mute":      (*world).playLevel,
		"unmute":    (*world).playLevel,
		"level":     (*world).playLevel,
		"follow":    (*world).playFollow,
		"unfollow":  (*world).playFollow,
		"block":     (*world).playBlock,
		"unblock":   (*world).playBlock,
		"settings":  (*world).playSettings,
		"clock":     (*world).playClock,

		"post":   (*world).playPost,
		"reply":  (*world).playPost,
		"edit":   (*world).playEdit,
		"delete": (*world).playDelete,
		"rewind": (*world).playCut,
		"trim":   (*world).playCut,
		"move":   (*world).playMove,
		"react":  (*world).playReact,

		"read":     (*world).playRead,
		"unread":   (*world).playUnread,
		"read-all": (*world).playReadAll,
		"send":     (*world).playSend,
		"repeat":   (*world).playRepeat,

		"device":    (*world).playDevice,
		"stream":    (*world).playStream,
		"watch":     (*world).playWatch,
		"drop":      (*world).playDrop,
		"resume":    (*world).playResume,
		"reconnect": (*world).playReconnect,
		"refresh":   (*world).playRefresh,
		"replay":    (*world).playReplay,
		"restart":   (*world).playRestart,
		"random":    (*world).playRandom,

		"open-inbox": (*world).playOpenInbox,
		"ack-inbox":  (*world).playAckInbox,
		"app":        (*world).playApp,
		"expect":     (*world).playExpect,
	}
}

// backendDoes performs a change with the rights of a service.
func (w *world) backendDoes(ctx context.Context, want *Answer, method string, body object,
	path ...string) error {
	c, err := w.asBackend(method, body, path...)
	if err != nil {
		return err
	}
	return w.send(ctx, c, want)
}

// actorDoes performs a change with the actor's own rights.
func (w *world) actorDoes(ctx context.Context, s *Statement, method string, body object,
	path ...string) error {
	c, err := w.as(s.one("actor"), method, body, path...)
	if err != nil {
		return err
	}
	return w.send(ctx, c, s.Answer)
}

func (w *world) playMember(ctx context.Context, s *Statement) error {
	kind := map[string]string{"member": "human", "bot": "agent"}[s.Verb()]
	for _, name := range s.slots["new-member"] {
		if err := w.addMember(ctx, name, kind); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) addMember(ctx context.Context, name, kind string) error {
	if w.members[name] {
		return nil
	}
	w.members[name] = true
	return w.backendDoes(ctx, nil, http.MethodPut, object{"kind": kind}, "members", name)
}

func (w *world) playScope(ctx context.Context, s *Statement) error {
	sc := &scope{kind: s.Verb()}
	sc.history, _ = s.field("history")
	sc.name, _ = s.field("name")
	tags, _ := s.field("tags")
	sc.tags = list(tags)
	name := s.one("new-scope")
	w.scopes[name] = sc
	if err := w.backendDoes(ctx, nil, http.MethodPut, sc.body(), "scopes", name); err != nil {
		return err
	}
	for _, member := range s.slots["joined"] {
		if err := w.addMember(ctx, member, "human"); err != nil {
			return err
		}
		if err := w.backendDoes(ctx, nil, http.MethodPut, object{},
			"scopes", name, "members", member); err != nil {
			return err
		}
	}
	return nil
}

func (sc *scope) body() object {
	body := object{"type": sc.kind}
	body.set("name", sc.name, sc.name != "")
	body.set("parent", sc.parent, sc.parent != "")
	body.set("rootMessage", sc.root, sc.root != "")
	body.set("history", sc.history, sc.history != "")
	body.set("tags", sc.tags, len(sc.tags) > 0)
	return body
}

func (w *world) playThread(ctx context.Context, s *Statement) error {
	name := s.one("new-scope")
	sc := &scope{kind: "thread", parent: s.one("scope"), root: s.one("message")}
	w.scopes[name] = sc
	if err := w.backendDoes(ctx, nil, http.MethodPut, sc.body(), "scopes", name); err != nil {
		return err
	}
	for _, member := range s.slots["followers"] {
		c, err := w.as(member, http.MethodPut, object{"following": true},
			"scopes", name, "follow")
		if err != nil {
			return err
		}
		if err := w.send(ctx, c, nil); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) playJoin(ctx context.Context, s *Statement) error {
	member, in := s.one("joiner"), s.one("scope")
	if err := w.addMember(ctx, member, "human"); err != nil {
		return err
	}
	body := object{}
	for key, name := range map[string]string{"from": "effectiveFrom", "read": "readRevision"} {
		mark, ok := s.field(key)
		if !ok {
			continue
		}
		revision, err := w.revision(ctx, member, mark, in)
		if err != nil {
			return err
		}
		body[name] = revision
	}
	return w.backendDoes(ctx, s.Answer, http.MethodPut, body, "scopes", in, "members", member)
}

func (w *world) playLeave(ctx context.Context, s *Statement) error {
	return w.backendDoes(ctx, s.Answer, http.MethodDelete, nil,
		"scopes", s.one("scope"), "members", s.one("member"))
}

func (w *world) playVisible(ctx context.Context, s *Statement) error {
	return w.backendDoes(ctx, s.Answer, http.MethodPut, object{"visible": s.Verb() == "show"},
		"scopes", s.one("scope"), "members", s.one("member"))
}

func (w *world) playArchive(ctx context.Context, s *Statement) error {
	name := s.one("scope")
	body := w.scopes[name].body()
	body["archived"] = s.Verb() == "archive"
	return w.backendDoes(ctx, s.Answer, http.MethodPut, body, "scopes", name)
}

func (w *world) playErase(ctx context.Context, s *Statement) error {
	return w.backendDoes(ctx, s.Answer, http.MethodDelete, nil, "members", s.one("member"))
}

func (w *world) playLevel(ctx context.Context, s *Statement) error {
	level := map[string]string{"mute": "none", "unmute": "all", "level": s.one("level")}[s.Verb()]
	return w.actorDoes(ctx, s, http.MethodPut, object{"notification": level},
		"scopes", s.one("scope"), "members", w.member(s.one("actor")))
}

func (w *world) playFollow(ctx context.Context, s *Statement) error {
	return w.actorDoes(ctx, s, http.MethodPut, object{"following": s.Verb() == "follow"},
		"scopes", s.one("scope"), "follow")
}

func (w *world) playBlock(ctx context.Context, s *Statement) error {
	method := map[string]string{"block": http.MethodPut, "unblock": http.MethodDelete}[s.Verb()]
	return w.actorDoes(ctx, s, method, nil,
		"members", w.member(s.one("actor")), "blocks", s.one("member"))
}

func (w *world) playSettings(ctx context.Context, s *Statement) error {
	body := object{}
	for _, field := range s.Fields {
		body[field.Key] = field.Value
	}
	return w.actorDoes(ctx, s, http.MethodPut, body,
		"members", w.member(s.one("actor")), "settings")
}

func (w *world) playClock(_ context.Context, s *Statement) error {
	offset, err := time.ParseDuration(s.one("offset"))
	w.clocks[s.one("actor")] = offset
	return err
}

func (w *world) playRestart(ctx context.Context, _ *Statement) error {
	for _, d := range w.devices {
		d.drop()
	}
	base, err := w.runner.opts.Restart(ctx)
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	w.runner.base = base
	return nil
}

func (w *world) playApp(ctx context.Context, s *Statement) error {
	_, err := w.app(ctx, s.one("device"), s.slots["action"])
	return err
}

func (w *world) app(ctx context.Context, name string, action []string) (string, error) {
	app := w.runner.opts.App
	if app == nil {
		return "", errNoApp
	}
	return app(ctx, w.ws, w.member(name), name, action)
}
