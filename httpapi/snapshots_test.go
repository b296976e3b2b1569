package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/intake"
)

// figuresOf reads the metrics without labels.
func figuresOf(t *testing.T, s *httpapi.Server) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	s.AdminHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("metrics answer %d: %s", w.Code, w.Body)
	}
	all := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			all[name] = n
		}
	}
	return all
}

// The backlog of snapshot mode and its age are figures: they grow while nothing can be flushed,
// and are nothing once it was.
//
// covers: RT-425, RT-433
func TestBacklogFigures(t *testing.T) {
	clock := newHandClock()
	engine, err := tidemark.Open(t.Context(), tidemark.Options{
		Now: clock.Now,
		Snapshots: &tidemark.Snapshots{
			Store: "sqlite:" + filepath.Join(t.TempDir(), "snapshots.db"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	auth, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}})
	if err != nil {
		t.Fatal(err)
	}
	defer auth.Close()
	server, err := httpapi.New(httpapi.Config{Engine: engine, Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	in := engine.Intake()
	if err := in.Open("W"); err != nil {
		t.Fatal(err)
	}
	tell := func(events ...intake.Event) {
		t.Helper()
		if err := in.Tell("W", events...); err != nil {
			t.Fatal(err)
		}
		if err := in.Settle(t.Context(), "W"); err != nil {
			t.Fatal(err)
		}
	}
	backlog := func(age float64) float64 {
		t.Helper()
		all := figuresOf(t, server)
		rows := all["tidemark_snapshot_backlog_rows"]
		if want := in.Stats().Books.Backlog; rows != float64(want) {
			t.Errorf("%v rows wait, want %d", rows, want)
		}
		if got := all["tidemark_snapshot_oldest_dirty_seconds"]; got != age {
			t.Errorf("the oldest change is %v s old, want %v", got, age)
		}
		return rows
	}
	events := []intake.Event{intake.ScopeStateChanged{Scope: "c", Type: readstate.Channel}}
	for i := range 5 {
		events = append(events, intake.MembershipChanged{
			Scope: "c", Member: readstate.MemberID(fmt.Sprint("m", i)), Joined: true,
		})
	}
	tell(events...)
	if rows := backlog(0); rows < 5 {
		t.Errorf("five new rows leave a backlog of %v", rows)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for age := 10.0; age <= 30; age += 10 { // a flush that cannot write
		clock.advance(10 * time.Second)
		if err := in.Flush(gone); err == nil {
			t.Fatal("a flush without time succeeded")
		}
		backlog(age)
	}
	if err := in.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows := backlog(0); rows != 0 {
		t.Errorf("%v rows wait after a flush", rows)
	}
	all := figuresOf(t, server)
	if all["tidemark_snapshot_flush_failures_total"] != 3 || all["tidemark_snapshot_flushed_rows_total"] < 5 {
		t.Errorf("%v failures, %v rows written", all["tidemark_snapshot_flush_failures_total"],
			all["tidemark_snapshot_flushed_rows_total"])
	}
}
