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

// One folder a dialect. A number names the same schema in all of them.
//
//go:embed migrations
var migrations embed.FS

// migrator returns what runs the migrations of a dialect.
func migrator(d *dialect, db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations/"+d.name)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(d.version, db, files, goose.WithTableName(d.table),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}

// migrate brings the schema to the newest version. A schema that is newer than this program is left
// alone and refused.
func migrate(ctx context.Context, d *dialect, db *sql.DB) error {
	p, err := migrator(d, db)
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
