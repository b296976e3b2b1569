package figures

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/ownership"
	"github.com/tidemark-im/tidemark/readstate"
)

const (
	// pairSpaces are written to at once, each by one writer that waits for every answer.
	pairSpaces = 8
	// pairLatency is what each commit takes longer than it does here.
	pairLatency = 5 * time.Millisecond
)

// lateStore commits later.
type lateStore struct{ facts.Store }

// Begin implements facts.Store.
func (s lateStore) Begin(ctx context.Context) (facts.Tx, error) {
	tx, err := s.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return lateTx{tx}, nil
}

type lateTx struct{ facts.Tx }

// Commit implements facts.Tx.
func (t lateTx) Commit(ctx context.Context) error {
	time.Sleep(pairLatency)
	return t.Tx.Commit(ctx)
}

// booth is one node: an engine on the database that all of them share, with its keeper.
type booth struct {
	engine *tidemark.Engine
	keeper *ownership.Keeper
	ended  chan error
}

// openBooth opens a node that owns some of the workspaces. Each operation is a group of its own: there
// is one writer, and it commits one after the other.
func openBooth(
	ctx context.Context, database, name string, only []readstate.WorkspaceID, statements *atomic.Int64,
) (*booth, error) {
	store, err := sqlstore.Open(ctx, database, sqlstore.Options{
		Shared: true, OnStatement: func(context.Context, string) {
			if statements != nil {
				statements.Add(1)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	d := &booth{ended: make(chan error, 1)}
	d.engine, err = tidemark.OpenStore(ctx, lateStore{store}, tidemark.Options{
		Shared:     &tidemark.Shared{Serving: func() bool { return d.keeper.Serving() }},
		Lane:       facts.LaneConfig{GroupRows: 1},
		SweepEvery: time.Hour,
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	d.keeper, err = ownership.New(ownership.Options{
		Registry: store.Registry(), Engine: d.engine,
		Self: facts.NodeInfo{Node: name, Address: "http://" + name, Only: only},
	})
	if err != nil {
		return nil, errors.Join(err, d.engine.Close())
	}
	go func() { d.ended <- d.keeper.Run(context.WithoutCancel(ctx)) }() // ends with close
	return d, nil
}

func (d *booth) close() error {
	d.keeper.Drain()
	return errors.Join(<-d.ended, d.engine.Close())
}

// floor is a database with its workspaces, and how often each was written to.
type floor struct {
	database string
	spaces   []readstate.WorkspaceID
	posted   [pairSpaces]int
	nodes    int // opened so far: each has a name of its own
}

// runPair measures one node and two nodes on one PostgreSQL.
func runPair(ctx context.Context, r *bench.Run) (err error) {
	f, drop, err := openFloor(ctx, r.Against["postgres"])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	n := bench.Pick(r.Scale, 10, 200, 500)
	for _, name := range []string{twoNodes, twoNodesStatements} {
		r.Figure(name).Note("%d messages in each of %d workspaces, one writer each; a node commits one "+
			"operation after the other, and each commit takes %v longer than it does here.", n,
			pairSpaces, pairLatency)
	}
	if err := r.Each(ctx, func(ctx context.Context, _ int) error {
		var took [3]time.Duration
		var statements [3]float64
		for i, nodes := range []int{1, 2, 1} {
			if took[i], statements[i], err = f.measure(ctx, nodes, n); err != nil {
				return err
			}
		}
		rate := func(i int) float64 { return float64(n*pairSpaces) / took[i].Seconds() }
		figure := r.Figure(twoNodes)
		figure.Add("one node", bench.PerSecond, rate(0))
		figure.Add("two nodes", bench.PerSecond, rate(1))
		figure.Add("one node again", bench.PerSecond, rate(2))
		figure.Hold(rate(1) / rate(0))
		figure.HoldControl(rate(2) / rate(0))
		figure = r.Figure(twoNodesStatements)
		figure.Add("one node", bench.Number, statements[0])
		figure.Add("two nodes", bench.Number, statements[1])
		figure.Hold(statements[1] / statements[0])
		figure.HoldControl(statements[2] / statements[0])
		return nil
	}); err != nil {
		return err
	}
	return f.verify(ctx, r)
}

// openFloor makes a schema of its own, with its workspaces.
func openFloor(ctx context.Context, dsn string) (*floor, func() error, error) {
	schema := fmt.Sprintf("tidemark_bench_%d", time.Now().UnixNano())
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, nil, err
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, nil, fmt.Errorf("postgres: %w", err)
	}
	drop := func() error {
		ctx := context.WithoutCancel(ctx)
		_, err := conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+schema+" CASCADE")
		return errors.Join(err, conn.Close(ctx))
	}
	f := &floor{database: u.String()}
	for i := range pairSpaces {
		f.spaces = append(f.spaces, readstate.WorkspaceID("space-"+strconv.Itoa(i)))
	}
	if _, err = conn.Exec(ctx, "CREATE SCHEMA "+schema); err == nil {
		err = f.furnish(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, drop())
	}
	return f, drop, nil
}

// furnish makes the workspaces, with a process that has the database for itself.
func (f *floor) furnish(ctx context.Context) (err error) {
	e, err := tidemark.Open(ctx, tidemark.Options{Facts: f.database})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for _, id := range f.spaces {
		if _, err := e.CreateWorkspace(ctx, id, ""); err != nil {
			return err
		}
		w := e.Workspace(id)
		if _, err := w.PutScope(ctx, facts.PutScope{ID: stage, Type: readstate.Channel}); err != nil {
			return err
		}
		for m := range 2 {
			if _, err := w.PutMembership(ctx, facts.PutMembership{
				Scope: stage, Member: officeMember(m), CreateMember: true,
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// open opens nodes with the workspaces spread over them, and waits until all are served.
func (f *floor) open(ctx context.Context, nodes int, statements *atomic.Int64) ([]*booth, error) {
	var booths []*booth
	for i := range nodes {
		var only []readstate.WorkspaceID
		for j := i; j < pairSpaces; j += nodes {
			only = append(only, f.spaces[j])
		}
		f.nodes++
		d, err := openBooth(ctx, f.database, fmt.Sprint("node-", f.nodes), only, statements)
		if err != nil {
			return nil, errors.Join(err, closeBooths(booths))
		}
		booths = append(booths, d)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for j := range pairSpaces {
		for booths[j%nodes].engine.Serves(f.spaces[j]) != nil {
			select {
			case <-ctx.Done():
				return nil, errors.Join(ctx.Err(), closeBooths(booths))
			case <-tick.C:
			}
		}
	}
	return booths, nil
}

func closeBooths(booths []*booth) error {
	var failed error
	for _, d := range booths {
		failed = errors.Join(failed, d.close())
	}
	return failed
}

// measure has every workspace written to n times, and returns how long that took and how many
// statements an operation had.
func (f *floor) measure(
	ctx context.Context, nodes, n int,
) (took time.Duration, statements float64, err error) {
	var counter atomic.Int64
	booths, err := f.open(ctx, nodes, &counter)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, closeBooths(booths)) }()
	before := counter.Load()
	took, err = together(pairSpaces, func(j int) error {
		w := booths[j%nodes].engine.Workspace(f.spaces[j])
		for range n {
			f.posted[j]++
			if _, err := w.Post(ctx, facts.Post{
				Scope: stage, OpID: strconv.Itoa(f.posted[j]), Author: officeMember(0),
				Payload: payload, By: facts.Actor{Trusted: true},
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return took, float64(counter.Load()-before) / float64(n*pairSpaces), err
}

// verify holds the counts of a node that has just taken everything against what was written.
func (f *floor) verify(ctx context.Context, r *bench.Run) (err error) {
	booths, err := f.open(ctx, 1, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeBooths(booths)) }()
	var wrong []string
	for j, id := range f.spaces {
		row, err := booths[0].engine.Workspace(id).Row(ctx, officeMember(1), stage)
		if err != nil {
			return err
		}
		if row.Values.Unread != uint64(f.posted[j]) {
			wrong = append(wrong, fmt.Sprintf("%s: %d, want %d", id, row.Values.Unread, f.posted[j]))
		}
	}
	return r.Check("counts of a node that took everything over", pairSpaces, wrong)
}
