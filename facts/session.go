package facts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/readstate"
)

// A session is a scope of one member, its owner: ids of sessions are unique among those of an
// owner, and nobody else names one. What is written there is read by the owner alone, so that no
// entry is neutral; which ones are readable is decided by their kind and content.
//
// The id of a session's scope begins with a control character, which no id of a request may hold:
// no operation reaches a session by chance, and none but the owner's own by guessing.

const sessionMark = "\x1f"

// ReservedPrefix stands before the id of a session where it is listed among scopes, so that no
// other scope of its owner has the same name.
const ReservedPrefix = "session:"

// SessionScope is the id of the scope of an owner's session.
func SessionScope(owner readstate.MemberID, id string) readstate.ScopeID {
	return readstate.ScopeID(sessionMark + string(owner) + sessionMark + id)
}

// SessionOf takes the id of a session's scope apart; false for the id of any other scope.
func SessionOf(s readstate.ScopeID) (owner readstate.MemberID, id string, ok bool) {
	rest, ok := strings.CutPrefix(string(s), sessionMark)
	if !ok {
		return "", "", false
	}
	of, id, ok := strings.Cut(rest, sessionMark)
	return readstate.MemberID(of), id, ok
}

// checkScopeID accepts the ids of scopes, those of sessions included.
func checkScopeID(s readstate.ScopeID) error {
	owner, id, ok := SessionOf(s)
	if !ok {
		return CheckID("scope", string(s))
	}
	return firstError(CheckID("member", string(owner)), CheckID("session", id))
}

// UnknownScope is ErrNotFound for a scope, under the name that its callers know.
func UnknownScope(s readstate.ScopeID) error {
	if _, id, ok := SessionOf(s); ok {
		return notFound("session", id)
	}
	return notFound("scope", string(s))
}

// ReplacedError names a session that another one has taken the place of. It is ErrReplaced.
type ReplacedError struct {
	ID string // of the session that was named
	By string // of the one that is there now
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("session %q: %v by %q", e.ID, ErrReplaced, e.By)
}

func (e *ReplacedError) Unwrap() error { return ErrReplaced }

// PutSession changes a session, or makes it where Create says so.
type PutSession struct {
	Owner readstate.MemberID
	ID    string // empty only with Create: made by the store
	Title *string
	// Active and Thinking say that a run is going on, and that it is thinking. While both hold
	// the session shows no ordinary dot.
	Active   *bool
	Thinking *bool
	// What waits for the owner; no part of what is unread.
	PendingInput      *bool
	PendingPermission *bool
	Archived          *bool
	// Create makes the session unless it exists. An existing one is left as it is, and another
	// title than the one it has is ErrMismatch.
	Create bool
	// CreateOwner makes an unknown owner instead of refusing it.
	CreateOwner bool
}

// ForkSession copies the live entries of a session to a new one, as history that nobody has to
// read. At most MaxSessionCopied entries are copied.
type ForkSession struct {
	Owner readstate.MemberID
	From  string
	To    string // must not exist; empty: made by the store
	Title *string
	OpID  string
}

// MergeSession appends a session to another of the same owner and retires it: what was unread
// there arrives above the destination's head, everything else as history. The manual mark holds if
// either had one, at a version above both. At most MaxSessionCopied entries are moved.
type MergeSession struct {
	Owner readstate.MemberID
	From  string
	Into  string
	OpID  string
}

// SessionReceipt answers PutSession, ForkSession and MergeSession with the session as it is now;
// a merge with its destination.
type SessionReceipt struct {
	Session Session
	Outcome readstate.Outcome
	Created bool
	LSN     readstate.LSN
	// Duplicate says that the operation had been accepted before; nothing changed now.
	Duplicate bool
}

// Session is a session as its owner sees it. Times are in milliseconds.
type Session struct {
	ID                string
	Title             string
	Active            bool
	Thinking          bool
	PendingInput      bool
	PendingPermission bool
	Archived          bool
	Head              readstate.Revision
	Row               readstate.Row // the owner's
	UpdatedAt         int64         // of the last entry or change; reading is none
	CreatedAt         int64
}

// Unread reports the owner's ordinary dot or manual mark.
func (s *Session) Unread() bool {
	busy := s.Active && s.Thinking
	return s.Row.Manual.Set || !busy && s.Head > s.Row.Read
}

// SessionRow is one row of sessions: what only a session has beside its scope.
type SessionRow struct {
	Scope      readstate.ScopeKey
	Owner      readstate.MemberKey
	UpdatedAt  int64              // milliseconds
	ReplacedBy readstate.ScopeKey // zero unless merged away
}

// NewSession puts together what is stored of a session.
func NewSession(s *ScopeRow, x *SessionRow, r *readstate.Row) Session {
	_, id, _ := SessionOf(s.Info.ID)
	return Session{
		ID: id, Title: s.Info.Name, Active: s.Info.Active, Thinking: s.Info.Thinking,
		PendingInput: s.Info.PendingInput, PendingPermission: s.Info.PendingPermission,
		Archived: s.Info.Archived, Head: s.Ranks.Head, Row: *r, UpdatedAt: x.UpdatedAt, CreatedAt: s.CreatedAt,
	}
}

// rendered reports that an entry of a session shows its reader something. The kind decides, and of
// a text what it says: a payload that is a text, or has one as "text", is empty when it is blank.
// A payload with "parts" shows something if one of them does; a part without a kind is a text.
func rendered(kind string, payload json.RawMessage) bool {
	if !kindsReadable[kind] {
		return false
	}
	var content struct {
		Text  *string           `json:"text"`
		Parts []json.RawMessage `json:"parts"`
	}
	var text string
	switch {
	case len(payload) == 0:
		return kind != textKind
	case json.Unmarshal(payload, &text) == nil:
		return kind != textKind || strings.TrimSpace(text) != ""
	case json.Unmarshal(payload, &content) != nil:
		return true // another form, which its clients know
	case content.Parts != nil:
		return slices.ContainsFunc(content.Parts, renderedPart)
	case content.Text != nil:
		return kind != textKind || strings.TrimSpace(*content.Text) != ""
	}
	return true
}

const textKind = "text"

func renderedPart(part json.RawMessage) bool {
	var p struct {
		Kind string  `json:"kind"`
		Text *string `json:"text"`
	}
	var text string
	if json.Unmarshal(part, &text) == nil {
		return strings.TrimSpace(text) != ""
	}
	if json.Unmarshal(part, &p) != nil {
		return true
	}
	if p.Kind == "" {
		p.Kind = textKind
	}
	if !kindsReadable[p.Kind] {
		return false
	}
	return p.Kind != textKind || p.Text == nil || strings.TrimSpace(*p.Text) != ""
}
