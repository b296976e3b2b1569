package intake

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot/sqlsnap"
)

// victimEnv is set in a process that is killed.
const victimEnv = "TIDEMARK_INTAKE_VICTIM"

// world is what the program of a victim made durable, and what its outbox knows. The judge keeps it:
// no kill reaches that.
type world struct {
	Path     string                     `json:"path"`
	Seed     uint64                     `json:"seed"`
	Strike   int64                      `json:"strike"`   // statements after which the victim kills itself
	Ordinary int                        `json:"ordinary"` // messages of the channel
	Messages []parcel                   `json:"messages"` // of the task, by revision
	Acts     []parcel                   `json:"acts"`     // of the task, by seq
	Read     map[readstate.MemberID]int `json:"read"`
	ReadActs map[readstate.MemberID]int `json:"readActs"`
}

// parcel is a delivery.
type parcel struct {
	To        []readstate.MemberID `json:"to"`
	Delivered bool                 `json:"delivered"`
}

// note is one line from a victim: something became durable, or was delivered.
type note struct {
	What   string               `json:"what"`
	N      int                  `json:"n"`
	Member readstate.MemberID   `json:"member,omitempty"`
	To     []readstate.MemberID `json:"to,omitempty"`
}

func (w *world) take(n note) {
	switch n.What {
	case "post":
		w.Ordinary++
	case "message":
		w.Messages = append(w.Messages, parcel{To: n.To})
	case "act":
		w.Acts = append(w.Acts, parcel{To: n.To})
	case "delivered":
		w.Messages[n.N-1].Delivered = true
	case "delivered act":
		w.Acts[n.N-1].Delivered = true
	case "read":
		w.Read[n.Member] = max(w.Read[n.Member], n.N)
	case "read acts":
		w.ReadActs[n.Member] = max(w.ReadActs[n.Member], n.N)
	}
}

var crew = []readstate.MemberID{"b", "x", "y"}

// victim is a program that keeps its own facts, until it is killed. Every fact is told to the judge
// before the intake hears of it.
func victim(from io.Reader) error {
	var w world
	if err := json.NewDecoder(from).Decode(&w); err != nil {
		return err
	}
	ctx := context.Background()
	var ran atomic.Int64
	store, err := sqlsnap.OpenSQLite(ctx, w.Path, sqlsnap.Options{
		OnStatement: func(context.Context, string) {
			if ran.Add(1) == w.Strike {
				self, _ := os.FindProcess(os.Getpid())
				_ = self.Kill()
				select {}
			}
		},
	})
	if err != nil {
		return err
	}
	cfg := Config{Store: store}
	cfg.Flush.FlushInterval, cfg.Flush.FlushBatchSize = time.Hour, 1+int(w.Seed%4)
	cfg.Limits.Cached = 4
	in, err := New(cfg)
	if err != nil {
		return err
	}
	if err := in.Open(space0); err != nil {
		return err
	}
	v := &hand{w: &w, in: in, out: json.NewEncoder(os.Stdout), rng: rand.New(rand.NewPCG(w.Seed, 4))}
	return v.work(ctx)
}

// hand does a victim's work.
type hand struct {
	w   *world
	in  *Intake
	out *json.Encoder
	rng *rand.Rand
}

func (v *hand) say(n note) error {
	v.w.take(n)
	return v.out.Encode(n)
}

func (v *hand) to() (to []readstate.MemberID) {
	for _, m := range crew {
		if v.rng.IntN(2) == 0 {
			to = append(to, m)
		}
	}
	return to
}

func message(n int, to []readstate.MemberID) MessageStored {
	return MessageStored{Scope: "t", Seq: readstate.Seq(n), Revision: readstate.Revision(n), Author: "a", Recipients: to}
}

func act(n int, to []readstate.MemberID) NonMessageActivityStored {
	return NonMessageActivityStored{Scope: "t", Seq: readstate.Seq(n), Actor: "a", HighSignal: true, Recipients: to}
}

