package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/tidemark-im/tidemark/internal/settings"
)

//go:generate go test -count=1 -run ^TestDocumentedConfiguration$ . -write

// write makes the test below write the tables instead of comparing them.
var write = flag.Bool("write", false, "write the tables of docs/operations.md anew")

const (
	tablesBegin = "<!-- Written by make generate. -->\n"
	tablesEnd   = "<!-- The end of what is written by make generate. -->\n"
)

// The configuration that the documentation lists is the one that there is.
//
// covers: RT-446
func TestDocumentedConfiguration(t *testing.T) {
	text, err := os.ReadFile(operationsFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tablesBegin)
	tables, after, ok2 := strings.Cut(rest, tablesEnd)
	if !ok || !ok2 {
		t.Fatal("docs/operations.md has no place for the tables")
	}
	want := "\n" + flagTable(t) + settingTables()
	if *write {
		whole := before + tablesBegin + want + tablesEnd + after
		if err := os.WriteFile(operationsFile, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if tables != want {
		t.Error("the tables of docs/operations.md are not those of this program: run make generate")
	}
}

// flagTable lists the flags of serve that are no settings.
func flagTable(t *testing.T) string {
	t.Helper()
	parser, err := (&Main{Stdout: os.Stdout, Stderr: os.Stderr}).parser(new(bool))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(parser.Model.Children, func(n *kong.Node) bool { return n.Name == "serve" })
	var table strings.Builder
	table.WriteString("### The server\n\n| variable | default | what it is |\n|---|---|---|\n")
	for _, f := range slices.Concat(parser.Model.Flags, parser.Model.Children[i].Flags) {
		if f.Group != nil || f.Name == "help" || f.Name == "version" {
			continue
		}
		help, _, _ := strings.Cut(f.Help, " (default ")
		help, _, _ = strings.Cut(help, " ($TIDEMARK")
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", f.Envs[0], code(f.Default), strings.TrimSuffix(help, "."))
	}
	fmt.Fprintf(&table, "| `%s` | | The secret itself, in place of the file; there is no flag for it |\n\n",
		secretVariable)
	return table.String()
}

// settingTables lists the settings, part by part.
func settingTables() string {
	var tables strings.Builder
	for _, p := range settings.Parts() {
		fmt.Fprintf(&tables, "### %s\n\n%s\n\n", p.Title, p.About)
		tables.WriteString("| variable | bounds | default | beyond it | metrics | accepted |\n|---|---|---|---|---|---|\n")
		for _, s := range p.Settings {
			least, most := s.Bounds()
			var figures []string
			for _, name := range []string{s.Limit, s.Use, s.Over} {
				if name != "" {
					figures = append(figures, code(strings.TrimPrefix(name, "tidemark_")))
				}
			}
			fmt.Fprintf(&tables, "| `%s` | %s | %s | %s | %s | %s to %s: %s |\n", s.Name, s.Does,
				code(s.Default()), s.Beyond, strings.Join(figures, ", "), code(least), code(most), s.Why)
		}
		tables.WriteString("\n")
	}
	return tables.String()
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

var inCode = regexp.MustCompile("`(tidemark_[a-z_]+)(?:\\{[^`]*)?`")

// Every metric is explained, and none that does not exist.
func TestDocumentedMetrics(t *testing.T) {
	text, err := os.ReadFile(operationsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, meaning, ok := strings.Cut(string(text), "\n## Metrics\n")
	if !ok {
		t.Fatal("docs/operations.md has no section on metrics")
	}
	named := map[string]bool{}
	for _, m := range inCode.FindAllStringSubmatch(meaning, -1) {
		named[m[1]] = true
	}
	limits := map[string]bool{}
	for _, s := range settings.All() {
		limits[s.Limit] = true // in the tables of the configuration
	}
	names := exported(t)
	maps.Copy(names, exportedInSnapshotMode(t))
	for name := range names {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "tidemark_") && !named[name] && !named[base] && !limits[name] {
			t.Errorf("docs/operations.md does not explain %s", name)
		}
	}
	for name := range named {
		if !names[name] && !names[name+"_bucket"] {
			t.Errorf("docs/operations.md explains %s, which does not exist", name)
		}
	}
}
