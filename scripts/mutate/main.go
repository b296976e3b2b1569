package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	target = "readstate"
	limit  = 3 * time.Minute // for one compilation, and for one stage of the tests
)

// parts are the files and directories that the tests consist of, directories first.
var parts = []string{target, "internal/model", "go.mod", "go.sum"}

// stages are patterns of tests, the quick ones first. Most alterations do not get beyond those.
var stages = []string{"^(Test[^SP]|TestSettle|TestPresent|TestPlan|TestPost)", "."}

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
	alterations, err := parse(list)
	if err != nil {
		return false, err
	}
	var chosen []alteration
	for _, a := range alterations {
		if pattern.MatchString(a.String()) {
			chosen = append(chosen, a)
		}
	}
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
	tree := filepath.Join(dir, "tree")
	if err := copyTree(tree); err != nil {
		return false, err
	}
	// Unaltered tests have to pass, or every alteration would look caught.
	binary, out, err := build(tree, dir)
	if err == nil {
		out, err = test(tree, binary, ".")
	}
	if err != nil {
		return false, fmt.Errorf("the tests fail as they are: %w\n%s", err, out)
	}
	return report(chosen, tryAll(dir, tree, chosen, jobs)), nil
}

// copyTree copies what the tests consist of, so that the tree may change meanwhile.
func copyTree(to string) error {
	for _, part := range parts {
		info, err := os.Stat(part)
		if err != nil {
			return fmt.Errorf("run it in the root of the repository: %w", err)
		}
		if info.IsDir() {
			err = os.CopyFS(filepath.Join(to, part), os.DirFS(part))
		} else {
			err = copyFile(filepath.Join(to, part), part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// tryAll tries every alteration, some at a time, and returns the results in order.
func tryAll(dir, tree string, chosen []alteration, jobs int) []result {
	results := make([]result, len(chosen))
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(jobs, 1) {
		workers.Go(func() {
			for i := range next {
				results[i] = try(filepath.Join(dir, fmt.Sprint(i)), tree, chosen[i])
				fmt.Printf("%4d/%d  %-9s %s\n", i+1, len(chosen), word(chosen[i], results[i]), chosen[i])
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

func word(a alteration, r result) string {
	switch {
	case r.verdict == broken:
		return "BROKEN"
	case r.verdict == survived && a.unseen != "":
		return "unseen"
	case r.verdict == survived:
		return "SURVIVED"
	case a.unseen != "":
		return "SEEN"
	}
	return "caught"
}

// report prints what needs attention and tells whether nothing does.
func report(chosen []alteration, results []result) bool {
	count := map[string]int{}
	for i, a := range chosen {
		w := word(a, results[i])
		count[w]++
		switch w {
		case "unseen":
			fmt.Printf("\nunseen, as expected: %s\n    %s\n", a, a.unseen)
		case "SEEN":
			fmt.Printf("\nsaid to be unseen, but caught: %s\n%s\n", a, results[i].detail)
		case "SURVIVED", "BROKEN":
			fmt.Printf("\n%s: %s\n%s\n", w, a, results[i].detail)
		}
	}
	fmt.Printf("\n%d alterations: %d caught, %d unseen for the reason given, %d survived, "+
		"%d wrongly said to be unseen, %d broken\n", len(chosen), count["caught"], count["unseen"],
		count["SURVIVED"], count["SEEN"], count["BROKEN"])
	return count["SURVIVED"]+count["SEEN"]+count["BROKEN"] == 0
}

// try applies one alteration in dir and runs the tests against it.
func try(dir, tree string, a alteration) result {
	path := filepath.Join(tree, target, a.file)
	source, err := os.ReadFile(path)
	if err != nil {
		return result{broken, err.Error()}
	}
	if n := bytes.Count(source, []byte(a.old)); n != 1 {
		return result{broken, fmt.Sprintf("its text occurs %d times in %s", n, a.file)}
	}
	altered := bytes.Replace(source, []byte(a.old), []byte(a.new), 1)
	overlay, err := writeOverlay(dir, path, altered)
	if err != nil {
		return result{broken, err.Error()}
	}
	binary, out, err := build(tree, dir, "-overlay", overlay)
	if err != nil {
		return result{broken, out}
	}
	defer func() { _ = os.Remove(binary) }() // hundreds of them would fill a small disk
	for _, tests := range stages {
		if out, err := test(tree, binary, tests); err != nil {
			return result{caught, firstFailure(out)}
		}
	}
	return result{survived, "no test failed"}
}

// writeOverlay writes the altered file and the description that tells the compiler to use it.
func writeOverlay(dir, path string, altered []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(file, altered, 0o644); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: file}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// build compiles the tests of a tree into a binary in dir.
func build(tree, dir string, flags ...string) (binary, out string, err error) {
	binary = filepath.Join(dir, "readstate.test")
	// Nobody debugs these: without symbols they are linked in half the time.
	args := append([]string{"test", "-c", "-vet=off", "-ldflags", "-s -w", "-o", binary}, flags...)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+target)...)
	cmd.Dir = tree
	text, err := cmd.CombinedOutput()
	return binary, string(text), err
}

// test runs the tests of a binary whose names match and returns what they print.
func test(tree, binary, tests string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run", tests, "-test.failfast", "-rapid.nofailfile")
	cmd.Dir = filepath.Join(tree, target)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "--- FAIL") {
			return strings.TrimSpace(line)
		}
	}
	return "the tests ended without a verdict"
}
