package settings

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/unread/intake"
)

func nothing(string) (string, bool) { return "", false }

// only is an environment with one variable.
func only(name, text string) func(string) (string, bool) {
	return func(asked string) (string, bool) { return text, asked == name }
}

const (
	flushInterval = "TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_FLUSH_INTERVAL"
	flushBatch    = "TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_FLUSH_BATCH_SIZE"
	hydrations    = "TIDEMARK_UNREAD_RUNTIME_HYDRATE_MAX_CONCURRENCY"
	hydrateBatch  = "TIDEMARK_UNREAD_RUNTIME_HYDRATE_BATCH_SIZE"
)

// theFour are the names that every version has.
var theFour = []string{flushInterval, flushBatch, hydrations, hydrateBatch}

func named(t *testing.T, name string) Setting {
	t.Helper()
	all := All()
	i := slices.IndexFunc(all, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return all[i]
}

// covers: RT-440, RT-447
func TestNothingSetIsTheDefaults(t *testing.T) {
	v, err := Load(nothing)
	if err != nil || !reflect.DeepEqual(v, Defaults()) {
		t.Fatalf("%+v, %v", v, err)
	}
	for i, want := range []string{"30s", "1000", "2", "100"} {
		s := named(t, theFour[i])
		if got := s.Default(); got != want {
			t.Errorf("%s is %s where nobody says otherwise, want %s", s.Name, got, want)
		}
	}
	if v.Intake.Flush.FlushInterval != 30*time.Second || v.Runtime.HydrateConcurrency != 2 {
		t.Errorf("%+v", v)
	}
}

// covers: RT-441
func TestAnOverrideLeavesTheOthers(t *testing.T) {
	for _, s := range All() {
		least, most := s.Bounds()
		text := least
		if text == s.Default() {
			text = most
		}
		v, err := Load(only(s.Name, text))
		if err != nil {
			t.Errorf("%s=%s: %v", s.Name, text, err)
			continue
		}
		for _, other := range All() {
			want := other.Default()
			if other.Name == s.Name {
				want = text
			}
			if got := other.Text(&v); got != want {
				t.Errorf("with %s=%s, %s is %s, want %s", s.Name, text, other.Name, got, want)
			}
		}
	}
}

// What is not understood is refused in one line that names the setting, and there are no values.
//
// covers: RT-443, RT-444, RT-445
func TestRefusals(t *testing.T) {
	bad := map[Kind][]string{
		Duration: {"0s", "-1s", "30", "", "x", "1.5", "0", "30 s", "1e3s"},
		Count:    {"0", "-1", "x", "1.5", "", "1e3", "0x10", "10s", " 5", "99999999999999999999"},
		Bytes:    {"0", "-1", "x", "1.5", "4G", "4GB", "GiB", "1.5GiB", "9999999999TiB"},
		Rate:     {"0", "-1", "x", "", "NaN", "Inf", "1/s"},
	}
	for _, s := range All() {
		for _, text := range bad[s.Kind] {
			v, err := Load(only(s.Name, text))
			if err == nil {
				t.Errorf("%s=%q is taken", s.Name, text)
				continue
			}
			if !reflect.DeepEqual(v, Values{}) {
				t.Errorf("%s=%q leaves values behind", s.Name, text)
			}
			if line := err.Error(); !strings.Contains(line, s.Name) ||
				!strings.Contains(line, "--"+s.Flag()) || strings.Contains(line, "\n") {
				t.Errorf("%s=%q: %s", s.Name, text, line)
			}
		}
	}
	_, err := Load(func(name string) (string, bool) { return "x", slices.Contains(theFour, name) })
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("four at once: %v", err)
	}
}

// The bounds are part of the contract: what lies on one is taken, what lies beyond is not.
//
// covers: RT-446
func TestBounds(t *testing.T) {
	for _, s := range All() {
		step := 1.0
		if s.Kind == Rate {
			step = s.least / 2
		}
		def := Defaults()
		if n := s.Number(&def); n < s.least || n > s.most || s.least <= 0 || s.Why == "" {
			t.Errorf("%s is %v of %v to %v because %q", s.Name, n, s.least, s.most, s.Why)
		}
		for n, good := range map[float64]bool{
			s.least: true, s.most: true, s.least - step: false, s.most + step: false,
		} {
			text := s.Kind.format(n)
			if _, err := Load(only(s.Name, text)); (err == nil) != good {
				t.Errorf("%s=%s: %v", s.Name, text, err)
			}
		}
	}
}

func TestKinds(t *testing.T) {
	for text, want := range map[string]float64{
		"4GiB": 4 << 30, "64MiB": 64 << 20, "1KiB": 1024, "2TiB": 2 << 40, "4097": 4097,
	} {
		if n, err := Bytes.parse(text); n != want || err != nil || Bytes.format(want) != text {
			t.Errorf("%s is %v, %v; %v is %s", text, n, err, want, Bytes.format(want))
		}
	}
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Second: "1m30s", time.Minute: "1m", 30 * time.Second: "30s",
		time.Hour + time.Second: "1h0m1s", 10 * time.Millisecond: "10ms",
	} {
		if got := Duration.format(float64(d)); got != want {
			t.Errorf("%v is written %s", d, got)
		}
	}
}

