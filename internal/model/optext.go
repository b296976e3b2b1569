package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var kindNames = []string{
	"", "create", "post", "edit", "remove", "rewind", "trim", "move", "clock", "expire",
	"join", "leave", "show", "hide", "read", "readall", "unread", "level", "follow",
	"unfollow", "archive", "unarchive", "block", "unblock", "activity", "actread", "task", "run",
	"merge", "fork",
}

// String returns the word that starts the operation's line.
func (k Kind) String() string { return nameOf(kindNames, int(k)) }

// line collects the words of an operation.
type line struct{ words []string }

func (l *line) add(words ...string) { l.words = append(l.words, words...) }

func (l *line) num(key string, n int64) {
	if n != 0 {
		l.add(key + "=" + strconv.FormatInt(n, 10))
	}
}

func (l *line) flag(word string, on bool) {
	if on {
		l.add(word)
	}
}

func (l *line) members(prefix string, ids []MemberID) {
	if len(ids) > 0 {
		l.add(prefix + joinMembers(ids))
	}
}

func (l *line) version(v Version) {
	if v != NoVersion {
		l.add("v=" + strconv.FormatInt(int64(v), 10))
	}
}

// String prints the operation as the one line that [ParseOp] reads. Fields that do
// not matter for the kind are left out.
func (op Op) String() string {
	l := &line{}
	l.add(op.Kind.String())
	switch op.Kind {
	case OpCreate:
		op.createWords(l)
	case OpPost:
		l.add(op.Scope.String(), op.Member.String())
		if op.Other != 0 {
			l.add("as=" + op.Other.String())
		}
		l.members("@", op.Mentions)
		l.flag("everyone", op.Everyone)
		l.flag("broadcast", op.Broadcast)
		l.flag("unreadable", op.Unreadable)
		l.flag("baseline", op.Baseline)
		l.members("to=", op.Recipients)
		l.num("expires", int64(op.Expires))
		l.num("saw", int64(op.Revision))
	case OpEdit:
		l.add(op.Scope.String(), digits(op.Seq))
		l.members("@", op.Mentions)
		l.flag("everyone", op.Everyone)
	case OpRemove, OpRewind, OpTrim:
		l.add(op.Scope.String(), digits(op.Seq))
	case OpMove:
		l.add(op.Scope.String(), joinSeqs(op.Seqs), op.To.String())
		l.flag("count", op.Count)
		l.members("to=", op.Recipients)
	case OpAdvanceClock, OpExpire:
		l.add(digits(op.Advance))
	case OpArchive, OpUnarchive:
		l.add(op.Scope.String())
	case OpBlock, OpUnblock:
		l.add(op.Member.String(), op.Other.String())
	case OpActivity:
		l.add(op.Scope.String(), op.Member.String())
		l.flag("low", op.LowSignal)
		l.members("to=", op.Recipients)
	case OpTask:
		l.add(op.Scope.String(), op.Member.String())
		if op.Assigns {
			l.add("assignee=" + nameAssignee(op.Other))
		}
		l.num("status", int64(op.Status))
		l.num("title", int64(op.Title))
	case OpRunState:
		l.add(op.Scope.String())
		l.flag("active", op.Active)
		l.flag("thinking", op.Thinking)
	case OpMerge, OpFork:
		l.add(op.Scope.String(), op.To.String())
	default:
		op.rowWords(l)
	}
	return strings.Join(l.words, " ")
}

func nameAssignee(m MemberID) string {
	if m == 0 {
		return "nobody"
	}
	return m.String()
}

func (op Op) createWords(l *line) {
	l.add(op.Scope.String(), op.Type.String())
	switch op.Type {
	case Thread:
		l.add(op.To.String())
		l.num("root", int64(op.Seq))
	case Session:
		l.add(op.Member.String())
	default:
		l.flag("shared", op.Shared)
		l.flag("planned", op.Planned)
	}
}

// rowWords prints the operations on one member's row.
func (op Op) rowWords(l *line) {
	if op.Kind == OpReadAll {
		l.add(op.Member.String())
		for _, it := range op.Items {
			l.add(it.String())
		}
		l.flag("service", op.Service)
		return
	}
	l.add(op.Scope.String(), op.Member.String())
	switch op.Kind {
	case OpJoin:
		l.num("from", int64(op.From))
		l.num("read", int64(op.Revision))
	case OpRead:
		l.add(digits(op.Revision))
		l.version(op.Version)
	case OpMarkUnread:
		l.num("from", int64(op.From))
		l.version(op.Version)
	case OpSetLevel:
		l.add(op.Level.String())
		l.num("until", int64(op.Until))
	case OpActivityRead:
		l.add(digits(op.Activity))
	}
	l.flag("service", op.Service && op.Kind.takesService())
}

// String prints the item as s1:5:0, or s1:5 without a version.
func (it ReadItem) String() string {
	text := it.Scope.String() + ":" + digits(it.Revision)
	if it.Version != NoVersion {
		text += ":" + digits(it.Version)
	}
	return text
}

func (k Kind) takesService() bool {
	switch k {
	case OpRead, OpReadAll, OpMarkUnread, OpSetLevel, OpActivityRead:
		return true
	}
	return false
}

// FormatOps prints a history, one operation a line.
func FormatOps(ops []Op) string {
	var b strings.Builder
	for _, op := range ops {
		b.WriteString(op.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// ParseOps reads a history back: one operation a line; empty lines and what follows
// a # are skipped. The error names the line.
func ParseOps(text string) ([]Op, error) {
	var ops []Op
	for i, raw := range strings.Split(text, "\n") {
		raw, _, _ = strings.Cut(raw, "#")
		if strings.TrimSpace(raw) == "" {
			continue
		}
		op, err := ParseOp(raw)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		ops = append(ops, op)
	}
	return ops, nil
}

func digits[N ~int64](n N) string { return strconv.FormatInt(int64(n), 10) }

func joinMembers(ids []MemberID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = id.String()
	}
	return strings.Join(words, ",")
}

func joinSeqs(seqs []Seq) string {
	words := make([]string, len(seqs))
	for i, q := range seqs {
		words[i] = digits(q)
	}
	return strings.Join(words, ",")
}

// set returns a sorted copy without duplicates, nil when empty.
func set[T interface{ ~int | ~int64 }](ids []T) []T {
	if len(ids) == 0 {
		return nil
	}
	out := slices.Clone(ids)
	slices.Sort(out)
	return slices.Compact(out)
}
