package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tidemark-im/tidemark/facts"
)

// defaultSchema is where the tables are, unless the name of a database says search_path.
const defaultSchema = "tidemark"

// postgresPlans keeps the planner to what the statements say: they name their tables in the order
// in which they are to be read, and every table has the index that is needed. A plan that was made
// while a table was empty is then as good as any.
const postgresPlans = `SET jit = off; SET plan_cache_mode = force_generic_plan;
SET join_collapse_limit = 1; SET from_collapse_limit = 1;
SET enable_seqscan = off; SET enable_bitmapscan = off;
SET enable_hashjoin = off; SET enable_mergejoin = off;`

func parsePostgres(name string, o Options) (*server, error) {
	cfg, err := pgx.ParseConfig(name)
	if err != nil || cfg.Host == "" || cfg.Database == "" {
		// The error's text holds the name.
		return nil, errors.New("want postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	schema := defaultSchema
	if path, ok := cfg.RuntimeParams["search_path"]; ok {
		schema = path
		delete(cfg.RuntimeParams, "search_path")
	}
	if schema == "" || strings.ContainsAny(schema, `",'\`) {
		return nil, errors.New("want one schema as search_path")
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "tidemark"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = dialTimeout
	}
	cfg.DialFunc = dialer().DialContext
	p := &postgres{schema: schema, o: o}
	return &server{
		d: postgresDialect, settle: p.settle, found: p.found,
		dial: func(r role) driver.Connector {
			return setupConnector{stdlib.GetConnector(*cfg), func(ctx context.Context, c fullConn) error {
				return p.setup(ctx, c, r)
			}}
		},
	}, nil
}

// postgres is a schema of a database.
type postgres struct {
	schema string
	o      Options
}

func (p *postgres) wait() time.Duration {
	if p.o.BusyTimeout > 0 {
		return p.o.BusyTimeout
	}
	return defaultBusyTimeout
}

// setup makes a session ready. Commits are durable whatever the server's default is.
func (p *postgres) setup(ctx context.Context, c fullConn, r role) error {
	text := fmt.Sprintf(`SET search_path = "%s"; SET lock_timeout = %d;
SET tcp_keepalives_idle = %d; SET tcp_keepalives_interval = %d; SET tcp_keepalives_count = %d;
SET default_transaction_read_only = off;`,
		p.schema, p.wait().Milliseconds(), int(keepAliveIdle.Seconds()),
		int(keepAliveEvery.Seconds()), keepAlives)
	if r != roleKeeping {
		text += postgresPlans
	}
	if idle := p.o.idle(r); idle > 0 {
		text += fmt.Sprintf("SET idle_in_transaction_session_timeout = %d; SET lock_timeout = %d;",
			idle.Milliseconds(), min(idle, p.wait()).Milliseconds())
	}
	if p.o.Unsafe {
		text += "SET synchronous_commit = off;"
	} else {
		text += `SELECT set_config('synchronous_commit', 'on', false)
  WHERE current_setting('synchronous_commit') = 'off';`
	}
	if err := run(ctx, c, text); err != nil || r != roleOwning {
		return err
	}
	err := run(ctx, c, fmt.Sprintf("SELECT pg_advisory_lock(hashtextextended('tidemark %s', 0))", p.schema))
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "55P03" {
		return errOwned()
	}
	return err
}

// settle makes the schema, and refuses one that holds something else.
func (p *postgres) settle(ctx context.Context, db *sql.DB) error {
	var there, tables, ours int
	err := db.QueryRowContext(ctx, `SELECT
  (SELECT count(*) FROM pg_namespace WHERE nspname = $1),
  (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm')),
  (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2)`, p.schema, postgresDialect.table).
		Scan(&there, &tables, &ours)
	switch {
	case err != nil:
		return err
	case tables > 0 && ours == 0:
		return fmt.Errorf("%w: %w: schema %q holds other tables", facts.ErrUnavailable, ErrCorrupt, p.schema)
	case there > 0:
		return nil
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf(`CREATE SCHEMA IF NOT EXISTS "%s"`, p.schema))
	return err
}

func (p *postgres) found(ctx context.Context, db *sql.DB) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2`,
		p.schema, postgresDialect.table).Scan(&n)
	return n > 0, err
}
