package chaos

import (
	"encoding/json"
	"net/http"
	"time"
)

// payload ties a message to the operations that made it what it is.
type payload struct {
	Op   string `json:"op"`
	Edit string `json:"edit,omitempty"`
}

// message is the body of a send, alone or in a batch.
type message struct {
	Scope            string    `json:"scope,omitempty"`
	OpID             string    `json:"opId"`
	Author           string    `json:"author,omitempty"`
	NotifyPrincipal  string    `json:"notifyPrincipal,omitempty"`
	MessageID        string    `json:"messageId,omitempty"`
	Kind             string    `json:"kind,omitempty"`
	Readable         *bool     `json:"readable,omitempty"`
	Mentions         []string  `json:"mentions,omitempty"`
	MentionsEveryone bool      `json:"mentionsEveryone,omitempty"`
	Broadcast        bool      `json:"broadcast,omitempty"`
	LocalID          string    `json:"localId,omitempty"`
	AdvanceCursor    *observed `json:"advanceCursor,omitempty"`
	Payload          payload   `json:"payload"`
	ExpiresAt        string    `json:"expiresAt,omitempty"`
}

type observed struct {
	ObservedRevision uint64 `json:"observedRevision"`
}

// compose draws a message of one of the client's members.
func (c *client) compose(scope string) (*act, message) {
	a := c.act(post, http.MethodPost, address(c.world.name, "scopes", scope, "messages"))
	a.Scope, a.Member, a.OpID = scope, pick(c.rng, c.members), c.newID()
	m := message{OpID: a.OpID, Author: a.Member, Payload: payload{Op: a.OpID}}
	if c.chance(15) {
		if a.Principal = pick(c.rng, c.world.members); a.Principal == a.Member {
			a.Principal = "" // that says the same
		}
		m.NotifyPrincipal = a.Principal
	}
	a.Named = c.names()
	m.Mentions = a.Named
	if c.chance(6) {
		a.Everyone, m.MentionsEveryone = true, true
	}
	if parent := c.world.parent(scope); parent != "" && c.chance(30) {
		a.Broadcast, m.Broadcast = parent, true
	}
	if c.chance(50) {
		m.MessageID = "m-" + a.OpID
	}
	if c.chance(10) {
		m.LocalID = "l-" + a.OpID
	}
	if c.chance(8) {
		m.Kind = "tool"
	} else if c.chance(3) {
		m.Readable = new(bool)
	}
	if c.chance(20) {
		a.Revision = c.revision(scope)
		m.AdvanceCursor = &observed{a.Revision}
	}
	if c.chance(3) {
		a.Expires = true
		in := time.Duration(c.rng.IntN(2000)) * time.Millisecond
		m.ExpiresAt = time.Now().Add(in).UTC().Format(time.RFC3339Nano)
	}
	return a, m
}

// names draws up to three members without repetition.
func (c *client) names() []string {
	if c.chance(60) {
		return nil
	}
	var out []string
	for _, i := range c.rng.Perm(len(c.world.members))[:1+c.rng.IntN(3)] {
		out = append(out, c.world.members[i])
	}
	return out
}

// revision draws one that the scope is known to hold, most often the newest.
func (c *client) revision(scope string) uint64 {
	h := c.world.head(scope).revision
	if h == 0 || c.chance(50) {
		return h
	}
	return h - min(h, c.rng.Uint64N(12))
}

func (c *client) post() *act {
	a, m := c.compose(pick(c.rng, c.world.scopes()))
	if a.Principal == "" && c.chance(30) {
		a.Token, m.Author = c.world.tokens[a.Member], "" // as oneself
	}
	a.Body = encode(m)
	return a
}

func (c *client) batch() *act { return c.collect(5+c.rng.IntN(30), "") }

// flood makes a scope so long that taking it back needs several commits. That is for the soak:
// such a log takes its time to be read again after every kill.
func (c *client) flood() *act {
	if !c.world.floods {
		return nil
	}
	return c.collect(manyEntries, pick(c.rng, c.owned))
}

// manyEntries is more than one commit of a rewind or trim takes.
const manyEntries = 550

// collect makes a batch, of one scope or, without a name, of any.
func (c *client) collect(n int, scope string) *act {
	a := c.act(batch, http.MethodPost, address(c.world.name, "messages:batch"))
	var body struct {
		Messages []message `json:"messages"`
	}
	scopes := c.world.scopes()
	for range n {
		to := scope
		if to == "" {
			to = pick(c.rng, scopes)
		}
		item, m := c.compose(to)
		m.Scope = to
		a.Items = append(a.Items, item)
		body.Messages = append(body.Messages, m)
	}
	a.Body = encode(body)
	return a
}

