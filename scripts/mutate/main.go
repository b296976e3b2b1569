package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// verdict is what became of one alteration.
type verdict uint8

const (
	caught verdict = iota
	survived
	broken // it does not apply or does not compile, so it proves nothing
)

type result struct {
	verdict
	detail string // the first failing test, or why the alteration is broken
}

func main() {
	only := flag.String("only", "", "run the alterations whose file, rule or text match")
	jobs := flag.Int("jobs", 2, "how many to run at once")
	show := flag.Bool("list", false, "print the alterations and exit")
	flag.Parse()
	ok, err := run(*only, *jobs, *show)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(only string, jobs int, show bool) (bool, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return false, fmt.Errorf("-only: %w", err)
	}
	alterations, err := all()
	if err != nil {
		return false, err
	}
	chosen := slices.DeleteFunc(alterations, func(a alteration) bool {
		return !pattern.MatchString(a.String())
	})
	if show {
		for _, a := range chosen {
			fmt.Println(a)
		}
		return true, nil
	}
	dir, err := os.MkdirTemp("", "tidemark-mutate-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t, err := prepare(dir, chosen)
	if err != nil {
		return false, err
	}
	return report(chosen, t.tryAll(dir, chosen, jobs)), nil
}

// prepare copies what the chosen alterations need. Unaltered tests have to pass, or every
// alteration would look caught.
func prepare(dir string, chosen []alteration) (*tree, error) {
	var stages []stage
	var dirs []string
	seen := map[*suite]bool{}
	for _, a := range chosen {
		if seen[a.suite] {
			continue
		}
		seen[a.suite] = true
		for _, s := range a.suite.stages {
			stages, dirs = append(stages, s), append(dirs, s.dir)
		}
	}
	if len(stages) == 0 {
		return nil, errors.New("no alteration matches")
	}
	t, err := copyTree(filepath.Join(dir, "tree"), dirs)
	if err != nil {
		return nil, err
	}
	limits := map[string]time.Duration{}
	for _, s := range stages {
		start := time.Now()
		if out, err := t.judge(dir, []stage{s}); err != nil {
			return nil, fmt.Errorf("the tests fail as they are: %w\n%s", err, out)
		}
		limits[s.name()] = patience*time.Since(start) + grace
	}
	t.limits = limits
	return t, nil
}

// tryAll tries every alteration, some at a time, and returns the results in order.
func (t *tree) tryAll(dir string, chosen []alteration, jobs int) []result {
	results := make([]result, len(chosen))
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(jobs, 1) {
		workers.Go(func() {
			for i := range next {
				r := t.try(filepath.Join(dir, fmt.Sprint(i)), chosen[i])
				results[i] = r
				fmt.Printf("%4d/%d  %-9s %s\n", i+1, len(chosen), word(chosen[i], r), chosen[i])
			}
		})
	}
	for i := range chosen {
		next <- i
	}
	close(next)
	workers.Wait()
	return results
}

// try applies one alteration in dir and runs the tests against it.
func (t *tree) try(dir string, a alteration) result {
	source, err := os.ReadFile(filepath.Join(t.root, a.file))
	if err != nil {
		return result{broken, err.Error()}
	}
	if n := bytes.Count(source, []byte(a.old)); n != 1 {
		return result{broken, fmt.Sprintf("its text occurs %d times in %s", n, a.file)}
	}
	altered := bytes.Replace(source, []byte(a.old), []byte(a.new), 1)
	overlay, err := t.overlay(dir, a.file, altered)
	if err != nil {
		return result{broken, err.Error()}
	}
	out, err := t.judge(dir, a.suite.stages, "-overlay", overlay)
	switch {
	case err == nil:
		return result{survived, "no test failed"}
	case strings.HasPrefix(out, notBuilt):
		return result{broken, out}
	}
	return result{caught, firstFailure(out)}
}

const notBuilt = "not built:"

// judge runs stages, each binary built when it is needed, until one fails. It returns what the
// tests print.
func (t *tree) judge(dir string, stages []stage, flags ...string) (out string, err error) {
	binaries := map[string]string{}
	defer func() {
		for _, b := range binaries {
			_ = os.Remove(b) // hundreds of them would fill a small disk
		}
	}()
	for _, s := range stages {
		if binaries[s.dir] == "" {
			binary, out, err := t.build(dir, s.dir, flags...)
			if err != nil {
				return fmt.Sprintf("%s %s\n%s", notBuilt, s.dir, out), err
			}
			binaries[s.dir] = binary
		}
		if out, err := t.test(binaries[s.dir], s); err != nil {
			return out, err
		}
	}
	return "", nil
}

func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "--- FAIL") {
			return strings.TrimSpace(line)
		}
	}
	return "the tests ended without a verdict"
}
