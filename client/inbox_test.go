package client_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/client/readsync"
)

func (w *world) sendToInbox(op string) {
	w.t.Helper()
	w.want(201, "POST", "/api/v1/workspaces/W/members/A/inbox/messages", w.token("B"),
		object{"opId": op, "text": "hello"})
}

// An overview is acknowledged when the app says so and by nothing else: not by a badge, not by an
// opening, least of all by one that failed. What arrived after it stays new.
//
// covers: IN-059 IN-061 IN-160
func TestInbox(t *testing.T) {
	w := newWorld(t)
	d := w.open()
	ctx := t.Context()
	w.sendToInbox("1")
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	shows := func(want string) {
		t.Helper()
		b, state := d.InboxBadge()
		if got := fmt.Sprint(b.Accepted, b.Acknowledged, b.Senders, state); got != want {
			t.Errorf("the badge is %s, want %s", got, want)
		}
	}
	shows("0 0 [] 0")
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/inbox") {
			http.Error(rw, "gone", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(rw, r)
	})
	if err := d.RefreshInbox(ctx); err == nil {
		t.Error("it was read from a server that is gone")
	}
	if _, err := d.OpenInbox(ctx); err == nil {
		t.Error("it was opened on a server that is gone")
	}
	shows("0 0 [] 0")
	w.guard(nil)
	ok(d.RefreshInbox(ctx))
	shows("1 0 [B] 2")
	o, err := d.OpenInbox(ctx)
	ok(err)
	if o.ObservedThrough != 1 || len(o.Messages) != 1 || o.Messages[0].Text != "hello" {
		t.Errorf("%+v", o)
	}
	if acks := w.requests("/acks"); len(acks) != 0 {
		t.Fatalf("acknowledged by itself: %v", acks)
	}
	w.sendToInbox("2")
	gone, leave := context.WithCancel(ctx)
	leave()
	if err := d.AcknowledgeInbox(gone, o); err == nil {
		t.Error("acknowledged without a server")
	}
	ok(d.AcknowledgeInbox(ctx, o))
	ok(d.AcknowledgeInbox(ctx, o)) // an answer that was lost
	if d.InboxBoundary() != 1 {
		t.Errorf("acknowledged through %d", d.InboxBoundary())
	}
	shows(fmt.Sprint("1 0 [B] ", readsync.InboxStale))
	ok(d.RefreshInbox(ctx))
	shows("2 1 [B] 2")
	late, err := d.OpenInbox(ctx)
	ok(err)
	ok(d.AcknowledgeInbox(ctx, late))
	ok(d.AcknowledgeInbox(ctx, o)) // its receipt is of the past
	if d.InboxBoundary() != 2 {
		t.Errorf("a receipt of the past made it %d", d.InboxBoundary())
	}
	ok(d.RefreshInbox(ctx))
	shows("2 2 [] 2")
}