// A misspelt variable must not be silence.
func TestCheckNames(t *testing.T) {
	var good []string
	for _, s := range All() {
		good = append(good, s.Name+"="+s.Default())
	}
	good = append(good, "TIDEMARK_LISTEN=:1", "PATH=x", "TIDEMARK_UNREAD=1", "=C:=x")
	if err := CheckNames(good); err != nil {
		t.Error(err)
	}
	for _, name := range []string{
		"TIDEMARK_UNREAD_RUNTIME_HYDRATE_BATCHSIZE", "TIDEMARK_UNREAD_RUNTIME_", "TIDEMARK_LANE_X",
		"TIDEMARK_LIVE_HEART_BEAT", "TIDEMARK_HTTP_RATE",
	} {
		if err := CheckNames(append(good, name+"=1")); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What an intake reads from the environment by itself is in the table, with the defaults and the
// meaning that it has there.
func TestAnIntakeReadsTheSameNames(t *testing.T) {
	var asked []string
	if err := new(intake.Config).FromEnv(func(name string) (string, bool) {
		asked = append(asked, name)
		return "", false
	}); err != nil || len(asked) == 0 {
		t.Fatal(asked, err)
	}
	for _, name := range asked {
		s := named(t, name)
		least, _ := s.Bounds()
		var theirs intake.Config
		if err := theirs.FromEnv(only(name, least)); err != nil {
			t.Errorf("an intake refuses %s=%s: %v", name, least, err)
		}
		ours := Values{Intake: theirs, Runtime: theirs.Runtime}
		if got := s.Text(&ours); got != least {
			t.Errorf("%s=%s is %s in an intake", name, least, got)
		}
	}
	for _, p := range Parts() {
		for _, s := range p.Settings {
			theirs := p.Title == "Snapshot mode" || p.Title == "Counts in memory"
			if theirs && !slices.Contains(asked, s.Name) {
				t.Errorf("no intake reads %s", s.Name)
			}
		}
	}
}

// Every number and duration of the configurations is a setting: a budget without a name is none
// that an operator has.
func TestEveryBudgetHasAName(t *testing.T) {
	var v Values
	fields := map[any]string{}
	var walk func(path string, x reflect.Value)
	walk = func(path string, x reflect.Value) {
		for i := range x.NumField() {
			f := x.Field(i)
			name := path + "." + x.Type().Field(i).Name
			switch {
			case !x.Type().Field(i).IsExported() || name == ".Intake.Runtime":
			case f.Kind() == reflect.Struct:
				walk(name, f)
			case f.CanInt() || f.CanFloat() || f.CanUint():
				fields[f.Addr().Interface()] = name
			}
		}
	}
	walk("", reflect.ValueOf(&v).Elem())
	seen := map[string]bool{}
	for _, s := range All() {
		p := s.field(&v)
		if fields[p] == "" {
			t.Errorf("%s sets what no configuration has, or another sets it too", s.Name)
		}
		delete(fields, p)
		if seen[s.Name] || !strings.HasPrefix(s.Name, ours) {
			t.Errorf("%s is no name, or is there twice", s.Name)
		}
		seen[s.Name] = true
	}
	for _, name := range fields {
		t.Errorf("%s has no setting", name)
	}
	for _, p := range Parts() {
		for _, s := range p.Settings {
			if !strings.HasPrefix(s.Name, p.Prefix) {
				t.Errorf("%s is not of the family %s", s.Name, p.Prefix)
			}
		}
	}
}

// Values that are acceptable one by one may not be so together: a lease that ends before its work,
// a longest pause that is shorter than the first.
func TestValuesThatContradict(t *testing.T) {
	for name, c := range map[string]struct {
		texts map[string]string
		says  []string
	}{
		"lease and requests": {
			map[string]string{"LEASE": "20s", "WAKE_TIMEOUT": "11s"}, []string{"_LEASE", "_WAKE_TIMEOUT"},
		},
		"lease and stages": {
			map[string]string{"LEASE": "20s", "STAGE_TIMEOUT": "11s"}, []string{"_LEASE", "_STAGE_TIMEOUT"},
		},
		"pauses of rows that wait": {
			map[string]string{"DEFER_FIRST": "2s", "DEFER_MOST": "1s"}, []string{"_DEFER_MOST", "_DEFER_FIRST"},
		},
		"pauses after failures": {
			map[string]string{"RETRY_FIRST": "1m", "RETRY_MOST": "1s"}, []string{"_RETRY_MOST", "_RETRY_FIRST"},
		},
	} {
		v, err := Load(func(name string) (string, bool) {
			text, ok := c.texts[strings.TrimPrefix(name, "TIDEMARK_OUTBOX_")]
			return text, ok
		})
		if err == nil || !reflect.DeepEqual(v, Values{}) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.says {
			if !strings.Contains(err.Error(), "$TIDEMARK_OUTBOX"+want) {
				t.Errorf("%s: %v does not name %s", name, err, want)
			}
		}
	}
}
