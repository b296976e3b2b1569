package unread

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// mirror is a store of facts for tests: it plays operations on the oracle's world, compares the
// world before and after, and says as events what happened. Pages and rows are counted from the
// world's logs each time; nothing is kept that could be counted, except each row's point, since
// a real store leaves it below the floor where a trim does not concern the row.
type mirror struct {
	mu     sync.Mutex // for play and Page, where pages are read by workers
	world  *model.World
	lsn    readstate.LSN
	rng    *rand.Rand // nil: no variation
	offset map[model.ScopeID]readstate.Revision

	acts      map[model.ScopeID][]act
	points    map[rowID]readstate.Revision
	stateLSN  map[rowID]readstate.LSN
	lastLSN   map[model.ScopeID]readstate.LSN
	lastAt    map[model.ScopeID]int64
	at        map[entryID]int64
	replies   map[model.ScopeID]uint64
	emitted   map[model.ScopeID]model.Seq
	memberLSN map[model.MemberID]readstate.LSN
	leftLSN   map[rowID]readstate.LSN

	failing map[readstate.MemberID]int // pages to fail
	events  []readstate.Event
}

type (
	rowID struct {
		member model.MemberID
		scope  model.ScopeID
	}
	entryID struct {
		scope model.ScopeID
		seq   model.Seq
	}
	act struct {
		actor      model.MemberID
		low        bool
		recipients []model.MemberID
	}
)

const mirrorMembers = 5

func newMirror(rng *rand.Rand) *mirror {
	return &mirror{
		world: model.New(), rng: rng,
		offset: map[model.ScopeID]readstate.Revision{}, acts: map[model.ScopeID][]act{},
		points: map[rowID]readstate.Revision{}, stateLSN: map[rowID]readstate.LSN{},
		lastLSN: map[model.ScopeID]readstate.LSN{}, lastAt: map[model.ScopeID]int64{},
		at: map[entryID]int64{}, replies: map[model.ScopeID]uint64{},
		emitted: map[model.ScopeID]model.Seq{}, memberLSN: map[model.MemberID]readstate.LSN{},
		leftLSN: map[rowID]readstate.LSN{},
		failing: map[readstate.MemberID]int{},
	}
}

func memberKey(m model.MemberID) readstate.MemberKey { return readstate.MemberKey(m) }
func memberID(m model.MemberID) readstate.MemberID   { return readstate.MemberID(m.String()) }
func scopeKey(s model.ScopeID) readstate.ScopeKey    { return readstate.ScopeKey(s) + 100 }
func scopeID(s model.ScopeID) readstate.ScopeID      { return readstate.ScopeID(s.String()) }

func memberKeys(ids []model.MemberID) []readstate.MemberKey {
	keys := make([]readstate.MemberKey, len(ids))
	for i, id := range ids {
		keys[i] = memberKey(id)
	}
	return keys
}

// now is the world's clock in milliseconds.
func (f *mirror) now() int64 { return int64(f.world.Clock()) * 1000 }

// shift carries a revision of the world over. Scopes begin as if many revisions had been
// trimmed before, so that blocks of revision sets end within a history.
func (f *mirror) shift(s model.ScopeID, r model.Revision) readstate.Revision {
	if r == 0 {
		return 0
	}
	return f.offset[s] + readstate.Revision(r)
}

func (f *mirror) floor(s model.ScopeID) readstate.Revision {
	info, _ := f.world.Scope(s)
	return f.offset[s] + readstate.Revision(info.Floor)
}

func (f *mirror) head(s model.ScopeID) readstate.Revision {
	info, _ := f.world.Scope(s)
	return f.offset[s] + readstate.Revision(info.Head)
}

// play carries operations out as one commit. It returns the events, nil when nothing durable
// changed, in which case there is no commit.
func (f *mirror) play(ops ...model.Op) []readstate.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = nil
	f.lsn++
	for _, op := range ops {
		before := f.world.Clone()
		out, err := f.world.Apply(op)
		if err == nil {
			f.diff(before, op, out)
		}
	}
	if f.events == nil {
		f.lsn--
	}
	return f.events
}

func (f *mirror) emit(ev readstate.Event) { f.events = append(f.events, ev) }

