package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// playExpect sends an expectation to the handler of its subject.
func (w *world) playExpect(ctx context.Context, s *Statement) error {
	subjects := []struct {
		word   string
		expect handler
	}{
		{"hello", (*world).expectHello},
		{"deltas", (*world).expectDeltas},
		{"label", (*world).expectLabel},
		{"push", (*world).expectPush},
		{"badge", (*world).expectBadge},
		{"tag", (*world).expectTotals},
		{"parent", (*world).expectTotals},
		{"type", (*world).expectTotals},
		{"rows", (*world).expectRows},
		{"workspace", (*world).expectWorkspace},
		{"page", (*world).expectPage},
		{"readers", (*world).expectReaders},
		{"inbox", (*world).expectInbox},
		{"absent", (*world).expectAbsent},
	}
	for _, subject := range subjects {
		if s.has(subject.word) {
			return subject.expect(w, ctx, s)
		}
	}
	return w.expectRow(ctx, s)
}

// compareAnswer checks the answer of an operation against what stands behind "->".
func (w *world) compareAnswer(c call, r *reply, want *Answer) error {
	var state readAnswer
	var post posted
	success := r.status >= 200 && r.status <= 299
	if success && len(r.body) > 0 || r.status == http.StatusConflict {
		if err := errors.Join(r.decode(&state), r.decode(&post)); err != nil {
			return err
		}
	}
	if want == nil {
		want = &Answer{Outcome: "ok"}
	}
	if err := compareOutcome(want, r, state.Status, state.Code, post.Duplicate); err != nil {
		return fmt.Errorf("%w\nfrom      %s", err, c)
	}
	answered := row{
		Unread: state.Counts.Unread, Attention: state.Counts.Attention,
		Shown: state.Counts.Shown, ShownUnread: state.Counts.ShownUnread,
		ReadState: state.ReadState, ManualUnread: state.ReadState.ManualUnread,
		ContentRevision: state.ContentRevision,
	}
	for _, field := range want.Fields {
		value := strconv.FormatUint(post.Seq, 10)
		if field.Key != "seq" {
			value, _ = answered.value(field.Key)
		}
		if err := w.equal(field, value); err != nil {
			return fmt.Errorf("%w\nfrom      %s", err, r.brief())
		}
	}
	return nil
}

func compareOutcome(want *Answer, r *reply, status, code string, duplicate bool) error {
	ok, success := false, r.status >= 200 && r.status <= 299
	switch want.Outcome {
	case "", "ok":
		ok = success && status != "conflict"
	case "applied", "unchanged":
		ok = r.status == http.StatusOK && status == want.Outcome
	case "conflict":
		ok = r.status == http.StatusConflict && status == "conflict" && code == "version_conflict"
	case "duplicate":
		ok = r.status == http.StatusOK && duplicate
	case "error":
		var problem struct {
			Code   string `json:"code"`
			Status int    `json:"status"`
		}
		if err := r.decode(&problem); err != nil {
			return err
		}
		ok = !success && problem.Code == want.Code && problem.Status == r.status
	}
	if ok {
		return nil
	}
	expected := strings.TrimSpace(want.Outcome + " " + want.Code)
	return fmt.Errorf("expected  %s\ngot       %s", expected, r.brief())
}

// equal compares one expected field with what came. Marks are compared by what they stand for.
func (w *world) equal(want Field, got string) error {
	value := want.Value
	kind, _ := answerForm.kindOf(want.Key)
	if m := w.messages[value]; m != nil && (kind == "m" || want.Key == "readThrough") {
		value = strconv.FormatUint(m.revision, 10)
	}
	if strings.Contains(value, "..") {
		names, err := expandNames([]string{value})
		if err != nil {
			return err
		}
		value = strings.Join(names, ",")
	}
	if value != got {
		return &mismatch{want.Key, want.Value, got}
	}
	return nil
}

// value renders a field of a row; known is false for fields that are asked for elsewhere.
func (r *row) value(key string) (value string, known bool) {
	rs := &r.ReadState
	number := func(n uint64) (string, bool) { return strconv.FormatUint(n, 10), true }
	switch key {
	case "unread":
		return number(r.Unread)
	case "attention":
		return number(r.Attention)
	case "activity":
		return number(r.Activity)
	case "shown":
		return strconv.FormatBool(r.Shown), true
	case "shownUnread":
		return number(r.ShownUnread)
	case "manual":
		return strconv.FormatBool(r.ManualUnread), true
	case "level":
		return r.Notification, true
	case "archived":
		return strconv.FormatBool(r.Archived), true
	case "revision":
		return number(r.ContentRevision)
	case "read":
		return number(rs.ReadRevision)
	case "version":
		return number(rs.Version)
	case "replies":
		return number(r.ReplyCount)
	case "state":
		return r.State, true
	case "name":
		return r.Name, true
	case "from":
		if rs.FromRevision == nil {
			return "none", true
		}
		return number(*rs.FromRevision)
	case "latest":
		if r.LatestMessage == nil {
			return "none", true
		}
		return r.LatestMessage.ID, true
	}
	return "", false
}

// expectRow compares one row on every surface that has it.
func (w *world) expectRow(ctx context.Context, s *Statement) error {
	actor, in := s.one("actor"), s.one("scope")
	if s.has("hydrating") {
		listed, err := w.listOnce(ctx, actor)
		if err != nil || listed.State != "ready" {
			return err
		}
	}
	r, err := w.row(ctx, actor, in)
	if err != nil {
		return err
	}
	return w.compareRow(ctx, s, r)
}

