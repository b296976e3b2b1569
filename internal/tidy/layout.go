package tidy

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

const (
	maxLines     = 800 // no hand-written source file is longer
	excusedLines = 600 // above this the package comment names the file and says why it is long
)

// checkSizes measures hand-written sources. Generated files and case data are left out.
func checkSizes(repo *Repo) []Finding {
	var found []Finding
	for _, f := range repo.Files {
		if !isSource(f) || f.Generated() || f.inDir("testdata") || f.inDir("dist") {
			continue
		}
		switch n := f.Lines(); {
		case n > maxLines:
			found = append(found, f.finding(0, "%d lines, at most %d: split it", n, maxLines))
		case n > excusedLines && !strings.Contains(repo.comment(f), path.Base(f.Path)):
			found = append(found, f.finding(0,
				"%d lines: above %d the package comment names the file and says why", n, excusedLines))
		}
	}
	return found
}

func isSource(f *File) bool {
	return slices.Contains([]string{".go", ".ts", ".tsx"}, path.Ext(f.Path))
}

// comment returns the text that speaks for the whole file: the package comment in Go, the comments
// before the first statement elsewhere.
func (r *Repo) comment(f *File) string {
	if f.Go == nil {
		return leadingComment(f.Text)
	}
	var text strings.Builder
	for _, other := range r.goFiles() {
		if other.Dir() == f.Dir() && other.Go.Doc != nil {
			text.WriteString(other.Go.Doc.Text())
		}
	}
	return text.String()
}

func leadingComment(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if trimmed != "" && !strings.HasPrefix(trimmed, "/") && !strings.HasPrefix(trimmed, "*") {
			break
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// vague names say where code was put and not what it is about.
var vague = []string{
	"util", "utils", "common", "model" + "s", "types", "pkg", "helper", "helpers", "mock", "mocks",
}

// checkNames looks at directories and package clauses of Go code.
func checkNames(repo *Repo) []Finding {
	var found []Finding
	for dir := range repo.packages() {
		for element := range strings.SplitSeq(dir, "/") {
			if slices.Contains(vague, element) {
				found = append(found, Finding{Path: dir, Text: "name the package after what it holds, not " + element})
			}
		}
	}
	for _, f := range repo.goFiles() {
		name := strings.TrimSuffix(f.Go.Name.Name, "_test")
		if slices.Contains(vague, name) {
			found = append(found, f.finding(f.Go.Package, "name the package after what it holds, not %s", name))
		}
	}
	return found
}

// checkDocs asks every package for a doc.go. Programs under examples and scripts may keep their
// comment in the one file they consist of.
func checkDocs(repo *Repo) []Finding {
	var found []Finding
	for dir, files := range repo.packages() {
		product := slices.DeleteFunc(slices.Clone(files), (*File).IsTest)
		if len(product) == 0 {
			continue
		}
		doc := repo.file(path.Join(dir, "doc.go"))
		if doc == nil && (covers("examples/...", dir) || covers("scripts/...", dir)) {
			doc = product[0]
		}
		if doc == nil || doc.Go == nil {
			found = append(found, Finding{Path: dir, Text: "the package has no doc.go"})
			continue
		}
		if !introduces(doc.Go) {
			found = append(found, doc.finding(doc.Go.Package,
				"the package comment must begin with Package %s, or Command and its name", doc.Go.Name.Name))
		}
	}
	return found
}

func introduces(file *ast.File) bool {
	text := file.Doc.Text()
	if file.Name.Name == "main" {
		return strings.HasPrefix(text, "Command ")
	}
	return strings.HasPrefix(text, "Package "+file.Name.Name+" ")
}