// do plays operations written as text, each as a commit of its own, and applies them.
func (f *mirror) do(t *testing.T, r *Runtime, lines ...string) {
	t.Helper()
	for _, line := range lines {
		op, err := model.ParseOp(line)
		if err != nil {
			t.Fatal(err)
		}
		if events := f.play(op); events != nil {
			if err := r.Apply(testSpace, f.lsn, events); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
}

func (f *mirror) info(s model.ScopeID) readstate.ScopeInfo {
	i, _ := f.world.Scope(s)
	info := readstate.ScopeInfo{
		Key: scopeKey(s), ID: scopeID(s), Type: readstate.ScopeType(i.Kind),
		Name: "name of " + s.String(), Archived: i.Archived,
		Tags: []string{"odd", "even"}[s%2 : s%2+1], Active: i.Active, Thinking: i.Thinking,
	}
	if i.Shared {
		info.History = readstate.HistoryShared
	}
	if i.Parent != 0 {
		info.Parent, info.ParentID = scopeKey(i.Parent), scopeID(i.Parent)
		info.RootMessage = strconv.Itoa(int(i.Root))
	}
	return info
}

// latest is the newest live entry among those told of so far.
func (f *mirror) latest(s model.ScopeID) readstate.Latest {
	for _, e := range slices.Backward(f.world.Entries(s)) {
		if e.Live && !e.Trimmed && e.Seq <= f.emitted[s] {
			return readstate.Latest{ID: messageID(e.Seq), At: f.at[entryID{s, e.Seq}]}
		}
	}
	return readstate.Latest{}
}

func messageID(q model.Seq) string { return "m" + strconv.Itoa(int(q)) }

func (f *mirror) ranks(s model.ScopeID) readstate.ScopeRanks {
	i, _ := f.world.Scope(s)
	return readstate.ScopeRanks{
		LatestSeq: readstate.Seq(i.LatestSeq), Head: f.head(s), Floor: f.floor(s),
		LatestActivity: readstate.Seq(i.LatestActivity),
		SignalHead:     f.signals(s, 0, 1<<62, func(*act) bool { return true }),
		LastLSN:        f.lastLSN[s], Latest: f.latest(s), LastActivityAt: f.lastAt[s],
		Replies: f.replies[s],
	}
}

// Page reads a page of the world as it is now: the first by recent activity, the others by key.
func (f *mirror) Page(_ context.Context, q PageRequest) (readstate.Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing[q.Member] > 0 {
		f.failing[q.Member]--
		return readstate.Page{}, fmt.Errorf("read page of %s: disk on fire", q.Member)
	}
	m := model.MemberID(q.Member[0]-'A') + 1
	if m > mirrorMembers {
		return readstate.Page{}, ErrNoMember
	}
	page := readstate.Page{LSN: f.lsn, Member: readstate.MemberInfo{
		Key: memberKey(m), ID: q.Member, Active: true, MemberLSN: f.memberLSN[m],
	}}
	page.Blocks = memberKeys(f.world.Blocks(m))
	var scopes []model.ScopeID
	for _, s := range f.world.ScopeIDs() {
		if row, ok := f.world.Row(m, s); ok && row.Joined {
			scopes = append(scopes, s)
		} else if ok {
			page.LeftLSN = max(page.LeftLSN, f.leftLSN[rowID{m, s}])
		}
	}
	switch {
	case q.Only != nil:
		scopes = slices.DeleteFunc(scopes, func(s model.ScopeID) bool {
			return !slices.Contains(q.Only, scopeKey(s))
		})
	case q.Cursor == "":
		if len(scopes) > q.Limit {
			slices.SortStableFunc(scopes, func(a, b model.ScopeID) int {
				return cmp.Compare(f.lastLSN[b], f.lastLSN[a])
			})
			scopes, page.Next = scopes[:q.Limit], "0"
		}
	default:
		after, _ := strconv.Atoi(q.Cursor)
		scopes = slices.DeleteFunc(scopes, func(s model.ScopeID) bool { return int(s) <= after })
		if len(scopes) > q.Limit {
			scopes = scopes[:q.Limit]
			page.Next = strconv.Itoa(int(scopes[q.Limit-1]))
		}
	}
	f.fill(&page, m, scopes)
	return page, nil
}

func (f *mirror) fill(page *readstate.Page, m model.MemberID, scopes []model.ScopeID) {
	seen := map[model.ScopeID]bool{}
	add := func(s model.ScopeID) {
		if seen[s] {
			return
		}
		seen[s] = true
		l := f.logOf(s, 0)
		page.Scopes = append(page.Scopes, readstate.PageScope{
			Info: f.info(s), Ranks: f.ranks(s),
			Removed: l.counts(removedEntry), Everyone: l.counts(everyoneEntry),
		})
	}
	for _, s := range scopes {
		add(s)
		l := f.logOf(s, 0)
		row := readstate.PageRow{MemberRow: l.row(m, f.points[rowID{m, s}])}
		info, _ := f.world.Scope(s)
		if info.Parent != 0 {
			add(info.Parent)
			if _, ok := f.world.Row(m, info.Parent); ok {
				lp := f.logOf(info.Parent, 0)
				parent := lp.row(m, f.points[rowID{m, info.Parent}])
				row.Parent = &parent
			}
		}
		page.Rows = append(page.Rows, row)
	}
}
