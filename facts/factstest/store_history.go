package factstest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// history writes a random life of one scope to the store and keeps every row, so that answers
// can be compared with those of looking at all of them.
type history struct {
	w       *world
	rng     *rand.Rand
	members []readstate.MemberKey
	scope   facts.ScopeRow
	entries []facts.MessageRow // retained ones, ascending
	writers map[readstate.MemberKey]*readstate.Writer
	blocks  map[facts.BlockKey]*facts.BlockRow
	pending facts.Changes
}

func newHistory(w *world, rng *rand.Rand, t readstate.ScopeType, members ...readstate.MemberKey) *history {
	h := &history{
		w: w, rng: rng, members: members,
		writers: make(map[readstate.MemberKey]*readstate.Writer),
		blocks:  make(map[facts.BlockKey]*facts.BlockRow),
	}
	h.scope.Info.Key = w.scope()
	h.scope.Info.ID = readstate.ScopeID(fmt.Sprint("scope-", h.scope.Info.Key))
	h.scope.Info.Type = t
	// Start shortly before the end of a block, as if all before it had been trimmed.
	h.scope.FloorSeq, h.scope.Ranks.Floor = 4070, 4060
	h.scope.Ranks.LatestSeq, h.scope.Ranks.Head = 4070, 4060
	return h
}

func (h *history) someone() readstate.MemberKey { return h.members[h.rng.IntN(len(h.members))] }
func (h *history) chance(percent int) bool      { return h.rng.IntN(100) < percent }

