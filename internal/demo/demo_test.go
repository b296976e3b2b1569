package demo_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/demo"
	"github.com/tidemark-im/tidemark/outbox"
	"github.com/tidemark-im/tidemark/readstate"
)

func seeded(t *testing.T) *tidemark.Engine {
	t.Helper()
	e, err := tidemark.Open(t.Context(), tidemark.Options{
		Facts: "sqlite:" + filepath.Join(t.TempDir(), "demo.db"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := demo.Seed(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e
}

type seen struct {
	Unread, Attention uint64
	Shown, Manual     bool
}

func look(t *testing.T, e *tidemark.Engine, m readstate.MemberID) map[readstate.ScopeID]seen {
	t.Helper()
	page, err := e.Workspace(demo.Workspace).Unread(t.Context(), m, "", 100)
	if err != nil || !page.Complete || page.Next != "" {
		t.Fatalf("unread of %s: %+v, %v", m, page.Summary, err)
	}
	out := map[readstate.ScopeID]seen{}
	for _, row := range page.Rows {
		out[row.Scope.ID] = seen{
			row.Values.Unread, row.Values.Attention, row.Presented.Shown, row.Row.Manual.Set,
		}
	}
	return out
}

// What one sees first has an example of everything.
func TestSeed(t *testing.T) {
	e := seeded(t)
	want := map[readstate.ScopeID]seen{
		"general":      {3, 1, true, false},
		"design":       {0, 0, false, false},
		"releases":     {0, 0, true, true},
		"random":       {1, 0, false, false},
		"ada-ben":      {1, 1, true, false},
		"ada-dora":     {0, 0, false, false},
		"badge-colour": {1, 1, true, false},
		"release-14":   {1, 0, true, false},
		"archive-dot":  {2, 0, true, false},
	}
	if diff := cmp.Diff(want, look(t, e, demo.Ada)); diff != "" {
		t.Error(diff)
	}
	if ben := look(t, e, demo.Ben); ben["ada-dora"] != (seen{}) || len(ben) == 0 {
		t.Errorf("Ben: %v", ben)
	}
}

func TestTrafficKeepsEveryoneBusy(t *testing.T) {
	e := seeded(t)
	before := look(t, e, demo.Ada)
	traffic := demo.NewTraffic(e, rand.New(rand.NewPCG(1, 2)))
	for range 150 {
		if err := traffic.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for id, now := range look(t, e, demo.Ada) {
		if id != "ada-ben" && now.Unread <= before[id].Unread {
			t.Errorf("nothing happened in %s: %+v", id, now)
		}
	}
}

func TestTrafficForgivesThatSomebodyElseRemovedItsMessage(t *testing.T) {
	e := seeded(t)
	w := e.Workspace(demo.Workspace)
	traffic := demo.NewTraffic(e, rand.New(rand.NewPCG(3, 4)))
	for i := range 200 {
		if err := traffic.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		page, err := w.Messages(t.Context(), tidemark.MessageFilter{Scope: "general", Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 && len(page.Messages) == 1 {
			_, err := w.Remove(t.Context(), facts.Remove{
				Scope: "general", Message: page.Messages[0].ID, OpID: page.Messages[0].ID,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestTrafficEnds(t *testing.T) {
	e := seeded(t)
	traffic := demo.NewTraffic(e, rand.New(rand.NewPCG(5, 6)))
	ticks := make(chan time.Time)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- traffic.Run(ctx, ticks) }()
	ticks <- time.Now()
	ticks <- time.Now() // taken only after the first step is done
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	unknown := demo.NewTraffic(bare(t), rand.New(rand.NewPCG(5, 6)))
	go func() { ended <- unknown.Run(t.Context(), ticks) }()
	ticks <- time.Now()
	if err := <-ended; !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// bare is an engine without the demo's workspace.
func bare(t *testing.T) *tidemark.Engine {
	t.Helper()
	e, err := tidemark.Open(t.Context(), tidemark.Options{
		Facts: "sqlite:" + filepath.Join(t.TempDir(), "bare.db"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// The page is complete, and loads nothing from anywhere else.
func TestPage(t *testing.T) {
	page := demo.Page()
	get := func(path string) (int, string, string) {
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		body, _ := io.ReadAll(answer.Result().Body)
		if csp := answer.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("%s: policy %q", path, csp)
		}
		return answer.Code, answer.Header().Get("Content-Type"), string(body)
	}
	code, kind, html := get("/")
	if code != 200 || !strings.HasPrefix(kind, "text/html") {
		t.Fatalf("%d %s", code, kind)
	}
	outside := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9-]+\.[a-z]|style="|<script>|\son[a-z]+="`)
	names, err := fs.Glob(os.DirFS("page"), "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		_, _, text := get("/" + strings.TrimSuffix(name, "index.html"))
		if found := outside.FindString(text); found != "" && !strings.HasSuffix(name, ".svg") {
			t.Errorf("%s holds %q, which the policy forbids", name, found)
		}
	}
	refs := regexp.MustCompile(`(?:href|src)="([^"#]+)"|from "\./([^"]+)"`)
	for _, name := range append([]string{""}, names...) {
		text := html
		if name != "" {
			_, _, text = get("/" + strings.TrimSuffix(name, "index.html"))
		}
		for _, ref := range refs.FindAllStringSubmatch(text, -1) {
			if target := ref[1] + ref[2]; !slices.Contains(names, target) && target != "/docs" {
				t.Errorf("%q refers to %q, which is not there", name, target)
			}
		}
	}
	if code, _, _ := get("/nothing.js"); code != 404 {
		t.Errorf("a missing file answers %d", code)
	}
}

func TestLinkKeepsTheTokenInTheFragment(t *testing.T) {
	link := demo.Link("http://127.0.0.1:8480/app/", "a.b+c&d", "Ada's phone")
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	if u.RawQuery != "" || u.Path != "/app/" {
		t.Errorf("%s sends the token to the server", link)
	}
	v, err := url.ParseQuery(u.EscapedFragment())
	if err != nil || v.Get("token") != "a.b+c&d" || v.Get("device") != "Ada's phone" {
		t.Errorf("%s: %v, %v", link, v, err)
	}
}

// The task shows every way to be told: given to, watching, named, and woken.
func TestTaskOfTheDemo(t *testing.T) {
	e := seeded(t)
	w := e.Workspace(demo.Workspace)
	page, err := w.Messages(t.Context(), tidemark.MessageFilter{Scope: "archive-dot", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]readstate.MemberID
	for _, m := range page.Messages {
		slices.Sort(m.Recipients)
		got = append(got, m.Recipients)
	}
	want := [][]readstate.MemberID{{"ada", "ben"}, {"ada"}, {"ada", "ben", "dora"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if dora := look(t, e, "dora")["archive-dot"]; dora.Unread != 1 || dora.Attention != 1 {
		t.Errorf("Dora, who was named once: %+v", dora)
	}
	for _, m := range []readstate.MemberID{"chen", "emil", demo.Otto} {
		if got := look(t, e, m)["archive-dot"]; got.Unread != 0 || got.Shown {
			t.Errorf("%s: %+v", m, got)
		}
	}
}

// Otto is woken for what names him, and answers it once, also when he begins anew.
func TestAgentAnswers(t *testing.T) {
	e := seeded(t)
	var box *outbox.Outbox
	port, err := e.Effects(t.Context(), func(w facts.WorkspaceKey) {
		if box != nil {
			box.Poke(w)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	box, err = outbox.New(outbox.Options{
		Store: port.Store, Terms: port.Terms, Accounting: outbox.Applied(port.Applied),
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- box.Run(context.WithoutCancel(t.Context())) }()
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		agent := make(chan error, 1)
		go func() { agent <- demo.NewAgent(e, box).Run(ctx) }()
		answered(t, e)
		cancel()
		if err := <-agent; err != nil {
			t.Error(err)
		}
	}
	box.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := demo.NewAgent(e, box).Run(t.Context()); err != nil {
		t.Errorf("after the end of the outbox: %v", err)
	}
}

// answered waits until Otto has answered Emil, whom nobody else answers.
func answered(t *testing.T, e *tidemark.Engine) {
	t.Helper()
	watch, err := e.Workspace(demo.Workspace).Watch("emil")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	for {
		switch n := look(t, e, "emil")["archive-dot"].Attention; {
		case n == 1:
			return
		case n > 1:
			t.Fatalf("%d answers", n)
		}
		select {
		case <-watch.Ready():
			watch.Next(100)
		case <-t.Context().Done():
			t.Fatal("no answer")
		}
	}
}
