package sqlstore

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/tidemark-im/tidemark/facts"
)

// Schema is how far a database has been migrated, and how far this program would.
type Schema struct {
	Version int64 // 0 for a file that is not there or empty
	Newest  int64
}

// SchemaSQLite looks at the database at path, which may be in use by its owner, and changes
// nothing. A file that is not ours is ErrCorrupt.
func SchemaSQLite(ctx context.Context, file string) (Schema, error) {
	d := sqliteDialect
	op := fmt.Sprintf("look at %q", file)
	s := Schema{Newest: newestSQLite()}
	info, err := os.Stat(file)
	if os.IsNotExist(err) || err == nil && info.Size() == 0 {
		return s, nil
	}
	db, err := sqliteReadOnly(file)
	if err != nil {
		return s, d.fail(op, err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	var app int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return s, d.fail(op, err)
	}
	if app != sqliteApplicationID {
		return s, d.fail(op, fmt.Errorf("%w: %w: application id %#x",
			facts.ErrUnavailable, ErrCorrupt, app))
	}
	err = db.QueryRowContext(ctx,
		"SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied = 1").
		Scan(&s.Version)
	return s, d.fail(op, err)
}

func newestSQLite() int64 { return newest(sqliteDialect) }

// newest is the highest number among the names of a dialect's migrations.
func newest(d *dialect) int64 {
	files, err := fs.Glob(migrations, "migrations/"+d.name+"/*.sql")
	if err != nil || len(files) == 0 {
		panic(fmt.Sprintf("the embedded migrations are missing: %v", err))
	}
	var last int64
	for _, file := range files {
		number, _, _ := strings.Cut(path.Base(file), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("migration %q has no number: %v", file, err))
		}
		last = max(last, n)
	}
	return last
}
