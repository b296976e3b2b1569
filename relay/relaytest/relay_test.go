package relaytest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	nostr "github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip44"
	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

var community = uuid.MustParse("01234567-89ab-cdef-0123-456789abcdef")

func secretOf(n int) string { return fmt.Sprintf("%064x", n) }

func keyOf(t testing.TB, n int) *nostrx.Key {
	t.Helper()
	key, err := nostrx.ParseKey(secretOf(n))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// listen starts a relay whose own key is 99 and whose only member is the key 1, if nothing else is
// said.
func listen(t testing.TB, change func(*relaytest.Options)) *relaytest.Server {
	t.Helper()
	o := relaytest.Options{
		Self: keyOf(t, 99), Community: community, Members: []nostrx.PubKey{keyOf(t, 1).Public()},
	}
	if change != nil {
		change(&o)
	}
	s, err := relaytest.Listen(t.Context(), "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func sign(t testing.TB, key *nostrx.Key, e nostrx.Event) nostrx.Event {
	t.Helper()
	e, err := key.Sign(e)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A client that shares nothing with this one authenticates, publishes, subscribes and queries, and
// reads what is encrypted to itself.
func TestForeignClient(t *testing.T) {
	if raceDetector {
		t.Skip("the other client races with itself when it is closed")
	}
	s := listen(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	relay := nostr.NewRelay(ctx, s.URL)
	if err := relay.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	defer relay.Close()

	e := nostr.Event{Kind: nostrx.KindAppData, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"d", "x"}}}
	public, err := nostr.GetPublicKey(secretOf(1))
	if err != nil {
		t.Fatal(err)
	}
	key, err := nip44.GenerateConversationKey(public, secretOf(1))
	if err != nil {
		t.Fatal(err)
	}
	if e.Content, err = nip44.Encrypt("to myself", key); err != nil {
		t.Fatal(err)
	}
	if err := e.Sign(secretOf(1)); err != nil {
		t.Fatal(err)
	}
	if err := relay.Publish(ctx, e); err == nil || !strings.Contains(err.Error(), "auth-required") {
		t.Fatalf("published without authentication: %v", err)
	}
	if err := relay.Auth(ctx, func(e *nostr.Event) error { return e.Sign(secretOf(1)) }); err != nil {
		t.Fatal(err)
	}
	if err := relay.Publish(ctx, e); err != nil {
		t.Fatal(err)
	}
	sub, err := relay.Subscribe(ctx, nostr.Filters{{Kinds: []int{nostrx.KindAppData}, Authors: []string{public}}})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsub()
	var got *nostr.Event
	select {
	case got = <-sub.Events:
	case reason := <-sub.ClosedReason:
		t.Fatal(reason)
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	if got.ID != e.ID {
		t.Fatalf("got %v", got)
	}
	text, err := keyOf(t, 1).Open(got.Content)
	if err != nil || text != "to myself" {
		t.Errorf("opened to %q, %v", text, err)
	}
}

// call makes a POST as a key, with an authorisation that may be given.
func call(t testing.TB, s *relaytest.Server, key *nostrx.Key, path, body, header string) (int, []byte) {
	t.Helper()
	address := strings.Replace(s.URL, "ws:", "http:", 1) + path
	if header == "" {
		var err error
		if header, err = key.Authorize("POST", address, []byte(body), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", header)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, data
}

// A snapshot query has one form. Everything near it is refused, and is never answered by a page.
func TestSnapshotQuery(t *testing.T) {
	s := listen(t, nil)
	mine, other := keyOf(t, 1), keyOf(t, 2)
	me := string(mine.Public())
	good := fmt.Sprintf(`[{"kinds":[30078],"authors":[%q],"read_state_snapshot":1}]`, me)
	for _, body := range []string{
		strings.Replace(good, `shot":1`, `shot":0`, 1), strings.Replace(good, `shot":1`, `shot":2`, 1),
		strings.Replace(good, `shot":1`, `shot":false`, 1), strings.Replace(good, `shot":1`, `shot":null`, 1),
		strings.Replace(good, `shot":1`, `shot":1,"limit":5`, 1), strings.Replace(good, `shot":1`, `shot":1,"since":5`, 1),
		strings.Replace(good, `shot":1`, `shot":1,"#t":["read-state"]`, 1),
		strings.Replace(good, me, string(other.Public()), 1), strings.Replace(good, "30078", "9", 1),
		strings.Replace(good, "}]", "},{}]", 1), `[{},` + good[1:], `[{"read_state_snapshot":1}]`,
	} {
		if code, answer := call(t, s, mine, "/query", body, ""); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	code, answer := call(t, s, mine, "/query", good, "")
	d := nostrx.SnapshotDescriptor{Community: community, MaxEvents: 10, MaxBytes: 1000}
	if got, err := nostrx.ParseSnapshot(answer, d, mine.Public()); code != 200 || err != nil || len(got.Events) != 0 {
		t.Errorf("%d, %v, %s", code, err, answer)
	}

	address := strings.Replace(s.URL, "ws:", "http:", 1) + "/query"
	once, err := mine.Authorize("POST", address, []byte(good), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := mine.Authorize("POST", address+"/x", []byte(good), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		key    *nostrx.Key
		header string
		want   int
	}{
		{mine, once, 200}, {mine, once, 401}, {mine, elsewhere, 401}, {mine, "Nostr x", 401}, {other, "", 403},
	} {
		if code, answer := call(t, s, c.key, "/query", good, c.header); code != c.want {
			t.Errorf("authorisation %d: %d %s", i, code, answer)
		}
	}
	if code, answer := call(t, s, other, "/query", good, ""); code != 403 ||
		string(bytes.TrimSpace(answer)) != `{"error":"relay_membership_required"}` {
		t.Errorf("%d %s", code, answer)
	}
	if code, _ := call(t, s, mine, "/events", `{}`, elsewhere); code != 401 {
		t.Errorf("a publication without an authorisation of its own: %d", code)
	}
}

// A snapshot has all application data of its author and of nobody else, or there is none.
func TestSnapshotBounds(t *testing.T) {
	mine := keyOf(t, 1)
	data := func(d string, at int64) nostrx.Event {
		return sign(t, mine, nostrx.Event{Kind: nostrx.KindAppData, CreatedAt: at, Tags: []nostrx.Tag{{"d", d}}})
	}
	events := []nostrx.Event{data("a", 1), data("b", 2), data("of another app", 2)}
	raw := 2 + len(events) - 1
	for _, e := range events {
		raw += len(e.Encode())
	}
	query := fmt.Sprintf(`[{"kinds":[30078],"authors":[%q],"read_state_snapshot":1}]`, string(mine.Public()))
	for _, c := range []struct{ events, bytes, want int }{{3, raw, 200}, {2, raw, 413}, {3, raw - 1, 413}} {
		s := listen(t, func(o *relaytest.Options) { o.SnapshotEvents, o.SnapshotBytes = c.events, c.bytes })
		foreign := sign(t, keyOf(t, 2), nostrx.Event{Kind: nostrx.KindAppData, CreatedAt: 1})
		if err := s.Keep(append(events, foreign, data("a", 0))...); err != nil {
			t.Fatal(err)
		}
		code, answer := call(t, s, mine, "/query", query, "")
		if code != c.want || code != 200 && bytes.Contains(answer, []byte("complete")) {
			t.Errorf("%+v: %d %s", c, code, answer)
		}
		if code != 200 {
			continue
		}
		d := nostrx.SnapshotDescriptor{Community: community, MaxEvents: c.events, MaxBytes: c.bytes}
		if got, err := nostrx.ParseSnapshot(answer, d, mine.Public()); err != nil || len(got.Events) != 3 {
			t.Errorf("%v, %+v", err, got)
		}
	}
}

// The document names the descriptor, whatever the request for it carries, and only where there are
// snapshots.
// covers: RL-539
func TestDocument(t *testing.T) {
	s := listen(t, nil)
	web := strings.Replace(s.URL, "ws:", "http:", 1)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var first []byte
	for _, path := range []string{"/", "/info", "/?community_id=00000000-0000-0000-0000-000000000001"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", web+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		}
		info, err := nostrx.ParseInfo(data)
		if err != nil || info.Snapshot == nil || info.Snapshot.Community != community || !bytes.Equal(data, first) {
			t.Errorf("%s: %v, %s", path, err, data)
		}
		if info.Self != keyOf(t, 99).Public() {
			t.Errorf("its key is %q", info.Self)
		}
	}
}

// A publication is taken within 900 s of the relay's clock, and not a second beyond.
// covers: RL-138
func TestTimes(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := listen(t, func(o *relaytest.Options) { o.Now = func() time.Time { return now } })
	mine := keyOf(t, 1)
	for offset, want := range map[int64]int{-901: 400, -900: 200, 0: 200, 900: 200, 901: 400} {
		e := sign(t, mine, nostrx.Event{Kind: 1, CreatedAt: now.Unix() + offset})
		address := strings.Replace(s.URL, "ws:", "http:", 1) + "/events"
		header, err := mine.Authorize("POST", address, e.Encode(), now)
		if err != nil {
			t.Fatal(err)
		}
		code, answer := call(t, s, mine, "/events", string(e.Encode()), header)
		if code != want {
			t.Errorf("%d s: %d %s", offset, code, answer)
		}
		if code == 400 && !strings.Contains(string(answer), "invalid: event timestamp too far from server time") {
			t.Errorf("%d s: %s", offset, answer)
		}
	}
}

// A page's limit counts what is returned, auxiliary events come besides, and what is deleted makes
// room for older rows.
// covers: RL-134
func TestPages(t *testing.T) {
	mine := keyOf(t, 1)
	s := listen(t, func(o *relaytest.Options) { o.PageLimit = 3 })
	if err := s.SetChannel(relaytest.Channel{ID: "c", Type: "stream", Members: []nostrx.PubKey{mine.Public()}}); err != nil {
		t.Fatal(err)
	}
	var kept []nostrx.Event
	for i := range 5 {
		kept = append(kept, sign(t, mine, nostrx.Event{Kind: nostrx.KindChat, CreatedAt: int64(10 + i),
			Tags: []nostrx.Tag{{"h", "c"}}}))
		kept = append(kept, sign(t, mine, nostrx.Event{Kind: 7, CreatedAt: int64(10 + i), Tags: []nostrx.Tag{{"h", "c"}}}))
	}
	edit := sign(t, mine, nostrx.Event{Kind: nostrx.KindEdit, CreatedAt: 30, Tags: []nostrx.Tag{{"e", string(kept[8].ID)}}})
	if err := s.Keep(append(kept, edit)...); err != nil {
		t.Fatal(err)
	}
	page := func() (times []int64, aux int) {
		code, answer := call(t, s, mine, "/query", `[{"kinds":[9],"#h":["c"],"limit":3,"include_aux":true}]`, "")
		var got []nostrx.Event
		if err := json.Unmarshal(answer, &got); err != nil || code != 200 {
			t.Fatalf("%d, %v", code, err)
		}
		for _, e := range got {
			if nostrx.Auxiliary(e.Kind) {
				aux++
			} else {
				times = append(times, e.CreatedAt)
			}
		}
		return times, aux
	}
	if times, aux := page(); !slices.Equal(times, []int64{14, 13, 12}) || aux != 1 {
		t.Errorf("%v and %d", times, aux)
	}
	gone := sign(t, mine, nostrx.Event{Kind: nostrx.KindDelete, CreatedAt: time.Now().Unix(),
		Tags: []nostrx.Tag{{"e", string(kept[8].ID)}}})
	if code, answer := call(t, s, mine, "/events", string(gone.Encode()), ""); code != 200 {
		t.Fatalf("%d %s", code, answer)
	}
	if times, aux := page(); !slices.Equal(times, []int64{13, 12, 11}) || aux != 2 {
		t.Errorf("after the deletion %v and %d", times, aux)
	}
	if code, answer := call(t, s, mine, "/events", string(kept[8].Encode()), ""); code == 200 {
		t.Errorf("a deleted event came back: %s", answer)
	}
}
