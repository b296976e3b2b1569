package conformance

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
)

// HistoryCase is a history of operations in an empty workspace, with the counts after each.
type HistoryCase struct {
	Head
	Steps []HistoryStep `json:"steps"`
}

// HistoryStep is an operation and what it does.
type HistoryStep struct {
	Op     HistoryOp     `json:"op"`
	Expect HistoryExpect `json:"expect"`
}

// HistoryOp is an operation. Which fields matter depends on Type; README.md has the table. Members
// are A, B and so on, scopes s1, s2 and so on; what is not there is zero, false or nobody.
type HistoryOp struct {
	Type   string `json:"type"`
	Scope  string `json:"scope,omitempty"`
	To     string `json:"to,omitempty"` // scope
	Member string `json:"member,omitempty"`
	Other  string `json:"other,omitempty"` // member

	Kind    string `json:"kind,omitempty"`    // of a new scope
	History string `json:"history,omitempty"` // of a new scope: shared, or nothing
	Parent  string `json:"parent,omitempty"`  // scope of a new thread
	RootSeq int64  `json:"rootSeq,omitempty"` // of a new thread

	Seq        int64   `json:"seq,omitempty"`
	Seqs       []int64 `json:"seqs,omitempty"`
	ThroughSeq *int64  `json:"throughSeq,omitempty"`

	Author           string   `json:"author,omitempty"`
	NotifyPrincipal  string   `json:"notifyPrincipal,omitempty"`
	Mentions         []string `json:"mentions,omitempty"`
	MentionsEveryone bool     `json:"mentionsEveryone,omitempty"`
	Recipients       []string `json:"recipients,omitempty"` // of what happens in a task
	Broadcast        bool     `json:"broadcast,omitempty"`  // a reply that is in the parent, too
	Unreadable       bool     `json:"unreadable,omitempty"`
	Baseline         bool     `json:"baseline,omitempty"`
	ExpiresAt        int64    `json:"expiresAt,omitempty"`        // second
	ObservedRevision int64    `json:"observedRevision,omitempty"` // a post that reads, too
	CountMoved       bool     `json:"countMoved,omitempty"`

	ReadRevision    *int64        `json:"readRevision,omitempty"`
	ExpectedVersion *int64        `json:"expectedVersion,omitempty"`
	FromRevision    int64         `json:"fromRevision,omitempty"`
	EffectiveFrom   int64         `json:"effectiveFrom,omitempty"`
	ActivityReadSeq *int64        `json:"activityReadSeq,omitempty"`
	Scopes          []HistoryRead `json:"scopes,omitempty"` // of readAll
	Service         bool          `json:"service,omitempty"`

	Notification string `json:"notification,omitempty"` // all, mentions, none or inherit
	Until        int64  `json:"until,omitempty"`        // second from which it is not so any more
	LowSignal    bool   `json:"lowSignal,omitempty"`
	Active       bool   `json:"active,omitempty"`
	Thinking     bool   `json:"thinking,omitempty"`
	Seconds      int64  `json:"seconds,omitempty"` // that the clock goes on by
}

// HistoryRead is one read of many.
type HistoryRead struct {
	Scope           string `json:"scope"`
	ReadRevision    int64  `json:"readRevision"`
	ExpectedVersion *int64 `json:"expectedVersion,omitempty"`
}

// HistoryAnswer is what an operation came to.
type HistoryAnswer struct {
	Result string `json:"result"`         // applied, unchanged or refused
	Code   string `json:"code,omitempty"` // of a refusal

	Seq             int64           `json:"seq,omitempty"`             // of a posted entry
	ContentRevision int64           `json:"contentRevision,omitempty"` // of it, where it is readable
	Items           []HistoryAnswer `json:"items,omitempty"`           // of readAll, in its order
}

// HistoryExpect is an answer, and what is another than before: rows and badges that are not named
// are as they were.
type HistoryExpect struct {
	HistoryAnswer
	Rows   []Row   `json:"rows,omitempty"`
	Gone   []RowID `json:"gone,omitempty"` // rows that are no more
	Badges []Badge `json:"badges,omitempty"`
}

// RowID names a row.
type RowID struct {
	Member string `json:"member"`
	Scope  string `json:"scope"`
}

// Row is what is served about a member in a scope. What is not there is 0, false or none; a
// notification that is not there is all.
type Row struct {
	RowID
	Unread          int64  `json:"unread"`
	Attention       int64  `json:"attention"`
	Activity        int64  `json:"activity,omitempty"`
	Counts          bool   `json:"counts,omitempty"` // joined, visible and not archived, as its parent
	Shown           bool   `json:"shown,omitempty"`
	ShownUnread     int64  `json:"shownUnread,omitempty"`
	Notification    string `json:"notification,omitempty"` // now: inherited and ended ones resolved
	ManualUnread    bool   `json:"manualUnread,omitempty"`
	FromRevision    int64  `json:"fromRevision,omitempty"`
	Version         int64  `json:"version,omitempty"`
	ReadRevision    int64  `json:"readRevision,omitempty"`
	ActivityReadSeq int64  `json:"activityReadSeq,omitempty"`
	ContentRevision int64  `json:"contentRevision,omitempty"` // of the scope
}