func (h *history) some(atMost int) []readstate.MemberKey {
	var out []readstate.MemberKey
	for range h.rng.IntN(atMost + 1) {
		if m := h.someone(); !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

func (h *history) writer(m readstate.MemberKey) *readstate.Writer {
	if h.writers[m] == nil {
		h.writers[m] = &readstate.Writer{}
	}
	return h.writers[m]
}

func (h *history) post() {
	r := &h.scope.Ranks
	r.LatestSeq++
	m := facts.MessageRow{
		Place: facts.Place{Scope: h.scope.Info.Key, Seq: r.LatestSeq},
		ID:    fmt.Sprintf("m%d", r.LatestSeq), Kind: "text", Author: h.someone(), Live: true,
		CreatedAt: int64(r.LatestSeq), Payload: []byte("{}"),
	}
	if p := h.someone(); h.chance(40) && p != m.Author {
		m.Principal = p
	}
	m.Named = h.some(3)
	if h.scope.Info.Type.Targeted() {
		m.Recipients = h.some(4)
	} else {
		m.Everyone = h.chance(20)
	}
	if h.chance(80) {
		r.Head++
		m.Revision = r.Head
		w := h.writer(m.Author)
		w.AuthorHead++
		m.AuthorRank = w.AuthorHead
		if m.Principal != 0 {
			w := h.writer(m.Principal)
			w.PrincipalHead++
			m.PrincipalRank = w.PrincipalHead
		}
	}
	h.entries = append(h.entries, m)
	h.pending.NewMessages = append(h.pending.NewMessages, m)
	h.mark(&m)
}

func neutral(t readstate.ScopeType, m *facts.MessageRow, member readstate.MemberKey) bool {
	return t.NeutralWriters() && (m.Author == member || m.Principal == member)
}

// mark stages the rows that hang on a message as it stands now.
func (h *history) mark(m *facts.MessageRow) {
	if m.Revision == 0 {
		return
	}
	t := h.scope.Info.Type
	for _, n := range m.Named {
		if t.Targeted() && !slices.Contains(m.Recipients, n) {
			continue
		}
		key := facts.RowKey{Scope: m.Scope, Member: n}
		row := facts.MentionRow{
			RowKey: key, Revision: m.Revision, Author: m.Author, Neutral: neutral(t, m, n),
			Live: m.Live, Everyone: m.Everyone,
		}
		h.pending.Mentions = append(h.pending.Mentions, row)
	}
	for _, n := range m.Recipients {
		if !neutral(t, m, n) {
			h.pending.Targets = append(h.pending.Targets, facts.TargetRow{
				RowKey:   facts.RowKey{Scope: m.Scope, Member: n},
				Revision: m.Revision, Author: m.Author, Live: m.Live,
			})
		}
	}
	row := facts.EveryoneRow{
		Scope: m.Scope, Revision: m.Revision, Author: m.Author, Principal: m.Principal,
	}
	h.set(facts.EveryoneSet, m.Revision, m.Live && m.Everyone)
	h.set(facts.RemovedSet, m.Revision, !m.Live)
	if m.Live && m.Everyone {
		h.pending.NewEveryone = append(h.pending.NewEveryone, row)
	} else {
		h.pending.GoneEveryone = append(h.pending.GoneEveryone, row)
	}
}

// set puts a revision into a set, or takes it out.
func (h *history) set(set facts.BlockSet, r readstate.Revision, in bool) {
	key := facts.BlockKey{Set: set, Scope: h.scope.Info.Key, Block: readstate.BlockOf(r)}
	row := h.blocks[key]
	if row == nil {
		row = &facts.BlockRow{BlockKey: key}
		h.blocks[key] = row
	}
	var changed bool
	if in {
		changed = row.Bits.Set(r)
	} else {
		changed = row.Bits.Clear(r)
	}
	if changed {
		row.Count = row.Bits.Count()
		h.pending.Blocks = append(h.pending.Blocks, *row)
	}
}

// pick returns a live entry, nil where there is none.
func (h *history) pick() *facts.MessageRow {
	for range 20 {
		if len(h.entries) == 0 {
			return nil
		}
		if m := &h.entries[h.rng.IntN(len(h.entries))]; m.Live {
			return m
		}
	}
	return nil
}

func (h *history) remove() {
	m := h.pick()
	if m == nil {
		return
	}
	m.Live, m.Payload = false, nil
	h.pending.Messages = append(h.pending.Messages, *m)
	h.mark(m)
}

func (h *history) edit() {
	m := h.pick()
	if m == nil {
		return
	}
	for _, n := range m.Named {
		h.pending.Unmentions = append(h.pending.Unmentions, facts.MentionRow{
			RowKey: facts.RowKey{Scope: m.Scope, Member: n}, Revision: m.Revision,
		})
	}
	m.Named, m.EditedAt = h.some(3), int64(h.scope.Ranks.LatestSeq)
	if !h.scope.Info.Type.Targeted() {
		m.Everyone = h.chance(30)
	}
	h.pending.Messages = append(h.pending.Messages, *m)
	h.mark(m)
}

func (h *history) trim() {
	if len(h.entries) < 2 {
		return
	}
	n := 1 + h.rng.IntN(len(h.entries)/2)
	gone := h.entries[:n]
	h.entries = h.entries[n:]
	h.scope.FloorSeq = gone[n-1].Seq
	for _, m := range gone {
		if m.Revision == 0 {
			continue
		}
		h.scope.Ranks.Floor = m.Revision
		h.writer(m.Author).AuthorAtFloor = m.AuthorRank
		if m.Principal != 0 {
			h.writer(m.Principal).PrincipalAtFloor = m.PrincipalRank
		}
	}
	for key := range h.blocks {
		if key.Block < readstate.BlockOf(h.scope.Ranks.Floor+1) {
			delete(h.blocks, key)
		}
	}
	h.pending.Trimmed = []facts.Trim{{
		Scope: h.scope.Info.Key, Seq: h.scope.FloorSeq, Revision: h.scope.Ranks.Floor,
	}}
}

// live runs some operations and commits each.
func (h *history) live(operations int) {
	for range operations {
		switch n := h.rng.IntN(100); {
		case n < 65:
			h.post()
		case n < 82:
			h.remove()
		case n < 95:
			h.edit()
		default:
			h.trim()
		}
		h.commit()
	}
}

func (h *history) commit() {
	h.pending.Scopes = []facts.ScopeRow{h.scope}
	for m, w := range h.writers {
		h.pending.Writers = append(h.pending.Writers, facts.WriterRow{
			RowKey: facts.RowKey{Scope: h.scope.Info.Key, Member: m}, Writer: *w,
		})
	}
	h.w.write(&h.pending)
	h.pending = facts.Changes{}
}
