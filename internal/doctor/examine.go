package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
)

const (
	syncs        = 40 // writes that are timed
	syncBytes    = 4096
	slowSync     = 20 * time.Millisecond
	brokenSync   = time.Second
	clockSkew    = 2 * time.Second
	lowSpace     = 1 << 30
	noSpace      = 64 << 20
	lowFiles     = 4096
	filesReserve = 64 // database, listeners, logs: what is not a connection
)

// builtAfter is earlier than every build of this program: a clock before it is wrong.
var builtAfter = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Clock compares the clock with what it cannot be, and with that of the file system. Clocks
// decide when tokens, messages and levels end; they never order anything.
func Clock(now func() time.Time, dir string) Finding {
	at := now().UTC()
	f := Finding{What: "clock", Text: at.Format(time.RFC3339)}
	if at.Before(builtAfter) {
		f.Verdict, f.Text = Failure, f.Text+" is in the past: tokens and expiries will be wrong"
		return f
	}
	file, err := os.CreateTemp(dir, ".tidemark-doctor-*")
	if err != nil {
		return f // the disk's finding says it
	}
	defer remove(file)
	info, err := file.Stat()
	if err != nil {
		return f
	}
	if skew := info.ModTime().Sub(now()).Abs(); skew > clockSkew {
		f.Verdict = Warning
		f.Text += fmt.Sprintf(", %v from the file system's", skew.Round(time.Second))
	}
	return f
}

// Disk times how long a small write takes until it is durable: that is the least time a commit
// takes, and nearly all of it.
func Disk(dir string) Finding {
	f := Finding{What: "disk"}
	took, err := timeSyncs(dir)
	if err != nil {
		f.Verdict, f.Text = Failure, "cannot write: "+err.Error()
		return f
	}
	slices.Sort(took)
	median, worst := took[len(took)/2], took[len(took)-1]
	f.Text = fmt.Sprintf("%s: a durable write takes %v, at worst %v; at most %s commits a second",
		dir, rounded(median), rounded(worst), humanize.Comma(int64(time.Second/max(1, median))))
	switch {
	case median > brokenSync:
		f.Verdict = Failure
	case median > slowSync:
		f.Verdict = Warning
		f.Text += " (slow)"
	}
	return f
}

func timeSyncs(dir string) ([]time.Duration, error) {
	file, err := os.CreateTemp(dir, ".tidemark-doctor-*")
	if err != nil {
		return nil, err
	}
	defer remove(file)
	block := make([]byte, syncBytes)
	took := make([]time.Duration, syncs)
	for i := range took {
		started := time.Now() // what is measured is the real time
		if _, err := file.Write(block); err != nil {
			return nil, err
		}
		if err := file.Sync(); err != nil {
			return nil, err
		}
		took[i] = time.Since(started)
	}
	return took, nil
}

func remove(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

func rounded(d time.Duration) time.Duration {
	if d > time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// Space says how much the database may still grow.
func Space(dir string) Finding {
	f := Finding{What: "space"}
	free, err := freeBytes(dir)
	if err != nil {
		f.Verdict, f.Text = Warning, "unknown: "+err.Error()
		return f
	}
	f.Text = humanize.IBytes(free) + " free"
	switch {
	case free < noSpace:
		f.Verdict = Failure
	case free < lowSpace:
		f.Verdict = Warning
	}
	return f
}

// Files says how many connections the process may have.
func Files() Finding {
	f := Finding{What: "files"}
	limit, err := fileLimit()
	if err != nil {
		f.Verdict, f.Text = Warning, "unknown: "+err.Error()
		return f
	}
	f.Text = fmt.Sprintf("%s open files, so about %s connections",
		humanize.Comma(int64(limit)), humanize.Comma(int64(limit-min(limit, filesReserve))))
	if limit < lowFiles {
		f.Verdict = Warning
		f.Text += "; raise it with ulimit -n"
	}
	return f
}

// Secret judges the file that a signing secret is kept in.
func Secret(file string) Finding {
	f := Finding{What: "secret", Text: file}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		f.Verdict, f.Text = Failure, err.Error()
	case info.Mode().Perm()&0o077 != 0:
		f.Verdict = Warning
		f.Text = fmt.Sprintf("%s may be read by others (%v)", file, info.Mode().Perm())
	}
	return f
}

// Home returns the directory that a database file is or will be in.
func Home(database string) string { return filepath.Dir(database) }
