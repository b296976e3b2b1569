package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/mattn/go-isatty"
)

const (
	width     = 24
	redraw    = 100 * time.Millisecond
	steps     = 10 // plain lines for the whole work
	clearLine = "\r\x1b[K"
)

// Bar shows one piece of work.
type Bar struct {
	out      io.Writer
	terminal bool
	now      func() time.Time
	label    string
	unit     string
	total    int64

	started time.Time
	drawn   time.Time
	step    int64 // of the last plain line
	done    int64
}

// New starts a bar for total units of work, "messages" for example. It is drawn on a terminal,
// and written as lines to anything else.
func New(out io.Writer, label, unit string, total int64, now func() time.Time) *Bar {
	return &Bar{
		out: out, terminal: isTerminal(out), now: now, label: label, unit: unit,
		total: total, started: now(),
	}
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
}

// Set says how much is done by now.
func (b *Bar) Set(done int64) {
	b.done = done
	now := b.now()
	if b.terminal {
		if now.Sub(b.drawn) < redraw {
			return
		}
		b.drawn = now
		_, _ = fmt.Fprint(b.out, clearLine, b.text(now))
		return
	}
	if step := done * steps / max(1, b.total); step > b.step {
		b.step = step
		_, _ = fmt.Fprintln(b.out, b.text(now))
	}
}

// End takes the bar off a terminal; plain lines stay. It returns how long the work took.
func (b *Bar) End() time.Duration {
	now := b.now()
	if b.terminal {
		_, _ = fmt.Fprint(b.out, clearLine)
	}
	return now.Sub(b.started)
}

func (b *Bar) text(now time.Time) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%-8s %3d %%", b.label, b.done*100/max(1, b.total))
	if b.terminal {
		full := int(b.done * width / max(1, b.total))
		full = min(width, max(0, full))
		fmt.Fprintf(&s, "  %s%s", strings.Repeat("█", full), strings.Repeat("░", width-full))
	}
	fmt.Fprintf(&s, "  %s of %s %s", humanize.Comma(b.done), humanize.Comma(b.total), b.unit)
	spent := now.Sub(b.started)
	if spent < time.Second || b.done == 0 {
		return s.String()
	}
	rate := float64(b.done) / spent.Seconds()
	fmt.Fprintf(&s, "  %s/s", humanize.Comma(int64(rate)))
	if left := time.Duration(float64(b.total-b.done)/rate) * time.Second; left > 0 {
		fmt.Fprintf(&s, "  %s left", left)
	}
	return s.String()
}
