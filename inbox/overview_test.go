package inbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Opening stores what was shown and changes no badge.
//
// covers: IN-044 IN-045 IN-046 IN-060 IN-062
func TestOpen(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.scope("d", readstate.DM, "Ada", "Cy")
	w.scope("c", readstate.Channel, "Ada", "Dee")
	w.send("Bo")
	w.post("d", "Cy")
	said := w.post("c", "Dee", "Ada")
	gone := w.post("c", "Dee", "Ada")
	w.remove("c", gone)
	before := w.badge(b)
	o := w.open1(b)
	if o.Observed != 4 || len(o.Senders) != 3 || len(o.Items) != 3 || len(o.Snapshot) < 20 {
		t.Fatalf("%+v", o)
	}
	if i := o.Items[0]; i.Position != 1 || i.Sender != "Bo" || i.Text != "hello" || i.Scope != "" ||
		i.MessageID == "" || i.CreatedAt != w.clock.ms.Load() {
		t.Errorf("what was sent: %+v", i)
	}
	if i := o.Items[2]; i.Position != 3 || i.Sender != "Dee" || i.Scope != "c" || i.MessageID != said {
		t.Errorf("what was said: %+v", i)
	}
	w.wantBadge(b, before)
	rows := w.query(`SELECT id, member, boundary FROM inbox_snapshots`)
	if len(rows) != 1 || rows[0][0] != o.Snapshot || rows[0][1] != int64(w.key("Ada")) || rows[0][2] != int64(4) {
		t.Errorf("stored is %v", rows)
	}
	if again := w.open1(b); again.Snapshot == o.Snapshot {
		t.Error("two openings have one snapshot")
	}
	// What the member may not read any more is not shown; that somebody wrote is.
	_, err := w.lane.Leave(t.Context(), space, facts.Leave{Scope: "c", Member: "Ada"})
	w.ok(err)
	if i := w.open1(b).Items[2]; i.Sender != "Dee" || i.Scope != "" || i.MessageID != "" || i.Payload != nil {
		t.Errorf("of a channel that was left: %+v", i)
	}
}

// Everything new is shown in one answer, up to the newest thousand; the senders are complete.
//
// covers: IN-047
func TestOpenShowsWhatIsNew(t *testing.T) {
	w := newWorld(t)
	b := w.inbox(func(o *Options) { o.Limits.OpenItems = 600 })
	w.send("Cy")
	w.ack(b, w.open1(b).Snapshot)
	w.send("Dee")
	for range 499 {
		w.send("Bo")
	}
	if o := w.open1(b); len(o.Items) != 500 || o.Items[0].Position != 2 || o.Items[499].Position != 501 {
		t.Errorf("%d items", len(o.Items))
	}
	for range 200 {
		w.send("Bo")
	}
	o := w.open1(b)
	if len(o.Items) != 600 || o.Items[599].Position != 701 || fmt.Sprint(o.Senders) != "[Bo Dee]" {
		t.Errorf("%d items, senders %v", len(o.Items), o.Senders)
	}
}

// An acknowledgement covers what its snapshot showed and nothing that came later, in whatever order
// devices come; a repetition answers what the first one did.
//
// covers: IN-031 IN-032 IN-053 IN-054 IN-055 IN-056 IN-057 IN-058
func TestAcknowledge(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.send("Bo")
	w.send("Cy")
	first := w.open1(b)
	w.send("Dee")
	if r := w.ack(b, first.Snapshot); r.Acknowledged != 2 || r.Duplicate {
		t.Errorf("%+v", r)
	}
	w.wantBadge(b, "H3 A2 P0 tail 3: Dee")
	second := w.open1(b)
	early := Ack{OpID: "a", Snapshot: first.Snapshot}
	if r, err := b.Acknowledge(t.Context(), ada, early); err != nil || r.Acknowledged != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	w.ack(b, second.Snapshot)
	if r, err := b.Acknowledge(t.Context(), ada, early); err != nil || r.Acknowledged != 2 || !r.Duplicate {
		t.Errorf("the repetition: %+v, %v", r, err)
	}
	if r := w.ack(b, first.Snapshot); r.Acknowledged != 3 {
		t.Errorf("late and new: %+v", r)
	}
	w.wantBadge(b, "H3 A3 P0 tail 3: ")
	w.work(b)
	w.wantBadge(b, "H3 A3 P3 tail 0: ")
}

