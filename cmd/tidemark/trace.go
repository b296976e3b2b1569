package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tidemark-im/tidemark/internal/trace"
)

type traceCommand struct {
	Messages int    `default:"20000" help:"How many messages."`
	Seed     uint64 `default:"1" help:"The same seed gives the same trace."`
	Output   string `short:"o" placeholder:"FILE" help:"${about_output}"`
}

// Validate implements kong's check.
func (c *traceCommand) Validate() error {
	return checkRange("messages", c.Messages, trace.MinMessages, trace.MaxMessages)
}

func (c *traceCommand) run(ctx context.Context, m *Main) error {
	return writeTo(c.Output, m.Stdout, func(w io.Writer) error {
		out := trace.NewWriter(w)
		err := trace.Generate(trace.Settings{Messages: c.Messages, Seed: c.Seed},
			func(row trace.Row) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return out.Write(row)
			})
		if err != nil {
			return err
		}
		return out.Flush()
	})
}

// writeTo writes a file, compressed if its name says so, or the fallback where no name is given.
// A file that cannot be written as a whole is removed.
func writeTo(name string, fallback io.Writer, write func(io.Writer) error) error {
	if name == "" {
		return write(fallback)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, ".gz") {
		z := gzip.NewWriter(f)
		err = errors.Join(write(z), z.Close())
	} else {
		err = write(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%w", errors.Join(err, os.Remove(name)))
	}
	return nil
}
