package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Traffic makes others write. It belongs to one goroutine.
type Traffic struct {
	w    *tidemark.Workspace
	rng  *rand.Rand
	ops  int
	last sent // what may be taken back or changed
}

type sent struct {
	scope   readstate.ScopeID
	message string
	text    string
}

// NewTraffic starts before the first message. The same source gives the same traffic.
func NewTraffic(engine *tidemark.Engine, rng *rand.Rand) *Traffic {
	return &Traffic{w: engine.Workspace(Workspace), rng: rng}
}

// Run makes one step for every tick, until ctx ends, which is no error, or a step fails.
func (t *Traffic) Run(ctx context.Context, ticks <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
			if err := t.Step(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("demo traffic: %w", err)
			}
		}
	}
}

// where says how often somebody writes where, in percent.
var where = []struct {
	percent int
	scope   readstate.ScopeID
}{
	{24, "general"}, {18, "design"}, {8, "releases"}, {12, "random"},
	{12, "badge-colour"}, {8, "release-14"}, {8, "ada-dora"}, {10, task},
}

// Step lets one thing happen: mostly a message, sometimes a change of the last one.
func (t *Traffic) Step(ctx context.Context) error {
	t.ops++
	switch at := t.rng.IntN(100); {
	case at < 5 && t.last.message != "":
		return t.takeBack(ctx)
	case at < 9 && t.last.message != "":
		return t.nameAda(ctx)
	}
	at := t.rng.IntN(100)
	for _, w := range where {
		if at -= w.percent; at < 0 {
			return t.say(ctx, w.scope)
		}
	}
	return nil
}

func (t *Traffic) say(ctx context.Context, scope readstate.ScopeID) error {
	author := others[t.rng.IntN(len(others))]
	switch {
	case scope == "ada-dora":
		author = "dora"
	case scope == task && author == Otto:
		author = "chen" // he answers by himself, see Agent
	}
	text := remarks[t.rng.IntN(len(remarks))]
	op := facts.Post{Scope: scope, OpID: t.opID(), Author: author}
	switch at := t.rng.IntN(100); {
	case scope == "ada-dora":
	case scope == task && at < 30: // there is no everyone in a task
		op.Mentions, text = []readstate.MemberID{Otto}, "@otto "+text
	case at < 4 && scope != task:
		op.Everyone, text = true, "@everyone "+text
	case at < 12:
		op.Mentions, text = []readstate.MemberID{Ada}, "@ada "+text
	case at < 18:
		op.Mentions, text = []readstate.MemberID{Ben}, "@ben "+text
	}
	op.Payload = payload(text)
	receipt, err := t.w.Post(ctx, op)
	t.last = sent{scope, receipt.MessageID, text}
	return err
}

// takeBack removes the last message: whoever had not read it has one less to read.
func (t *Traffic) takeBack(ctx context.Context) error {
	op := facts.Remove{Scope: t.last.scope, Message: t.last.message, OpID: t.opID()}
	t.last = sent{}
	return gone(t.w.Remove(ctx, op))
}

// nameAda edits the last message so that it names her.
func (t *Traffic) nameAda(ctx context.Context) error {
	text := payload("@ada " + t.last.text)
	op := facts.Edit{
		Scope: t.last.scope, Message: t.last.message, OpID: t.opID(),
		Mentions: &[]readstate.MemberID{Ada}, Payload: &text,
	}
	t.last = sent{}
	return gone(t.w.Edit(ctx, op))
}

// gone forgives that somebody else was faster.
func gone(_ facts.Receipt, err error) error {
	if errors.Is(err, facts.ErrNotFound) {
		return nil
	}
	return err
}

func (t *Traffic) opID() string { return fmt.Sprintf("traffic-%d", t.ops) }

var remarks = []string{
	"does anybody have the link to the plan?",
	"I am on it.",
	"that fixed it, thank you!",
	"the build is green again.",
	"could we talk about this after lunch?",
	"I wrote it down so that we do not forget.",
	"the numbers look better than last week.",
	"who has the key to the big room?",
	"I will be ten minutes late.",
	"the window on the second floor is open.",
	"nice work!",
	"can you look at this when you have a minute?",
	"we should ask the people who use it.",
	"the printer is out of paper, and of patience.",
	"I moved the meeting to Thursday.",
	"here is a first draft. Be honest.",
	"done.",
	"is it only me, or is it slow today?",
	"I like the second one more.",
	"let us keep it simple.",
}