// Badge is the fold over what a member is shown. Somebody without a badge has one of zeros.
type Badge struct {
	Member        string `json:"member"`
	Messages      int64  `json:"messages"`
	Conversations int64  `json:"conversations"`
	Attention     int64  `json:"attention"`
}

// HistorySuite is a file of histories.
type HistorySuite = file[HistoryCase]

// LoadHistories returns the histories in the order of the files' names.
func LoadHistories() ([]HistorySuite, error) {
	return load(historyFiles, "cases/readstate", (*HistoryCase).check, (*HistoryCase).head)
}

// ParseHistories reads a file of histories.
func ParseHistories(r io.Reader) (HistorySuite, error) { return parse(r, (*HistoryCase).check) }

func (c *HistoryCase) head() *Head { return &c.Head }

func (c *HistoryCase) check() error {
	if err := c.Head.check(len(c.Steps)); err != nil {
		return err
	}
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Op.Type == "" || s.Expect.Result == "" {
			return fmt.Errorf("case %s, step %d: a type and a result are needed", c.ID, i+1)
		}
	}
	return nil
}

// Counter is an implementation of the counting rules under test, in an empty workspace.
type Counter interface {
	// Apply carries an operation out. The expected answer tells an implementation that knows no
	// scopes and rights what is refused before anything is counted; others leave it alone.
	Apply(op *HistoryOp, expected *HistoryAnswer) (HistoryAnswer, error)
	// Rows returns the rows that there are, in any order; Badges the badges that are not all zeros.
	Rows() ([]Row, error)
	Badges() ([]Badge, error)
}

// RunHistory plays a history. The error says that the implementation failed in itself.
func RunHistory(counter Counter, c *HistoryCase) (Result, error) {
	rows, badges := map[RowID]Row{}, map[string]Badge{}
	for i := range c.Steps {
		s := &c.Steps[i]
		problem, err := s.play(counter, rows, badges)
		if err != nil {
			return Result{}, fmt.Errorf("case %s, step %d: %s: %w", c.ID, i+1, s.Op.Type, err)
		}
		if problem != "" {
			return Result{Case: c.ID, Step: i + 1, Problem: s.Op.Type + ": " + problem}, nil
		}
	}
	return Result{Case: c.ID}, nil
}

// play carries out a step and compares everything with what is expected from here on.
func (s *HistoryStep) play(
	counter Counter, rows map[RowID]Row, badges map[string]Badge,
) (problem string, err error) {
	got, err := counter.Apply(&s.Op, &s.Expect.HistoryAnswer)
	if err != nil {
		return "", err
	}
	if !reflect.DeepEqual(got, s.Expect.HistoryAnswer) {
		return fmt.Sprintf("answered %s, expected %s", text(got), text(s.Expect.HistoryAnswer)), nil
	}
	for _, r := range s.Expect.Rows {
		rows[r.RowID] = r
	}
	for _, id := range s.Expect.Gone {
		delete(rows, id)
	}
	for _, b := range s.Expect.Badges {
		if badges[b.Member] = b; b == (Badge{Member: b.Member}) {
			delete(badges, b.Member)
		}
	}
	gotRows, err := counter.Rows()
	if err != nil {
		return "", err
	}
	if d := unequal(gotRows, rows, func(r Row) RowID { return r.RowID }, byRowID); d != "" {
		return d, nil
	}
	gotBadges, err := counter.Badges()
	if err != nil {
		return "", err
	}
	return unequal(gotBadges, badges, func(b Badge) string { return b.Member }, cmp.Compare), nil
}

func byRowID(a, b RowID) int {
	return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Scope, b.Scope))
}

// unequal says how a list differs from what is expected of it, by its elements' keys.
func unequal[K, V comparable](list []V, want map[K]V, key func(V) K, order func(a, b K) int) string {
	got := map[K]V{}
	for _, v := range list {
		got[key(v)] = v
	}
	if len(got) != len(list) {
		return "something is there twice: " + text(list)
	}
	keys := slices.Collect(maps.Keys(got))
	for k := range want {
		if _, there := got[k]; !there {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, order)
	for _, k := range keys {
		have, there := got[k]
		wanted, expected := want[k]
		switch {
		case !there:
			return fmt.Sprintf("%v is not there, expected %s", k, text(wanted))
		case !expected:
			return fmt.Sprintf("%v is there, as %s", k, text(have))
		case have != wanted:
			return fmt.Sprintf("%v is %s, expected %s", k, text(have), text(wanted))
		}
	}
	return ""
}
