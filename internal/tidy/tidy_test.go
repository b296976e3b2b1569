package tidy

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/tidemark-im/tidemark"

// TestRepository holds this repository against every rule.
//
// covers: RT-029, RT-033
func TestRepository(t *testing.T) {
	root, err := FindRoot(".", module)
	if err != nil {
		t.Fatal(err)
	}
	repo, err := Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, finding := range rule.Check(repo) {
				t.Error(finding)
			}
		})
	}
}

// TestEveryRuleCanFail makes sure that no rule is without a fixture that breaks it.
func TestEveryRuleCanFail(t *testing.T) {
	breaks := make(map[string]bool)
	for _, f := range fixtures {
		breaks[f.rule] = breaks[f.rule] || f.want != ""
	}
	for _, rule := range Rules() {
		if !breaks[rule.Name] {
			t.Errorf("no fixture breaks the rule %s", rule.Name)
		}
		delete(breaks, rule.Name)
	}
	for name := range breaks {
		t.Errorf("fixtures name the rule %s, which does not exist", name)
	}
}

// TestFixtures runs each rule on small trees that break it and on the neighbours that do not.
func TestFixtures(t *testing.T) {
	rules := make(map[string]func(*Repo) []Finding)
	for _, rule := range Rules() {
		rules[rule.Name] = rule.Check
	}
	for _, f := range fixtures {
		t.Run(f.rule+"/"+f.name, func(t *testing.T) {
			repo, err := Load(tree(f.files))
			if err != nil {
				t.Fatal(err)
			}
			found := rules[f.rule](repo)
			switch {
			case f.want == "" && len(found) > 0:
				t.Errorf("findings in a tree that keeps the rule: %v", found)
			case f.want != "" && len(found) != 1:
				t.Errorf("%d findings, want exactly one: %v", len(found), found)
			case f.want != "" && !strings.Contains(found[0].String(), f.want):
				t.Errorf("finding %q does not say %q", found[0], f.want)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, files := range map[string]files{
		"no go.mod":      {"go.mod": "", "a.go": "package a"},
		"a syntax error": {"a/a.go": "package"},
	} {
		if _, err := Load(tree(files)); err == nil {
			t.Errorf("a tree with %s was loaded", name)
		}
	}
}

func TestLoadLeavesOut(t *testing.T) {
	repo, err := Load(tree(files{
		".git/config":             "x",
		"web/node_modules/a/a.go": "no Go at all",
		"bin/tidemark":            "x",
		"data.bin":                "a\x00b",
		"testdata/broken.go":      "no Go at all",
	}))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range repo.Files {
		paths = append(paths, f.Path)
	}
	if got, want := strings.Join(paths, " "), "go.mod testdata/broken.go"; got != want {
		t.Errorf("loaded %s, want %s", got, want)
	}
}

func TestFindRootRefusesAnotherModule(t *testing.T) {
	if root, err := FindRoot(t.TempDir(), module); err == nil {
		t.Errorf("found %s above an empty directory", root)
	}
}

// files are the contents of a small tree by path.
type files map[string]string

// tree adds a go.mod, unless the files have one of their own.
func tree(files files) fs.FS {
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module tide\n\ngo 1.26\n")}}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return fsys
}
