package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStatistics(t *testing.T) {
	if m := Median([]float64{9, 1, 5}); m != 5 {
		t.Errorf("median of three is %v", m)
	}
	if m := Median([]float64{4, 1, 2, 9}); m != 3 {
		t.Errorf("median of four is %v", m)
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("none has a median")
	}
	d := make([]time.Duration, 1000)
	for i := range d {
		d[i] = time.Duration(1000 - i)
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 500, 0.999: 999, 1: 1000} {
		if got := Quantile(d, q); got != want {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
	s := Series{Values: []float64{3, 1, 2}}
	if got := s.Spread(); got != (Spread{2, 1, 3}) {
		t.Errorf("spread %v", got)
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		b     Bound
		v     float64
		holds bool
	}{
		{Bound{AtMost: 2}, 2, true}, {Bound{AtMost: 2}, 2.01, false},
		{Bound{AtLeast: 2}, 2, true}, {Bound{AtLeast: 2}, 1.99, false},
		{Bound{AtMost: 2}, math.NaN(), false}, {Bound{AtLeast: 2}, math.NaN(), false},
	} {
		if c.b.Holds(c.v) != c.holds {
			t.Errorf("%s of %v: %t", c.b, c.v, !c.holds)
		}
	}
}

// An operation that is held up shows in its own latency and in those that should have started
// meanwhile; a clock that waits for answers would hide the latter.
func TestOpenLoopCountsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep := func(at time.Time) { time.Sleep(time.Until(at)) }
		l, err := openLoop(t.Context(), 10, time.Millisecond, sleep, func(i int) error {
			if i == 2 {
				time.Sleep(5 * time.Millisecond)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		late := 0
		for i := range l.Response {
			if l.Response[i] >= time.Millisecond {
				late++
			}
			if i != 2 && l.Service[i] >= time.Millisecond {
				t.Errorf("operation %d took %v by itself", i, l.Service[i])
			}
		}
		if late != 5 || l.Service[2] < 5*time.Millisecond {
			t.Errorf("%d late, want 5; %v", late, l.Response)
		}
	})
}

func suite(run func(context.Context, *Run) error) *Suite {
	return &Suite{
		Catalogue: []Definition{
			{Name: "fast", Held: "b by a", Bound: Bound{AtLeast: 2}},
			{Name: "small", Held: "a by b", Bound: Bound{AtMost: 2}},
			{Name: "rival", Bound: Bound{AtLeast: 2}},
			{Name: "seen"},
		},
		Groups: []Group{
			{Name: "group", Fills: []string{"fast", "small", "seen"}, Run: run},
			{Name: "other", Fills: []string{"rival"}, Against: "redis", Run: run},
		},
	}
}

func config() Config {
	return Config{Rounds: 5, Stderr: new(bytes.Buffer), Now: time.Now, Command: "bench it"}
}

func verdicts(r *Report) string {
	var out []string
	for _, f := range r.Figures {
		out = append(out, f.Name+" "+string(f.Verdict))
	}
	return strings.Join(out, ", ")
}

func TestRun(t *testing.T) {
	var order []string
	s := suite(func(ctx context.Context, r *Run) error {
		err := r.Each(ctx, func(_ context.Context, round int) error {
			order = append(order, "a")
			r.Figure("fast").Add("ours", Nanoseconds, 1)
			r.Figure("fast").Hold(float64(round)) // median 2
			return nil
		}, func(_ context.Context, round int) error {
			order = append(order, "b")
			r.Figure("small").Add("theirs", Bytes, 5)
			r.Figure("small").Hold(3)
			r.Figure("small").HoldControl(1)
			r.Figure("seen").Add("x", Number, float64(round))
			return nil
		})
		return errors.Join(err, r.Check("sample", 10, nil))
	})
	r, err := s.Run(t.Context(), config())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "abbaabbaab" {
		t.Errorf("order %s", got)
	}
	want := "fast met, small missed, rival not measured, seen shown"
	if got := verdicts(r); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var text, raw bytes.Buffer
	if err := errors.Join(r.Markdown(&text), r.JSON(&raw)); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"bench it", "| `fast` | b by a | at least 2 | 2 | 0 to 4 |  | met |", "**missed**",
		"Not measured: needs --against redis=DSN", "| group | sample | 10 | 0 |",
	} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the report lacks %q:\n%s", part, &text)
		}
	}
	var back Report
	if err := json.Unmarshal(raw.Bytes(), &back); err != nil || verdicts(&back) != want {
		t.Errorf("read again: %v, %s", err, verdicts(&back))
	}
}

// A failure is no figure, and counts that differ are a failure.
func TestFailures(t *testing.T) {
	s := suite(func(ctx context.Context, r *Run) error {
		r.Figure("fast").Add("ours", Nanoseconds, 1)
		return r.Check("sample", 3, []string{"u1 in c2: 4, want 5"})
	})
	r, err := s.Run(t.Context(), config())
	if err == nil || !strings.Contains(err.Error(), "u1 in c2") {
		t.Errorf("error %v", err)
	}
	if strings.Contains(verdicts(r), "met,") || r.Checks[0].Wrong != 1 {
		t.Errorf("%s, %+v", verdicts(r), r.Checks)
	}
	cfg := config()
	cfg.Rounds = 4
	if _, err := s.Run(t.Context(), cfg); err == nil {
		t.Error("four rounds are enough")
	}
	cfg = config()
	cfg.Figures = regexp.MustCompile("^seen$")
	s.Groups[0].Run = func(ctx context.Context, r *Run) error {
		return r.Each(ctx, func(context.Context, int) error {
			r.Figure("fast").Add("thrown away", Number, 1)
			r.Figure("seen").Add("x", Number, 1)
			return nil
		})
	}
	if r, err = s.Run(t.Context(), cfg); err != nil || verdicts(r) != "seen shown" {
		t.Errorf("%v, %s", err, verdicts(r))
	}
}

// A round without a value is no measurement.
func TestIncomplete(t *testing.T) {
	s := suite(func(ctx context.Context, r *Run) error {
		r.Figure("fast").Add("ours", Nanoseconds, 1)
		r.Figure("fast").Hold(100)
		return nil
	})
	r, err := s.Run(t.Context(), config())
	if err != nil || r.Figures[0].Verdict != NotMeasured {
		t.Errorf("%v, %s", err, verdicts(r))
	}
}

func TestFormat(t *testing.T) {
	for want, got := range map[string]string{
		"1.23ms": format(1234567, Nanoseconds), "12.3 ns": format(12.34, Nanoseconds),
		"3.0 MiB": format(3<<20, Bytes), "44.1 B": format(44.1, Bytes),
		"1,235 /s": format(1234.6, PerSecond), "0.0123": format(0.0123, Times), "": format(math.NaN(), Times),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
