package facts

import (
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// audience is who has to know of one fact of a task, found at its commit and frozen with it. Both
// lists ascend.
type audience struct {
	humans []readstate.MemberKey // counted
	agents []readstate.MemberKey // woken
}

// plan freezes the audience of a fact: the task's watchers and those for whom the fact itself is a
// ground, without those whose fact it is. Whoever has not joined or does not see the task is not
// told (RT-160); blocks and levels only filter what is read.
func (g *group) plan(
	ctx context.Context, s ScopeRow, grounds []readstate.MemberKey, except ...readstate.MemberKey,
) (audience, error) {
	var out audience
	watchers, err := g.watchersOf(ctx, s.Info.Key)
	if err != nil {
		return out, err
	}
	who := slices.Concat(watchers, grounds)
	slices.Sort(who)
	who = slices.DeleteFunc(slices.Compact(who), func(m readstate.MemberKey) bool {
		return m == 0 || slices.Contains(except, m)
	})
	keys := make([]RowKey, len(who))
	for i, m := range who {
		keys[i] = RowKey{s.Info.Key, m}
	}
	if err := g.loadRows(ctx, keys); err != nil {
		return out, err
	}
	if err := g.loadPrincipals(ctx, who); err != nil {
		return out, err
	}
	for i, m := range who {
		row, exists, err := g.state(ctx, keys[i])
		if err != nil {
			return out, err
		}
		if !exists || !row.Row.Joined || !row.Row.Visible {
			continue
		}
		info, err := g.principal(ctx, m)
		if err != nil {
			return out, err
		}
		if info.Agent {
			out.agents = append(out.agents, m)
		} else {
			out.humans = append(out.humans, m)
		}
	}
	return out, nil
}

// planMessage freezes whom a new message of a task is delivered to.
func (g *group) planMessage(
	ctx context.Context, s ScopeRow, m *MessageRow,
) (audience, error) {
	task, err := g.task(ctx, s.Info.Key)
	if err != nil {
		return audience{}, err
	}
	grounds := append([]readstate.MemberKey{task.Assignee}, m.Named...)
	return g.plan(ctx, s, grounds, m.Author, m.Principal)
}

// deliverMessage stages what a readable message of a task has to cause beside its own count: the
// activity that goes with it and never counts, the one outbox row, and its place in the lists of
// those who are counted.
func (g *group) deliverMessage(
	ctx context.Context, w *workspace, m *MessageRow, to audience,
) error {
	s, err := g.scopeByKey(ctx, m.Scope)
	if err != nil {
		return err
	}
	pair := ActivityRow{
		Type: DiscussionAdded, Actor: m.Author, RefType: RefMessage, RefID: m.ID,
		Revision: m.Revision,
	}
	stored, err := g.appendActivity(ctx, w, s, pair, audience{})
	if err != nil {
		return err
	}
	g.paired.staged[m.Scope] = slot[pairing]{pairing{m.Revision, stored.Seq}, true}
	g.talk(w, m.Scope, readstate.Task, m.Seq, stored.Seq, to.humans)
	if m.Silent {
		to.agents = nil // a silent message counts and pushes nothing
	}
	return g.stageEffect(w, OutboxRow{
		Kind: TaskMessage, Scope: m.Scope, Seq: m.Seq, ID: m.ID, Actor: m.Author,
		Humans: to.humans, Agents: to.agents,
	})
}

// talk stages the place of a conversation in the lists of members. It names where both logs stand
// now, so that nothing has to be read before it is written.
func (g *group) talk(
	w *workspace, s readstate.ScopeKey, kind readstate.ScopeType, seq, activity readstate.Seq,
	members []readstate.MemberKey,
) {
	for _, m := range members {
		key := RowKey{s, m}
		g.conversations.set(key, ConversationRow{
			RowKey: key, Kind: kind, SortAt: g.clock, MessageSeq: seq, ActivitySeq: activity,
			UpdatedLSN: w.LSN,
		}, true)
	}
	g.fanned += rowsPerRecipient * len(members)
}

// rowsPerRecipient is what a delivery costs beside the fact itself: a delivery row, the member's
// row and their conversation.
const rowsPerRecipient = 3

// talkDM stages the place of a dm in the lists of everybody in it. A large one has no such rows:
// it is sorted by its own head, like a channel.
func (g *group) talkDM(ctx context.Context, w *workspace, m *MessageRow) error {
	r, err := g.rosterOf(ctx, m.Scope) // which names nobody where it is large
	if err != nil {
		return err
	}
	s, err := g.scopeByKey(ctx, m.Scope)
	if err != nil {
		return err
	}
	g.talk(w, m.Scope, readstate.DM, m.Seq, s.Ranks.LatestActivity, r.members)
	return nil
}

// task returns the facts of a task; the zero row where it has none.
func (g *group) task(ctx context.Context, k readstate.ScopeKey) (TaskRow, error) {
	row, _, known := g.tasks.get(k)
	if !known {
		if err := g.loadTasks(ctx, []readstate.ScopeKey{k}); err != nil {
			return row, err
		}
		row, _, _ = g.tasks.get(k)
	}
	row.Scope = k
	return row, nil
}

// watchersOf returns who watches a task, ascending, those who have left included.
func (g *group) watchersOf(
	ctx context.Context, k readstate.ScopeKey,
) ([]readstate.MemberKey, error) {
	members, _, known := g.watchers.get(k)
	if !known {
		if err := g.loadWatchers(ctx, []readstate.ScopeKey{k}); err != nil {
			return nil, err
		}
		members, _, _ = g.watchers.get(k)
	}
	return members, nil
}

// setWatcher stages that a member watches a task, or does no longer.
func (g *group) setWatcher(ctx context.Context, k RowKey, watches bool) error {
	members, err := g.watchersOf(ctx, k.Scope)
	if err != nil {
		return err
	}
	next := within(members, k.Member, watches)
	g.watchers.staged[k.Scope] = slot[[]readstate.MemberKey]{next, len(next) > 0}
	return nil
}

// within returns a copy of an ascending list with or without a member.
func within(
	members []readstate.MemberKey, m readstate.MemberKey, in bool,
) []readstate.MemberKey {
	at, found := slices.BinarySearch(members, m)
	switch {
	case in && !found:
		return slices.Insert(slices.Clone(members), at, m)
	case !in && found:
		return slices.Delete(slices.Clone(members), at, at+1)
	}
	return members
}

// roster is who has joined a dm. A large one has more members than the lane cares to remember.
type roster struct {
	members []readstate.MemberKey // ascending
	large   bool
}

func rosterFrom(members []readstate.MemberKey) roster {
	if len(members) > MaxIndexedDM {
		return roster{large: true}
	}
	return roster{members: members}
}

func (g *group) rosterOf(ctx context.Context, k readstate.ScopeKey) (roster, error) {
	r, _, known := g.rosters.get(k)
	if !known {
		if err := g.loadRosters(ctx, []readstate.ScopeKey{k}); err != nil {
			return r, err
		}
		r, _, _ = g.rosters.get(k)
	}
	return r, nil
}

// setJoined stages that a member has joined a dm, or has left. The caller has staged the row.
func (g *group) setJoined(ctx context.Context, s ScopeRow, m readstate.MemberKey, in bool) error {
	if s.Info.Type != readstate.DM {
		return nil
	}
	k := s.Info.Key
	r, err := g.rosterOf(ctx, k)
	if err != nil {
		return err
	}
	next := rosterFrom(within(r.members, m, in))
	if r.large {
		if next = r; !in { // it may be large no longer: only the store can tell
			if err := g.flush(ctx); err != nil {
				return err
			}
			if next, err = g.readRoster(ctx, k); err != nil {
				return err
			}
		}
	}
	g.rosters.staged[k] = slot[roster]{next, true}
	return nil
}

func (g *group) readRoster(ctx context.Context, k readstate.ScopeKey) (roster, error) {
	tx, err := g.open(ctx)
	if err != nil {
		return roster{}, err
	}
	rows, err := tx.Joined(ctx, []readstate.ScopeKey{k}, MaxIndexedDM+1)
	if err != nil {
		return roster{}, broken("load joined members", err)
	}
	members := make([]readstate.MemberKey, len(rows))
	for i, r := range rows {
		members[i] = r.Member
	}
	return rosterFrom(members), nil
}
