package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// How many committed rows of each kind the lane remembers. A state row takes about 250 bytes, so
// that everything remembered stays below roughly 200 MB.
const (
	rememberedPrincipals = 200_000
	rememberedScopes     = 100_000
	rememberedRows       = 200_000
	rememberedBlocks     = 4_000 // 600 bytes each
	rememberedTasks      = 20_000
	rememberedSessions   = 100_000
	rememberedLists      = 4_000 // watchers of a task or members of a dm: 8 KB at most
)

type memberName struct {
	workspace WorkspaceKey
	id        readstate.MemberID
}

type scopeName struct {
	workspace WorkspaceKey
	id        readstate.ScopeID
}

// carefulGroups is how many groups stay careful after an operation id that was used before:
// whoever repeats one operation repeats more.
const carefulGroups = 64

type mentionKey struct {
	RowKey
	revision readstate.Revision
}

type inboxKey struct {
	member   readstate.MemberKey
	position Position
}

type everyoneKey struct {
	scope    readstate.ScopeKey
	revision readstate.Revision
}

// workspace is what the lane holds of one workspace while it owns it.
type workspace struct {
	WorkspaceRow
	staged bool // the group has raised LSN,
	fenced bool // and the store has raised it, too
	lost   bool // the fence refused: somebody else owns it
	isNew  bool

	before   WorkspaceRow // as of the last commit
	events   []readstate.Event
	messages []MessageChange
	effects  int                   // outbox rows staged
	inboxes  []readstate.MemberKey // that have changed, some of them several times
}

// pairing is the activity that goes with a task's newest message.
type pairing struct {
	revision readstate.Revision
	activity readstate.Seq
}

// group is the working set of the transaction that the lane is building. It is owned by one
// goroutine and used again for every group.
type group struct {
	now        func() time.Time
	newID      func() string
	tx         Tx
	store      Store
	clock      int64 // acceptance time of the group, milliseconds
	workspaces map[readstate.WorkspaceID]*workspace
	byKey      map[WorkspaceKey]*workspace
	touched    []*workspace
	taken      []WorkspaceRow // found to be owned by somebody else; their memory has to go
	opStaged   bool           // the operation now running has staged something

	principals *table[readstate.MemberKey, readstate.MemberInfo]
	memberKeys *table[memberName, readstate.MemberKey]
	scopes     *table[readstate.ScopeKey, ScopeRow]
	scopeKeys  *table[scopeName, readstate.ScopeKey]
	states     *table[RowKey, StateRow]
	writers    *table[RowKey, WriterRow]
	blocks     *table[BlockKey, BlockRow]
	blockedBy  *table[readstate.MemberKey, []readstate.MemberKey]
	operations *table[OpKey, OperationRow]
	receipted  *table[readstate.MemberKey, Receipted]
	tasks      *table[readstate.ScopeKey, TaskRow]
	sessions   *table[readstate.ScopeKey, SessionRow]
	watchers   *table[readstate.ScopeKey, []readstate.MemberKey] // of tasks
	rosters    *table[readstate.ScopeKey, roster]                // of dms
	paired     *table[readstate.ScopeKey, pairing]
	activities map[OpKey]*ActivityRow // those with an operation id that the group knows
	messages   *messageSet
	mentions   *finals[mentionKey, MentionRow]
	everyone   *finals[everyoneKey, EveryoneRow]
	targets    *finals[mentionKey, TargetRow]
	inboxes    *table[readstate.MemberKey, InboxRow]
	flags      *finals[inboxKey, InboxItem] // items that were retracted, or came back

	conversations *finals[RowKey, ConversationRow]

	fanned  int // rows staged for recipients of tasks and for members of dms
	effects int // the most outbox rows that any workspace has in this commit

	// careful counts down the groups in which ids of posts are looked up before they are used.
	careful int

	changes Changes // appended to by operations, completed by flush
}

