package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidemark-im/tidemark/internal/conform/histories"
	"github.com/tidemark-im/tidemark/internal/conform/retold"
	"github.com/tidemark-im/tidemark/internal/conform/written"
)

func main() {
	dir := flag.String("cases", "conformance/cases", "where cases are")
	scenarios := flag.String("scenarios", "testdata/scenarios", "where scenarios are")
	flag.Parse()
	err := errors.Join(writeHistories(filepath.Join(*dir, "readstate")),
		writeHub(context.Background(), filepath.Join(*dir, "hub"), *scenarios))
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func writeHistories(dir string) error {
	suites, err := histories.Make()
	if err != nil {
		return err
	}
	for _, s := range suites {
		text, err := written.History(s)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, s.Suite+".json"), text, 0o600); err != nil {
			return fmt.Errorf("write histories: %w", err)
		}
	}
	return nil
}

func writeHub(ctx context.Context, dir, scenarios string) error {
	suites, err := retold.Make(ctx, scenarios)
	if err != nil {
		return err
	}
	for _, s := range suites {
		text, err := written.Server(s)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, s.Suite+".json"), text, 0o600); err != nil {
			return fmt.Errorf("write hub cases: %w", err)
		}
	}
	return nil
}
