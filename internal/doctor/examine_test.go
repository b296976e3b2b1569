package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		now  func() time.Time
		want Verdict
	}{
		"right":    {time.Now, Good},
		"past":     {func() time.Time { return time.Unix(0, 0) }, Failure},
		"an hour":  {func() time.Time { return time.Now().Add(time.Hour) }, Warning},
		"a second": {func() time.Time { return time.Now().Add(time.Second) }, Good},
	} {
		if got := Clock(c.now, dir); got.Verdict != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	if got := Disk(dir); got.Verdict == Failure || !strings.Contains(got.Text, "commits a second") {
		t.Errorf("%+v", got)
	}
	if got := Disk(filepath.Join(dir, "missing")); got.Verdict != Failure {
		t.Errorf("%+v", got)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSpaceAndFiles(t *testing.T) {
	for _, f := range []Finding{Space(t.TempDir()), Files()} {
		if f.Text == "" || strings.Contains(f.Text, "\n") {
			t.Errorf("%+v", f)
		}
	}
	if got := Space(filepath.Join(t.TempDir(), "missing")); got.Verdict != Warning {
		t.Errorf("%+v", got)
	}
}

func TestSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if got := Secret(file); got.Verdict != Failure {
		t.Errorf("missing: %+v", got)
	}
	for mode, want := range map[os.FileMode]Verdict{0o600: Good, 0o640: Warning, 0o604: Warning} {
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if got := Secret(file); got.Verdict != want {
			t.Errorf("%v: %+v", mode, got)
		}
	}
}

func TestWorst(t *testing.T) {
	all := []Finding{{Verdict: Good}, {Verdict: Failure}, {Verdict: Warning}}
	if Worst(all) != Failure || Worst(all[:1]) != Good || Worst(nil) != Good {
		t.Error("wrong")
	}
}
