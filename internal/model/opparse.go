package model

import (
	"fmt"
	"slices"
	"strings"
)

// ParseOp reads one operation from the line that [Op.String] prints. Extra blanks
// are allowed, and so is any order of the optional parts; lists become sets.
func ParseOp(text string) (Op, error) {
	p := &parser{words: strings.Fields(text)}
	op := Op{}
	head := p.next()
	if i := slices.Index(kindNames, head); i > 0 {
		op.Kind = Kind(i)
	} else {
		return Op{}, fmt.Errorf("parse op %q: unknown operation", text)
	}
	p.positional(&op)
	for p.err == nil && len(p.words) > 0 {
		p.option(&op, p.next())
	}
	if p.err != nil {
		return Op{}, fmt.Errorf("parse op %q: %w", text, p.err)
	}
	return op, nil
}

// parser consumes words and remembers the first error.
type parser struct {
	words []string
	err   error
}

func (p *parser) fail(err error) {
	if p.err == nil && err != nil {
		p.err = err
	}
}

func (p *parser) next() string {
	if len(p.words) == 0 {
		p.fail(fmt.Errorf("a word is missing"))
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *parser) scope() ScopeID {
	s, err := parseScope(p.next())
	p.fail(err)
	return s
}

func (p *parser) member() MemberID {
	m, err := parseMember(p.next())
	p.fail(err)
	return m
}

func (p *parser) number() int64 { return p.numberIn(p.next()) }

func (p *parser) numberIn(text string) int64 {
	n, err := parseNumber(text)
	p.fail(err)
	return n
}

func (p *parser) memberSet(text string) []MemberID {
	var ids []MemberID
	for word := range strings.SplitSeq(text, ",") {
		m, err := parseMember(word)
		p.fail(err)
		ids = append(ids, m)
	}
	return set(ids)
}

func (p *parser) word(names []string, from int) int {
	w := p.next()
	i := slices.Index(names, w)
	if i < from {
		p.fail(fmt.Errorf("unexpected word %q", w))
		return 0
	}
	return i
}

// positional reads the words that must be there.
func (p *parser) positional(op *Op) {
	switch op.Kind {
	case OpCreate:
		op.Scope = p.scope()
		op.Type = ScopeKind(p.word(scopeKindNames, 1))
		switch op.Type {
		case Thread:
			op.To = p.scope()
		case Session:
			op.Member = p.member()
		}
	case OpEdit, OpRemove, OpRewind, OpTrim:
		op.Scope, op.Seq = p.scope(), Seq(p.number())
	case OpMove:
		op.Scope = p.scope()
		for word := range strings.SplitSeq(p.next(), ",") {
			op.Seqs = append(op.Seqs, Seq(p.numberIn(word)))
		}
		op.Seqs = set(op.Seqs)
		op.To = p.scope()
	case OpAdvanceClock, OpExpire:
		op.Advance = Seconds(p.number())
	case OpArchive, OpUnarchive, OpRunState:
		op.Scope = p.scope()
	case OpBlock, OpUnblock:
		op.Member, op.Other = p.member(), p.member()
	case OpMerge, OpFork:
		op.Scope, op.To = p.scope(), p.scope()
	case OpReadAll:
		op.Member = p.member()
	default:
		p.rowPositional(op)
	}
}

func (p *parser) rowPositional(op *Op) {
	op.Scope, op.Member = p.scope(), p.member()
	switch op.Kind {
	case OpRead:
		op.Revision, op.Version = Revision(p.number()), NoVersion
	case OpMarkUnread:
		op.Version = NoVersion
	case OpSetLevel:
		op.Level = Level(p.word(levelNames, 0))
	case OpActivityRead:
		op.Activity = ActivitySeq(p.number())
	}
}

// option reads one optional word; each belongs to the kinds listed with it.
func (p *parser) option(op *Op, word string) {
	if op.Kind == OpReadAll && word != "service" {
		p.item(op, word)
		return
	}
	if list, ok := strings.CutPrefix(word, "@"); ok && op.Kind.isOneOf(OpPost, OpEdit) {
		op.Mentions = p.memberSet(list)
		return
	}
	key, value, isPair := strings.Cut(word, "=")
	if isPair {
		p.pair(op, word, key, value)
		return
	}
	switch {
	case word == "everyone" && op.Kind.isOneOf(OpPost, OpEdit):
		op.Everyone = true
	case word == "broadcast" && op.Kind.isOneOf(OpPost):
		op.Broadcast = true
	case word == "unreadable" && op.Kind.isOneOf(OpPost):
		op.Unreadable = true
	case word == "baseline" && op.Kind.isOneOf(OpPost):
		op.Baseline = true
	case word == "shared" && op.Kind.isOneOf(OpCreate) && op.Type != Thread && op.Type != Session:
		op.Shared = true
	case word == "planned" && op.Kind.isOneOf(OpCreate) && op.Type == Task:
		op.Planned = true
	case word == "count" && op.Kind.isOneOf(OpMove):
		op.Count = true
	case word == "low" && op.Kind.isOneOf(OpActivity):
		op.LowSignal = true
	case word == "active" && op.Kind.isOneOf(OpRunState):
		op.Active = true
	case word == "thinking" && op.Kind.isOneOf(OpRunState):
		op.Thinking = true
	case word == "service" && op.Kind.takesService():
		op.Service = true
	default:
		p.fail(fmt.Errorf("unexpected word %q", word))
	}
}

func (p *parser) pair(op *Op, word, key, value string) {
	switch {
	case key == "as" && op.Kind.isOneOf(OpPost):
		m, err := parseMember(value)
		p.fail(err)
		op.Other = m
	case key == "assignee" && op.Kind.isOneOf(OpTask):
		op.Assigns = true
		if value != "nobody" {
			m, err := parseMember(value)
			p.fail(err)
			op.Other = m
		}
	case key == "status" && op.Kind.isOneOf(OpTask):
		op.Status = Word(p.numberIn(value))
	case key == "title" && op.Kind.isOneOf(OpTask):
		op.Title = Word(p.numberIn(value))
	case key == "to" && op.Kind.isOneOf(OpPost, OpMove, OpActivity):
		op.Recipients = p.memberSet(value)
	case key == "expires" && op.Kind.isOneOf(OpPost):
		op.Expires = Seconds(p.numberIn(value))
	case key == "saw" && op.Kind.isOneOf(OpPost), key == "read" && op.Kind.isOneOf(OpJoin):
		op.Revision = Revision(p.numberIn(value))
	case key == "from" && op.Kind.isOneOf(OpJoin, OpMarkUnread):
		op.From = Revision(p.numberIn(value))
	case key == "v" && op.Kind.isOneOf(OpRead, OpMarkUnread):
		op.Version = Version(p.numberIn(value))
	case key == "until" && op.Kind.isOneOf(OpSetLevel):
		op.Until = Seconds(p.numberIn(value))
	case key == "root" && op.Kind.isOneOf(OpCreate) && op.Type == Thread:
		op.Seq = Seq(p.numberIn(value))
	default:
		p.fail(fmt.Errorf("unexpected word %q", word))
	}
}

func (k Kind) isOneOf(kinds ...Kind) bool { return slices.Contains(kinds, k) }

func (p *parser) item(op *Op, word string) {
	parts := strings.Split(word, ":")
	if len(parts) < 2 || len(parts) > 3 {
		p.fail(fmt.Errorf("unexpected word %q", word))
		return
	}
	s, err := parseScope(parts[0])
	p.fail(err)
	it := ReadItem{Scope: s, Revision: Revision(p.numberIn(parts[1])), Version: NoVersion}
	if len(parts) == 3 {
		it.Version = Version(p.numberIn(parts[2]))
	}
	op.Items = append(op.Items, it)
}