func newGroup(store Store, now func() time.Time, newID func() string) *group {
	return &group{
		now: now, newID: newID, store: store,
		workspaces: map[readstate.WorkspaceID]*workspace{},
		byKey:      map[WorkspaceKey]*workspace{},
		principals: newTable[readstate.MemberKey, readstate.MemberInfo](rememberedPrincipals),
		memberKeys: newTable[memberName, readstate.MemberKey](rememberedPrincipals),
		scopes:     newTable[readstate.ScopeKey, ScopeRow](rememberedScopes),
		scopeKeys:  newTable[scopeName, readstate.ScopeKey](rememberedScopes),
		states:     newTable[RowKey, StateRow](rememberedRows),
		writers:    newTable[RowKey, WriterRow](rememberedRows),
		blocks:     newTable[BlockKey, BlockRow](rememberedBlocks),
		blockedBy:  newTable[readstate.MemberKey, []readstate.MemberKey](rememberedPrincipals),
		operations: newTable[OpKey, OperationRow](0),
		receipted:  newTable[readstate.MemberKey, Receipted](rememberedPrincipals),
		tasks:      newTable[readstate.ScopeKey, TaskRow](rememberedTasks),
		sessions:   newTable[readstate.ScopeKey, SessionRow](rememberedSessions),
		watchers:   newTable[readstate.ScopeKey, []readstate.MemberKey](rememberedLists),
		rosters:    newTable[readstate.ScopeKey, roster](rememberedLists),
		paired:     newTable[readstate.ScopeKey, pairing](rememberedTasks),
		activities: map[OpKey]*ActivityRow{},
		messages:   newMessageSet(),
		mentions:   newFinals[mentionKey, MentionRow](),
		everyone:   newFinals[everyoneKey, EveryoneRow](),
		targets:    newFinals[mentionKey, TargetRow](),
		inboxes:    newTable[readstate.MemberKey, InboxRow](rememberedPrincipals),
		flags:      newFinals[inboxKey, InboxItem](),

		conversations: newFinals[RowKey, ConversationRow](),
	}
}

// own makes the lane the owner of a workspace from the row's LSN on.
func (g *group) own(row WorkspaceRow) {
	w := &workspace{WorkspaceRow: row, before: row}
	g.workspaces[row.ID] = w
	g.byKey[row.Key] = w
}

// disown forgets a workspace that was never made.
func (g *group) disown(w *workspace) {
	delete(g.workspaces, w.ID)
	delete(g.byKey, w.Key)
}

// open starts the transaction where there is none.
func (g *group) open(ctx context.Context) (Tx, error) {
	if g.tx != nil {
		return g.tx, nil
	}
	tx, err := g.store.Begin(ctx)
	if err != nil {
		return nil, broken("begin", err)
	}
	g.tx = tx
	return tx, nil
}

// errBroken marks a failure of the store, as opposed to a refusal of one operation: the whole
// group has to go.
var errBroken = errors.New("group broken")

func broken(what string, err error) error { return &brokenError{what, err} }

type brokenError struct {
	what string
	err  error
}

func (e *brokenError) Error() string        { return e.what + ": " + e.err.Error() }
func (e *brokenError) Unwrap() error        { return e.err }
func (e *brokenError) Is(target error) bool { return target == errBroken }

// touch is called by an operation once it is sure to change something. It raises the workspace's
// LSN in memory, once a group; the next flush raises it in the store.
func (g *group) touch(w *workspace) {
	g.opStaged = true
	if w.staged {
		return
	}
	w.staged = true
	w.LSN++
	g.touched = append(g.touched, w)
}

// full reports that a group should run no further operation: what has been staged for audiences
// counts as rows, and a commit has places for only so many outbox rows of one workspace.
func (g *group) full(rows int) bool {
	return g.fanned >= rows || g.effects > eventsPerCommit-2*MaxMoved
}

// fence raises the LSN of every workspace that was touched since the last flush, in the order of
// their keys. If the store refuses one of them the group is broken, and the workspace lost.
//
// What was read before the fence is as good as what is read after it: a fence that holds means
// that nobody else has written in the workspace since the lane's own last commit.
func (g *group) fence(ctx context.Context) error {
	due := slices.DeleteFunc(slices.Clone(g.touched), func(w *workspace) bool {
		return w.fenced || w.isNew
	})
	if len(due) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(due, func(a, b *workspace) int { return cmp.Compare(a.Key, b.Key) })
	var refused error
	for _, w := range due {
		ok, err := tx.Advance(ctx, w.Key, Fence{Term: w.before.Term, LSN: w.before.LSN})
		if err != nil {
			return broken("advance", err)
		}
		if ok {
			w.fenced = true
			continue
		}
		w.lost = true
		g.taken = append(g.taken, w.before)
		refused = broken("advance", fmt.Errorf("workspace %q: %w", w.ID, ErrNotOwner))
	}
	return refused
}

func (w *workspace) emit(e readstate.Event) { w.events = append(w.events, e) }

