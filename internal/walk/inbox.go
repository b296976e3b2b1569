package walk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/readstate"
)

// walker plays the steps. The first thing that is not as it has to be stays in err, and nothing is
// done after it.
type walker struct {
	*world
	ctx context.Context
	out io.Writer
	err error

	first, second string // snapshots of devices A and B
	before        badge  // the badge that a step is compared with
}

// badge is the badge as it is on the wire.
type badge = httpapi.InboxBadge

// Inbox plays the story and writes it down, a paragraph a step. An error names the step that was not
// as it has to be.
func Inbox(ctx context.Context, out io.Writer) (err error) {
	w, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.seed(ctx); err != nil {
		return err
	}
	p := &walker{world: w, ctx: ctx, out: out}
	for i, step := range []struct {
		title string
		play  func()
	}{
		{"Bo sends twice and Cy once to Ada, who is offline", p.arrivals},
		{"Bo's first send is delivered again", p.repetition},
		{"The same operation id with another text", p.changedText},
		{"Device A opens Ada's inbox", p.opening},
		{"Dee's message races the acknowledgement of what device A saw", p.race},
		{"Control: clearing the whole set instead", p.control},
		{"The worker is interrupted before its commit, and the database reopened", p.interruption},
		{"The worker runs to the end", p.worker},
		{"Device B opens and acknowledges; then device A submits its old snapshot again", p.devices},
		{"Bo acknowledges on Ada's path", p.strangersPath},
		{"Bo submits Ada's snapshot on his own path", p.strangersSnapshot},
		{"Malformed requests", p.malformed},
		{"What Ada has read in her three conversations", p.conversations},
		{"What is retained", p.retained},
		{"The source is made unavailable", p.unavailable},
	} {
		p.say("\n%2d. %s", i+1, step.title)
		if step.play(); p.err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, step.title, p.err)
		}
	}
	return nil
}

func (p *walker) say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}

func (p *walker) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// do makes a request, which has to be answered with a status, and decodes the answer.
func (p *walker) do(status int, who, method, path string, body, into any) answer {
	if p.err != nil {
		return answer{}
	}
	a, err := p.as(p.ctx, who, method, path, body)
	switch {
	case err != nil:
		p.fail("%s %s: %w", method, path, err)
	case a.status != status:
		p.fail("%s %s as %s: %d, want %d: %s", method, path, who, a.status, status, a.body)
	case into != nil:
		if err := json.Unmarshal(a.body, into); err != nil {
			p.fail("%s %s: %w", method, path, err)
		}
	}
	p.say("      %-4s %-30s as %-3s %d %s", method, path, who, a.status, short(a.body))
	return a
}

func short(body []byte) string {
	if len(body) > 220 {
		return string(body[:220]) + "…"
	}
	return string(body)
}

const (
	adas = "/members/Ada/inbox"
	bos  = "/members/Bo/inbox"
)

func (p *walker) send(status int, who, op, text string) {
	p.do(status, who, http.MethodPost, adas+"/messages", map[string]string{"opId": op, "text": text}, nil)
}

// badge reads Ada's badge, which has to be as given.
func (p *walker) badge(accepted, acknowledged, projected uint64, senders ...string) badge {
	var got badge
	p.do(http.StatusOK, "Ada", http.MethodGet, adas+"/badge", nil, &got)
	if p.err == nil && (got.AcceptedThrough != accepted || got.AcknowledgedThrough != acknowledged ||
		got.ProjectedThrough != projected || got.TailRows != int(accepted-projected) ||
		got.Count != len(senders) || !slices.Equal(got.Senders, senders)) {
		p.fail("the badge is %+v, want accepted %d, acknowledged %d, projected %d, senders %v",
			got, accepted, acknowledged, projected, senders)
	}
	return got
}

func (p *walker) arrivals() {
	p.send(http.StatusCreated, "Bo", "bo-1", "hello")
	p.send(http.StatusCreated, "Bo", "bo-2", "are you there?")
	p.send(http.StatusCreated, "Cy", "cy-1", "lunch?")
	p.badge(3, 0, 0, "Bo", "Cy")
}

func (p *walker) repetition() {
	p.send(http.StatusOK, "Bo", "bo-1", "hello")
	p.badge(3, 0, 0, "Bo", "Cy")
}

