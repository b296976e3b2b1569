// Command mutate shows that the tests of package readstate see every rule: it alters one line of
// the algebra at a time and expects the tests to fail.
//
//	go run ./scripts/mutate [-only REGEXP] [-jobs N] [-list]
//
// Nothing in the tree is written. The altered file lives in a temporary directory and reaches the
// compiler as an overlay. An alteration that no test notices survives; it is printed, and the
// program exits 1 unless the list says why nobody could notice it. The list is in alterations.go;
// whoever adds a rule to readstate adds the alterations that break it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	target = "./readstate"
	limit  = 3 * time.Minute // for the tests of one alteration, compilation included
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
	list := flag.Bool("list", false, "print the alterations and exit")
	flag.Parse()
	ok, err := run(*only, *jobs, *list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(only string, jobs int, list bool) (bool, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return false, fmt.Errorf("-only: %w", err)
	}
	if _, err := os.Stat("readstate/doc.go"); err != nil {
		return false, fmt.Errorf("run it in the root of the repository: %w", err)
	}
	var chosen []alteration
	for _, a := range alterations {
		if pattern.MatchString(a.String()) {
			chosen = append(chosen, a)
		}
	}
	if list {
		for _, a := range chosen {
			fmt.Println(a)
		}
		return true, nil
	}
	dir, err := os.MkdirTemp("", "tidemark-mutate-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	// Unaltered tests have to pass, or every alteration would look caught.
	if out, err := test(""); err != nil {
		return false, fmt.Errorf("the tests fail as they are: %w\n%s", err, out)
	}
	return report(chosen, tryAll(dir, chosen, jobs)), nil
}

// tryAll tries every alteration, some at a time, and returns the results in order.
func tryAll(dir string, chosen []alteration, jobs int) []result {
	results := make([]result, len(chosen))
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(jobs, 1) {
		workers.Go(func() {
			for i := range next {
				results[i] = try(filepath.Join(dir, fmt.Sprint(i)), chosen[i])
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
	case r.verdict == survived && a.Unseen != "":
		return "unseen"
	case r.verdict == survived:
		return "SURVIVED"
	case a.Unseen != "":
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
			fmt.Printf("\nunseen, as expected: %s\n    %s\n", a, a.Unseen)
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
func try(dir string, a alteration) result {
	path := filepath.Join("readstate", a.File)
	source, err := os.ReadFile(path)
	if err != nil {
		return result{broken, err.Error()}
	}
	if n := bytes.Count(source, []byte(a.Old)); n != 1 {
		return result{broken, fmt.Sprintf("its text occurs %d times in %s", n, path)}
	}
	altered := bytes.Replace(source, []byte(a.Old), []byte(a.New), 1)
	overlay, err := writeOverlay(dir, path, altered)
	if err != nil {
		return result{broken, err.Error()}
	}
	out, err := test(overlay)
	switch {
	case err == nil:
		return result{survived, "no test failed"}
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return result{broken, out}
	}
	return result{caught, firstFailure(out)}
}

// writeOverlay writes the altered file and the description that tells the compiler to use it.
func writeOverlay(dir, path string, altered []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(file, altered, 0o644); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {absolute: file}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// test runs the tests, with an overlay if one is given, and returns what they print.
func test(overlay string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := []string{"test", "-count=1", "-vet=off", "-failfast", "-timeout", "2m"}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	out, err := exec.CommandContext(ctx, "go", append(args, target)...).CombinedOutput()
	if err != nil && ctx.Err() != nil {
		return string(out), errors.Join(err, ctx.Err())
	}
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
