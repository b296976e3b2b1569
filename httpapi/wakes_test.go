package httpapi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/outbox"
)

var wakeSecret = base64.StdEncoding.EncodeToString([]byte("a secret of 24 bytes or more"))

// startOutbox has what facts cause carried out until the test ends.
func startOutbox(
	t *testing.T, engine *tidemark.Engine, network outbox.Network,
) (b *outbox.Outbox, stop func()) {
	t.Helper()
	var box atomic.Pointer[outbox.Outbox]
	port, err := engine.Effects(context.Background(), func(w facts.WorkspaceKey) {
		if b := box.Load(); b != nil {
			b.Poke(w)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err = outbox.New(outbox.Options{
		Store: port.Store, Terms: port.Terms, Accounting: outbox.Applied(port.Applied),
		Badges: outbox.EngineBadges(engine), Network: network,
		Limits: outbox.Limits{WakeAttempts: 1}, // what fails is a dead letter at once
	})
	if err != nil {
		t.Fatal(err)
	}
	box.Store(b)
	ended := make(chan error, 1)
	go func() { ended <- b.Run(context.Background()) }()
	return b, func() {
		b.Close()
		if err := <-ended; err != nil {
			t.Errorf("outbox: %v", err)
		}
	}
}

func withOutbox(t *testing.T, network outbox.Network) *harness {
	t.Helper()
	return makeHarness(t, &network)
}

// receiver is an agent's server: it hands on what it was sent.
func receiver(t *testing.T, answer func() int) (string, chan outbox.Message) {
	t.Helper()
	got := make(chan outbox.Message, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var m outbox.Message
		if err != nil || json.Unmarshal(body, &m) != nil || r.Header.Get("webhook-id") == "" {
			t.Errorf("received %q with %v", body, r.Header)
		}
		status := answer()
		w.WriteHeader(status)
		if status < 300 {
			got <- m
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

func (h *harness) next(got chan outbox.Message) outbox.Message {
	h.t.Helper()
	select {
	case m := <-got:
		return m
	case <-time.After(30 * time.Second):
		h.t.Fatal("nothing was sent")
		return outbox.Message{}
	}
}

func local() outbox.Network {
	return outbox.Network{AllowHTTP: true, Allow: outbox.AllowPrivate()}
}

// An agent is woken at its address, or reads its wakes by long poll, each acknowledged by reading
// on.
// covers: RT-179
func TestWakes(t *testing.T) {
	h := withOutbox(t, local())
	taskWorld(h)
	url, got := receiver(t, func() int { return 204 })
	wakes := h.want(200, "GET", "W/members/bot/wakes?wait=20s", h.member("bot"), nil)
	wakes.is(t, "task.activity", "wakes", 0, "message", "type") // of the first assignment
	last := fmt.Sprint(wakes.at("wakes", len(wakes.at("wakes").([]any))-1, "position"))
	h.want(200, "GET", "W/members/bot/wakes?after="+last, h.member("bot"), nil)

	h.want(200, "PUT", "W/members/bot/wake", h.service(), object{"url": url, "secret": wakeSecret}).
		is(t, url, "url")
	h.post("t", "A", object{"messageId": "q"})
	for m := h.next(got); m.MessageID != "q"; m = h.next(got) { // what was not read yet comes first
		if m.Agent != "bot" || m.Workspace != "W" || m.Scope != "t" {
			t.Errorf("woken with %+v", m)
		}
	}
	h.want(200, "GET", "W/members/bot/wake", h.service(), nil).is(t, false, "disabled")
	h.want(200, "DELETE", "W/members/bot/wake", h.service(), nil).is(t, nil, "url")

	h.unchanged(func() {
		for _, bad := range []object{
			{"url": "", "secret": wakeSecret}, {"url": "no address", "secret": wakeSecret},
			{"url": "ftp://a/b", "secret": wakeSecret}, {"url": url, "secret": "short"},
			{"url": "http://a:b@c/", "secret": wakeSecret}, {"secret": wakeSecret}, {"url": url},
		} {
			h.refused(httpapi.CodeInvalidRequest, "PUT", "W/members/bot/wake", h.service(), bad)
		}
		h.refused(httpapi.CodeInvalidRequest, "PUT", "W/members/A/wake", h.service(),
			object{"url": url, "secret": wakeSecret}) // no agent
		h.refused(httpapi.CodeNotFound, "PUT", "W/members/nobody/wake", h.service(),
			object{"url": url, "secret": wakeSecret})
		h.refused(httpapi.CodeForbidden, "GET", "W/members/bot/wakes", h.member("A"), nil)
		h.refused(httpapi.CodeForbidden, "PUT", "W/members/bot/wake", h.member("bot"),
			object{"url": url, "secret": wakeSecret})
		for _, wait := range []string{"1", "-1s", "2m", "soon"} {
			h.refused(httpapi.CodeInvalidRequest, "GET", "W/members/bot/wakes?wait="+wait,
				h.member("bot"), nil)
		}
		h.refused(httpapi.CodeInvalidRequest, "GET", "W/members/bot/wakes?after=999999999",
			h.member("bot"), nil)
	})
}

// Without leave nothing is sent to where only this machine can reach.
func TestWakesStayOutside(t *testing.T) {
	h := withOutbox(t, outbox.Network{})
	taskWorld(h)
	for _, url := range []string{
		"http://example.com/", "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1/",
		"https://169.254.169.254/latest", "https://0.0.0.0/",
	} {
		h.refused(httpapi.CodeInvalidRequest, "PUT", "W/members/bot/wake", h.service(),
			object{"url": url, "secret": wakeSecret})
	}
}

// A webhook tells when a badge reaches its number.
func TestWebhooks(t *testing.T) {
	h := withOutbox(t, local())
	h.world("A", "B")
	url, got := receiver(t, func() int { return 200 })
	admin := h.token("W", "root", httpapi.RoleAdmin)
	body := object{
		"url": url, "secret": wakeSecret, "on": []string{"unread.threshold"},
		"members": []string{"B"}, "threshold": 3,
	}
	hook := h.want(200, "PUT", "W/webhooks/w1", admin, body)
	hook.is(t, "B", "members", 0)
	hook.is(t, "unread.threshold", "on", 0)
	h.want(200, "GET", "W/webhooks", admin, nil).is(t, "w1", "webhooks", 0, "id")
	for range 3 {
		h.post("c", "A", nil)
	}
	patience := time.Now().Add(30 * time.Second)
	for i := 0; len(got) == 0 && time.Now().Before(patience); i++ {
		// The first look at a badge is not a crossing: it may have come after the third message.
		h.want(200, "PUT", "W/scopes/c/read-state", h.member("B"), object{
			"type": "read", "readRevision": 3 * (i + 1), "expectedVersion": 0,
		})
		for range 3 {
			h.post("c", "A", nil)
		}
	}
	if m := h.next(got); m.Member != "B" || m.Webhook != "w1" || m.Unread == nil || *m.Unread < 3 {
		t.Errorf("told %+v", m)
	}
	h.unchanged(func() {
		for _, change := range []object{
			{"on": []string{}}, {"threshold": 0}, {"on": []string{"unread.idle"}}, {"members": []string{}},
			{"on": []string{"else"}}, {"url": "x"}, {"idleSeconds": 5},
		} {
			bad := object{}
			for k, v := range body {
				bad[k] = v
			}
			for k, v := range change {
				bad[k] = v
			}
			h.refused(httpapi.CodeInvalidRequest, "PUT", "W/webhooks/w2", admin, bad)
		}
		h.refused(httpapi.CodeForbidden, "PUT", "W/webhooks/w2", h.service(), body)
		h.refused(httpapi.CodeNotFound, "DELETE", "W/webhooks/none", admin, nil)
	})
	h.want(200, "DELETE", "W/webhooks/w1", admin, nil)
	h.want(200, "GET", "W/webhooks", admin, nil).is(t, nil, "webhooks", 0)
}

func TestDeadLetters(t *testing.T) {
	h := withOutbox(t, local())
	taskWorld(h)
	admin := h.token("W", "root", httpapi.RoleAdmin)
	h.want(200, "GET", "W/outbox/dead", admin, nil).is(t, nil, "letters", 0)
	var well atomic.Bool
	url, got := receiver(t, func() int {
		if well.Load() {
			return 200
		}
		return 500
	})
	h.want(200, "PUT", "W/members/bot/wake", h.service(), object{"url": url, "secret": wakeSecret})
	var letter any
	for patience := time.Now().Add(30 * time.Second); time.Now().Before(patience); {
		list := h.want(200, "GET", "W/outbox/dead?limit=1", admin, nil)
		if letter = list.at("letters", 0, "id"); letter != nil {
			list.is(t, "wake", "letters", 0, "kind")
			list.is(t, "bot", "letters", 0, "message", "agent")
			break
		}
	}
	if letter == nil {
		t.Fatal("no dead letter")
	}
	well.Store(true)
	h.want(200, "POST", fmt.Sprintf("W/outbox/dead/%v:requeue", letter), admin, object{})
	if m := h.next(got); m.Agent != "bot" {
		t.Errorf("requeued %+v", m)
	}
	h.refused(httpapi.CodeNotFound, "POST", fmt.Sprintf("W/outbox/dead/%v:requeue", letter), admin,
		object{})
	h.refused(httpapi.CodeNotFound, "POST", "W/outbox/dead/5:requeue", admin, object{})
	h.refused(httpapi.CodeNotFound, "POST", "W/outbox/dead/x:requeue", admin, object{})
	h.refused(httpapi.CodeForbidden, "GET", "W/outbox/dead", h.service(), nil)
	h.refused(httpapi.CodeInvalidRequest, "GET", "W/outbox/dead?pageToken=AAAA", admin, nil)
}
