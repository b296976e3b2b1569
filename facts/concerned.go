package facts

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// concern is one member whom a message touches, with what they are to it.
type concern struct {
	member readstate.MemberKey
	role   readstate.Role
}

// concerned lists everyone a message touches, each once.
func (m *MessageRow) concerned() []concern { return m.concernedWith(m.Named) }

// concernedWith is concerned with other names: those before or after an edit.
func (m *MessageRow) concernedWith(named ...[]readstate.MemberKey) []concern {
	out := make([]concern, 0, 2+len(m.Recipients))
	at := func(k readstate.MemberKey) *readstate.Role {
		i := slices.IndexFunc(out, func(c concern) bool { return c.member == k })
		if i < 0 {
			i = len(out)
			out = append(out, concern{member: k})
		}
		return &out[i].role
	}
	if len(m.Named)+len(m.Recipients) > 16 {
		at = indexed(&out)
	}
	at(m.Author).Author = true
	if m.Principal != 0 {
		at(m.Principal).Principal = true
	}
	for _, k := range m.Recipients {
		at(k).Recipient = true
	}
	for _, keys := range named {
		for _, k := range keys {
			at(k).Named = true
		}
	}
	return out
}

// indexed finds a member's place by a map, for messages that name many.
func indexed(out *[]concern) func(readstate.MemberKey) *readstate.Role {
	places := map[readstate.MemberKey]int{}
	return func(k readstate.MemberKey) *readstate.Role {
		i, ok := places[k]
		if !ok {
			i = len(*out)
			places[k] = i
			*out = append(*out, concern{member: k})
		}
		return &(*out)[i].role
	}
}

// roleWith is the role of a member if the message named exactly the given ones.
func (c concern) roleWith(named []readstate.MemberKey) readstate.Role {
	r := c.role
	r.Named = slices.Contains(named, c.member)
	return r
}

// putMention stages the mention row of one named member.
func (g *group) putMention(t readstate.ScopeType, m *MessageRow, c concern, live bool) {
	key := RowKey{m.Scope, c.member}
	g.mentions.set(mentionKey{key, m.Revision}, MentionRow{
		RowKey: key, Revision: m.Revision, Author: m.Author,
		Neutral: c.role.Neutral(t), Live: live, Everyone: m.Everyone,
	}, true)
}

func (g *group) setEveryone(m *MessageRow, in bool) {
	g.everyone.set(everyoneKey{m.Scope, m.Revision}, EveryoneRow{
		Scope: m.Scope, Revision: m.Revision, Author: m.Author, Principal: m.Principal,
	}, in)
}

// announce tells those who watch the scope's messages.
func (g *group) announce(
	ctx context.Context, w *workspace, s ScopeRow, op MessageOp, m *MessageRow,
) error {
	var failed error
	name := func(k readstate.MemberKey) readstate.MemberID {
		info, err := g.principal(ctx, k)
		failed = errors.Join(failed, err)
		return info.ID
	}
	w.messages = append(w.messages, MessageChange{
		Op: op, Scope: s.Info.Key, ScopeID: s.Info.ID,
		Message: NameMessage(m, name),
	})
	return failed
}

// NameMessage turns a stored row into a message as readers see it; name resolves keys.
func NameMessage(m *MessageRow, name func(readstate.MemberKey) readstate.MemberID) Message {
	out := Message{
		ID: m.ID, Seq: m.Seq, Revision: m.Revision, Author: name(m.Author), Kind: m.Kind,
		Everyone: m.Everyone, Silent: m.Silent, ReplyTo: m.ReplyTo, LocalID: m.LocalID,
		ExpiresAt: m.ExpiresAt, CreatedAt: m.CreatedAt, EditedAt: m.EditedAt,
		Payload: json.RawMessage(m.Payload),
	}
	if m.Principal != 0 {
		out.Principal = name(m.Principal)
	}
	for _, k := range m.Named {
		out.Mentions = append(out.Mentions, name(k))
	}
	return out
}

// NameActivity turns a stored row into an activity as readers see it; name resolves keys.
func NameActivity(a *ActivityRow, name func(readstate.MemberKey) readstate.MemberID) Activity {
	out := Activity{
		ID: a.ID, Seq: a.Seq, Type: a.Type, HighSignal: a.HighSignal, Actor: name(a.Actor),
		RefType: a.RefType, RefID: a.RefID, CreatedAt: a.CreatedAt,
		Payload: json.RawMessage(a.Payload),
	}
	if a.Subject != 0 {
		out.Subject = name(a.Subject)
	}
	out.Delivered = len(a.Recipients)
	for _, k := range Listed(a.Recipients) {
		out.Recipients = append(out.Recipients, name(k))
	}
	return out
}

// Listed are those of a fact's recipients who are named to readers.
func Listed(recipients []readstate.MemberKey) []readstate.MemberKey {
	return recipients[:min(len(recipients), ListedRecipients)]
}

// refusal turns an error of the algebra into one of this package.
func refusal(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, readstate.ErrFuture):
		return &refused{ErrFuture, err}
	case errors.Is(err, readstate.ErrConflict):
		return &refused{ErrConflict, err}
	}
	return broken("algebra", err)
}
