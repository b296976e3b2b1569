package figures

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/readstate"
)

// postgres is the reader's shelves in tables of a schema of their own.
type postgres struct {
	pool   *pgxpool.Pool
	schema string
}

// tables are what somebody would start with, with the indexes that their queries need.
const tables = `
CREATE TABLE messages (
  scope int NOT NULL, revision bigint NOT NULL, author int NOT NULL, payload text NOT NULL,
  PRIMARY KEY (scope, revision)
);
CREATE TABLE cursors (
  member int NOT NULL, scope int NOT NULL, read_revision bigint NOT NULL,
  PRIMARY KEY (member, scope)
);
CREATE TABLE counts (
  member int NOT NULL, scope int NOT NULL, unread bigint NOT NULL,
  PRIMARY KEY (member, scope)
);
CREATE INDEX counts_by_scope ON counts (scope);
`

const (
	countQuery = `SELECT c.scope, (
  SELECT COUNT(*) FROM messages m
  WHERE m.scope = c.scope AND m.revision > c.read_revision AND m.author <> c.member
) FROM cursors c WHERE c.member = $1`
	projectionQuery = `SELECT scope, unread FROM counts WHERE member = $1`

	insertMessage = `INSERT INTO messages (scope, revision, author, payload) VALUES ($1, $2, $3, $4)`
	countUp       = `UPDATE counts SET unread = unread + 1 WHERE scope = $1 AND member <> $2`
)

const (
	pgReader = 1
	pgWriter = 2
)

func openPostgres(ctx context.Context, dsn string) (*postgres, error) {
	p := &postgres{schema: fmt.Sprintf("tidemark_bench_%d", time.Now().UnixNano())}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.RuntimeParams["search_path"] = p.schema
	if p.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	if _, err = p.pool.Exec(ctx, "CREATE SCHEMA "+p.schema); err == nil {
		_, err = p.pool.Exec(ctx, tables)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: %w", err), p.close())
	}
	return p, nil
}

// close drops the schema.
func (p *postgres) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := p.pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+p.schema+" CASCADE")
	p.pool.Close()
	return err
}

// fill copies shelves into the tables, and makes a channel of so many members for messages.
func (p *postgres) fill(ctx context.Context, h *shelves, members int) error {
	n := crowdScopes * h.messages
	_, err1 := p.pool.CopyFrom(ctx, pgx.Identifier{"messages"},
		[]string{"scope", "revision", "author", "payload"},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			return []any{int32(i / h.messages), int64(i%h.messages + 1), int32(pgWriter), string(payload)}, nil
		}))
	_, err2 := p.pool.CopyFrom(ctx, pgx.Identifier{"cursors"},
		[]string{"member", "scope", "read_revision"},
		pgx.CopyFromSlice(crowdScopes, func(i int) ([]any, error) {
			return []any{int32(pgReader), int32(i), int64(h.read[i])}, nil
		}))
	_, err3 := p.pool.CopyFrom(ctx, pgx.Identifier{"counts"}, []string{"member", "scope", "unread"},
		pgx.CopyFromSlice(crowdScopes+members, func(i int) ([]any, error) {
			if i < crowdScopes {
				return []any{int32(pgReader), int32(i), int64(h.messages) - int64(h.read[i])}, nil
			}
			return []any{int32(pgWriter + i - crowdScopes), int32(bigChannel), int64(0)}, nil
		}))
	_, err4 := p.pool.Exec(ctx, "VACUUM ANALYZE")
	return errors.Join(err1, err2, err3, err4)
}

// bigChannel is the channel in which messages are measured.
const bigChannel = 1 << 20

// counts asks for all counts of the reader.
func (p *postgres) counts(ctx context.Context, query string) (map[int32]int64, error) {
	rows, err := p.pool.Query(ctx, query, int32(pgReader))
	if err != nil {
		return nil, err
	}
	counts := make(map[int32]int64, crowdScopes)
	var scope int32
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&scope, &n}, func() error {
		counts[scope] = n
		return nil
	})
	return counts, err
}

// post is a durable message that counts up for everybody in one transaction.
func (p *postgres) post(ctx context.Context, revision int, fanout bool) error {
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insertMessage, int32(bigChannel), int64(revision), int32(pgWriter),
			string(payload))
		if err != nil || !fanout {
			return err
		}
		_, err = tx.Exec(ctx, countUp, int32(bigChannel), int32(pgWriter))
		return err
	})
}

