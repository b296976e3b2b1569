package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// OldestSQLite is the earliest schema that a database can go back to.
const OldestSQLite = 2

// ErrObstacles means that a database holds what a program of the earlier schema could not read, or
// would never deliver.
var ErrObstacles = errors.New("something stops the way back")

// Obstacle is one kind of rows that a program of an earlier schema could do nothing right with.
type Obstacle struct {
	// Schema is the first one whose programs know such rows.
	Schema  int64
	Rows    int64
	What    string // what they are, to stand behind their number
	Instead string // what has to be done first
}

// obstacles are looked for in their order. Each query counts rows, of tables that exist from the
// schema on. What follows from other rows stops nobody: the conversation index, delivered rows.
var obstacles = []struct {
	schema        int64
	what, instead string
	query         string
}{
	{
		6, "texts were sent to inboxes", "nothing can be done: they are nowhere else",
		`SELECT count(*) FROM inbox_messages WHERE text IS NOT NULL`,
	},
	{
		5, "snapshot rows are protected by Task columns",
		"bring them back: tidemark migrate --snapshots sqlite:PATH --fold",
		`SELECT count(*) FROM member_scope_unread_runtime_snapshots
  WHERE task_snapshot_format_version IS NOT NULL AND task_snapshot_format_version <> 0`,
	},
	{
		5, "sessions were made", "nothing can be done: their scopes would be open to others",
		`SELECT count(*) FROM sessions`,
	},
	{
		4, "outbox rows are not delivered", "let the outbox come to its end, with nobody writing",
		`SELECT count(*) FROM outbox o LEFT JOIN outbox_state s USING (workspace, event)
  WHERE s.state IS NULL OR s.settled_at IS NULL`,
	},
	{
		4, "wakes wait to be sent or read", "let them be sent or read",
		`SELECT count(*) FROM wakes`,
	},
	{
		4, "rows and wakes were given up and are kept", "requeue them, or let them grow too old",
		`SELECT count(*) FROM dead_letters`,
	},
	{
		4, "agents have an address for their wakes", "remove it: nobody would send there",
		`SELECT count(*) FROM wake_endpoints WHERE recipient > 0 AND url IS NOT NULL`,
	},
	{
		4, "webhooks watch badges", "remove them: nobody would call them",
		`SELECT count(*) FROM webhooks`,
	},
	{
		3, "outbox rows would be forgotten", "go to a schema that delivers them first",
		outboxRows,
	},
	{
		3, "scopes are tasks", "nothing can be done: watchers and assignees would not be counted",
		fmt.Sprintf(`SELECT count(*) FROM scopes WHERE type = %d`, readstate.Task),
	},
	{
		3, "activities were recorded", "nothing can be done: their cursors could not be read on",
		`SELECT count(*) FROM scope_activity_events`,
	},
}

// ObstaclesSQLite says what stops the database at path, which may be in use by its owner, from
// going back to an earlier schema. It changes nothing.
func ObstaclesSQLite(ctx context.Context, file string, to int64) ([]Obstacle, error) {
	d := sqliteDialect
	op := fmt.Sprintf("look at %q", file)
	schema, err := SchemaSQLite(ctx, file)
	if err != nil || schema.Version <= to {
		return nil, err
	}
	db, err := sqliteReadOnly(file)
	if err != nil {
		return nil, d.fail(op, err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	found, err := findObstacles(ctx, db, schema.Version, to)
	return found, d.fail(op, err)
}

func findObstacles(ctx context.Context, db *sql.DB, from, to int64) ([]Obstacle, error) {
	var found []Obstacle
	for _, o := range obstacles {
		// Where it is known which rows are delivered, the others are named already.
		if o.schema <= to || o.schema > from || o.query == outboxRows && from > 3 {
			continue
		}
		var n int64
		if err := db.QueryRowContext(ctx, o.query).Scan(&n); err != nil {
			return nil, fmt.Errorf("%s: %w", o.what, err)
		}
		if n > 0 {
			found = append(found, Obstacle{Schema: o.schema, Rows: n, What: o.what, Instead: o.instead})
		}
	}
	return found, nil
}

const outboxRows = `SELECT count(*) FROM outbox`

// DowngradeSQLite brings the database at path back to an earlier schema, at least OldestSQLite. It
// fails with facts.ErrNotOwner while anybody has it open, and with ErrObstacles, having changed
// nothing, where something stops it.
func DowngradeSQLite(ctx context.Context, file string, to int64) error {
	d := sqliteDialect
	op := fmt.Sprintf("bring %q back to schema %d", file, to)
	path, err := resolve(file)
	if err != nil {
		return d.fail(op, err)
	}
	if err := canGoBack(ctx, path, op, to); err != nil {
		return err
	}
	owner, err := takeLock(path + ".lock")
	if err != nil {
		return d.fail(op, err)
	}
	defer owner.Close() //nolint:errcheck // the system gives it up in any case
	if err := canGoBack(ctx, path, op, to); err != nil {
		return err // somebody else was faster
	}
	found, err := ObstaclesSQLite(ctx, path, to)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%s: %w: %d %s", op, ErrObstacles, found[0].Rows, found[0].What)
	}
	db, err := sqliteHandle(path, Options{}, false)
	if err != nil {
		return d.fail(op, err)
	}
	return d.fail(op, errors.Join(migrateDown(ctx, db, to), db.Close()))
}

func canGoBack(ctx context.Context, path, op string, to int64) error {
	schema, err := SchemaSQLite(ctx, path)
	if err == nil && (to < OldestSQLite || to >= schema.Version || schema.Version > schema.Newest) {
		err = fmt.Errorf("%s: %w: it has schema %d, this program knows %d to %d", op,
			facts.ErrInvalid, schema.Version, OldestSQLite, schema.Newest)
	}
	return err
}

// migrateDown undoes migrations, each in a transaction of its own.
func migrateDown(ctx context.Context, db *sql.DB, to int64) error {
	p, err := migrator(sqliteDialect, db)
	if err != nil {
		return err
	}
	_, err = p.DownTo(ctx, to)
	return err
}
