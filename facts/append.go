package facts

import (
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// appendEntry gives a row its place at the end of a scope's log and counts it for everyone it
// touches. It returns the stored row.
func (g *group) appendEntry(
	ctx context.Context, w *workspace, s ScopeRow, row MessageRow, readable bool,
) (*MessageRow, error) {
	s.Ranks.LatestSeq++
	row.Place = Place{s.Info.Key, s.Ranks.LatestSeq}
	var to audience
	if readable {
		s.Ranks.Head++
		row.Revision = s.Ranks.Head
		s.Ranks.Replies++
		if s.Info.Type.Targeted() {
			var err error
			if to, err = g.planMessage(ctx, s, &row); err != nil {
				return nil, err
			}
			row.Recipients = to.humans
		}
		if err := g.raiseWriters(ctx, &row); err != nil {
			return nil, err
		}
		if err := g.countPosted(ctx, s, &row); err != nil {
			return nil, err
		}
	} else {
		row.AuthorRank, row.PrincipalRank = 0, 0
	}
	s.Ranks.LastLSN = w.LSN
	s.Ranks.Latest = readstate.Latest{ID: row.ID, At: row.CreatedAt}
	s.Ranks.LastActivityAt = max(s.Ranks.LastActivityAt, row.CreatedAt) // a moved entry is older
	g.scopes.put(s.Info.Key, s)
	stored := g.messages.add(row)
	w.emit(readstate.MessageEvent{
		Scope: row.Scope, Seq: row.Seq, Revision: row.Revision, ID: row.ID, At: row.CreatedAt,
		Author: row.Author, AuthorRank: row.AuthorRank, Principal: row.Principal,
		PrincipalRank: row.PrincipalRank, Named: slices.Clone(row.Named),
		Recipients: slices.Clone(row.Recipients), Everyone: row.Everyone,
	})
	err := g.announce(ctx, w, s, MessageAdded, stored)
	if err != nil {
		return stored, err
	}
	if s.Info.Type == readstate.Session {
		return stored, g.talkSession(ctx, s.Info.Key)
	}
	if !readable {
		return stored, nil
	}
	switch s.Info.Type {
	case readstate.Task:
		err = g.deliverMessage(ctx, w, stored, to)
	case readstate.DM:
		err = g.talkDM(ctx, w, stored)
	}
	if err != nil {
		return stored, err
	}
	return stored, g.address(ctx, w, stored)
}

// raiseWriters gives the entry its ranks.
func (g *group) raiseWriters(ctx context.Context, row *MessageRow) error {
	author, err := g.writer(ctx, RowKey{row.Scope, row.Author})
	if err != nil {
		return err
	}
	author.Writer.AuthorHead++
	row.AuthorRank = author.Writer.AuthorHead
	g.writers.put(author.RowKey, author)
	row.PrincipalRank = 0
	if row.Principal == 0 {
		return nil
	}
	principal, err := g.writer(ctx, RowKey{row.Scope, row.Principal})
	if err != nil {
		return err
	}
	principal.Writer.PrincipalHead++
	row.PrincipalRank = principal.Writer.PrincipalHead
	g.writers.put(principal.RowKey, principal)
	return nil
}

// countPosted stages what a new readable entry changes beside the log: the rows it touches, its
// mention rows, the everyone set.
func (g *group) countPosted(ctx context.Context, s ScopeRow, row *MessageRow) error {
	t := s.Info.Type
	m := readstate.Message{Revision: row.Revision, Everyone: row.Everyone}
	for _, c := range row.concerned() {
		key := RowKey{row.Scope, c.member}
		if c.role.Named && (!t.Targeted() || c.role.Recipient) {
			g.putMention(s.Info.Type, row, c, true)
		}
		if c.role.Recipient && !c.role.Neutral(t) {
			g.targets.set(mentionKey{key, row.Revision}, TargetRow{
				RowKey: key, Revision: row.Revision, Author: row.Author, Live: true,
			}, true)
		}
		state, exists, err := g.state(ctx, key)
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		before := state.Row.Point
		state.Row.Point.Post(t, m, c.role)
		if state.Row.Point != before {
			g.states.put(key, state)
		}
	}
	if !row.Everyone {
		return nil
	}
	g.setEveryone(row, true)
	return g.mark(ctx, EveryoneSet, row.Scope, row.Revision, true)
}
