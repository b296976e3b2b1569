package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Report is what a run gave.
type Report struct {
	Machine Machine       `json:"machine"`
	Command string        `json:"command"`
	Scale   Scale         `json:"scale"`
	Rounds  int           `json:"rounds"`
	Took    time.Duration `json:"tookNanoseconds"`
	Figures []Figure      `json:"figures"`
	Checks  []Check       `json:"checks"`
}

// Check is a comparison of counts with the oracle, made under the load of a group.
type Check struct {
	Group    string `json:"group"`
	Name     string `json:"name"`
	Compared int    `json:"compared"`
	Wrong    int    `json:"wrong"`
	First    string `json:"first,omitempty"`
}

// JSON writes the report as one object.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Markdown writes the report for readers.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\n")
	r.origin(&b)
	b.WriteString("## Verdicts\n\n| figure | held | bound | median | least to most | control " +
		"| verdict |\n|---|---|---|---|---|---|---|\n")
	for i := range r.Figures {
		r.Figures[i].row(&b)
	}
	r.checks(&b)
	b.WriteString("\n## Figures\n")
	for i := range r.Figures {
		r.Figures[i].section(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) origin(b *strings.Builder) {
	m := &r.Machine
	fmt.Fprintf(b, "Made by\n\n    %s\n\n", r.Command)
	fmt.Fprintf(b, "in %s, %d interleaved rounds, scale %s.\n\n", r.Took.Round(time.Second),
		r.Rounds, r.Scale)
	change := ""
	if m.Modified {
		change = " with changes"
	}
	fmt.Fprintf(b, "| | |\n|---|---|\n| machine | %s, %d cores, GOMAXPROCS %d, %s |\n",
		orUnknown(m.CPU), m.Cores, m.Procs, humanize.IBytes(m.Memory))
	fmt.Fprintf(b, "| system | %s %s |\n| Go | %s |\n| commit | %s%s |\n| date | %s |\n",
		m.System, m.Kernel, m.Go, m.Commit, change, m.Date.Format(time.RFC3339))
	fmt.Fprintf(b, "| load when it began | %s |\n\n", orUnknown(m.Load))
	b.WriteString("A ratio is made in each round from that round's values; the verdict goes by " +
		"the median. The control is the ratio of a thing to itself, measured twice in a round.\n\n")
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func (f *Figure) row(b *strings.Builder) {
	ratio, control := f.Ratio.Spread(), f.Control.Spread()
	verdict := string(f.Verdict)
	if f.Verdict != Met && f.Verdict != Shown {
		verdict = "**" + verdict + "**"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", f.Name, f.Held, f.Bound,
		format(ratio.Median, f.Ratio.Unit), between(ratio, f.Ratio.Unit),
		format(control.Median, f.Control.Unit), verdict)
}

func (f *Figure) section(b *strings.Builder) {
	fmt.Fprintf(b, "\n### `%s`\n\n%s\n\n", f.Name, f.Title)
	if f.Verdict == NotMeasured {
		fmt.Fprintf(b, "Not measured: %s\n\n", strings.ReplaceAll(f.Why, "\n", "; "))
	}
	if len(f.Series) > 0 {
		b.WriteString("| | median | least to most |\n|---|---|---|\n")
	}
	for i := range f.Series {
		s := &f.Series[i]
		v := s.Spread()
		fmt.Fprintf(b, "| %s | %s | %s |\n", s.Name, format(v.Median, s.Unit), between(v, s.Unit))
	}
	if len(f.Ratio.Values) > 0 {
		fmt.Fprintf(b, "\nRatio of each round: %s.\n", list(f.Ratio.Values))
	}
	if len(f.Control.Values) > 0 {
		fmt.Fprintf(b, "Control of each round: %s.\n", list(f.Control.Values))
	}
	for _, n := range f.Notes {
		fmt.Fprintf(b, "\n%s\n", n)
	}
}

func (r *Report) checks(b *strings.Builder) {
	if len(r.Checks) == 0 {
		return
	}
	b.WriteString("\n## Counts compared with the oracle\n\n| group | what | compared | wrong |\n" +
		"|---|---|---|---|\n")
	for _, c := range r.Checks {
		fmt.Fprintf(b, "| %s | %s | %s | %d |\n", c.Group, c.Name,
			humanize.Comma(int64(c.Compared)), c.Wrong)
	}
}

// String says what a bound demands.
func (b Bound) String() string {
	switch {
	case b.None():
		return ""
	case b.AtMost > 0:
		return "at most " + number(b.AtMost)
	}
	return "at least " + number(b.AtLeast)
}

func between(s Spread, u Unit) string {
	if math.IsNaN(s.Median) {
		return ""
	}
	return format(s.Least, u) + " to " + format(s.Most, u)
}

func list(values []float64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = number(v)
	}
	return strings.Join(texts, ", ")
}

// format writes a value as a reader wants it; nothing for what is not a number.
func format(v float64, u Unit) string {
	switch {
	case math.IsNaN(v):
		return ""
	case u == Nanoseconds && v >= 1000:
		return time.Duration(v).Round(time.Duration(math.Pow(10, math.Floor(math.Log10(v))-2))).String()
	case u == Nanoseconds:
		return number(v) + " ns"
	case u == Bytes && v >= 1<<20:
		return humanize.IBytes(uint64(v))
	case u == Bytes:
		return number(v) + " B"
	case u == PerSecond:
		return number(v) + " /s"
	}
	return number(v)
}

// number writes about three digits that matter.
func number(v float64) string {
	switch {
	case math.Abs(v) >= 100:
		return humanize.Comma(int64(math.Round(v)))
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
