package main

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts/sqlstore"
)

type migrateCommand struct {
	factsFlag
	Check bool `help:"Change nothing; fail where there is something to do."`
}

func (c *migrateCommand) run(ctx context.Context, m *Main) error {
	schema, err := sqlstore.SchemaSQLite(ctx, c.path())
	if err != nil {
		return err
	}
	switch {
	case schema.Version > schema.Newest:
		return fmt.Errorf("%s has schema %d, this program knows %d: it is too old",
			c.path(), schema.Version, schema.Newest)
	case schema.Version == schema.Newest:
		_, err = fmt.Fprintf(m.Stdout, "%s has schema %d, nothing to do\n", c.path(), schema.Version)
		return err
	case c.Check:
		return fmt.Errorf("%s has schema %d, this program needs %d: run tidemark migrate",
			c.path(), schema.Version, schema.Newest)
	}
	store, err := sqlstore.OpenSQLite(ctx, c.path(), sqlstore.Options{})
	if err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(m.Stdout, "%s went from schema %d to %d\n",
		c.path(), schema.Version, schema.Newest)
	return err
}
