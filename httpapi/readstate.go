package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/live/strict"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Counts are a scope's numbers. While they cannot be shown they are an empty object.
type Counts struct {
	known  bool
	values countValues
}

type countValues struct {
	Unread      uint64 `json:"unread"`
	Attention   uint64 `json:"attention"`
	Activity    uint64 `json:"activity"`
	Shown       bool   `json:"shown"`
	ShownUnread uint64 `json:"shownUnread"`
}

// MarshalJSON implements json.Marshaler.
func (c Counts) MarshalJSON() ([]byte, error) {
	if !c.known {
		return []byte("{}"), nil
	}
	return json.Marshal(c.values)
}

// Schema implements huma.SchemaProvider.
func (Counts) Schema(huma.Registry) *huma.Schema {
	number := func(about string) *huma.Schema {
		zero := 0.0
		return &huma.Schema{
			Type: huma.TypeInteger, Format: "int64", Minimum: &zero, Description: about,
		}
	}
	return &huma.Schema{
		Type: huma.TypeObject,
		Properties: map[string]*huma.Schema{
			"unread":      number("Readable messages that are not read"),
			"attention":   number("Those of them that are meant for the member"),
			"activity":    number("Unread activities"),
			"shown":       {Type: huma.TypeBoolean, Description: "Whether the scope has a dot"},
			"shownUnread": number("The number beside the dot"),
		},
	}
}

func newCounts(r *unread.Row) Counts {
	return Counts{known: true, values: countValues{
		Unread: r.Values.Unread, Attention: r.Values.Attention, Activity: r.Values.Activity,
		Shown: r.Presented.Shown, ShownUnread: r.Presented.Unread,
	}}
}

// ReadStateView is a member's read state in a scope with what follows from it.
type ReadStateView struct {
	ContentRevision uint64         `json:"contentRevision"`
	ReadState       live.ReadState `json:"readState"`
	Counts          Counts         `json:"counts"`
	State           string         `json:"state,omitempty" enum:"hydrating,stale,unavailable"`
	LSN             uint64         `json:"lsn"`
}

// ReadStateDone answers a read or a manual mark. A conflict is answered in the same shape, with
// the state that is in force.
type ReadStateDone struct {
	Status string `json:"status" enum:"applied,unchanged,conflict"`
	Code   Code   `json:"code,omitempty"`
	ReadStateView
}

func (d ReadStateDone) status() int {
	if d.Code != "" {
		return http.StatusConflict
	}
	return http.StatusOK
}

// ScopeReadState is an element of a read-all.
type ScopeReadState struct {
	Scope string `json:"scope"`
	ReadStateDone
}

func newView(s *tidemark.ReadState) ReadStateView {
	out := ReadStateView{
		ContentRevision: uint64(s.Head), ReadState: live.NewReadState(&s.Stored),
		LSN: uint64(s.LSN),
	}
	if s.Known {
		out.Counts = newCounts(&s.Row)
	} else {
		out.State = string(unread.Hydrating)
	}
	return out
}

type readStateBody struct {
	Type            string          `json:"type" enum:"read,unread"`
	ExpectedVersion *strict.Counter `json:"expectedVersion,omitempty"`
	ReadRevision    *strict.Counter `json:"readRevision,omitempty"`
	ThroughMessage  string          `json:"throughMessage,omitempty"`
	ActivityReadSeq *strict.Counter `json:"activityReadSeq,omitempty"`
	Threads         []scopeRead     `json:"threads,omitempty" maxItems:"100"`
	FromRevision    *strict.Counter `json:"fromRevision,omitempty"`
	FromMessage     string          `json:"fromMessage,omitempty"`
}

type scopeRead struct {
	Scope           string          `json:"scope"`
	ReadRevision    strict.Counter  `json:"readRevision"`
	ExpectedVersion *strict.Counter `json:"expectedVersion,omitempty"`
}

type readAllBody struct {
	Scopes []scopeRead `json:"scopes" maxItems:"500"`
}

type memberedParams struct {
	workspaceParams
	memberParam
}

func (s *Server) addReadState() {
	const path = scopesPath + "/{s}/read-state"
	add(s, route{
		method: http.MethodGet, path: path, id: "getReadState", tag: "read state",
		about: "What a member has read of a scope, and what is left.",
	}, func(c *call, p *scopeMemberParams, _ *none) (servable[ReadStateView], error) {
		m, err := c.subject(p.Member)
		if err != nil {
			return servable[ReadStateView]{}, err
		}
		state, err := c.ws.ReadState(c.ctx(), m, p.S)
		return serve(newView(&state), err, c.state(m))
	})
	add(s, route{
		method: http.MethodPut, path: path, id: "putReadState", tag: "read state",
		statuses: []int{http.StatusOK, http.StatusConflict},
		about:    "Read to what was seen, or set the manual mark.",
	}, putReadState)
	add(s, route{
		method: http.MethodPost, path: "/api/v1/workspaces/{ws}/read-all", id: "readAll",
		tag: "read state", about: "Read many scopes, each to what was seen of it.",
	}, readAll)
}

func putReadState(c *call, p *scopeMemberParams, b *readStateBody) (ReadStateDone, error) {
	m, err := c.subject(p.Member)
	if err != nil {
		return ReadStateDone{}, err
	}
	return b.put(c, p.S, m)
}