// runPostgres measures counts and messages against PostgreSQL.
func runPostgres(ctx context.Context, r *bench.Run) (err error) {
	s, err := openShop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	messages := bench.Pick(r.Scale, 10, 1_000, 1_000)
	members := bench.Pick(r.Scale, 200, 1_000, 1_000)
	h, err := s.stockShelves(ctx, r, messages)
	if err != nil {
		return err
	}
	if err := s.gather(ctx, members); err != nil {
		return err
	}
	p, err := openPostgres(ctx, r.Against["postgres"])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.fill(ctx, h, members); err != nil {
		return fmt.Errorf("fill PostgreSQL: %w", err)
	}
	if err := p.compare(ctx, r, h); err != nil {
		return err
	}
	request, err := s.get(reader, unreadPath)
	if err != nil {
		return err
	}
	c, err := s.dial(ctx, request)
	if err != nil {
		return err
	}
	defer c.close()
	r.Figure(httpPostgres).Note("%d messages in each of 200 channels, of which the reader has read "+
		"as many as chance took them; one connection each, one request after the other.", messages)
	r.Figure(postgresMessage).Note("The channel has %d members. Durable on both sides; one writer "+
		"that waits for each answer.", members)
	w := &rivals{shop: s, client: c, n: bench.Pick(r.Scale, 5, 100, 300)}
	return r.Each(ctx, func(ctx context.Context, _ int) error {
		return errors.Join(w.postgresCounts(ctx, r, p), w.postgresMessages(ctx, r, p))
	})
}

// compare checks that both ways to ask PostgreSQL give the same counts as the shelves have.
func (p *postgres) compare(ctx context.Context, r *bench.Run, h *shelves) error {
	var wrong []string
	for _, query := range []string{countQuery, projectionQuery} {
		counts, err := p.counts(ctx, query)
		if err != nil {
			return err
		}
		for i, read := range h.read {
			if want := int64(h.messages) - int64(read); counts[int32(i)] != want {
				wrong = append(wrong, fmt.Sprintf("channel %d in PostgreSQL: %d, want %d",
					i, counts[int32(i)], want))
			}
		}
	}
	return r.Check("counts of PostgreSQL, both ways", 2*len(h.read), wrong)
}

// rivals measures our side and theirs, n operations in each round.
type rivals struct {
	*shop
	client *client
	n      int
	posted int
	theirs int
}

// gather makes the channel for messages.
func (s *shop) gather(ctx context.Context, members int) error {
	return s.fill(ctx, members+1, func(b *facts.Batch, i int) {
		if i == 0 {
			b.PutScope(facts.PutScope{ID: stage, Type: readstate.Channel})
			return
		}
		b.PutMembership(facts.PutMembership{
			Scope: stage, Member: officeMember(i - 1), CreateMember: true,
		})
	}, func(int) {})
}

// post is a durable message of ours.
func (w *rivals) post(ctx context.Context) error {
	w.posted++
	_, err := w.ws.Post(ctx, facts.Post{
		Scope: stage, OpID: "rival-" + strconv.Itoa(w.posted), Author: officeMember(0),
		Payload: payload, By: facts.Actor{Trusted: true},
	})
	return err
}

// each returns the mean of n calls, in nanoseconds.
func each(n int, fn func() error) (float64, error) {
	start := time.Now()
	for range n {
		if err := fn(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start)) / float64(n), nil
}

func (w *rivals) overHTTP() error {
	_, err := w.client.ask(io.Discard)
	return err
}

func (w *rivals) postgresCounts(ctx context.Context, r *bench.Run, p *postgres) error {
	ask := func(query string) func() error {
		return func() error { _, err := p.counts(ctx, query); return err }
	}
	ours, err1 := each(10*w.n, w.overHTTP)
	counted, err2 := each(w.n, ask(countQuery))
	projected, err3 := each(w.n, ask(projectionQuery))
	again, err4 := each(10*w.n, w.overHTTP)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	f, all := r.Figure(httpPostgres), r.Figure(postgresCountsTable)
	for _, f := range []*bench.Figure{f, all} {
		f.Add("Tidemark over HTTP", bench.Nanoseconds, ours)
		f.Add("PostgreSQL, COUNT(*)", bench.Nanoseconds, counted)
		f.Hold(counted / ours)
		f.HoldControl(again / ours)
	}
	all.Add("PostgreSQL, a table of counts", bench.Nanoseconds, projected)
	return nil
}

func (w *rivals) postgresMessages(ctx context.Context, r *bench.Run, p *postgres) error {
	post := func(fanout bool) func() error {
		return func() error {
			w.theirs++
			return p.post(ctx, w.theirs, fanout)
		}
	}
	ours, err1 := each(w.n, func() error { return w.post(ctx) })
	bare, err2 := each(w.n, post(false))
	counted, err3 := each(w.n, post(true))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	f := r.Figure(postgresMessage)
	f.Add("Tidemark", bench.Nanoseconds, ours)
	f.Add("PostgreSQL, the message alone", bench.Nanoseconds, bare)
	f.Add("PostgreSQL, with a table of counts", bench.Nanoseconds, counted)
	f.Hold(counted / ours)
	return nil
}
