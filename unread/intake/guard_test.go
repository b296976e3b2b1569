package intake

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// callers lists where in the repository, tests apart, a method of one of the names is called.
func callers(t *testing.T, names ...string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		at, err := filepath.Rel(root, path)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(names, f.Sel.Name) {
				if at := filepath.ToSlash(at); !slices.Contains(found[f.Sel.Name], at) {
					found[f.Sel.Name] = append(found[f.Sel.Name], at)
				}
			}
			return true
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The barrier is the one synchronous write of snapshots, and nothing of ours uses it for anything
// else: it is called by its own door alone, which a program's outbox opens.
// covers: RT-220
func TestBarrierHasOneCaller(t *testing.T) {
	found := callers(t, "Barrier", "TakeThese")
	if !slices.Equal(found["Barrier"], []string{"unread/intake/barrier.go"}) ||
		!slices.Equal(found["TakeThese"], []string{"unread/snapshot/flusher.go"}) {
		t.Errorf("%v", found)
	}
}

// A program's facts are read, and rows counted from them, by repair and comparison alone. Both are for
// operators: nothing that serves asks for them.
// covers: RT-360 RT-476
func TestOnlyRepairReadsFacts(t *testing.T) {
	found := callers(t, "Facts", "Recount", "withFacts", "Repair")
	for name, at := range found {
		if !slices.Equal(at, []string{"unread/intake/repair.go"}) {
			t.Errorf("%s is called by %v", name, at)
		}
	}
	if len(found) != 4 {
		t.Errorf("%v", found)
	}
}