// put carries out a read or a manual mark of a member in a scope.
func (b *readStateBody) put(
	c *call, s readstate.ScopeID, m readstate.MemberID,
) (ReadStateDone, error) {
	if b.ExpectedVersion == nil && !c.trusted() {
		return ReadStateDone{}, refuse(CodeInvalidRequest, "expectedVersion is missing")
	}
	if err := checkIDs("message", b.ThroughMessage, b.FromMessage); err != nil {
		return ReadStateDone{}, err
	}
	var state tidemark.ReadState
	var err error
	if b.Type == "read" {
		op, opErr := b.read(c, s, m)
		if opErr != nil {
			return ReadStateDone{}, opErr
		}
		state, err = c.ws.MarkRead(c.ctx(), op)
	} else {
		op, opErr := b.unread(c, s, m)
		if opErr != nil {
			return ReadStateDone{}, opErr
		}
		state, err = c.ws.MarkUnread(c.ctx(), op)
	}
	out := ReadStateDone{Status: state.Outcome.String(), ReadStateView: newView(&state)}
	if errors.Is(err, facts.ErrConflict) {
		out.Status, out.Code = "conflict", CodeVersionConflict
		return out, nil
	}
	return out, err
}

func (b *readStateBody) read(
	c *call, s readstate.ScopeID, m readstate.MemberID,
) (facts.MarkRead, error) {
	op := facts.MarkRead{
		Scope: s, Member: m, Revision: revision(b.ReadRevision), Through: b.ThroughMessage,
		Version: (*uint64)(b.ExpectedVersion), ActivitySeq: (*readstate.Seq)(b.ActivityReadSeq),
		Trusted: c.trusted(),
	}
	switch {
	case b.FromRevision != nil || b.FromMessage != "":
		return op, refuse(CodeInvalidRequest, "a read has no from")
	case b.ReadRevision != nil && b.ThroughMessage != "":
		return op, refuse(CodeInvalidRequest, "either readRevision or throughMessage")
	case b.ReadRevision == nil && b.ThroughMessage == "" && b.ActivityReadSeq == nil:
		return op, refuse(CodeInvalidRequest, "readRevision is missing")
	}
	for i := range b.Threads {
		t := &b.Threads[i]
		if err := t.check(c, "threads", i); err != nil {
			return op, err
		}
		op.Threads = append(op.Threads, facts.ThreadRead{
			Scope: readstate.ScopeID(t.Scope), Revision: readstate.Revision(t.ReadRevision),
			Version: (*uint64)(t.ExpectedVersion),
		})
	}
	return op, nil
}

// check looks at element i of a list.
func (t *scopeRead) check(c *call, list string, i int) error {
	if t.ExpectedVersion == nil && !c.trusted() {
		return refuse(CodeInvalidRequest, "%s[%d].expectedVersion is missing", list, i)
	}
	return facts.CheckID(fmt.Sprintf("%s[%d].scope", list, i), t.Scope)
}

func (b *readStateBody) unread(
	c *call, s readstate.ScopeID, m readstate.MemberID,
) (facts.MarkUnread, error) {
	op := facts.MarkUnread{
		Scope: s, Member: m, FromMessage: b.FromMessage, Version: (*uint64)(b.ExpectedVersion),
		Trusted: c.trusted(),
	}
	switch {
	case b.ReadRevision != nil || b.ThroughMessage != "" || b.ActivityReadSeq != nil ||
		len(b.Threads) > 0:
		return op, refuse(CodeInvalidRequest, "a manual mark reads nothing")
	case b.FromRevision != nil && b.FromMessage != "":
		return op, refuse(CodeInvalidRequest, "either fromRevision or fromMessage")
	case b.FromRevision != nil && *b.FromRevision == 0:
		return op, refuse(CodeInvalidRequest, "fromRevision counts from 1")
	case b.FromRevision != nil:
		op.From = readstate.Revision(*b.FromRevision)
	}
	return op, nil
}

func readAll(c *call, p *memberedParams, b *readAllBody) (results[ScopeReadState], error) {
	var none results[ScopeReadState]
	m, err := c.subject(p.Member)
	if err != nil {
		return none, err
	}
	batch := c.ws.Batch()
	for i := range b.Scopes {
		t := &b.Scopes[i]
		if err := t.check(c, "scopes", i); err != nil {
			return none, err
		}
		batch.MarkRead(facts.MarkRead{
			Scope: readstate.ScopeID(t.Scope), Member: m,
			Revision: revision(&t.ReadRevision), Version: (*uint64)(t.ExpectedVersion),
			Trusted: c.trusted(),
		})
	}
	answers, err := batch.Run(c.ctx())
	if err != nil {
		return none, err
	}
	out := results[ScopeReadState]{Results: make([]either[ScopeReadState], len(answers))}
	for i := range answers {
		a := &answers[i]
		item := ScopeReadState{Scope: b.Scopes[i].Scope}
		if a.Err == nil {
			item.ReadStateDone = c.present(&a.Read, m, readstate.ScopeID(item.Scope))
		}
		out.Results[i] = resultOf(item, a.Err, c.report)
	}
	return out, nil
}

// present adds the values in force to what a batch answered.
func (c *call) present(
	r *facts.ReadResult, m readstate.MemberID, s readstate.ScopeID,
) ReadStateDone {
	state := tidemark.ReadState{Head: r.Head, Stored: r.Row, LSN: r.LSN}
	if row, err := c.ws.Row(c.ctx(), m, s); err == nil {
		state = tidemark.ReadState{
			Head: row.Ranks.Head, Stored: row.Row, Known: true, Row: row, LSN: row.LSN,
		}
	}
	return ReadStateDone{Status: r.Outcome.String(), ReadStateView: newView(&state)}
}