// flush fences what is touched and writes what is staged, so that a seek of the store sees it.
func (g *group) flush(ctx context.Context) error {
	if err := g.fence(ctx); err != nil {
		return err
	}
	c := &g.changes
	for _, p := range g.principals.take(nil) {
		c.Members = append(c.Members, MemberChange{MemberInfo: p, CreatedAt: g.clock})
	}
	c.Scopes = g.scopes.take(c.Scopes)
	first := len(c.States)
	c.States = g.states.take(c.States)
	for i := first; i < len(c.States); i++ {
		c.States[i].Parts = g.parts(&c.States[i])
	}
	c.Writers = g.writers.take(c.Writers)
	c.Blocks = g.blocks.take(c.Blocks)
	c.Operations = g.operations.take(c.Operations)
	g.messages.take(c)
	c.Mentions, c.Unmentions = g.mentions.take(c.Mentions, c.Unmentions)
	c.NewEveryone, c.GoneEveryone = g.everyone.take(c.NewEveryone, c.GoneEveryone)
	c.Targets, _ = g.targets.take(c.Targets, nil) // a delivery is never deleted but by a trim
	c.Tasks = g.tasks.take(c.Tasks)
	c.Sessions = g.sessions.take(c.Sessions)
	c.Conversations, _ = g.conversations.take(c.Conversations, nil)
	c.Inboxes = g.inboxes.take(c.Inboxes)
	c.InboxFlags, _ = g.flags.take(c.InboxFlags, nil)
	if c.empty() {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	if err := tx.Write(ctx, c); err != nil {
		return broken("write", err)
	}
	c.reset()
	return nil
}

// parts leaves out the tables of a row that the group has not changed: a mention or a read says
// nothing about the membership.
func (g *group) parts(row *StateRow) StateParts {
	lsn := g.byKey[WorkspaceKey(row.Scope>>32)].LSN
	parts := ReadPart
	if row.MembershipLSN == lsn {
		parts |= MembershipPart
	}
	if row.NotificationLSN == lsn {
		parts |= SettingsPart
	}
	return parts
}

// commits returns what the group did, one commit a workspace, and forgets it.
func (g *group) commits() []Commit {
	out := make([]Commit, 0, len(g.touched))
	for _, w := range g.touched {
		out = append(out, Commit{
			Workspace: w.ID, Key: w.Key, Term: w.Term, LSN: w.LSN, Events: w.events,
			Messages: w.messages, Effects: w.effects, Inboxes: g.inboxChanges(w),
		})
	}
	return out
}

// inboxChanges names the inboxes that the group has changed. Their members were loaded for it.
func (g *group) inboxChanges(w *workspace) []InboxChange {
	slices.Sort(w.inboxes)
	var out []InboxChange
	for _, m := range slices.Compact(w.inboxes) {
		info, _, _ := g.principals.get(m)
		out = append(out, InboxChange{m, info.ID})
	}
	return out
}

// committed makes the group part of what is remembered.
func (g *group) committed() {
	for _, w := range g.touched {
		w.before = w.WorkspaceRow
		w.staged, w.fenced, w.isNew = false, false, false
		w.events, w.messages, w.effects, w.inboxes = nil, nil, 0, nil
	}
	g.principals.commit()
	g.memberKeys.commit()
	g.scopes.commit()
	g.scopeKeys.commit()
	g.states.commit()
	g.writers.commit()
	g.blocks.commit()
	g.blockedBy.commit()
	g.receipted.commit()
	g.tasks.commit()
	g.sessions.commit()
	g.watchers.commit()
	g.rosters.commit()
	g.paired.commit()
	g.inboxes.commit()
	g.clean()
}

// unchanged ends a group that has staged nothing: what was loaded is as true as before.
func (g *group) unchanged() {
	if g.tx != nil {
		_ = g.tx.Rollback() // there is nothing in it
	}
	g.committed()
}

// rolledBack forgets everything staged, and everything remembered: the store is read again.
func (g *group) rolledBack() {
	if g.tx != nil {
		_ = g.tx.Rollback() // the transaction is lost either way
	}
	for _, w := range g.touched {
		if w.isNew {
			g.disown(w)
			continue
		}
		w.WorkspaceRow = w.before
		w.staged, w.fenced = false, false
		w.events, w.messages, w.effects, w.inboxes = nil, nil, 0, nil
	}
	g.principals.rollback()
	g.memberKeys.rollback()
	g.scopes.rollback()
	g.scopeKeys.rollback()
	g.states.rollback()
	g.writers.rollback()
	g.blocks.rollback()
	g.blockedBy.rollback()
	g.receipted.rollback()
	g.tasks.rollback()
	g.sessions.rollback()
	g.watchers.rollback()
	g.rosters.rollback()
	g.paired.rollback()
	g.inboxes.rollback()
	g.clean()
}

func (g *group) clean() {
	g.tx = nil
	g.operations.rollback() // an id that was free may be taken by the next group's message
	g.touched = g.touched[:0]
	g.messages.reset()
	g.mentions.reset()
	g.everyone.reset()
	g.targets.reset()
	g.flags.reset()
	g.conversations.reset()
	clear(g.activities)
	g.fanned, g.effects = 0, 0
	g.changes.reset()
	g.opStaged = false
}
