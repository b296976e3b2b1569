package httpapi_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
)

// onlyPages demands that a refresh ran nothing but pages of members' rows, each of which is
// bounded and adds nothing up.
func onlyPages(t *testing.T, what string, ran []statement) {
	t.Helper()
	for _, s := range ran {
		switch {
		case s.by == "http" && !aboutNames.MatchString(s.query):
			t.Errorf("%s: a request ran %s", what, s.query)
		case s.by == "hydrate" && sums.MatchString(s.query):
			t.Errorf("%s: loading adds up: %s", what, s.query)
		}
	}
}

// Whatever budget is used up, no request counts anything in the store instead.
//
// covers: RT-424
func TestNoBudgetFallsBackToTheStore(t *testing.T) {
	refresh := func(h *harness, member, state string) {
		h.t.Helper()
		page := h.want(200, "GET", "W/unread", h.member(member), nil)
		page.is(h.t, state, "state")
		if state != "ready" {
			page.is(h.t, "map[]", "counts")
			page.is(h.t, nil, "badge")
		}
	}
	for what, c := range map[string]struct {
		tune func(*tidemark.Options, *httpapi.Config)
		do   func(h *harness)
	}{
		"members being loaded, process": {
			func(o *tidemark.Options, _ *httpapi.Config) { o.Runtime.MaxHydrations = 1 },
			func(h *harness) {
				defer h.hold()()
				refresh(h, "A", "hydrating")
				refresh(h, "B", "unavailable")
			},
		},
		"members being loaded, workspace": {
			func(o *tidemark.Options, _ *httpapi.Config) { o.Runtime.MaxWorkspaceHydrations = 1 },
			func(h *harness) {
				defer h.hold()()
				refresh(h, "A", "hydrating")
				refresh(h, "B", "unavailable")
			},
		},
		"pages read at once": {
			func(o *tidemark.Options, _ *httpapi.Config) { o.Runtime.HydrateConcurrency = 1 },
			func(h *harness) {
				defer h.hold()()
				refresh(h, "A", "hydrating")
				refresh(h, "B", "hydrating")
			},
		},
		"memory": {
			func(o *tidemark.Options, _ *httpapi.Config) {
				o.Runtime.MaxEntries, o.Runtime.HydrateWait = 1, time.Minute
			},
			func(h *harness) {
				for range 3 {
					refresh(h, "A", "ready")
					refresh(h, "B", "ready")
				}
				if h.engine.Stats().Evicted == 0 {
					t.Error("nobody was let go")
				}
			},
		},
		"requests": {
			func(_ *tidemark.Options, c *httpapi.Config) { c.Limits.MemberRate, c.Limits.MemberBurst = 0.01, 1 },
			func(h *harness) {
				h.call("GET", "W/unread", h.member("A"), nil)
				h.refused(httpapi.CodeOverBudget, "GET", "W/unread", h.member("A"), nil)
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHarness(t, func(o *tidemark.Options, _ *httpapi.Config) {
				o.Runtime.HydrateWait = time.Millisecond
			}, c.tune)
			h.want(200, "PUT", "W", h.admin(), object{"name": "Workspace"})
			h.channel("c", "A", "B")
			h.want(201, "POST", "W/scopes/c/messages", h.service(), object{"opId": "1", "author": "A"})
			onlyPages(t, what, h.probe(func() { c.do(h) }))
		})
	}
}

// A thousand refreshes of members who are not loaded read each member's page once.
//
// covers: RT-496
func TestColdRefreshesReadOnePageEach(t *testing.T) {
	h := newHarness(t, func(o *tidemark.Options, _ *httpapi.Config) {
		o.Runtime.HydrateWait = time.Microsecond
	})
	var members []string
	for i := range 20 {
		members = append(members, fmt.Sprint("m", i))
	}
	h.world(append(members, "A")...)
	h.post("c", "A", nil)
	release := h.hold()
	t.Cleanup(release)
	ran := h.probe(func() {
		for i := range 1000 {
			h.want(200, "GET", "W/unread", h.member(members[i%len(members)]), nil).
				is(t, "hydrating", "state")
		}
	})
	onlyPages(t, "a cold refresh", ran)
	if s := h.engine.Stats(); s.Hydrating != len(members) || s.ReadingPages > 2 {
		t.Errorf("%+v", s)
	}
	release()
	for _, m := range members {
		for h.want(200, "GET", "W/unread", h.member(m), nil).at("state") != "ready" {
			h.want(200, "GET", "/api/v1/workspaces", h.member(m), nil)
		}
	}
	if s := h.engine.Stats(); s.Pages != uint64(len(members)) || s.MaxReadingPages > 2 {
		t.Errorf("%d pages, at most %d at once", s.Pages, s.MaxReadingPages)
	}
}

