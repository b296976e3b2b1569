package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const scenarioDir = "../../testdata/scenarios"

func scenarioFiles(t testing.TB) []string {
	paths, err := filepath.Glob(filepath.Join(scenarioDir, "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario files in %s: %v", scenarioDir, err)
	}
	return paths
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parseAll(t testing.TB) []*File {
	t.Helper()
	var files []*File
	for _, path := range scenarioFiles(t) {
		file, err := Parse(filepath.Base(path), readFile(t, path))
		if err != nil {
			t.Error(err)
			continue
		}
		files = append(files, file)
	}
	return files
}

var fileName = regexp.MustCompile(`^(SC-[0-9]{3})(-[a-z0-9]+)+\.txt$`)

func TestEveryScenarioHasAFileThatParses(t *testing.T) {
	covered := map[string]string{}
	for _, file := range parseAll(t) {
		m := fileName.FindStringSubmatch(file.Path)
		if m == nil || m[1] != file.Covers[0] {
			t.Errorf("%s: expected a name such as %s-behaviour-in-words.txt", file.Path,
				file.Covers[0])
		}
		if strings.HasPrefix(file.Title, "SC-") || len(file.Title) > 100 {
			t.Errorf("%s: expected a title that names the behaviour, got %q", file.Path, file.Title)
		}
		for _, id := range file.Covers {
			if other, twice := covered[id]; twice {
				t.Errorf("%s is covered by %s and %s", id, other, file.Path)
			}
			covered[id] = file.Path
		}
	}
	for n := 1; n <= 70; n++ {
		id := fmt.Sprintf("SC-%03d", n)
		if covered[id] == "" {
			t.Errorf("%s has no file", id)
		}
		delete(covered, id)
	}
	for id := range covered {
		t.Errorf("%s does not exist", id)
	}
}

// What cannot pass yet is a list that only shrinks: whoever adds to it changes this test.
func TestExpectedFailuresAreFew(t *testing.T) {
	want := map[string]Part{
		"SC-056-1": Client, "SC-062-2": Client,
		"SC-063-3": Push,
	}
	for _, file := range parseAll(t) {
		for _, block := range file.Blocks {
			key := fmt.Sprintf("%s-%d", file.Covers[0], block.Number)
			if block.Needs != want[key] {
				t.Errorf("%s needs %q, listed is %q", key, block.Needs, want[key])
			}
			delete(want, key)
		}
	}
	for key := range want {
		t.Errorf("%s is listed and does not exist", key)
	}
}

// Most scenarios have neighbours: what the same mistake would break elsewhere.
func TestMostScenariosHaveNeighbours(t *testing.T) {
	files := parseAll(t)
	alone := 0
	for _, file := range files {
		if len(file.Blocks) < 2 {
			alone++
		}
	}
	if alone*10 > len(files) {
		t.Errorf("%d of %d scenarios stand alone", alone, len(files))
	}
}

func TestTheDocumentListsTheWholeLanguage(t *testing.T) {
	doc := readFile(t, "../../docs/scenario-language.md")
	for i := range forms {
		f := &forms[i]
		if !strings.Contains(doc, "`"+f.pattern+"`") {
			t.Errorf("docs/scenario-language.md lacks the form `%s`", f.pattern)
		}
		for _, key := range f.keys {
			if !strings.Contains(doc, "`"+key.key+"=`") {
				t.Errorf("docs/scenario-language.md lacks the field `%s=`", key.key)
			}
		}
		for _, flag := range strings.Fields(f.flags) {
			if !strings.Contains(doc, "`"+flag+"`") {
				t.Errorf("docs/scenario-language.md lacks the word `%s`", flag)
			}
		}
		if handlers[f.verb] == nil {
			t.Errorf("nobody plays %q", f.verb)
		}
	}
	for _, example := range codeBlocks(doc) {
		if !strings.HasPrefix(example, "# covers:") {
			continue
		}
		if _, err := Parse("docs/scenario-language.md", example); err != nil {
			t.Errorf("an example of the document: %v", err)
		}
	}
}

func codeBlocks(doc string) []string {
	var out []string
	for i, part := range strings.Split(doc, "```") {
		if i%2 == 1 {
			_, code, _ := strings.Cut(part, "\n")
			out = append(out, code)
		}
	}
	return out
}