func (v *hand) work(ctx context.Context) error {
	events := []Event{
		ScopeStateChanged{Scope: "t", Type: readstate.Task}, ScopeStateChanged{Scope: "c", Type: readstate.Channel},
	}
	if v.w.Ordinary == 0 && len(v.w.Messages) == 0 {
		for _, m := range crew {
			events = append(events, MembershipChanged{Scope: "t", Member: m, Joined: true},
				MembershipChanged{Scope: "c", Member: m, Joined: true})
		}
	}
	err := v.in.Tell(space0, events...)
	if err == nil {
		err = v.in.Settle(ctx, space0) // memberships are told once only
	}
	if err != nil {
		return err
	}
	if err := v.in.Flush(ctx); err != nil {
		return err
	}
	for range 400 {
		if err := v.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (v *hand) step(ctx context.Context) error {
	n := note{N: 1, Member: crew[v.rng.IntN(len(crew))], To: v.to()}
	var ev Event
	switch v.rng.IntN(24) {
	case 0, 1:
		n.What = "post"
		ev = msg("c", readstate.Revision(v.w.Ordinary+1), "a")
	case 2, 3, 4, 5:
		n.What = "message"
		ev = message(len(v.w.Messages)+1, n.To)
	case 6, 7, 8:
		n.What = "act"
		ev = act(len(v.w.Acts)+1, n.To)
	case 9:
		if len(v.w.Messages) < 20 {
			return nil
		}
		n.What, n.N = "read", len(v.w.Messages)-v.rng.IntN(20)
		ev = ReadCursorAdvanced{Scope: "t", Member: n.Member, Revision: readstate.Revision(n.N)}
	case 10:
		if len(v.w.Acts) < 20 {
			return nil
		}
		n.What, n.N = "read acts", len(v.w.Acts)-v.rng.IntN(20)
		ev = ActivityReadCursorAdvanced{Scope: "t", Member: n.Member, Seq: readstate.Seq(n.N)}
	case 11:
		return v.in.Flush(ctx)
	default:
		return v.outbox(ctx)
	}
	if err := v.say(n); err != nil {
		return err
	}
	if v.rng.IntN(4) == 0 {
		return nil // the event is lost; what is to be delivered is told by the outbox
	}
	return v.in.Tell(space0, ev)
}

// outbox tries one of the newest that is not delivered yet, and now and then any other.
func (v *hand) outbox(ctx context.Context) error {
	kinds := []struct {
		of   []parcel
		what string
		tell func(n int, to []readstate.MemberID) (Event, Delivery)
	}{
		{v.w.Messages, "delivered", func(n int, to []readstate.MemberID) (Event, Delivery) {
			return message(n, to), Delivery{Scope: "t", Revision: readstate.Revision(n), Recipients: to}
		}},
		{v.w.Acts, "delivered act", func(n int, to []readstate.MemberID) (Event, Delivery) {
			return act(n, to), Delivery{Scope: "t", Activity: readstate.Seq(n), Recipients: to}
		}},
	}
	k := kinds[v.rng.IntN(2)]
	from := max(0, len(k.of)-8)
	if v.rng.IntN(6) == 0 {
		from = 0
	}
	for _, i := range v.rng.Perm(len(k.of) - from) {
		if i += from; k.of[i].Delivered {
			continue
		}
		ev, d := k.tell(i+1, k.of[i].To)
		if err := v.in.Tell(space0, ev); err != nil {
			return err
		}
		if !v.passes(ctx, d) {
			return nil
		}
		return v.say(note{What: k.what, N: i + 1})
	}
	return nil
}

// passes reports that a delivery is not deferred.
func (v *hand) passes(ctx context.Context, d Delivery) bool {
	return v.in.Barrier(ctx, space0, d) == nil
}

// Programs are killed with SIGKILL at whatever point, a hundred times over on one file: what was
// called delivered is always there, ordinary messages may be missing, and nothing is there that was
// never stored.
// covers: RT-482 RT-489 RT-002
func TestKills(t *testing.T) {
	rounds := 50
	if os.Getenv("TIDEMARK_SOAK") != "" {
		rounds = 1000
	}
	w := world{
		Path: filepath.Join(t.TempDir(), "snap.db"), Read: map[readstate.MemberID]int{},
		ReadActs: map[readstate.MemberID]int{},
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var missing, delivered int
	for round := range rounds {
		w.Seed = uint64(round)
		lines := 1 << 30
		if w.Strike = int64(20 + rng.IntN(900)); rng.IntN(3) == 0 {
			w.Strike, lines = 0, 1+rng.IntN(120)
		}
		run(t, &w, lines)
		missing += judge(t, &w, round)
	}
	for _, p := range slices.Concat(w.Messages, w.Acts) {
		if p.Delivered {
			delivered++
		}
	}
	t.Logf("%d of %d deliveries, %d ordinary messages, missing in %d of %d rounds", delivered,
		len(w.Messages)+len(w.Acts), w.Ordinary, missing, rounds)
	if delivered < rounds || missing == 0 {
		t.Errorf("%d delivered, ordinary ones missing in %d rounds: nothing was shown", delivered, missing)
	}
}

// run lets a victim live until it kills itself, or has said enough.
func run(t *testing.T, w *world, lines int) {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"=1")
	cmd.Stdin = bytes.NewReader(text)
	var failed tail
	cmd.Stderr = &failed
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(out)
	for n := 0; scan.Scan(); n++ {
		var x note
		if err := json.Unmarshal(scan.Bytes(), &x); err != nil {
			t.Fatalf("%q: %v", scan.Bytes(), err)
		}
		w.take(x)
		if n == lines {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed
	if failed.Len() > 0 {
		t.Fatalf("the victim says: %s", failed.String())
	}
}

// tail is what a victim complained of.
type tail struct{ text []byte }

func (f *tail) Write(p []byte) (int, error) { f.text = append(f.text, p...); return len(p), nil }
func (f *tail) Len() int                    { return len(f.text) }
func (f *tail) String() string              { return string(f.text[max(0, len(f.text)-2000):]) }

var _ io.Writer = (*tail)(nil)

// judge opens what the victim left and holds it against the world. It says whether ordinary messages
// are missing.
func judge(t *testing.T, w *world, round int) (missing int) {
	t.Helper()
	store, err := sqlsnap.OpenSQLite(t.Context(), w.Path, sqlsnap.Options{})
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	defer store.Close()
	in, err := New(Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Abandon()
	if err := in.Open(space0); err != nil {
		t.Fatal(err)
	}
	for _, m := range crew {
		row, err := in.Runtime().Row(t.Context(), space0, m, "t")
		if err != nil {
			if len(w.Messages) > 10 {
				t.Fatalf("round %d: %s: %v", round, m, err)
			}
			continue // nothing was flushed yet
		}
		least, most := bounds(w.Messages, m, int(row.Row.Read))
		leastActs, mostActs := bounds(w.Acts, m, int(row.Row.Activity.Read))
		v := row.Values
		if v.Unread < least || v.Unread > most || v.Activity < leastActs || v.Activity > mostActs ||
			int(row.Row.Read) > w.Read[m] || int(row.Row.Activity.Read) > w.ReadActs[m] {
			t.Fatalf("round %d, seed %d, strike %d: %s has %+v, want %d to %d and %d to %d; %+v",
				round, w.Seed, w.Strike, m, v, least, most, leastActs, mostActs, row.Row)
		}
		if row, err = in.Runtime().Row(t.Context(), space0, m, "c"); err == nil {
			if row.Values.Unread > uint64(w.Ordinary) {
				t.Fatalf("round %d: %s sees %d of %d", round, m, row.Values.Unread, w.Ordinary)
			}
			if row.Values.Unread < uint64(w.Ordinary) {
				missing = 1
			}
		}
	}
	if s := in.Stats(); s.Books.Damaged+s.Runtime.Alarms > 0 {
		t.Fatalf("round %d: %+v", round, s)
	}
	return missing
}

// bounds says how many deliveries to a member may be shown above a cursor.
func bounds(of []parcel, m readstate.MemberID, read int) (least, most uint64) {
	for i, p := range of {
		if i < read || !slices.Contains(p.To, m) {
			continue
		}
		if most++; p.Delivered {
			least++
		}
	}
	return least, most
}

func runVictim() {
	if os.Getenv(victimEnv) != "" {
		if err := victim(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}
