package scenario

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// A list that is not servable yet is asked for again after a stream of the member has shown its
// snapshot; more rounds than this mean that it never becomes servable.
const hydrationRounds = 5

// list fetches all pages of what the actor has unread, and checks that they add up.
func (w *world) list(ctx context.Context, actor string) (*page, error) {
	for range hydrationRounds {
		listed, err := w.listOnce(ctx, actor)
		if err != nil || listed.State != "hydrating" {
			return listed, err
		}
		if err := w.awaitHydration(ctx, actor); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the list of %s stays hydrating", actor)
}

// listOnce accepts a withheld list, which has a state and no numbers.
func (w *world) listOnce(ctx context.Context, actor string) (*page, error) {
	whole := &page{Scopes: map[string]row{}}
	for next := ""; ; {
		c, err := w.as(actor, http.MethodGet, nil, "unread")
		if err != nil {
			return nil, err
		}
		if next != "" {
			c.query = url.Values{"pageToken": {next}}
		}
		var p page
		if err := w.must(ctx, c, &p); err != nil {
			return nil, err
		}
		switch p.State {
		case "ready":
		case "hydrating", "stale", "unavailable":
			if len(p.Scopes) > 0 || p.HasUnread || p.Badge != (badge{}) {
				return nil, fmt.Errorf("state is %s, yet there are numbers: %+v", p.State, p)
			}
			return &p, nil
		default:
			return nil, fmt.Errorf("the list has the unknown state %q", p.State)
		}
		for name, r := range p.Scopes {
			if _, twice := whole.Scopes[name]; twice {
				return nil, fmt.Errorf("%s is listed twice", name)
			}
			whole.Scopes[name] = r
		}
		whole.HasUnread, whole.Badge, whole.State = p.HasUnread, p.Badge, p.State
		whole.LSN, whole.Complete = p.LSN, p.Complete
		if next = p.Next; next == "" {
			return whole, whole.check()
		}
	}
}

// check compares the badge with the fold of the rows.
func (p *page) check() error {
	sum := fold(p.Scopes)
	switch {
	case !p.Complete:
		return fmt.Errorf("the last page is not marked complete")
	case !p.Badge.sameNumbers(sum):
		return fmt.Errorf("the badge is %+v, the listed rows add up to %+v", p.Badge, sum)
	case p.HasUnread != (sum.Conversations > 0):
		return fmt.Errorf("hasUnread is %t, but %d rows are shown", p.HasUnread,
			sum.Conversations)
	}
	for name, r := range p.Scopes {
		if r.Attention > r.Unread && r.Type != "thread" {
			return fmt.Errorf("%s has more attention than unread: %s", name, r.brief())
		}
		if r.Archived && r.Shown {
			return fmt.Errorf("%s is archived and shown", name)
		}
	}
	return nil
}

func (w *world) awaitHydration(ctx context.Context, actor string) error {
	token, err := w.token(actor)
	if err != nil {
		return err
	}
	waiter := &device{name: actor + "'s hydration", member: w.member(actor), token: token,
		view: newView()}
	waiter.startCounting()
	defer waiter.drop()
	return waiter.connect(ctx, w, "")
}
