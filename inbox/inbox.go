package inbox

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

var (
	// ErrGap means that items are missing which have to be there: an exact answer is impossible.
	ErrGap = errors.New("inbox items are missing")
	// ErrBehind means that the projection is so far behind that the tail was not read, and did not
	// catch up while the caller waited.
	ErrBehind = errors.New("inbox projection is behind")
	// ErrBelowFloor means that history was asked for which is not kept any more.
	ErrBelowFloor = errors.New("below the floor of the inbox")
	// ErrClosed means that the inbox does not work any more.
	ErrClosed = errors.New("inbox closed")
)

// Limits bound an inbox. The zero value of each field is its default.
type Limits struct {
	// TailRows is the longest tail that a read merges. Default 100,000.
	TailRows int
	// BatchRows is how many items one transaction of the worker projects. Default 1,000.
	BatchRows int
	// BatchInboxes is how many inboxes share one transaction of the worker. Default 64.
	BatchInboxes int
	// OpenItems is how many items an opened inbox lists, the newest. Default 1,000.
	OpenItems int
	// Rescan is how often all inboxes are looked through. Default one minute.
	Rescan time.Duration
	// KeepItems, KeepSnapshots and KeepReceipts are how many days each kind is kept. The default is
	// KeepForever. Items that nobody has looked at are kept as far as somebody counts by them.
	KeepItems, KeepSnapshots, KeepReceipts int
}

// KeepForever is the number of days that stands for ever.
const KeepForever = 36_500

// DefaultLimits are the limits that hold where nobody says otherwise.
func DefaultLimits() Limits {
	l, err := Limits{}.withDefaults()
	if err != nil {
		panic(err) // nothing is set that could be wrong
	}
	return l
}

func (l Limits) withDefaults() (Limits, error) {
	for _, f := range []struct {
		field    *int
		standard int
	}{
		{&l.TailRows, 100_000}, {&l.BatchRows, 1_000}, {&l.BatchInboxes, 64}, {&l.OpenItems, 1_000},
		{&l.KeepItems, KeepForever}, {&l.KeepSnapshots, KeepForever}, {&l.KeepReceipts, KeepForever},
	} {
		if *f.field == 0 {
			*f.field = f.standard
		}
		if *f.field < 0 {
			return l, fmt.Errorf("inbox: %w: limits must be positive", facts.ErrInvalid)
		}
	}
	if l.Rescan == 0 {
		l.Rescan = time.Minute
	}
	if l.Rescan < 0 {
		return l, fmt.Errorf("inbox: %w: times must be positive", facts.ErrInvalid)
	}
	return l, nil
}

// Options wire an inbox. Store and Terms are required.
type Options struct {
	Store facts.InboxStore
	// Terms says which workspaces this process owns. It is called within transactions.
	Terms facts.TermOf
	// Summary is a prepared summary elsewhere, nil for none.
	Summary Summary
	// Changed is told of inboxes whose badge an acknowledgement may have changed. It must not wait.
	Changed func(readstate.WorkspaceID, readstate.MemberID)
	Limits  Limits
	Now     func() time.Time // nil is time.Now; for display, retention and figures
	NewID   func() string    // ids of snapshots, which nobody may guess; nil makes 128 random bits
	Log     *slog.Logger
	// OnProject, where set, is called before the worker commits a batch; an error rolls it back. It
	// is for tests and probes.
	OnProject func(ctx context.Context) error
}

func (o Options) withDefaults() (Options, error) {
	if o.Store == nil || o.Terms == nil {
		return o, errors.New("inbox: Store and Terms are required")
	}
	var err error
	if o.Limits, err = o.Limits.withDefaults(); err != nil {
		return o, err
	}
	if o.Changed == nil {
		o.Changed = func(readstate.WorkspaceID, readstate.MemberID) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = randomID
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails; see crypto/rand
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Inbox serves inboxes. It is safe for concurrent use. New starts nothing: Run does the work of the
// worker, in one call at a time, and Close ends it.
type Inbox struct {
	Options
	keys    sync.Map // readstate.WorkspaceID -> facts.WorkspaceKey
	pending pending
	moved   moved
	metrics metrics
	resting atomic.Int64 // until when the prepared summary is left alone, milliseconds

	mu     sync.Mutex
	closed chan struct{} // closed by Close
	ended  chan struct{} // closed when Run has ended; nil before it
}

// New checks the options and makes an inbox.
func New(o Options) (*Inbox, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Inbox{Options: o, closed: make(chan struct{})}
	b.pending.init()
	b.moved.init()
	return b, nil
}

// Access names an inbox and who asks for it.
type Access struct {
	Workspace readstate.WorkspaceID
	Member    readstate.MemberID
	By        readstate.MemberID // must be Member
}

func (a Access) check() error {
	if err := facts.CheckID("member", string(a.Member)); err != nil {
		return err
	}
	if a.By != a.Member {
		return fmt.Errorf("inbox of %q: %w: it is somebody else's", a.Member, facts.ErrForbidden)
	}
	return nil
}

// workspace finds the number of a workspace, which never changes.
func (b *Inbox) workspace(
	ctx context.Context, id readstate.WorkspaceID,
) (facts.WorkspaceKey, error) {
	if key, ok := b.keys.Load(id); ok {
		return key.(facts.WorkspaceKey), nil
	}
	v, err := b.Store.InboxView(ctx)
	if err != nil {
		return 0, err
	}
	row, ok, err := v.Workspace(ctx, id)
	if err = errors.Join(err, v.Close()); err != nil {
		return 0, err
	}
	if !ok {
		return 0, fmt.Errorf("workspace %q: %w", id, facts.ErrNotFound)
	}
	b.keys.Store(id, row.Key)
	return row.Key, nil
}

// owner finds the member whose inbox it is, who must be active.
func owner(
	ctx context.Context, r facts.InboxReader, w facts.WorkspaceKey, id readstate.MemberID,
) (readstate.MemberInfo, error) {
	rows, err := r.MembersByID(ctx, w, []readstate.MemberID{id})
	switch {
	case err != nil:
		return readstate.MemberInfo{}, err
	case len(rows) == 0 || rows[0].Erased:
		return readstate.MemberInfo{}, fmt.Errorf("member %q: %w", id, facts.ErrNotFound)
	case !rows[0].Active:
		return rows[0], fmt.Errorf("member %q: %w: the account is not active", id, facts.ErrForbidden)
	}
	return rows[0], nil
}

// write runs f in a writing transaction over the inboxes of a workspace that this process owns.
func (b *Inbox) write(
	ctx context.Context, w facts.WorkspaceKey, f func(t facts.InboxTx) error,
) error {
	term, owned := b.Terms(w)
	if !owned {
		return fmt.Errorf("workspace %d: %w", w, facts.ErrNotOwner)
	}
	return b.Store.InboxTx(ctx, w, term, f)
}

// moved tells those who wait that the worker has committed.
type moved struct {
	mu sync.Mutex
	c  chan struct{}
}

func (m *moved) init() { m.c = make(chan struct{}) }

// next is closed by the next commit.
func (m *moved) next() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.c
}

func (m *moved) tell() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.c)
	m.c = make(chan struct{})
}
