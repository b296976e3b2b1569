package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/unread/snapshot/sqlsnap"
)

// errStopped means that rows of a snapshot file cannot be brought back.
var errStopped = errors.New("something stops the way back")

// fold is the way back of a file of snapshot rows to programs that do not know the Task columns.
// Whoever writes there has the file to itself, so that it refuses while anybody does.
func (c *migrateCommand) fold(ctx context.Context, m *Main, path string) (err error) {
	store, err := sqlsnap.OpenSQLite(ctx, path, sqlsnap.Options{Existing: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	work := store.Folding
	if c.Fold && !c.Check {
		work = store.Fold
	}
	f, err := work(ctx)
	if err != nil {
		return err
	}
	for _, o := range f.Obstacles {
		if _, err := fmt.Fprintf(m.Stdout, "row of %s cannot go back: %s\n", o.RowID, o.Why); err != nil {
			return err
		}
	}
	switch {
	case f.Stopped > 0:
		return fmt.Errorf("%s: %w: %d of %d protected rows", path, errStopped, f.Stopped, f.Protected)
	case f.Protected == 0:
		_, err = fmt.Fprintf(m.Stdout, "%s has no row with Task columns, nothing to do\n", path)
	case c.Fold && !c.Check:
		_, err = fmt.Fprintf(m.Stdout, "%s: %d rows went back to their regular columns\n",
			path, f.Protected)
	default:
		_, err = fmt.Fprintf(m.Stdout, "%s has %d rows with Task columns, nothing stops the way back\n",
			path, f.Protected)
	}
	return err
}
