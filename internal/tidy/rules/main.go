package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/tidemark-im/tidemark/internal/tidy"
)

const module = "github.com/tidemark-im/tidemark"

func main() {
	strict := flag.Bool("strict", false, "exit 1 unless every id is cited or explained")
	flag.Parse()
	complete, err := report()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(2)
	}
	if *strict && !complete {
		os.Exit(1)
	}
}

func report() (complete bool, err error) {
	root, err := tidy.FindRoot(".", module)
	if err != nil {
		return false, err
	}
	repo, err := tidy.Load(os.DirFS(root))
	if err != nil {
		return false, err
	}
	standings := tidy.Survey(repo)
	return tidy.Complete(standings), tidy.WriteReport(os.Stdout, standings)
}
