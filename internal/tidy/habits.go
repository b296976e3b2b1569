package tidy

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// checkSleep finds tests that wait for a clock on the wall. Inside synctest.Test the clock is the
// bubble's own, and sleeping is how it is moved.
func checkSleep(repo *Repo) []Finding {
	var found []Finding
	for _, f := range repo.goFiles() {
		if !f.IsTest() && !strings.HasSuffix(f.Dir(), "test") {
			continue
		}
		clock := importedAs(f.Go, "time")
		if clock == "" {
			continue
		}
		bubble := importedAs(f.Go, "testing/synctest")
		deadlines := make(map[ast.Node]bool) // what the cases of a select wait for
		ast.Inspect(f.Go, func(n ast.Node) bool {
			if bubble != "" && (isCall(n, bubble, "Test") || isCall(n, bubble, "Run")) {
				return false
			}
			if branch, ok := n.(*ast.CommClause); ok {
				deadlines[branch.Comm] = true
			}
			if deadlines[n] {
				return true
			}
			if isCall(n, clock, "Sleep") || isBareWait(n, clock) {
				found = append(found, f.finding(n.Pos(),
					"a test must not sleep: use testing/synctest, a channel or an injected clock"))
			}
			return true
		})
	}
	return found
}

// isBareWait recognises a statement that does nothing but wait: <-time.After(d).
func isBareWait(n ast.Node, clock string) bool {
	stmt, ok := n.(*ast.ExprStmt)
	if !ok {
		return false
	}
	wait, ok := stmt.X.(*ast.UnaryExpr)
	return ok && wait.Op == token.ARROW && isCall(wait.X, clock, "After")
}

// checkLeaks asks packages that start goroutines for a goleak check in their tests. A suite that
// other packages run has no tests of its own: those packages watch it.
func checkLeaks(repo *Repo) []Finding {
	var found []Finding
	for dir, files := range repo.packages() {
		if covers("examples/...", dir) || covers("scripts/...", dir) {
			continue
		}
		var starts *Finding
		watched := false
		for _, f := range files {
			if f.IsTest() {
				watched = watched || watchesLeaks(f.Go)
				continue
			}
			watched = watched || importedAs(f.Go, "testing") != ""
			if pos := startsGoroutine(f.Go); starts == nil && pos.IsValid() {
				at := f.finding(pos, "%s starts goroutines, so one of its tests must call "+
					"goleak.VerifyTestMain", dir)
				starts = &at
			}
		}
		if starts != nil && !watched {
			found = append(found, *starts)
		}
	}
	return found
}

func watchesLeaks(file *ast.File) bool {
	leaks := importedAs(file, "go.uber.org/goleak")
	watched := false
	ast.Inspect(file, func(n ast.Node) bool {
		watched = watched || leaks != "" &&
			(isCall(n, leaks, "VerifyTestMain") || isCall(n, leaks, "VerifyNone"))
		return !watched
	})
	return watched
}

// startsGoroutine returns where a go statement, or a call of a method Go with a function literal,
// stands; sync.WaitGroup and errgroup.Group start goroutines in that form.
func startsGoroutine(file *ast.File) token.Pos {
	at := token.NoPos
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			at = n.Pos()
		case *ast.CallExpr:
			method, ok := n.Fun.(*ast.SelectorExpr)
			if ok && method.Sel.Name == "Go" && len(n.Args) == 1 {
				if _, literal := n.Args[0].(*ast.FuncLit); literal {
					at = n.Pos()
				}
			}
		}
		return !at.IsValid()
	})
	return at
}

// importedAs returns the name by which the file knows the package, "" when it does not import it.
func importedAs(file *ast.File, target string) string {
	for _, spec := range file.Imports {
		if importPath(spec) != target {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(target)
	}
	return ""
}

func isCall(n ast.Node, pkg, name string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || fun.Sel.Name != name {
		return false
	}
	x, ok := fun.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// before and after stand around a path that begins at the root of the file system.
const (
	before = `(^|[\s"'(=:,\[` + "`" + `])/`
	after  = `([/"'\s` + "`" + `]|$)`
)

// traces are texts that mean something on one machine only. They are put together from pieces so
// that this file does not hold what it forbids.
var traces = []struct {
	pattern *regexp.Regexp
	says    string
}{
	{regexp.MustCompile(before + `(wo` + `rk|ro` + `ot|home/\w+|Users/\w+)` + after),
		"an absolute path of one machine: make it relative or a setting"},
	{regexp.MustCompile(before + `t` + `mp/\w`),
		"a fixed temporary path: ask the system for a directory"},
	{regexp.MustCompile(`\b(proxy|sum)\.gol` + `ang\.org|registry\.(npm` + `js|yarn` + `pkg)\.|` +
		`deb\.deb` + `ian\.org|pyp` + `i\.org|crates\.i` + `o\b`),
		"a package registry's host: every machine has its own setting for that"},
	{regexp.MustCompile(`\r$`), "a carriage return at the end of the line"},
}

// checkHygiene reads every line of every text file, so long as it is not part of the requirements,
// which are kept as they were given.
func checkHygiene(repo *Repo) []Finding {
	var found []Finding
	for _, f := range repo.Files {
		if f.inDir("requirements") || path.Base(f.Path) == "go.sum" {
			continue
		}
		number := 0
		for line := range strings.SplitSeq(f.Text, "\n") {
			number++
			for _, trace := range traces {
				if trace.pattern.MatchString(line) {
					found = append(found, Finding{Path: f.Path, Line: number, Text: trace.says})
				}
			}
		}
	}
	return found
}
