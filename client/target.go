package client

import (
	"net/url"
	"strings"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// The outbox names what an operation is about by one text: a session by its id, a scope of the hub by
// its id behind scopeMark, which no id can contain.
const scopeMark = "\x1f"

func scopeTarget(scope string) string { return scopeMark + scope }

// ScopeOf returns the scope of the hub that an operation is about; false for one about a session.
func ScopeOf(op *readsync.Operation) (scope string, ok bool) {
	return strings.CutPrefix(op.Session, scopeMark)
}

// checkTarget returns an error for what can be no target: it would be waited for in vain.
func checkTarget(target string) error {
	switch target {
	case "":
		return ErrUnknownSession
	case scopeMark:
		return ErrUnknownScope
	}
	return nil
}

// plainTarget is the id alone.
func plainTarget(target string) string { return strings.TrimPrefix(target, scopeMark) }

// nameTarget says for people what a target is.
func nameTarget(target string) string {
	if scope, ok := strings.CutPrefix(target, scopeMark); ok {
		return "scope " + scope
	}
	return "session " + target
}

// targetPath is the path of a session or a scope, with the rest below it. The namespace is known to
// whoever has something to say of a scope.
func (c *Client) targetPath(target, rest string) string {
	scope, ok := strings.CutPrefix(target, scopeMark)
	if !ok {
		return sessionPath(target, rest)
	}
	ns, _ := c.auth.namespace()
	return workspacePath(ns, "/scopes/"+url.PathEscape(scope)+rest)
}

func workspacePath(ns Namespace, rest string) string {
	return "/api/v1/workspaces/" + url.PathEscape(ns.Workspace) + rest
}

// view is what may be shown of a target; false while the server has not told of it. c.mu is held.
func (c *Client) view(target string) (v readsync.View, known bool) {
	if scope, ok := strings.CutPrefix(target, scopeMark); ok {
		x := c.hub.scopes[scope]
		if x == nil {
			return readsync.View{Session: target}, false
		}
		return c.outbox.View(target, x.said), true
	}
	if x := c.sessions[target]; x != nil {
		return c.outbox.View(target, x.said), x.told
	}
	return readsync.View{Session: target}, false
}

// settled takes in what the server answered to an operation, at the moment at which the operation
// leaves the outbox. c.mu is held.
func (c *Client) settled(target string, state *readsync.State, body []byte) {
	if scope, ok := strings.CutPrefix(target, scopeMark); ok {
		c.hub.answered(scope, body)
	} else if state != nil {
		c.hear(target, *state)
	}
}
