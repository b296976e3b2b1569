package outbox

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Endpoint is where the wakes of an agent, or the events of a webhook, are sent.
type Endpoint struct {
	URL    string
	Secret string // see ParseSecret; never returned
}

// EndpointState is what is known of an endpoint.
type EndpointState struct {
	URL      string
	Disabled bool // it answered that it is gone; setting it again enables it
	Waiting  int  // wakes
	Streak   int  // failures since the last success
	Error    string
}

func stateOf(e *facts.EndpointRow) EndpointState {
	return EndpointState{
		URL: e.URL, Disabled: e.Disabled, Waiting: e.Waiting, Streak: e.Streak, Error: e.Error,
	}
}

// checkEndpoint reads an endpoint.
func (b *Outbox) checkEndpoint(e Endpoint) ([]byte, error) {
	if err := b.Network.checkURL(e.URL); err != nil {
		return nil, err
	}
	return ParseSecret(e.Secret)
}

// place is a workspace that this process owns.
type place struct {
	key  facts.WorkspaceKey
	term uint64
}

// addressee is an agent with the term of their workspace.
type addressee struct {
	place
	recipient facts.Recipient
}

// find runs fn with a workspace that this process owns and a view of the store.
func (b *Outbox) find(
	ctx context.Context, w readstate.WorkspaceID, fn func(v facts.View, p place) error,
) error {
	view, err := b.Store.View(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = view.Close() }() // read only: nothing to lose
	row, ok, err := view.Workspace(ctx, w)
	if err == nil && !ok {
		err = fmt.Errorf("workspace %q: %w", w, facts.ErrNotFound)
	}
	if err != nil {
		return err
	}
	term, owned := b.Terms(row.Key)
	if !owned {
		return fmt.Errorf("workspace %q: %w", w, facts.ErrNotOwner)
	}
	return fn(view, place{row.Key, term})
}

// agent finds a member who is an agent.
func (b *Outbox) agent(
	ctx context.Context, w readstate.WorkspaceID, id readstate.MemberID,
) (to addressee, err error) {
	err = b.find(ctx, w, func(v facts.View, p place) error {
		m, ok, err := v.Member(ctx, p.key, id)
		switch {
		case err != nil:
			return err
		case !ok || m.Erased:
			return fmt.Errorf("member %q: %w", id, facts.ErrNotFound)
		case !m.Agent:
			return fmt.Errorf("%w: member %q is no agent", facts.ErrInvalid, id)
		}
		to = addressee{p, facts.AgentRecipient(m.Key)}
		return nil
	})
	return to, err
}

// PutEndpoint has an agent's wakes sent to an address from now on, those that wait included. It
// refuses addresses that Network does not allow, with facts.ErrInvalid.
func (b *Outbox) PutEndpoint(
	ctx context.Context, w readstate.WorkspaceID, agent readstate.MemberID, e Endpoint,
) error {
	secret, err := b.checkEndpoint(e)
	if err == nil {
		err = b.changeEndpoint(ctx, w, agent, e.URL, secret)
	}
	if err != nil {
		return fmt.Errorf("put endpoint of %q: %w", agent, err)
	}
	return nil
}

// RemoveEndpoint has an agent's wakes wait to be read from now on.
func (b *Outbox) RemoveEndpoint(
	ctx context.Context, w readstate.WorkspaceID, agent readstate.MemberID,
) error {
	if err := b.changeEndpoint(ctx, w, agent, "", nil); err != nil {
		return fmt.Errorf("remove endpoint of %q: %w", agent, err)
	}
	return nil
}

func (b *Outbox) changeEndpoint(
	ctx context.Context, w readstate.WorkspaceID, agent readstate.MemberID, url string,
	secret []byte,
) error {
	to, err := b.agent(ctx, w, agent)
	if err != nil {
		return err
	}
	err = b.Store.PutEndpoint(ctx, facts.EndpointChange{
		Term: to.term, Recipient: to.recipient, URL: url, Secret: secret, Now: b.now(),
	})
	b.sends.set()
	return err
}

// Endpoint returns what is known of an agent's endpoint; the zero value where nothing is.
func (b *Outbox) Endpoint(
	ctx context.Context, w readstate.WorkspaceID, agent readstate.MemberID,
) (EndpointState, error) {
	to, err := b.agent(ctx, w, agent)
	if err != nil {
		return EndpointState{}, fmt.Errorf("endpoint of %q: %w", agent, err)
	}
	row, _, err := b.Store.Endpoint(ctx, to.recipient)
	if err != nil {
		return EndpointState{}, fmt.Errorf("endpoint of %q: %w", agent, err)
	}
	return stateOf(&row), nil
}

// Forget drops the endpoint of a member, and what waits for them. Call it when one is erased.
func (b *Outbox) Forget(
	ctx context.Context, w facts.WorkspaceKey, member readstate.MemberKey,
) error {
	term, owned := b.Terms(w)
	if !owned {
		return fmt.Errorf("forget endpoint: workspace %d: %w", w, facts.ErrNotOwner)
	}
	return b.Store.ForgetRecipient(ctx, term, facts.AgentRecipient(member))
}

// Letter is something that was given up.
type Letter struct {
	ID       facts.LetterID
	Message  Message // of a row that was given up before anybody was woken, without Agent
	Row      bool    // an outbox row; otherwise a wake
	Overflow bool    // there was no room; otherwise attempts or time ran out
	Attempts int
	Error    string
	DiedAt   int64 // milliseconds
}

// DeadLetters returns what was given up in a workspace, ascending by id, those after the given
// one, at most limit (0 for MaxWakes).
func (b *Outbox) DeadLetters(
	ctx context.Context, w readstate.WorkspaceID, after facts.LetterID, limit int,
) ([]Letter, error) {
	if limit <= 0 || limit > MaxWakes {
		limit = MaxWakes
	}
	var out []Letter
	err := b.find(ctx, w, func(_ facts.View, p place) error {
		rows, err := b.Store.DeadLetters(ctx, p.key, after, limit)
		for i := range rows {
			out = append(out, letterOf(&rows[i]))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return out, nil
}

func letterOf(d *facts.DeadLetter) Letter {
	to := string(d.MemberID)
	if to == "" {
		to = d.WebhookID
	}
	l := Letter{
		ID: d.Letter, Message: message(&d.Wake, to), Row: d.Row, Overflow: d.Overflow,
		Attempts: d.Attempts, Error: d.Error, DiedAt: d.DiedAt,
	}
	if d.Row {
		l.Message.Event = eventID(d.Workspace, d.Event)
	}
	return l
}

// Requeue takes a dead letter up again, with a new budget. A wake comes at the end of its
// recipient's queue, after what was queued meanwhile: the order is given up with the letter. An
// unknown letter is facts.ErrNotFound.
func (b *Outbox) Requeue(
	ctx context.Context, w readstate.WorkspaceID, letter facts.LetterID,
) error {
	err := b.find(ctx, w, func(_ facts.View, p place) error {
		return b.Store.Requeue(ctx, facts.Requeue{
			Term: p.term, Workspace: p.key, Letter: letter, Now: b.now(),
			QueueLimit: b.Limits.Queue,
		})
	})
	if err != nil {
		return fmt.Errorf("requeue dead letter %d: %w", letter, err)
	}
	b.rows.set()
	b.sends.set()
	return nil
}
