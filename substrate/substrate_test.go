package substrate

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tidemark-im/tidemark/readstate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// away is a store that nobody reaches.
type away struct{}

func (away) Want(context.Context, []Key, time.Duration) (int, error) { return 0, ErrAway }
func (away) Wanted(context.Context, int) ([]readstate.WorkspaceID, error) {
	return nil, ErrAway
}

func (away) WantedIn(context.Context, readstate.WorkspaceID, int) ([]readstate.MemberID, error) {
	return nil, ErrAway
}
func (away) Publish(context.Context, []Dot, time.Duration) (int, error) { return 0, ErrAway }
func (away) Read(context.Context, []Key) ([]Dot, error)                 { return nil, ErrAway }
func (away) Listen(context.Context, Ear) error                          { return ErrAway }

// Whatever the order in which dots come, the one that stays is superseded by none of them, and of two
// that differ in term or commit only one supersedes the other.
func TestSupersedes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Uint64Range(1, 4)
		dot := rapid.Custom(func(t *rapid.T) Dot {
			return Dot{Term: small.Draw(t, "term"), LSN: readstate.LSN(small.Draw(t, "lsn"))}
		})
		dots := rapid.SliceOfN(dot, 1, 20).Draw(t, "dots")
		kept := dots[0]
		for _, d := range dots {
			if d.Supersedes(&kept) {
				kept = d
			}
		}
		for _, d := range dots {
			same := d.Term == kept.Term && d.LSN == kept.LSN
			if !kept.Supersedes(&d) || d.Supersedes(&kept) != same {
				t.Fatalf("%+v was kept beside %+v", kept, d)
			}
		}
	})
}

// A feed never goes back to what it showed before it knew nothing, and owes each dot once.
func TestFeedsGoForward(t *testing.T) {
	r, err := NewReader(ReaderOptions{Store: away{}})
	if err != nil {
		t.Fatal(err)
	}
	key := Key{"w", "m"}
	f, err := r.Follow(t.Context(), key, key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at := func(term uint64, lsn readstate.LSN) Dot { return Dot{Key: key, Term: term, LSN: lsn} }
	for i, step := range []struct {
		dots  []Dot
		lost  bool
		known bool
		term  uint64
		lsn   readstate.LSN
		none  bool
	}{
		{dots: []Dot{at(1, 1), at(1, 3), at(1, 2)}, known: true, term: 1, lsn: 3},
		{dots: []Dot{{Key: Key{"w", "other"}, Term: 9}}, none: true},
		{lost: true, term: 1, lsn: 3},
		{lost: true, none: true},
		{dots: []Dot{at(1, 2)}, none: true},
		{dots: []Dot{at(1, 3)}, known: true, term: 1, lsn: 3},
		{dots: []Dot{at(2, 1), at(1, 9)}, known: true, term: 2, lsn: 1},
	} {
		r.hear(step.dots)
		if step.lost {
			r.lost()
		}
		got := f.Next()
		switch {
		case step.none && len(got) == 0:
		case len(got) != 1 || got[0].Known != step.known || got[0].Dot.Term != step.term ||
			got[0].Dot.LSN != step.lsn:
			t.Errorf("step %d: %+v", i, got)
		}
	}
}

// What is wanted and followed is bounded, what is closed is given back, and nothing is known of a store
// that nobody reaches.
func TestBudgetsOfReaders(t *testing.T) {
	r, err := NewReader(ReaderOptions{Store: away{}, Limits: Limits{Keys: 2}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.Follow(t.Context(), Key{"w", "a"}, Key{"w", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Follow(t.Context(), Key{"w", "c"}); !errors.Is(err, ErrBudget) {
		t.Errorf("a third: %v", err)
	}
	f.Close()
	f.Close()
	if stats := r.Stats(); stats.Followed != 0 || stats.Refused != 1 {
		t.Errorf("%+v", stats)
	}
	if dots := r.Dots(t.Context(), "a", []readstate.WorkspaceID{"v", "w"}); len(dots) != 0 {
		t.Errorf("known: %v", dots)
	}
	if stats := r.Stats(); stats.Missing != 2 || stats.Found != 0 || stats.Failed == 0 {
		t.Errorf("%+v", stats)
	}
}

// Both end with their context, although the store was never reached.
func TestEnds(t *testing.T) {
	limits := Limits{Every: time.Millisecond}
	p, err := NewPublisher(PublisherOptions{Store: away{}, Source: Nobody, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(ReaderOptions{Store: away{}, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { p.Run(ctx) })
	ended.Go(func() { r.Run(ctx) })
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for p.Stats().Failed == 0 {
		<-tick.C
	}
	stop()
	ended.Wait()
}
