package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// compareFields compares the fields of an expectation with rendered values.
func (w *world) compareFields(s *Statement, got map[string]string) error {
	for _, field := range s.Fields {
		value, ok := got[field.Key]
		if !ok {
			continue // an input, such as the limit of a page
		}
		if err := w.equal(field, value); err != nil {
			return err
		}
	}
	return nil
}

func text(n uint64) string { return strconv.FormatUint(n, 10) }

func (w *world) expectHello(_ context.Context, s *Statement) error {
	d := w.devices[s.one("device")]
	if d.hello == nil {
		return fmt.Errorf("%s heard no hello", d.name)
	}
	return w.compareFields(s, map[string]string{"resumed": strconv.FormatBool(d.hello.Resumed)})
}

func (w *world) expectDeltas(ctx context.Context, s *Statement) error {
	d, in := w.devices[s.one("device")], s.one("scope")
	if err := w.settle(ctx, d); err != nil {
		return err
	}
	newest := d.newest[in]
	for _, field := range s.Fields {
		got := strconv.Itoa(d.heard[in])
		switch {
		case field.Key == "count":
		case newest == nil:
			return fmt.Errorf("%s heard no delta of %s", d.name, in)
		case field.Key == "removed":
			got = strconv.FormatBool(newest.Removed)
		case newest.Row == nil:
			return fmt.Errorf("the newest delta of %s says that it is gone", in)
		default:
			got, _ = newest.Row.value(field.Key)
		}
		if err := w.equal(field, got); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) expectLabel(ctx context.Context, s *Statement) error {
	shown, err := w.app(ctx, s.one("device"), []string{"label", s.one("scope")})
	if err != nil {
		return err
	}
	return w.compareFields(s, map[string]string{"text": shown})
}

func (w *world) expectPush(ctx context.Context, s *Statement) error {
	shown, err := w.app(ctx, s.one("device"), []string{"push"})
	if err != nil {
		return err
	}
	return w.compareFields(s, map[string]string{"badge": shown})
}

// expectBadge looks at the badge of the list, which was compared with its rows, and compares
// it with the totals by type and with the dot of the workspace.
func (w *world) expectBadge(ctx context.Context, s *Statement) error {
	actor := s.one("actor")
	if d := w.devices[actor]; d != nil && d.stream != nil {
		if err := w.settle(ctx, d); err != nil {
			return err
		}
	}
	listed, err := w.list(ctx, actor)
	if err != nil {
		return err
	}
	groups, err := w.totals(ctx, actor, "type")
	if err != nil {
		return err
	}
	var sum badge
	for _, g := range groups {
		sum.Messages += g.Messages
		sum.Conversations += g.Conversations
		sum.Attention += g.Attention
	}
	if !listed.Badge.sameNumbers(sum) {
		return fmt.Errorf("the badge is %+v, the totals by type add up to %+v", listed.Badge, sum)
	}
	dot, err := w.workspaceDot(ctx, actor)
	if err != nil {
		return err
	}
	if dot != listed.HasUnread {
		return fmt.Errorf("hasUnread is %t in the list, %t among the workspaces",
			listed.HasUnread, dot)
	}
	return w.compareFields(s, map[string]string{
		"messages": text(listed.Badge.Messages), "attention": text(listed.Badge.Attention),
		"conversations": text(listed.Badge.Conversations),
		"display":       text(listed.Badge.Display),
		"hasUnread":     strconv.FormatBool(listed.HasUnread),
	})
}

func (w *world) totals(ctx context.Context, actor, by string) (map[string]badge, error) {
	c, err := w.as(actor, http.MethodGet, nil, "unread", "totals")
	if err != nil {
		return nil, err
	}
	c.query = url.Values{"groupBy": {by}}
	var answer struct {
		Groups map[string]badge `json:"groups"`
	}
	return answer.Groups, w.must(ctx, c, &answer)
}

func (w *world) expectTotals(ctx context.Context, s *Statement) error {
	by, key := "tag", s.one("tag")
	switch {
	case s.has("parent"):
		by, key = "parent", s.one("scope")
	case s.has("type"):
		by, key = "type", s.one("type")
	}
	groups, err := w.totals(ctx, s.one("actor"), by)
	if err != nil {
		return err
	}
	group := groups[key] // a group without anything unread may be left out
	return w.compareFields(s, map[string]string{"messages": text(group.Messages),
		"conversations": text(group.Conversations), "attention": text(group.Attention)})
}

func (w *world) expectRows(ctx context.Context, s *Statement) error {
	listed, err := w.list(ctx, s.one("actor"))
	if err != nil {
		return err
	}
	var count, shown, unread, messages uint64
	for _, r := range listed.Scopes {
		if kind := s.one("type"); kind != "" && kind != r.Type {
			continue
		}
		count++
		unread += r.Unread
		messages += r.ShownUnread
		if r.Shown {
			shown++
		}
	}
	return w.compareFields(s, map[string]string{"count": text(count), "shown": text(shown),
		"unread": text(unread), "messages": text(messages)})
}

func (w *world) workspaceDot(ctx context.Context, actor string) (bool, error) {
	token, err := w.token(actor)
	if err != nil {
		return false, err
	}
	var answer struct {
		Workspaces []struct {
			ID        string `json:"id"`
			HasUnread *bool  `json:"hasUnread"`
		} `json:"workspaces"`
	}
	c := call{method: http.MethodGet, path: []string{"workspaces"}, token: token}
	if err := w.must(ctx, c, &answer); err != nil {
		return false, err
	}
	for _, ws := range answer.Workspaces {
		if ws.ID != w.ws {
			continue
		}
		if ws.HasUnread == nil {
			return false, errors.New("the list of workspaces withholds hasUnread")
		}
		return *ws.HasUnread, nil
	}
	return false, fmt.Errorf("workspace %s is not listed", w.ws)
}

func (w *world) expectWorkspace(ctx context.Context, s *Statement) error {
	dot, err := w.workspaceDot(ctx, s.one("actor"))
	if err != nil {
		return err
	}
	return w.compareFields(s, map[string]string{"hasUnread": strconv.FormatBool(dot)})
}

// expectPage fetches one page; before= and after= name messages, which stand for their seq.
func (w *world) expectPage(ctx context.Context, s *Statement) error {
	c, err := w.as(s.one("actor"), http.MethodGet, nil, "scopes", s.one("scope"), "messages")
	if err != nil {
		return err
	}
	c.query = url.Values{}
	for _, key := range []string{"limit", "before", "after"} {
		value, ok := s.field(key)
		if !ok {
			continue
		}
		if m := w.messages[value]; m != nil {
			value = text(m.seq)
		}
		c.query.Set(key, value)
	}
	var answer struct {
		Messages []struct {
			ID string `json:"id"`
		} `json:"messages"`
		Page struct {
			HasMore             bool    `json:"hasMore"`
			ReadThroughRevision *uint64 `json:"readThroughRevision"`
			UnreadBefore        *uint64 `json:"unreadBefore"`
		} `json:"page"`
	}
	if err := w.must(ctx, c, &answer); err != nil {
		return err
	}
	ids := make([]string, len(answer.Messages))
	for i, m := range answer.Messages {
		ids[i] = m.ID
	}
	optional := func(n *uint64) string {
		if n == nil {
			return "none"
		}
		return text(*n)
	}
	return w.compareFields(s, map[string]string{
		"count": strconv.Itoa(len(ids)), "messages": joined(ids),
		"hasMore":      strconv.FormatBool(answer.Page.HasMore),
		"unreadBefore": optional(answer.Page.UnreadBefore),
		"readThrough":  optional(answer.Page.ReadThroughRevision),
	})
}

func (w *world) expectReaders(ctx context.Context, s *Statement) error {
	m := w.messages[s.one("message")]
	if m == nil {
		return fmt.Errorf("%s is not posted yet", s.one("message"))
	}
	c, err := w.as(s.one("actor"), http.MethodGet, nil, "scopes", m.scope, "receipts")
	if err != nil {
		return err
	}
	c.query = url.Values{"revision": {text(m.revision)}}
	var answer struct {
		Receipts []struct {
			Member string `json:"member"`
		} `json:"receipts"`
	}
	if err := w.must(ctx, c, &answer); err != nil {
		return err
	}
	var readers []string
	for _, reader := range answer.Receipts {
		readers = append(readers, reader.Member)
	}
	return w.compareSet(s, "are", readers)
}

// compareSet compares names without regard to order.
func (w *world) compareSet(s *Statement, key string, got []string) error {
	value, ok := s.field(key)
	if !ok {
		return nil
	}
	want := list(value)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return &mismatch{key, joined(want), joined(got)}
	}
	return nil
}

func (w *world) expectInbox(ctx context.Context, s *Statement) error {
	actor := s.one("actor")
	c, err := w.as(actor, http.MethodGet, nil, "members", w.member(actor), "inbox", "badge")
	if err != nil {
		return err
	}
	var answer struct {
		Accepted     uint64   `json:"accepted_through"`
		Acknowledged uint64   `json:"acknowledged_through"`
		Count        uint64   `json:"count"`
		Senders      []string `json:"senders"`
	}
	if err := w.must(ctx, c, &answer); err != nil {
		return err
	}
	if err := w.compareSet(s, "senders", answer.Senders); err != nil {
		return err
	}
	return w.compareFields(s, map[string]string{"count": text(answer.Count),
		"accepted": text(answer.Accepted), "acknowledged": text(answer.Acknowledged)})
}
