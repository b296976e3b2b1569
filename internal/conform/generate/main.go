package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidemark-im/tidemark/internal/conform/histories"
)

func main() {
	dir := flag.String("cases", "conformance/cases", "where cases are")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	suites, err := histories.Make()
	if err != nil {
		return err
	}
	for _, s := range suites {
		text, err := histories.Write(s)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "readstate", s.Suite+".json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
