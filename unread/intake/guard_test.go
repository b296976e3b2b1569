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

// Numbers of rows that two programs counted apart prove nothing together: no line adds two of them up or
// takes the larger one, and nothing but the overlay looks at two rows at once.
// covers: RT-302 RT-305 RT-306
func TestNoMergeOfCounts(t *testing.T) {
	counts := []string{"MessageUnread", "ActivityUnread", "MessageAccounted", "ActivityAccounted"}
	mentions := func(n ast.Node) bool {
		found := false
		ast.Inspect(n, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				found = found || slices.Contains(counts, s.Sel.Name)
			}
			return !found
		})
		return found
	}
	files := 0
	for _, dir := range []string{filepath.Join("..", "snapshot"), filepath.Join("..", "snapshot", "sqlsnap"), "."} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			files++
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BinaryExpr:
					if (n.Op == token.ADD || n.Op == token.OR) && mentions(n) {
						t.Errorf("%s adds numbers of rows up", set.Position(n.Pos()))
					}
				case *ast.CallExpr:
					f, ok := n.Fun.(*ast.Ident)
					if ok && (f.Name == "max" || f.Name == "min") && mentions(n) && !bounded(n) {
						t.Errorf("%s compares numbers of rows", set.Position(n.Pos()))
					}
				}
				return true
			})
		}
	}
	if files < 20 {
		t.Errorf("%d files were read", files)
	}
}

// bounded reports a comparison of a row's number with where its own scope stands.
func bounded(n *ast.CallExpr) bool {
	own := false
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "ranks" || s.Sel.Name == "Ranks") {
			own = true
		}
		return true
	})
	return own
}
