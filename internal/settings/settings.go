package settings

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/outbox"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/intake"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// Values are the budgets of a process, each part as the package takes it that has them. Ports,
// clocks and logs in them are nil.
type Values struct {
	Runtime unread.Config
	Intake  intake.Config // of snapshot mode; its Runtime is the one above, and empty
	Lane    facts.LaneConfig
	Live    live.Options
	HTTP    httpapi.Limits
	Outbox  outbox.Limits
	Inbox   inbox.Limits
}

// Defaults are the values that hold where nobody says otherwise.
func Defaults() Values {
	return Values{
		Runtime: unread.Defaults(),
		Intake:  intakeDefaults(),
		Lane: facts.LaneConfig{
			GroupRows: facts.DefaultGroupRows, GroupWait: facts.DefaultGroupWait,
			QueueDepth: facts.DefaultQueueDepth,
		},
		Live: live.Options{
			Heartbeat: live.DefaultHeartbeat, WriteTimeout: live.DefaultWriteTimeout,
			Retry: live.DefaultRetry, PageRows: live.DefaultPageRows,
		},
		HTTP: httpapi.DefaultLimits(), Outbox: outbox.DefaultLimits(), Inbox: inbox.DefaultLimits(),
	}
}

// intakeDefaults asks an intake for its defaults, which it has for complete configurations only.
func intakeDefaults() intake.Config {
	cfg, err := intake.Config{Store: noStore{}}.WithDefaults()
	if err != nil {
		panic(fmt.Sprintf("defaults of an intake: %v", err))
	}
	cfg.Store, cfg.Now, cfg.Log, cfg.Runtime = nil, nil, nil, unread.Config{}
	cfg.Flush.Store, cfg.Flush.Log = nil, nil
	return cfg
}

// noStore stands where a store is asked for and not used.
type noStore struct{ snapshot.Store }

// Setting is one row of the table.
type Setting struct {
	Name   string // of the environment variable
	Kind   Kind
	Does   string // what is bounded, as a noun
	Beyond string // what happens there
	Why    string // of the bounds of the value

	// Metrics: the limit in force, and, empty where there is none, its present use and what counts
	// those who were over it. Those of snapshot mode are there in that mode only.
	Limit, Use, Over string

	least, most float64
	field       func(*Values) any // *int, *float64 or *time.Duration
}

// Part is a family of settings, which begin with the same words.
type Part struct {
	Title    string
	Prefix   string // of every name
	About    string
	Settings []Setting
}

// Parts returns the table, in the order of the documentation. It is the caller's.
func Parts() []Part {
	all := parts()
	for i := range all {
		all[i].Settings = slices.Clone(all[i].Settings)
	}
	return all
}

// All returns every setting of the table.
func All() []Setting {
	var all []Setting
	for _, p := range parts() {
		all = append(all, p.Settings...)
	}
	return all
}

// OfSnapshotMode reports a setting that does nothing where the facts are kept, too.
func (s *Setting) OfSnapshotMode() bool {
	return slices.ContainsFunc(snapshots, func(x Setting) bool { return x.Name == s.Name })
}

const ours = "TIDEMARK_"

// Flag is the setting's name on a command line, without the dashes before it.
func (s *Setting) Flag() string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(s.Name, ours), "_", "-"))
}

// Default is the default as an operator would write it.
func (s *Setting) Default() string {
	v := Defaults()
	return s.Text(&v)
}

// Bounds returns the least and the most that is accepted, both included.
func (s *Setting) Bounds() (least, most string) {
	return s.Kind.format(s.least), s.Kind.format(s.most)
}

// Text is the setting's value as an operator would write it.
func (s *Setting) Text(v *Values) string { return s.Kind.format(s.Number(v)) }

// Number is the setting's value in the unit of the field: nanoseconds, items, bytes or a number
// per second.
func (s *Setting) Number(v *Values) float64 {
	switch p := s.field(v).(type) {
	case *int:
		return float64(*p)
	case *time.Duration:
		return float64(*p)
	case *float64:
		return *p
	default:
		panic(fmt.Sprintf("setting %s is a %T", s.Name, p))
	}
}

// set takes a text in, or says what is wrong with it in one line that names the setting.
func (s *Setting) set(v *Values, text string) error {
	least, most := s.Bounds()
	n, err := s.Kind.parse(text)
	if err != nil || n < s.least || n > s.most || math.IsInf(n, 0) {
		return fmt.Errorf("--%s ($%s) is %q, want %s from %s to %s",
			s.Flag(), s.Name, text, s.Kind.wanted(), least, most)
	}
	switch p := s.field(v).(type) {
	case *int:
		*p = int(n)
	case *time.Duration:
		*p = time.Duration(n)
	case *float64:
		*p = n
	}
	return nil
}

// Load starts from the defaults and puts in what lookup finds under the names of the table. One
// line of its error is one value that is not acceptable, and names it; there are no values then.
func Load(lookup func(name string) (text string, set bool)) (Values, error) {
	v := Defaults()
	var refused []error
	for _, s := range All() {
		if text, set := lookup(s.Name); set {
			refused = append(refused, s.set(&v, text))
		}
	}
	if err := errors.Join(refused...); err != nil {
		return Values{}, err
	}
	if err := errors.Join(v.together()...); err != nil {
		return Values{}, err
	}
	return v, nil
}

// together returns what is wrong with values each of which is acceptable by itself.
func (v *Values) together() (refused []error) {
	o := &v.Outbox
	for _, rule := range []struct {
		holds            bool
		value, than, why string
	}{
		{
			o.LeaseFor >= 2*o.WakeTimeout, "TIDEMARK_OUTBOX_LEASE", "TIDEMARK_OUTBOX_WAKE_TIMEOUT",
			"twice as long as",
		},
		{
			o.LeaseFor >= 2*o.StageTimeout, "TIDEMARK_OUTBOX_LEASE", "TIDEMARK_OUTBOX_STAGE_TIMEOUT",
			"twice as long as",
		},
		{
			o.DeferMost >= o.DeferFirst, "TIDEMARK_OUTBOX_DEFER_MOST", "TIDEMARK_OUTBOX_DEFER_FIRST",
			"no shorter than",
		},
		{
			o.RetryMost >= o.RetryFirst, "TIDEMARK_OUTBOX_RETRY_MOST", "TIDEMARK_OUTBOX_RETRY_FIRST",
			"no shorter than",
		},
	} {
		if !rule.holds {
			refused = append(refused, fmt.Errorf("$%s must be %s $%s", rule.value, rule.why, rule.than))
		}
	}
	return refused
}

// CheckNames refuses variables that begin like those of the table and are none of them. The
// environment is as os.Environ returns it.
func CheckNames(environment []string) error {
	all := All()
	var unknown []error
	for _, assignment := range environment {
		name, _, _ := strings.Cut(assignment, "=")
		family := slices.ContainsFunc(parts(), func(p Part) bool {
			return strings.HasPrefix(name, p.Prefix)
		})
		if family && !slices.ContainsFunc(all, func(s Setting) bool { return s.Name == name }) {
			unknown = append(unknown, fmt.Errorf("there is no setting $%s", name))
		}
	}
	return errors.Join(unknown...)
}
