package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Seed makes the workspace and what happened in it so far. It is for a database that does not
// have it.
func Seed(ctx context.Context, engine *tidemark.Engine) error {
	if _, err := engine.CreateWorkspace(ctx, Workspace, "Demo"); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	w := engine.Workspace(Workspace)
	for _, fill := range []func(*facts.Batch){addPeople, addScopes, addPast, addThreads} {
		if err := run(ctx, w, fill); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	err := arrange(ctx, w)
	if err == nil {
		_, err = w.MarkUnread(ctx, facts.MarkUnread{Scope: "releases", Member: Ada, Trusted: true})
	}
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	return nil
}

func run(ctx context.Context, w *tidemark.Workspace, fill func(*facts.Batch)) error {
	b := w.Batch()
	fill(b)
	results, err := b.Run(ctx)
	for i := range results {
		err = errors.Join(err, results[i].Err)
	}
	return err
}

func addPeople(b *facts.Batch) {
	for i := range people {
		b.PutMember(facts.PutMember{
			ID: people[i].id, DisplayName: &people[i].name, Agent: &people[i].agent,
		})
	}
}

// addScopes makes channels and direct messages with those who are in them.
func addScopes(b *facts.Batch) {
	for i := range scopes {
		s := &scopes[i]
		if s.kind == readstate.Thread {
			continue
		}
		b.PutScope(facts.PutScope{ID: s.id, Type: s.kind, Name: &s.name})
		for _, m := range s.members {
			b.PutMembership(facts.PutMembership{Scope: s.id, Member: m})
		}
	}
}

// addPast says what was said in channels and direct messages.
func addPast(b *facts.Batch) { addLines(b, false) }

// addThreads opens the threads on it and says what was said there.
func addThreads(b *facts.Batch) {
	for i := range scopes {
		s := &scopes[i]
		if s.kind == readstate.Thread {
			b.PutScope(facts.PutScope{
				ID: s.id, Type: s.kind, Name: &s.name, Parent: s.parent, RootMessage: s.root,
			})
		}
	}
	addLines(b, true)
}

func addLines(b *facts.Batch, threads bool) {
	numbers := map[readstate.ScopeID]int{}
	for i := range past {
		l := &past[i]
		numbers[l.scope]++
		if isThread(l.scope) != threads {
			continue
		}
		id := fmt.Sprintf("%s-%d", l.scope, numbers[l.scope])
		b.Post(facts.Post{
			Scope: l.scope, OpID: "seed-" + id, MessageID: id, Author: l.author,
			Mentions: l.named, Everyone: l.all, Payload: payload(l.text),
		})
	}
}

func isThread(id readstate.ScopeID) bool {
	for i := range scopes {
		if scopes[i].id == id {
			return scopes[i].kind == readstate.Thread
		}
	}
	return false
}

// payload is how the page expects a text.
func payload(text string) json.RawMessage {
	raw, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		panic(err) // a map of texts is always JSON
	}
	return raw
}

// arrange gives everyone a past of reading: Ada has been away for a while and wants to hear of
// Random only when she is named.
func arrange(ctx context.Context, w *tidemark.Workspace) error {
	early := map[readstate.ScopeID]readstate.Revision{}
	late := map[readstate.ScopeID]readstate.Revision{}
	for i := range past {
		late[past[i].scope]++
		if i < awayFrom {
			early[past[i].scope]++
		}
	}
	return run(ctx, w, func(b *facts.Batch) {
		for i := range scopes {
			read := early[scopes[i].id]
			b.MarkRead(facts.MarkRead{Scope: scopes[i].id, Member: Ada, Revision: &read})
		}
		for _, id := range []readstate.ScopeID{"general", "random", "releases"} {
			read := late[id]
			b.MarkRead(facts.MarkRead{Scope: id, Member: Ben, Revision: &read})
		}
		mentions := readstate.LevelMentions
		b.PutMembership(facts.PutMembership{Scope: "random", Member: Ada, Level: &mentions})
	})
}
