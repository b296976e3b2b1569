package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/tidemark-im/tidemark/facts"
)

// pool hands out the sessions of one database handle, each to one owner at a time. Sessions are
// opened when they are first needed and kept; one that failed is replaced.
type pool struct {
	db    *sql.DB
	d     *dialect
	whole bool
	slots chan *session // nil where no session is open
	done  chan struct{} // closed with the pool

	mu   sync.Mutex
	open map[*session]struct{}
}

func newPool(db *sql.DB, d *dialect, size int, whole bool) *pool {
	p := &pool{
		db: db, d: d, whole: whole, slots: make(chan *session, size), done: make(chan struct{}),
		open: make(map[*session]struct{}),
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	for range size {
		p.slots <- nil
	}
	return p
}

func errClosed() error { return fmt.Errorf("%w: store is closed", facts.ErrUnavailable) }

// take waits for a session.
func (p *pool) take(ctx context.Context) (*session, error) {
	select {
	case <-p.done:
		return nil, errClosed()
	default:
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, errClosed()
	case s := <-p.slots:
		if s != nil {
			return s, nil
		}
		s, err := p.connect(ctx)
		if err != nil {
			p.slots <- nil
		}
		return s, err
	}
}

// enter waits for a session and begins a transaction on it. One that was ended from the other side
// while nobody used it is replaced; all of them may have been, when a database starts anew.
func (p *pool) enter(ctx context.Context, begin *statement) (*session, error) {
	for old := range cap(p.slots) + 1 {
		s, err := p.take(ctx)
		if err != nil {
			return nil, p.d.fail(begin.name, err)
		}
		s.broken = nil
		if _, err = s.exec(ctx, begin, 0); err == nil {
			return s, nil
		}
		p.drop(s)
		if !p.d.remote || !s.kept || old == cap(p.slots) || ctx.Err() != nil {
			return nil, err
		}
	}
	panic("unreachable")
}

func (p *pool) connect(ctx context.Context) (*session, error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := newSession(conn, p.d, p.whole)
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
		_ = s.discard() // nobody has used it yet
		return nil, errClosed()
	default:
		p.open[s] = struct{}{}
		return s, nil
	}
}

// give takes a session back.
func (p *pool) give(s *session) {
	s.kept = true
	p.slots <- s
}

// drop takes back a session that must not be used again.
func (p *pool) drop(s *session) {
	p.mu.Lock()
	delete(p.open, s)
	p.mu.Unlock()
	_ = s.discard() // it has failed already
	p.slots <- nil
}

// close ends every session, those in use included: their transactions are rolled back.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.done)
	var err error
	for s := range p.open {
		err = errors.Join(err, s.close())
	}
	return errors.Join(err, p.db.Close())
}
