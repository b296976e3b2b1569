package redisdots

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/substrate"
)

const long = time.Hour

func dot(w readstate.WorkspaceID, m readstate.MemberID, term uint64, lsn readstate.LSN, n uint64) substrate.Dot {
	d := substrate.Dot{
		Key: substrate.Key{Workspace: w, Member: m}, Term: term, LSN: lsn, Unread: n > 0,
		Badge: readstate.Badge{Messages: n, Attention: n},
	}
	if n > 0 {
		d.Badge.Conversations = 1
	}
	return d
}

func publish(t *testing.T, d *Dots, dots ...substrate.Dot) (refused int) {
	t.Helper()
	refused, err := d.Publish(t.Context(), dots, long)
	if err != nil {
		t.Fatal(err)
	}
	return refused
}

func read(t *testing.T, d *Dots, keys ...substrate.Key) []substrate.Dot {
	t.Helper()
	dots, err := d.Read(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	return dots
}

// An owner that was replaced overwrites nothing, whether the new one has written the same dot or another.
func TestOlderTermsAndCommitsAreRefused(t *testing.T) {
	s := newServer(t)
	d := s.dots()
	for _, step := range []struct {
		dot     substrate.Dot
		refused int
		stays   uint64 // messages that are read then
	}{
		{dot("w", "a", 1, 10, 1), 0, 1},
		{dot("w", "a", 1, 12, 3), 0, 3},
		{dot("w", "a", 1, 11, 2), 1, 3},    // an earlier commit
		{dot("w", "a", 1, 12, 0), 0, 0},    // a mute ended: no commit, another dot
		{dot("w", "b", 2, 5, 7), 0, 7},     // a take-over is known by another member's dot
		{dot("w", "a", 1, 1000, 9), 1, 0},  // paused, woken, late
		{dot("w", "a", 2, 4, 4), 0, 4},     // terms go before commits
		{dot("other", "a", 1, 1, 1), 0, 1}, // another workspace has terms of its own
	} {
		refused := publish(t, d, step.dot)
		got := read(t, d, step.dot.Key)
		if refused != step.refused || len(got) != 1 || got[0].Badge.Messages != step.stays {
			t.Errorf("%+v: refused %d, and %+v is there", step.dot, refused, got)
		}
	}
	// The term is lost and the dot is not, as when memory ran short.
	s.do(d, "DEL", termKey("w"))
	if refused := publish(t, d, dot("w", "a", 1, 2000, 9)); refused != 1 {
		t.Error("an older term was taken because the term was lost")
	}
}

// Two owners write at once, the later one begins in the middle: in the end its last dot is there, and
// a listener that goes by what is newer agrees.
func TestTwoOwnersRace(t *testing.T) {
	s := newServer(t)
	for seed := range uint64(20) {
		w := readstate.WorkspaceID(fmt.Sprint("w", seed))
		const last = 50
		var both sync.WaitGroup
		for term := range uint64(2) {
			d, rng := s.dots(), rand.New(rand.NewPCG(seed, term))
			both.Go(func() {
				for lsn := range readstate.LSN(last) {
					if rng.IntN(3) == 0 || lsn == last-1 {
						if _, err := d.Publish(t.Context(), []substrate.Dot{
							dot(w, "a", term+1, lsn+1, uint64(lsn)+1),
						}, long); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		both.Wait()
		got := read(t, s.dots(), substrate.Key{Workspace: w, Member: "a"})
		if len(got) != 1 || got[0] != dot(w, "a", 2, last, last) {
			t.Fatalf("seed %d: %+v", seed, got)
		}
	}
}

// What others have written is not known, harms nothing else, and is written over by an owner.
func TestHostileValues(t *testing.T) {
	s := newServer(t)
	d := s.dots()
	good := dot("w", "good", 1, 1, 1)
	publish(t, d, good)
	bad := substrate.Key{Workspace: "w", Member: "bad"}
	for i, text := range []string{
		"", "v1", "v2 1 1 0 0 0 0", "v1 1 1 0 0 0", "v1 1 1 0 0 0 0 0", "v1 -1 1 0 0 0 0",
		"v1 1 1 2 0 0 0", "v1 01 1 0 0 0 0", "v1 1 1 1 0 0 0", "v1 1 1 0 5 1 0",
		"v1 18446744073709551616 1 0 0 0 0", "v1 9007199254740993 1 0 0 0 0", strings.Repeat("9", 1<<20),
		"v1 1 1 0 0 0 0\n", "\x00\xff",
	} {
		s.do(d, "SET", dotKey(bad), text)
		before := d.Malformed()
		got := read(t, d, bad, good.Key)
		if len(got) != 1 || got[0] != good || d.Malformed() != before+1 {
			t.Errorf("%d: %.40q is read as %+v", i, text, got)
		}
	}
	s.do(d, "DEL", dotKey(bad))
	s.do(d, "LPUSH", dotKey(bad), "x")
	if got := read(t, d, bad, good.Key); len(got) != 1 || got[0] != good {
		t.Errorf("beside a list: %+v", got)
	}
	for _, key := range []string{termKey("w"), wantedKey("w"), wantedIndex} {
		s.do(d, "DEL", key)
		s.do(d, "HSET", key, "f", "x")
	}
	mine := dot("w", "bad", 1, 2, 2)
	if refused := publish(t, d, mine); refused != 0 {
		t.Error("what is no term refuses")
	}
	if got := read(t, d, bad); len(got) != 1 || got[0] != mine {
		t.Errorf("%+v", got)
	}
	if _, err := d.Want(t.Context(), []substrate.Key{bad}, long); err != nil {
		t.Errorf("what is no set is in the way: %v", err)
	}
	if _, err := d.Publish(t.Context(), []substrate.Dot{dot("w", "a", MaxNumber+1, 1, 1)}, long); !errors.Is(err, ErrRange) {
		t.Errorf("a term that Lua cannot compare: %v", err)
	}
	for _, id := range []string{"}:dot:{", "a b", "\x00", "*", "日本", strings.Repeat("x", 200)} {
		odd := dot(readstate.WorkspaceID(id), readstate.MemberID(id), 3, 4, 5)
		publish(t, d, odd)
		if got := read(t, d, odd.Key); len(got) != 1 || got[0] != odd {
			t.Errorf("%q: %+v", id, got)
		}
	}
}

// What is said by others on the channels is counted, and heard by nobody.
func TestHostileMessages(t *testing.T) {
	s := newServer(t)
	d := s.dots()
	heard := make(chan any, 100)
	begun := make(chan struct{}, 1)
	inBackground(t, func(ctx context.Context) {
		_ = d.Listen(ctx, substrate.Ear{ // ends with the test
			Begun:  func() { begun <- struct{}{} },
			Wanted: func(k []substrate.Key) { heard <- k }, Dots: func(k []substrate.Dot) { heard <- k },
		})
	})
	<-begun
	for _, text := range []string{"", "x", "dw", "dw  ", "d\xff YQ", " YQ", "dw YQ v1 1 1 0 0 0"} {
		s.do(d, "PUBLISH", wantsChannel, text)
		s.do(d, "PUBLISH", dotsChannel, text)
	}
	odd := substrate.Key{Workspace: "w", Member: "a b"}
	if _, err := d.Want(t.Context(), []substrate.Key{odd}, long); err != nil {
		t.Fatal(err)
	}
	publish(t, d, dot("w", "a b", 1, 1, 1))
	if got := <-heard; fmt.Sprint(got) != fmt.Sprint([]substrate.Key{odd}) {
		t.Errorf("heard %v", got)
	}
	if got := <-heard; fmt.Sprint(got) != fmt.Sprint([]substrate.Dot{dot("w", "a b", 1, 1, 1)}) {
		t.Errorf("heard %v", got)
	}
	if n := d.Malformed(); n != 14 {
		t.Errorf("%d were counted", n)
	}
}

// Wishes are bounded, end by themselves, and are found by an owner that has not heard them.
func TestWishes(t *testing.T) {
	s := newServer(t)
	d := s.dots()
	keys := make([]substrate.Key, MaxMembers+5)
	for i := range keys {
		keys[i] = substrate.Key{Workspace: "w", Member: readstate.MemberID(fmt.Sprint("m", i))}
	}
	refused := 0
	for from := 0; from < len(keys); from += 5000 {
		n, err := d.Want(t.Context(), keys[from:min(len(keys), from+5000)], long)
		if err != nil {
			t.Fatal(err)
		}
		refused += n
	}
	if refused != 5 {
		t.Errorf("%d were refused", refused)
	}
	members, err := d.WantedIn(t.Context(), "w", 2*MaxMembers)
	if err != nil || len(members) != MaxMembers {
		t.Errorf("%d members, %v", len(members), err)
	}
	spaces, err := d.Wanted(t.Context(), 10)
	if err != nil || len(spaces) != 1 || spaces[0] != "w" {
		t.Errorf("%v, %v", spaces, err)
	}
	if n, err := d.Want(t.Context(), keys[:1], long); err != nil || n != 0 {
		t.Errorf("renewing one of a full set: %d, %v", n, err)
	}
	if _, err := d.Want(t.Context(), []substrate.Key{{Workspace: "v", Member: "m"}}, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		members, err := d.WantedIn(t.Context(), "v", 10)
		return err == nil && len(members) == 0
	})
}
