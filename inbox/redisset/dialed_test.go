package redisset

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// A server that is not there when the process starts is used once it is, as one is that was killed and
// came back empty. Meanwhile the store answers, and each badge is the same.
//
// covers: IN-140
func TestServerThatComesLater(t *testing.T) {
	s := dbtest.NewRedis(t)
	d := Dial(s.Option(), slog.New(slog.DiscardHandler))
	defer d.Close()
	w := newWorld(t, d)
	if _, _, err := d.Above(t.Context(), w.key("Ada"), 0); !errors.Is(err, ErrUnreached) {
		t.Errorf("a server that is not there says %v", err)
	}
	w.send("Bo")
	w.work()
	w.want("[Bo]")
	if st := w.with.Stats(); st.SummaryErrors == 0 || st.SummaryHits != 0 {
		t.Errorf("without a server: %+v", st)
	}
	for range 2 {
		s.Start()
		before := w.with.Stats().SummaryHits
		for end := time.Now().Add(30 * time.Second); w.with.Stats().SummaryHits == before; {
			if time.Now().After(end) {
				t.Fatalf("the server is not used: %+v", w.with.Stats())
			}
			w.want("[Bo]")
			w.work()
			w.later += time.Second // after a failure nobody asks for a while
		}
		s.Kill()
		w.want("[Bo]")
	}
}

// A process that ends while it looks for the server leaves nothing behind.
func TestCloseWhileLooking(t *testing.T) {
	s := dbtest.NewRedis(t)
	d := Dial(s.Option(), slog.New(slog.DiscardHandler))
	if _, err := d.reached(); !errors.Is(err, ErrUnreached) {
		t.Error(err)
	}
	d.Close()
	if _, err := d.reached(); !errors.Is(err, ErrUnreached) {
		t.Error(err)
	}
	d.work.Wait()
}