func (p *walker) changedText() {
	p.send(http.StatusConflict, "Bo", "bo-1", "something else")
	p.badge(3, 0, 0, "Bo", "Cy")
}

// open opens Ada's inbox on a device and returns the snapshot.
func (p *walker) open(through uint64, messages int) string {
	var o httpapi.InboxOpened
	p.do(http.StatusOK, "Ada", http.MethodPost, adas+":open", struct{}{}, &o)
	if p.err == nil && (o.ObservedThrough != through || len(o.Messages) != messages) {
		p.fail("observed through %d with %d messages, want %d and %d",
			o.ObservedThrough, len(o.Messages), through, messages)
	}
	return o.SnapshotID
}

func (p *walker) opening() {
	p.first = p.open(3, 3)
	p.badge(3, 0, 0, "Bo", "Cy")
}

// ack acknowledges a snapshot on Ada's path.
func (p *walker) ack(op, snapshot string, through uint64) {
	var r httpapi.InboxAcknowledged
	p.do(http.StatusOK, "Ada", http.MethodPost, adas+"/acks",
		map[string]string{"opId": op, "snapshotId": snapshot}, &r)
	if p.err == nil && r.AcknowledgedThrough != through {
		p.fail("acknowledged through %d, want %d", r.AcknowledgedThrough, through)
	}
}

func (p *walker) race() {
	var both errgroup.Group
	sent, acked := answer{}, answer{}
	both.Go(func() (err error) {
		sent, err = p.as(p.ctx, "Dee", http.MethodPost, adas+"/messages",
			map[string]string{"opId": "dee-1", "text": "news"})
		return err
	})
	both.Go(func() (err error) {
		acked, err = p.as(p.ctx, "Ada", http.MethodPost, adas+"/acks",
			map[string]string{"opId": "a-1", "snapshotId": p.first})
		return err
	})
	if err := both.Wait(); err != nil {
		p.fail("%w", err)
	}
	p.say("      at once: the send %d %s, the acknowledgement %d %s",
		sent.status, sent.body, acked.status, acked.body)
	if sent.status != http.StatusCreated || acked.status != http.StatusOK {
		p.fail("the send was answered with %d, the acknowledgement with %d", sent.status, acked.status)
	}
	p.before = p.badge(4, 3, 0, "Dee")
}

// control keeps the senders with something new in a set, as one should not.
func (p *walker) control() {
	unseen := map[string]bool{"Bo": true, "Cy": true} // shown
	unseen["Dee"] = true                              // arrives
	clear(unseen)                                     // opened
	p.say("      a set that is cleared counts %d: Dee is lost", len(unseen))
	p.badge(4, 3, 0, "Dee")
}

func (p *walker) interruption() {
	p.broken.Store(true)
	if _, err := p.inbox.Work(p.ctx); !errors.Is(err, errInterrupted) {
		p.fail("the worker was not interrupted: %w", err)
	}
	p.broken.Store(false)
	if p.err == nil {
		p.err = p.reopen(p.ctx)
	}
	p.before = p.badge(4, 3, 0, "Dee")
}

func (p *walker) worker() {
	info, err := p.engine.Workspace(workspace).Member(p.ctx, "Ada")
	if err != nil {
		p.fail("%w", err)
		return
	}
	p.inbox.Poke(info.Key)
	n, err := p.inbox.Work(p.ctx)
	if err != nil || n != 4 {
		p.fail("%d items projected: %w", n, err)
	}
	after := p.badge(4, 3, 4, "Dee")
	after.ProjectedThrough, after.TailRows = p.before.ProjectedThrough, p.before.TailRows
	if p.err == nil && fmt.Sprint(after) != fmt.Sprint(p.before) {
		p.fail("something else has changed: %+v, %+v", p.before, after)
	}
}

func (p *walker) devices() {
	p.second = p.open(4, 1)
	p.ack("b-1", p.second, 4)
	p.ack("a-1", p.first, 3) // a repetition: the receipt of then
	p.ack("a-2", p.first, 4) // a new operation: nothing falls
	p.badge(4, 4, 4)
}