// What an acknowledgement is refused for changes nothing.
//
// covers: IN-024 IN-035 IN-050 IN-051 IN-052 IN-063
func TestAcknowledgeRefusals(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.send("Bo")
	o := w.open1(b)
	w.ok(second(b.Acknowledge(t.Context(), ada, Ack{OpID: "used", Snapshot: o.Snapshot})))
	other := w.open1(b)
	before := w.all()
	bo := Access{Workspace: space, Member: "Ada", By: "Bo"}
	for name, c := range map[string]struct {
		a    Access
		ack  Ack
		want error
	}{
		"another snapshot":         {ada, Ack{"used", other.Snapshot}, facts.ErrMismatch},
		"an unknown snapshot":      {ada, Ack{"x", "nothing"}, facts.ErrNotFound},
		"no snapshot":              {ada, Ack{"x", ""}, facts.ErrInvalid},
		"no operation":             {ada, Ack{"", o.Snapshot}, facts.ErrInvalid},
		"somebody else's path":     {bo, Ack{"x", o.Snapshot}, facts.ErrForbidden},
		"somebody else's snapshot": {own("Bo"), Ack{"x", o.Snapshot}, facts.ErrForbidden},
		"an unknown member":        {own("nobody"), Ack{"x", o.Snapshot}, facts.ErrNotFound},
		"an unknown workspace":     {Access{"v", "Ada", "Ada"}, Ack{"x", o.Snapshot}, facts.ErrNotFound},
	} {
		if r, err := b.Acknowledge(t.Context(), c.a, c.ack); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := b.Badge(t.Context(), bo); !errors.Is(err, facts.ErrForbidden) {
		t.Errorf("somebody else's badge: %v", err)
	}
	if _, err := b.Open(t.Context(), bo); !errors.Is(err, facts.ErrForbidden) {
		t.Errorf("somebody else's overview: %v", err)
	}
	if w.all() != before {
		t.Error("what was refused changed something")
	}
	w.member("Ada", false)
	for what, err := range map[string]error{
		"badge": second(b.Badge(t.Context(), ada)), "open": second(b.Open(t.Context(), ada)),
		"acknowledge": second(b.Acknowledge(t.Context(), ada, Ack{"x", o.Snapshot})),
	} {
		if !errors.Is(err, facts.ErrForbidden) {
			t.Errorf("%s of an inactive account: %v", what, err)
		}
	}
}

// Nobody but the owner of the workspace writes, and an acknowledgement that was not committed leaves
// nothing, not even a receipt.
//
// covers: IN-034
func TestWritesAreFenced(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.send("Bo")
	o := w.open1(b)
	before := w.all()
	w.exec(`UPDATE workspaces SET term = term + 1`)
	for what, err := range map[string]error{
		"open":        second(b.Open(t.Context(), ada)),
		"acknowledge": second(b.Acknowledge(t.Context(), ada, Ack{"x", o.Snapshot})),
	} {
		if !errors.Is(err, facts.ErrNotOwner) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := w.work(b); n != 0 || w.all() != before {
		t.Error("another owner's inbox was written to")
	}
	w.exec(`UPDATE workspaces SET term = term - 1`)
	w.exec(`CREATE TRIGGER refuse BEFORE INSERT ON inbox_acks BEGIN SELECT RAISE(ROLLBACK, 'no'); END`)
	if _, err := b.Acknowledge(t.Context(), ada, Ack{"x", o.Snapshot}); !errors.Is(err, facts.ErrUnavailable) {
		t.Errorf("a receipt that cannot be kept: %v", err)
	}
	if w.all() != before {
		t.Error("half an acknowledgement")
	}
	w.exec(`DROP TRIGGER refuse`)
	if r, err := b.Acknowledge(t.Context(), ada, Ack{"x", o.Snapshot}); err != nil || r.Duplicate {
		t.Errorf("the repetition: %+v, %v", r, err)
	}
}

// Positions say what was before an opening, times do not.
//
// covers: IN-040
func TestTimesDecideNothing(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.send("Bo")
	o := w.open1(b)
	w.send("Cy") // at the same time
	w.ack(b, o.Snapshot)
	w.wantBadge(b, "H2 A1 P0 tail 2: Cy")
	w.clock.move(-time.Hour)
	w.send("Dee")
	w.wantBadge(b, "H3 A1 P0 tail 3: Cy Dee")
}

// One file has everything: accounts, messages, heads and what is acknowledged, the projection and its
// position, snapshots, receipts of both kinds, and how far conversations are read.
//
// covers: IN-068
func TestOneFile(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.scope("d", readstate.DM, "Ada", "Bo")
	w.send("Bo")
	w.post("d", "Cy", "Ada")
	w.post("d", "Bo")
	w.ack(b, w.open1(b).Snapshot)
	w.work(b)
	for _, table := range []string{
		"members", "scope_messages", "inbox_messages", "inbox_positions", "inboxes", "inbox_sender_maxima",
		"inbox_projections", "inbox_snapshots", "inbox_acks", "operations", "conversation_member_states",
	} {
		if n := w.query("SELECT count(*) FROM " + table)[0][0]; n == int64(0) {
			t.Errorf("nothing is in %s", table)
		}
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(w.path), "*"))
	w.ok(err)
	for _, f := range files {
		if !strings.HasPrefix(f, w.path) {
			t.Errorf("there is another file: %s", f)
		}
	}
}
