package main

import (
	"context"
	"fmt"
	"os"

	"github.com/dustin/go-humanize"

	"github.com/tidemark-im/tidemark/facts/sqlstore"
)

type backupCommand struct {
	factsFlag
	File string `arg:"" help:"File to write, which must not exist."`
}

func (c *backupCommand) run(ctx context.Context, m *Main) error {
	if !c.inFile() {
		return fmt.Errorf("%s is on a server, which has its own way to back up: see docs/operations.md",
			c.shown())
	}
	started := m.Now()
	if err := sqlstore.BackupSQLite(ctx, c.path(), c.File); err != nil {
		return err
	}
	info, err := os.Stat(c.File)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(m.Stdout, "%s: %s, taken in %.1f s\n",
		c.File, humanize.IBytes(uint64(info.Size())), m.Now().Sub(started).Seconds())
	return err
}