func (w *world) compareRow(ctx context.Context, s *Statement, r *row) error {
	for _, field := range s.Fields {
		got, known := r.value(field.Key)
		if !known {
			var err error
			if got, err = w.lookedUp(ctx, s.one("actor"), s.one("scope"), field.Key); err != nil {
				return err
			}
		}
		if err := w.equal(field, got); err != nil {
			return fmt.Errorf("%w\nrow       %s", err, r.brief())
		}
	}
	return nil
}

// row is the row of a scope: for a listening device its view at rest, else the list's, which
// has to agree with the read state and with the query of many members.
func (w *world) row(ctx context.Context, actor, in string) (*row, error) {
	if d := w.devices[actor]; d != nil && d.stream != nil {
		if err := w.settle(ctx, d); err != nil {
			return nil, err
		}
	}
	listed, err := w.list(ctx, actor)
	if err != nil {
		return nil, err
	}
	r, ok := listed.Scopes[in]
	if !ok {
		return nil, fmt.Errorf("%s is not listed for %s (%d rows are)", in, actor,
			len(listed.Scopes))
	}
	state, err := w.readState(ctx, actor, in)
	if err != nil {
		return nil, err
	}
	single := r
	single.Unread, single.Attention = state.Counts.Unread, state.Counts.Attention
	single.Activity = state.Counts.Activity
	single.Shown, single.ShownUnread = state.Counts.Shown, state.Counts.ShownUnread
	single.ReadState, single.ManualUnread = state.ReadState, state.ReadState.ManualUnread
	single.ContentRevision = state.ContentRevision
	queried, err := w.query(ctx, w.member(actor), in)
	if err != nil {
		return nil, err
	}
	for surface, other := range map[string]row{"read state": single, "query": queried} {
		if other.brief() != r.brief() {
			return nil, fmt.Errorf("the %s and the list disagree about %s:\n%s\n%s",
				surface, in, other.brief(), r.brief())
		}
	}
	return &r, nil
}

// query asks for one row as a backend does that asks for many members.
func (w *world) query(ctx context.Context, member, in string) (row, error) {
	c, err := w.asBackend(http.MethodPost,
		object{"members": []string{member}, "scopes": []string{in}}, "unread:query")
	if err != nil {
		return row{}, err
	}
	var answer struct {
		Members []page `json:"members"`
	}
	if err := w.must(ctx, c, &answer); err != nil {
		return row{}, err
	}
	if len(answer.Members) != 1 {
		return row{}, fmt.Errorf("asked about one member, got %d answers", len(answer.Members))
	}
	r, ok := answer.Members[0].Scopes[in]
	if !ok {
		return row{}, fmt.Errorf("the query of many members lacks %s of %s", in, member)
	}
	return r, nil
}

// lookedUp asks for a field that has a route of its own.
func (w *world) lookedUp(ctx context.Context, actor, in, key string) (string, error) {
	if key == "explained" {
		explained, err := w.explain(ctx, w.member(actor), in)
		return joined(explained.Messages), err
	}
	c, err := w.as(actor, http.MethodGet, nil, "scopes", in, "unread", "first")
	if err != nil {
		return "", err
	}
	var answer struct {
		FirstUnread    *posted `json:"firstUnread"`
		FirstAttention *posted `json:"firstAttention"`
	}
	if err := w.must(ctx, c, &answer); err != nil {
		return "", err
	}
	first := answer.FirstUnread
	if key == "firstAttention" {
		first = answer.FirstAttention
	}
	if first == nil {
		return "none", nil
	}
	return first.MessageID, nil
}

type explanation struct {
	Messages []string `json:"messages"`
	raw      string
}

func (w *world) explain(ctx context.Context, member, in string) (explanation, error) {
	c, err := w.asBackend(http.MethodGet, nil, "scopes", in, "unread", "explain")
	if err != nil {
		return explanation{}, err
	}
	c.query = url.Values{"member": {member}}
	r, err := w.do(ctx, c)
	if err != nil {
		return explanation{}, err
	}
	e := explanation{raw: r.brief()}
	if r.status != http.StatusOK {
		return e, &refused{c, r}
	}
	return e, r.decode(&e)
}

func joined(items []string) string {
	if len(items) == 0 {
		return "none"
	}
	return strings.Join(items, ",")
}

func (w *world) expectAbsent(ctx context.Context, s *Statement) error {
	actor, in := s.one("actor"), s.one("scope")
	if d := w.devices[actor]; d != nil && d.stream != nil {
		if err := w.settle(ctx, d); err != nil {
			return err
		}
	}
	listed, err := w.list(ctx, actor)
	if err != nil {
		return err
	}
	if r, there := listed.Scopes[in]; there {
		return fmt.Errorf("%s is listed for %s: %s", in, actor, r.brief())
	}
	_, err = w.readState(ctx, actor, in)
	var no *refused
	if !errors.As(err, &no) || no.reply.status != http.StatusNotFound {
		return fmt.Errorf("the read state of %s must answer not_found, got %w", in, err)
	}
	return nil
}

// failure adds what the server itself says about the counts a statement is about.
func (w *world) failure(ctx context.Context, file *File, s *Statement, err error) error {
	f := &StatementError{Path: file.Path, Statement: s, Err: err}
	actor := s.one("actor")
	if actor == "" {
		actor = s.one("device")
	}
	if actor == "" || ctx.Err() != nil {
		return f
	}
	in, scopeErr := w.scopeOf(s)
	scopes := []string{in}
	if scopeErr != nil {
		scopes = nil
		for name := range w.scopes {
			scopes = append(scopes, name)
		}
		slices.Sort(scopes)
	}
	for _, name := range scopes {
		explained, err := w.explain(ctx, w.member(actor), name)
		if explained.raw == "" && err != nil {
			explained.raw = err.Error()
		}
		f.Context = append(f.Context, fmt.Sprintf("explain   %s %s: %s",
			w.member(actor), name, explained.raw))
	}
	return f
}
