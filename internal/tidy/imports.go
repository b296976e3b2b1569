package tidy

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// place says what the product code of a package may import. Patterns are package paths relative to
// the module: "." is the root package, "x/..." is x with everything below it.
type place struct {
	pattern string
	may     []string // packages of ours
	std     []string // packages of the standard library; nil means any
	pure    bool     // nothing from other modules
	against []string // packages of ours that tests run against besides
}

// core is what stands between the algebra and the adapters.
var core = []string{".", "unread", "unread/intake", "unread/snapshot", "facts", "readstate"}

// published is what somebody outside this module is meant to import.
var published = slices.Concat(core, []string{
	"httpapi/...", "live/...", "inbox/...", "outbox/...", "ownership/...", "substrate/...", "client/...",
	"relay/...",
})

// places is the direction of imports: cmd, httpapi, the adapters, the library, its two halves, the
// algebra. Everything in it points down. The first pattern that matches a package counts.
var places = []place{
	{
		pattern: "readstate", pure: true,
		std: []string{"cmp", "errors", "fmt", "math", "slices", "sort", "strconv", "strings"},
	},
	{pattern: "facts", may: []string{"readstate"}},
	{pattern: "facts/sqlstore", may: []string{"facts", "readstate", "internal/filelock"}},
	{pattern: "facts/factstest", may: []string{"facts", "readstate", "internal/model"}},
	{pattern: "unread", may: []string{"facts", "readstate", "internal/slab"}},
	// Snapshot rows know nothing of the runtime, so that their stores do not either.
	{pattern: "unread/snapshot", may: []string{"readstate"}},
	{pattern: "unread/snapshot/sqlsnap", may: []string{"unread/snapshot", "readstate"}},
	{pattern: "unread/intake", may: []string{"unread", "unread/snapshot", "readstate"}},
	// Open is wiring: it is the one place in the library that knows a store by name.
	{pattern: ".", may: []string{
		"unread", "unread/intake", "unread/snapshot", "unread/snapshot/sqlsnap",
		"facts", "facts/sqlstore", "readstate",
	}},
	{pattern: "live/...", may: core},
	{pattern: "inbox/...", may: core},
	{pattern: "outbox/...", may: core},
	{pattern: "ownership/...", may: core},
	{pattern: "substrate/...", may: core},
	{pattern: "httpapi/...", may: slices.Concat(core, []string{
		"live/...", "inbox/...", "outbox/...", "ownership/...", "web/...", "unread/intake",
	})},
	{pattern: "relay/...", may: []string{"readstate", "internal/filelock"}},
	// What a client decides is decided without a disk, a network or a clock.
	{
		pattern: "client/readsync", may: []string{"readstate"}, pure: true,
		std: []string{"encoding/json", "errors", "math", "slices"},
	},
	// A client knows a server by its wire only; its tests run against a real one.
	{
		pattern: "client/...", may: []string{"readstate"},
		against: []string{".", "httpapi", "live", "inbox", "facts/..."},
	},
	{pattern: "conformance/...", may: []string{"readstate", "client/..."}},
	{pattern: "web/..."},
	// The oracle must not be able to agree with the product by sharing its code.
	{pattern: "internal/model", pure: true},
	{pattern: "internal/tidy/..."},
	{pattern: "internal/slab"},
	{pattern: "internal/filelock"},
	{pattern: "internal/settings", may: slices.Concat(published, []string{"unread/..."})},
	{pattern: "internal/bench/...", may: slices.Concat(published, []string{
		"facts/...", "unread/snapshot/sqlsnap", "internal/...",
	})},
	{pattern: "internal/...", may: slices.Concat(published, []string{
		"facts/...", "conformance/...", "internal/...",
	})},
	{pattern: "cmd/...", may: slices.Concat(published, []string{
		"facts/sqlstore", "unread/snapshot/sqlsnap", "conformance/...", "web/...", "internal/...",
	})},
	{pattern: "examples/...", may: published},
	{pattern: "scripts/...", may: slices.Concat(published, []string{"facts/...", "internal/..."})},
}

// instruments is what tests of any package but the algebra's may import besides: they run on the real
// store, against the oracle, and through the scenario language.
var instruments = []string{
	"facts/sqlstore", "facts/factstest", "unread/snapshot", "unread/snapshot/sqlsnap", "internal/...",
}

// lessons is what the algebra's tests may import: the oracle, and the histories that it made for others.
var lessons = []string{"internal/model", "internal/conform/histories", "conformance"}