func (c *client) edit() *act {
	if len(c.mine) == 0 {
		return nil
	}
	m := pick(c.rng, c.mine)
	a := c.act(edit, http.MethodPatch, address(c.world.name, "scopes", m.scope, "messages", m.id))
	a.Scope, a.Messages, a.OpID, a.Member = m.scope, []string{m.id}, c.newID(), m.author
	body := map[string]any{"opId": a.OpID}
	if c.chance(70) {
		a.Renames, a.Named, a.Everyone = true, c.names(), c.chance(10)
		if a.Named == nil {
			a.Named = []string{}
		}
		body["mentions"], body["mentionsEveryone"] = a.Named, a.Everyone
	}
	body["payload"] = payload{Op: m.op, Edit: a.OpID}
	if c.chance(50) {
		a.Token = c.world.tokens[m.author]
	}
	a.Body = encode(body)
	return a
}

func (c *client) remove() *act {
	if len(c.mine) == 0 {
		return nil
	}
	m := pick(c.rng, c.mine)
	a := c.act(remove, http.MethodDelete, address(c.world.name, "scopes", m.scope, "messages", m.id))
	a.Scope, a.Messages, a.OpID, a.Member = m.scope, []string{m.id}, c.newID(), m.author
	if c.chance(50) {
		a.Token = c.world.tokens[m.author]
	}
	a.Body = encode(map[string]string{"opId": a.OpID})
	return a
}

// rewind takes the newest entries of a scope back: a few, or all since a flood.
func (c *client) rewind() *act {
	scope := pick(c.rng, c.owned)
	h := c.world.head(scope)
	few := 1 + c.rng.Uint64N(8)
	if c.chance(25) {
		few = 2 * manyEntries
	}
	if h.seq == 0 {
		return nil
	}
	return c.cut(rewind, scope, h.seq-min(h.seq, few))
}

// trim spares the newest entries: those of sends under way are among them.
func (c *client) trim() *act {
	const spared = 10
	scope := pick(c.rng, c.owned)
	h := c.world.head(scope)
	if h.seq <= spared {
		return nil
	}
	return c.cut(trim, scope, h.seq-spared-min(h.seq-spared, c.rng.Uint64N(100)))
}

func (c *client) cut(k kind, scope string, through uint64) *act {
	a := c.act(k, http.MethodPost, address(c.world.name, "scopes", scope, string(k)))
	a.Scope, a.Through, a.OpID = scope, through, c.newID()
	a.Body = encode(map[string]any{"opId": a.OpID, "throughSeq": through})
	return a
}

func (c *client) move() *act {
	if len(c.mine) == 0 {
		return nil
	}
	from := pick(c.rng, c.mine).scope
	a := c.act(move, http.MethodPost, address(c.world.name, "scopes", from, "messages:move"))
	a.Scope, a.To, a.OpID, a.Counted = from, pick(c.rng, c.world.scopes()), c.newID(), c.chance(50)
	if a.To == from {
		return nil
	}
	for _, m := range c.mine {
		if m.scope == from && len(a.Messages) < 3 && c.chance(40) {
			a.Messages = append(a.Messages, m.id)
		}
	}
	if len(a.Messages) == 0 {
		return nil
	}
	a.Body = encode(map[string]any{
		"opId": a.OpID, "messages": a.Messages, "to": a.To, "countMoved": a.Counted,
	})
	return a
}

func (c *client) thread() *act {
	if len(c.world.scopes())-len(c.world.channels) >= maxThreads {
		return nil
	}
	id := "t" + c.newID()
	a := c.act(makeThread, http.MethodPut, address(c.world.name, "scopes", id))
	a.Scope, a.To = id, pick(c.rng, c.world.channels)
	body := map[string]any{"type": "thread", "parent": a.To}
	for _, m := range c.mine {
		if m.scope == a.To && c.chance(10) {
			body["rootMessage"], a.Messages = m.id, []string{m.id}
		}
	}
	a.Body = encode(body)
	return a
}

// decodePayload reads what a stored payload says.
func decodePayload(text []byte) (p payload) {
	_ = json.Unmarshal(text, &p) // an empty one says nothing
	return p
}