var labelsOf = regexp.MustCompile(`(?m)^tidemark_\w+\{([^}]*)\}`)

// What waits is a figure of its own, and no figure says of whom: its labels are the server's own
// words.
//
// covers: RT-432
func TestPendingFiguresNameNobody(t *testing.T) {
	h := newHarness(t, func(o *tidemark.Options, _ *httpapi.Config) {
		o.Runtime.HydrateWait = time.Millisecond
	})
	h.world("A", "B", "C")
	h.post("c", "A", nil)
	release := h.hold()
	t.Cleanup(release)
	h.want(200, "GET", "W/unread", h.member("B"), nil)
	for h.engine.Stats().ReadingPages == 0 { // the page is about to be asked for
		h.want(200, "GET", "W/unread", h.member("B"), nil)
	}
	for range 3 {
		h.post("c", "A", nil)
	}
	for name, want := range map[string]string{
		"tidemark_unread_ring_events": "3", "tidemark_unread_workspace_ring_events": "3",
		"tidemark_unread_hydrating": "1", "tidemark_unread_workspace_hydrating": "1",
		"tidemark_unread_reading_pages": "1", "tidemark_unread_pending_batches": "0",
	} {
		if got := metric(t, h, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	labels := map[string]bool{}
	for _, m := range labelsOf.FindAllStringSubmatch(metrics(t, h), -1) {
		for pair := range strings.SplitSeq(m[1], ",") {
			name, _, _ := strings.Cut(pair, "=")
			labels[name] = true
		}
	}
	for name := range labels {
		if !slices.Contains([]string{"method", "route", "code", "le"}, name) {
			t.Errorf("a figure has the label %s", name)
		}
	}
	if !labels["route"] {
		t.Error("no labels were found")
	}
}

// The age of the oldest load is exported in seconds.
func TestHydrationAgeIsExported(t *testing.T) {
	clock := newHandClock()
	h := newHarness(t, func(o *tidemark.Options, _ *httpapi.Config) {
		o.Runtime.HydrateWait = time.Millisecond
		o.Now = clock.Now
	})
	h.world("A", "B")
	release := h.hold()
	t.Cleanup(release)
	h.want(200, "GET", "W/unread", h.member("B"), nil)
	clock.advance(90 * time.Second)
	if got := metric(t, h, "tidemark_unread_oldest_hydration_seconds"); got != "90" {
		t.Errorf("%s seconds", got)
	}
	release()
}

// Requests beyond the lane's queue wait outside it, are counted, and succeed once there is room.
func TestFullLane(t *testing.T) {
	h := newHarness(t, func(o *tidemark.Options, _ *httpapi.Config) { o.Lane.QueueDepth = 1 })
	h.world("A")
	release := h.block(func(s statement) bool { return s.by == "lane" })
	t.Cleanup(release)
	const posts = 8
	codes := make(chan int, posts)
	for i := range posts {
		req := h.request("POST", "W/scopes/c/messages", h.member("A"), object{"opId": fmt.Sprint("full-", i)})
		go func() { codes <- h.send(req).status }()
	}
	// The lane may take one more in before it stands still.
	for s := h.engine.LaneStats(); s.Full == 0 || s.Queued == 0; s = h.engine.LaneStats() {
		h.want(200, "GET", "W/unread", h.member("A"), nil)
	}
	if got := metric(t, h, "tidemark_lane_queue"); got != "1" || metric(t, h, "tidemark_lane_queue_limit") != "1" {
		t.Errorf("%s requests wait in a queue of one", got)
	}
	release()
	for range posts {
		if code := <-codes; code != 201 {
			t.Errorf("answer %d", code)
		}
	}
	if metric(t, h, "tidemark_lane_full_total") == "0" || metric(t, h, "tidemark_lane_queue") != "0" {
		t.Error("the figures are wrong after the queue was full")
	}
}
