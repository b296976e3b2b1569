package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-im/tidemark/facts/sqlstore"
)

type migrateCommand struct {
	factsFlag
	Check  bool  `help:"Change nothing; fail where there is something to do, or to stop --back-to."`
	BackTo int64 `placeholder:"SCHEMA" help:"Go back to an earlier schema, if nothing stops it."`

	Snapshots string `placeholder:"sqlite:PATH" help:"Look at a file of snapshot rows instead."`
	Fold      bool   `help:"Bring its Task columns back into the regular ones, if nothing stops it."`
}

// Validate implements kong's check.
func (c *migrateCommand) Validate() error {
	if c.BackTo != 0 && c.BackTo < sqlstore.OldestSQLite {
		return fmt.Errorf("--back-to is %d, want at least %d", c.BackTo, sqlstore.OldestSQLite)
	}
	if _, ok := strings.CutPrefix(c.Snapshots, sqlitePrefix); c.Snapshots != "" && !ok {
		return fmt.Errorf("--snapshots is %q, want sqlite:PATH", c.Snapshots)
	}
	if c.Fold && c.Snapshots == "" || c.BackTo != 0 && c.Snapshots != "" {
		return errors.New("--fold goes with --snapshots, and --back-to without")
	}
	return c.factsFlag.Validate()
}

func (c *migrateCommand) run(ctx context.Context, m *Main) error {
	if c.Snapshots != "" {
		return c.fold(ctx, m, strings.TrimPrefix(c.Snapshots, sqlitePrefix))
	}
	schema, err := sqlstore.SchemaOf(ctx, c.Facts)
	if err != nil {
		return err
	}
	switch {
	case c.BackTo != 0 && !c.inFile():
		return fmt.Errorf("%s is on a server, and has no schema before %d to go back to", c.shown(),
			schema.Newest)
	case schema.Version > schema.Newest:
		return fmt.Errorf("%s has schema %d, this program knows %d: it is too old",
			c.shown(), schema.Version, schema.Newest)
	case c.BackTo != 0:
		return c.back(ctx, m, schema)
	case schema.Version == schema.Newest:
		_, err = fmt.Fprintf(m.Stdout, "%s has schema %d, nothing to do\n", c.shown(), schema.Version)
		if err == nil && c.Check && c.inFile() {
			err = c.tellObstacles(ctx, m, schema.Version)
		}
		return err
	case c.Check:
		return fmt.Errorf("%s has schema %d, this program needs %d: run tidemark migrate",
			c.shown(), schema.Version, schema.Newest)
	}
	store, err := sqlstore.Open(ctx, c.Facts, sqlstore.Options{})
	if err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(m.Stdout, "%s went from schema %d to %d\n",
		c.shown(), schema.Version, schema.Newest)
	return err
}

// back is the way to an earlier program.
func (c *migrateCommand) back(ctx context.Context, m *Main, schema sqlstore.Schema) error {
	if c.BackTo >= schema.Version {
		return fmt.Errorf("%s has schema %d: it is not above %d", c.path(), schema.Version, c.BackTo)
	}
	found, err := sqlstore.ObstaclesSQLite(ctx, c.path(), c.BackTo)
	if err != nil {
		return err
	}
	for _, o := range found {
		if _, err := fmt.Fprintln(m.Stdout, obstacleLine(o)); err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("%s cannot go back to schema %d: %w", c.path(), c.BackTo,
			sqlstore.ErrObstacles)
	}
	if c.Check {
		_, err = fmt.Fprintf(m.Stdout, "%s has schema %d, nothing stops the way back to %d\n",
			c.path(), schema.Version, c.BackTo)
		return err
	}
	if err := sqlstore.DowngradeSQLite(ctx, c.path(), c.BackTo); err != nil {
		return err
	}
	_, err = fmt.Fprintf(m.Stdout, "%s went back from schema %d to %d\n",
		c.path(), schema.Version, c.BackTo)
	return err
}

// tellObstacles says for whom the database is too new by what is in it.
func (c *migrateCommand) tellObstacles(ctx context.Context, m *Main, version int64) error {
	found, err := sqlstore.ObstaclesSQLite(ctx, c.path(), sqlstore.OldestSQLite)
	if err != nil {
		return err
	}
	for _, o := range found {
		if _, err := fmt.Fprintln(m.Stdout, obstacleLine(o)); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		_, err = fmt.Fprintf(m.Stdout, "nothing in it stops the way back from %d to %d\n",
			version, sqlstore.OldestSQLite)
	}
	return err
}

func obstacleLine(o sqlstore.Obstacle) string {
	return fmt.Sprintf("below schema %d not: %d %s; %s", o.Schema, o.Rows, o.What, o.Instead)
}