// refused makes a request that has to be refused and to leave Ada's and Bo's inboxes alone.
func (p *walker) refused(status int, who, path, op string) {
	p.do(status, who, http.MethodPost, path, map[string]string{"opId": op, "snapshotId": p.first}, nil)
	p.badge(4, 4, 4)
	var bo badge
	p.do(http.StatusOK, "Bo", http.MethodGet, bos+"/badge", nil, &bo)
	if p.err == nil && bo.AcknowledgedThrough != 0 {
		p.fail("Bo's inbox is acknowledged through %d", bo.AcknowledgedThrough)
	}
}

func (p *walker) strangersPath()     { p.refused(http.StatusForbidden, "Bo", adas+"/acks", "bo-ack") }
func (p *walker) strangersSnapshot() { p.refused(http.StatusForbidden, "Bo", bos+"/acks", "bo-ack") }

func (p *walker) malformed() {
	token, err := httpapi.SignToken(secret, httpapi.Claims{
		Workspace: workspace, Member: "Ada", Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		p.fail("%w", err)
		return
	}
	head := "POST /api/v1/workspaces/acme" + adas + "/acks HTTP/1.1\r\nHost: walk\r\n" +
		"Authorization: Bearer " + token + "\r\nContent-Type: application/json\r\n"
	surrogate := `{"opId": "\ud800", "snapshotId": "x"}`
	for _, c := range []struct {
		name, text string
		half       bool
	}{
		{"empty transfer encoding", head + "Transfer-Encoding: \r\nContent-Length: 2\r\n\r\n{}", false},
		{"huge numeric length", head + "Content-Length: 999999999999999999\r\n\r\n", false},
		{"ambiguous length", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", false},
		{"short body", head + "Content-Length: 90\r\n\r\n{", true},
		{"unpaired surrogate", head + fmt.Sprintf(
			"Content-Length: %d\r\n\r\n%s", len(surrogate), surrogate), false},
	} {
		status, err := p.raw(p.ctx, c.text, c.half)
		if err != nil || status != http.StatusBadRequest {
			p.fail("%s: %d, %w", c.name, status, err)
		}
		p.say("      %-23s %d", c.name, status)
	}
	p.badge(4, 4, 4)
}

func (p *walker) conversations() {
	var read []string
	for _, m := range []readstate.MemberID{"Bo", "Cy", "Dee"} {
		var state struct {
			ReadState struct {
				ReadRevision uint64 `json:"readRevision"`
			} `json:"readState"`
		}
		p.do(http.StatusOK, "Ada", http.MethodGet,
			"/scopes/"+string(conversation(m))+"/read-state", nil, &state)
		read = append(read, fmt.Sprint(state.ReadState.ReadRevision))
	}
	p.say("      read positions [%s]", strings.Join(read, ", "))
	if got := strings.Join(read, " "); got != "0 0 0" {
		p.fail("the conversations are read through %s", got)
	}
}

func (p *walker) retained() {
	info, err := p.engine.Workspace(workspace).Member(p.ctx, "Ada")
	if err != nil {
		p.fail("%w", err)
		return
	}
	view, err := p.inbox.Store.InboxView(p.ctx)
	if err != nil {
		p.fail("%w", err)
		return
	}
	items, err := view.Items(p.ctx, info.Key, 0, 100)
	if err = errors.Join(err, view.Close()); err != nil || len(items) != 4 {
		p.fail("%d messages are retained: %w", len(items), err)
	}
	p.say("      %d messages: the repetition and the refused send have left none", len(items))
}

func (p *walker) unavailable() {
	if err := p.engine.Close(); err != nil {
		p.fail("%w", err)
	}
	for _, r := range []struct {
		who, method, path string
		body              any
	}{
		{"Ada", http.MethodGet, adas + "/badge", nil},
		{"Ada", http.MethodPost, adas + ":open", struct{}{}},
		{"Ada", http.MethodPost, adas + "/acks", map[string]string{"opId": "z", "snapshotId": p.first}},
		{"Bo", http.MethodPost, adas + "/messages", map[string]string{"opId": "z", "text": "z"}},
	} {
		a := p.do(http.StatusServiceUnavailable, r.who, r.method, r.path, r.body, nil)
		if p.err == nil && strings.Contains(string(a.body), "count") {
			p.fail("what is not known has a count: %s", a.body)
		}
	}
}
