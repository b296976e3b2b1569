package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/tidemark-im/tidemark/facts"
)

//go:embed migrations
var migrations embed.FS

// migrateSQLite brings the schema to the newest version. A schema that is newer than this
// program is left alone and refused.
func migrateSQLite(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	version, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if version > newest {
		return fmt.Errorf("%w: %w: schema %d, known up to %d",
			facts.ErrUnavailable, ErrNewer, version, newest)
	}
	if version == newest {
		return nil
	}
	_, err = p.Up(ctx)
	return err
}
