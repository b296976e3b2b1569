package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Done answers a setting: whether anything changed, and the commit at which it stands.
type Done struct {
	Status string `json:"status" enum:"applied,unchanged"`
	LSN    uint64 `json:"lsn"`
}

func done(s facts.Setting) Done {
	return Done{Status: s.Outcome.String(), LSN: uint64(s.LSN)}
}

// results answers a batch, one element for each item in the order of the request.
type results[T any] struct {
	Results []either[T] `json:"results"`
}

// ItemError is the element of an item that was refused; the others are not affected.
type ItemError struct {
	Error *Problem `json:"error"`
}

// either is an item's answer or its refusal.
type either[T any] struct {
	value  T
	failed *Problem
}

// resultOf makes an element. A refusal that is internal is logged by report.
func resultOf[T any](value T, err error, report func(error)) either[T] {
	if err == nil {
		return either[T]{value: value}
	}
	p := problemOf(err)
	if p.Code == CodeInternal {
		report(err)
	}
	return either[T]{failed: p}
}

// MarshalJSON implements json.Marshaler.
func (e either[T]) MarshalJSON() ([]byte, error) {
	if e.failed != nil {
		return json.Marshal(ItemError{e.failed})
	}
	return json.Marshal(e.value)
}

// Schema implements huma.SchemaProvider.
func (either[T]) Schema(r huma.Registry) *huma.Schema {
	return oneOf(r, reflect.TypeFor[T](), reflect.TypeFor[ItemError]())
}

// servable is a value from memory, or what stands for it while it cannot be shown.
type servable[T any] struct {
	value    T
	withheld *live.Withheld
}

// serve makes the answer of a read from memory. Not being servable is an answer, no error.
func serve[T any](value T, err error, state func() unread.State) (servable[T], error) {
	if errors.Is(err, unread.ErrNotServable) {
		w := live.NewWithheld(state())
		return servable[T]{withheld: &w}, nil
	}
	return servable[T]{value: value}, err
}

// MarshalJSON implements json.Marshaler.
func (s servable[T]) MarshalJSON() ([]byte, error) { return live.Encode(s.body()) }

func (s servable[T]) body() any {
	if s.withheld != nil {
		return s.withheld
	}
	return s.value
}

// Schema implements huma.SchemaProvider.
func (servable[T]) Schema(r huma.Registry) *huma.Schema {
	return oneOf(r, reflect.TypeFor[T](), reflect.TypeFor[live.Withheld]())
}

func oneOf(r huma.Registry, types ...reflect.Type) *huma.Schema {
	s := &huma.Schema{}
	for _, t := range types {
		s.OneOf = append(s.OneOf, r.Schema(t, true, t.Name()))
	}
	return s
}

// state is why a member's values are not shown.
func (c *call) state(m readstate.MemberID) func() unread.State {
	return func() unread.State {
		_, s := c.ws.HasUnread(m)
		return s
	}
}

// subject is the member whom a request is about: the caller, or for services whom they name.
func (c *call) subject(named readstate.MemberID) (readstate.MemberID, error) {
	c.assumed = named == "" && c.trusted()
	if named == "" || named == c.who.Member {
		return c.who.Member, nil
	}
	if !c.trusted() {
		return "", refuse(CodeForbidden, "a member acts for itself only")
	}
	return named, nil
}

// unnamed replaces a refusal that a service ran into because it named no member and its token
// names none either: what it should do about that is another thing than what was not found.
func (c *call) unnamed(ctx context.Context, err error) error {
	if !c.assumed || c.ws == nil || problemOf(err).Code != CodeNotFound {
		return err
	}
	if _, absent := c.ws.Info(ctx); absent != nil {
		return err
	}
	_, absent := c.ws.Member(ctx, c.who.Member)
	if absent == nil || problemOf(absent).Code != CodeNotFound {
		return err
	}
	return refuse(CodeInvalidRequest, "a service names the member: ?member=ID")
}

// trusted reports that the caller speaks for the workspace.
func (c *call) trusted() bool { return c.who.Role >= RoleService }

// actor is who performs an operation on messages. A service is nobody in particular unless it
// names a member.
func (c *call) actor(named readstate.MemberID) (facts.Actor, error) {
	if c.trusted() {
		return facts.Actor{Member: named, Trusted: true}, nil
	}
	m, err := c.subject(named)
	return facts.Actor{Member: m}, err
}

// report logs an error that is answered as internal within a bigger answer.
func (c *call) report(err error) {
	c.server.log.ErrorContext(c.ctx(), "item failed", "path", c.r.URL.Path, "error", err)
}

// mayCreate reads ?create=members.
func (c *call) mayCreate(create string) (bool, error) {
	if create != "" && !c.trusted() {
		return false, refuse(CodeForbidden, "only a service creates members")
	}
	return create == "members", nil
}

// checkIDs checks ids of a body, of which empty ones are left out.
func checkIDs[T ~string](kind string, ids ...T) error {
	for _, id := range ids {
		if id == "" {
			continue
		}
		if err := facts.CheckID(kind, string(id)); err != nil {
			return err
		}
	}
	return nil
}
