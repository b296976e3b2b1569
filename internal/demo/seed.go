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
	fill := func(add func(*facts.Batch)) func(context.Context, *tidemark.Workspace) error {
		return func(ctx context.Context, w *tidemark.Workspace) error { return run(ctx, w, add) }
	}
	for _, step := range []func(context.Context, *tidemark.Workspace) error{
		fill(addPeople), fill(addScopes), watch, fill(addTask), fill(addPast), fill(addThreads),
		arrange, review,
	} {
		if err := step(ctx, w); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	return nil
}

// review is what happened last.
func review(ctx context.Context, w *tidemark.Workspace) error {
	status := "in review"
	_, err := w.PutTask(ctx, facts.PutTask{Scope: task, Actor: "chen", Status: &status})
	if err == nil {
		_, err = w.MarkUnread(ctx, facts.MarkUnread{Scope: "releases", Member: Ada, Trusted: true})
	}
	return err
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

// addTask gives the task to Ada, before anything was said in it.
func addTask(b *facts.Batch) {
	ada, status := Ada, "open"
	title := "A dot stays after an archive"
	b.PutTask(facts.PutTask{
		Scope: task, Actor: "chen", Assignee: &ada, Status: &status, Title: &title,
	})
}

// watch has those watch tasks who want to be told of everything in them.
func watch(ctx context.Context, w *tidemark.Workspace) error {
	for i := range scopes {
		for _, m := range scopes[i].watchers {
			_, err := w.SetFollow(ctx, facts.SetFollow{
				Scope: scopes[i].id, Member: m, Following: true, Trusted: true,
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
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