// checkImports holds every import of ours against places.
func checkImports(repo *Repo) []Finding {
	var found []Finding
	for dir, files := range repo.packages() {
		p, ok := placeOf(dir)
		if !ok {
			found = append(found, Finding{Path: dir, Text: "the package has no place in the import " +
				"table (internal/tidy/imports.go); decide who it may import"})
			continue
		}
		for _, f := range files {
			for _, spec := range f.Go.Imports {
				if why := p.refuses(repo.Module, dir, f.IsTest(), importPath(spec)); why != "" {
					found = append(found, f.finding(spec.Pos(), "%s", why))
				}
			}
		}
	}
	return found
}

func placeOf(dir string) (place, bool) {
	for _, p := range places {
		if covers(p.pattern, dir) {
			return p, true
		}
	}
	return place{}, false
}

// refuses returns why a file of the package in dir may not import the target, "" when it may.
func (p place) refuses(module, dir string, test bool, target string) string {
	ours, isOurs := relativeTo(module, target)
	switch {
	case isOurs:
		if p.allows(dir, ours) || test && p.allowsInTests(dir, ours) {
			return ""
		}
		return dir + " must not import " + ours
	case test:
		return ""
	case isStandard(target):
		if p.std == nil || slices.Contains(p.std, target) {
			return ""
		}
		return dir + " must not import " + target + ", only " + strings.Join(p.std, ", ")
	case p.pure:
		return dir + " must not import other modules, as " + target
	}
	return ""
}

func (p place) allows(dir, target string) bool {
	if target == dir {
		return true // an external test package imports the package it tests
	}
	// A family of packages may use each other.
	if strings.HasSuffix(p.pattern, "/...") && covers(p.pattern, target) && p.pattern != "internal/..." {
		return true
	}
	return slices.ContainsFunc(p.may, func(pattern string) bool { return covers(pattern, target) })
}

func (p place) allowsInTests(dir, target string) bool {
	switch {
	case dir == "internal/model":
		return false
	case dir == "readstate":
		return slices.Contains(lessons, target)
	case covers("internal/tidy/...", target):
		return false
	}
	within := func(pattern string) bool { return covers(pattern, target) }
	return slices.ContainsFunc(instruments, within) || slices.ContainsFunc(p.against, within)
}

// borrowed names the modules and packages that sit behind one part of ours, so that they can be
// replaced there. Tests may use them anywhere.
var borrowed = []struct {
	target string // that package and everything below it
	only   []string
}{
	{"database/sql", []string{
		"facts/sqlstore", "facts/factstest", "unread/snapshot/sqlsnap", "inbox/...", "outbox/...",
		"ownership/...", "relay/...", "client/...", "internal/...", "cmd/...",
	}},
	{"modernc.org/sqlite", []string{
		"facts/sqlstore", "facts/factstest", "unread/snapshot/sqlsnap", "relay/...", "client/...",
		"internal/...",
	}},
	{"github.com/pressly/goose/v3", []string{"facts/sqlstore", "relay/...", "client/..."}},
	{"github.com/danielgtaylor/huma/v2", []string{"httpapi/..."}},
	{"github.com/alecthomas/kong", []string{"cmd/..."}},
	{"charm.land", []string{"internal/chat"}},
}

// checkBorrowed holds imports of other modules against borrowed.
func checkBorrowed(repo *Repo) []Finding {
	var found []Finding
	for _, f := range repo.goFiles() {
		if f.IsTest() {
			continue
		}
		for _, spec := range f.Go.Imports {
			target := importPath(spec)
			for _, b := range borrowed {
				if !covers(b.target+"/...", target) ||
					slices.ContainsFunc(b.only, func(p string) bool { return covers(p, f.Dir()) }) {
					continue
				}
				found = append(found, f.finding(spec.Pos(), "%s must not import %s, only %s may",
					f.Dir(), target, strings.Join(b.only, ", ")))
			}
		}
	}
	return found
}

// covers tells whether the pattern matches the package path.
func covers(pattern, pkg string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == prefix || strings.HasPrefix(pkg, prefix+"/")
	}
	return pkg == pattern
}

func importPath(spec *ast.ImportSpec) string {
	target, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser accepts no such file
	}
	return target
}

func relativeTo(module, target string) (string, bool) {
	if target == module {
		return ".", true
	}
	rest, ok := strings.CutPrefix(target, module+"/")
	return rest, ok
}

// isStandard tells packages of the standard library, whose first path element has no dot.
func isStandard(target string) bool {
	first, _, _ := strings.Cut(target, "/")
	return path.Ext(first) == "" && !strings.Contains(first, ".")
}
