package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// limit is for one compilation, and for one stage of the tests as they are.
const limit = 3 * time.Minute

// An altered program may hang, which is noticed, too: its tests get so much longer than they
// take as they are, and a while on top for a busy machine.
const (
	patience = 5
	grace    = 20 * time.Second
)

// tree is a copy of the packages that some tests consist of, so that the originals may change
// meanwhile.
type tree struct {
	root   string
	limits map[string]time.Duration // by name of the stage, once it has run as it is
}

// copyTree copies the given packages and what they import.
func copyTree(to string, dirs []string) (*tree, error) {
	args := []string{"list", "-deps", "-test", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}"}
	for _, d := range dirs {
		args = append(args, "./"+d)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("run it in the root of the repository: %w", err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	found := append(strings.Fields(string(out)), root)
	slices.Sort(found) // what is below a package comes after it
	for _, dir := range found {
		if err := copyPackage(to, root, dir); err != nil {
			return nil, err
		}
	}
	return &tree{to, map[string]time.Duration{}}, nil
}

// copyPackage copies a package with everything below it; of the root only the package itself.
func copyPackage(to, root, dir string) error {
	part, err := filepath.Rel(root, dir)
	if err != nil {
		return err
	}
	if part != "." {
		if _, err := os.Stat(filepath.Join(to, part)); err == nil {
			return nil // below one that was copied
		}
		return os.CopyFS(filepath.Join(to, part), os.DirFS(part))
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		return err
	}
	for _, name := range append(files, "go.mod", "go.sum") {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// overlay writes an altered file, and the description that tells the compiler to use it.
func (t *tree) overlay(dir, file string, altered []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	name := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(name, altered, 0o644); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(t.root, file): name},
	})
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "overlay.json")
	return out, os.WriteFile(out, text, 0o644)
}

// build compiles the tests of a package into a binary in dir.
func (t *tree) build(dir, of string, flags ...string) (binary, out string, err error) {
	binary = filepath.Join(dir, strings.ReplaceAll(of, "/", "-")+".test")
	// Nobody debugs these: without symbols they are linked in half the time.
	args := append([]string{"test", "-c", "-vet=off", "-ldflags", "-s -w", "-o", binary}, flags...)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+of)...)
	cmd.Dir = t.root
	text, err := cmd.CombinedOutput()
	return binary, string(text), err
}

// test runs a stage and returns what its tests print.
func (t *tree) test(binary string, s stage) (string, error) {
	most := t.limits[s.name()]
	if most == 0 {
		most = limit
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	args := append([]string{"-test.run", s.tests, "-test.failfast"}, s.flags...)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = filepath.Join(t.root, s.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
