package tidy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Families are the prefixes of requirement and scenario ids, in the order of the report.
var Families = []string{"RT", "IN", "SE", "RL", "SC"}

const (
	scenariosPath = "docs/scenarios.md"
	statusPath    = "docs/requirements-status.md"

	// maxCited bounds how many ids one comment cites: whoever covers more has a table to write.
	maxCited = 12
)

var (
	specLine = regexp.MustCompile(`^([A-Z]{2}-\d{3}) \| `)
	idForm   = regexp.MustCompile(`^(?:RT|IN|SE|RL|SC)-\d{3}$`)
	// A citation stands at the start of a comment line, or after a sentence if an id follows at once.
	citation = regexp.MustCompile(`^\s*(?:#|\*|//|/\*+)?\s*covers:(.*)|\bcovers:(\s*[A-Z]{2}-\d.*)`)
	idStart  = regexp.MustCompile(`^[A-Z]{2}-\d+`)
	// A status line is one id or a run of ids, a kind and a reason.
	statusLine = regexp.MustCompile(
		`^([A-Z]{2}-\d{3})(?:\.\.([A-Z]{2}-\d{3}))? \| (overruled|refined|later): (\S.*)$`)
)

// cite is one mention of an id by a test.
type cite struct {
	id      string
	path    string
	line    int
	pending bool // by a scenario that is registered as an expected failure
}

// excuse is what the status page says about one id.
type excuse struct {
	kind, reason string
	line         int
}

// specified returns the line number of every id in the requirements and scenarios, and findings for
// ids that stand twice or leave a gap in their family.
func specified(repo *Repo) (map[string]int, []Finding) {
	ids := make(map[string]int)
	var found []Finding
	for _, f := range repo.Files {
		if path.Dir(f.Path) != "docs/requirements" && f.Path != scenariosPath {
			continue
		}
		number := 0
		for line := range strings.SplitSeq(f.Text, "\n") {
			number++
			m := specLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			if ids[m[1]] != 0 {
				found = append(found, Finding{f.Path, number, m[1] + " stands twice"})
			}
			ids[m[1]] = number
		}
	}
	for _, family := range Families {
		for n := 1; n <= countFamily(ids, family); n++ {
			if id := idOf(family, n); ids[id] == 0 {
				found = append(found, Finding{"docs", 0, id + " is missing: ids of a family leave no gap"})
				break
			}
		}
	}
	return ids, found
}

func countFamily(ids map[string]int, family string) int {
	n := 0
	for id := range ids {
		if strings.HasPrefix(id, family+"-") {
			n++
		}
	}
	return n
}

func idOf(family string, n int) string { return fmt.Sprintf("%s-%03d", family, n) }

// numberOf splits an id of valid form.
func numberOf(id string) (family string, n int) {
	family, digits, _ := strings.Cut(id, "-")
	n, _ = strconv.Atoi(digits) // the form was checked
	return family, n
}

// excused reads the status page.
func excused(repo *Repo, ids map[string]int) (map[string]excuse, []Finding) {
	excuses := make(map[string]excuse)
	f := repo.file(statusPath)
	if f == nil {
		return excuses, nil
	}
	var found []Finding
	number := 0
	complain := func(format string, args ...any) {
		found = append(found, Finding{f.Path, number, fmt.Sprintf(format, args...)})
	}
	for line := range strings.SplitSeq(f.Text, "\n") {
		number++
		if !idStart.MatchString(line) {
			continue
		}
		m := statusLine.FindStringSubmatch(line)
		if m == nil {
			complain("not a status line: write ID | overruled, refined or later: reason")
			continue
		}
		first, last := m[1], m[2]
		if last == "" {
			last = first
		}
		family, from := numberOf(first)
		family2, to := numberOf(last)
		if family != family2 || to < from {
			complain("%s..%s is no run of ids", first, last)
			continue
		}
		for n := from; n <= to; n++ {
			id := idOf(family, n)
			switch before, twice := excuses[id]; {
			case ids[id] == 0:
				complain("%s does not exist", id)
			case twice:
				complain("%s stands in line %d already", id, before.line)
			default:
				excuses[id] = excuse{kind: m[3], reason: m[4], line: number}
			}
		}
	}
	return excuses, found
}

// cited collects the ids that tests name: in comments of Go and TypeScript, and in scenario files.
func cited(repo *Repo) ([]cite, []Finding) {
	var cites []cite
	var found []Finding
	for _, f := range repo.Files {
		pending := isScenario(f) && expectedFailure.MatchString(f.Text)
		eachCitation(f, func(line int, list string) {
			ids, problem := readCitation(list)
			if problem == "" && !provesThings(f) {
				problem = "only tests cite ids"
			}
			if problem != "" {
				found = append(found, Finding{f.Path, line, problem})
			}
			for _, id := range ids {
				cites = append(cites, cite{id, f.Path, line, pending})
			}
		})
	}
	return cites, found
}

// eachCitation visits the comments of the file that cite something, with the line and the text after
// the colon. Files that are neither code nor scenarios have none.
func eachCitation(f *File, visit func(line int, list string)) {
	each := func(start int, text string) {
		number := start
		for line := range strings.SplitSeq(text, "\n") {
			m := citation.FindStringSubmatch(line)
			if m != nil && (m[2] == "" || provesThings(f)) { // product code may well speak of citing
				visit(number, m[1]+m[2])
			}
			number++
		}
	}
	switch ext := path.Ext(f.Path); {
	case f.Go != nil:
		for _, group := range f.Go.Comments {
			for _, comment := range group.List {
				each(f.fset.Position(comment.Pos()).Line, comment.Text)
			}
		}
	case ext == ".ts" || ext == ".tsx":
		each(1, tsComments(f.Text))
	case isScenario(f):
		each(1, f.Text)
	}
}

// readCitation takes the ids at the start of the list, up to the first word that is none.
func readCitation(list string) (ids []string, problem string) {
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ' ' || r == ',' }) {
		word = strings.TrimRight(word, ".;:)")
		if !idForm.MatchString(word) {
			if idStart.MatchString(word) {
				return ids, word + " is no id: cite ids one by one, as RT-017"
			}
			break
		}
		ids = append(ids, word)
	}
	switch {
	case len(ids) == 0:
		return ids, "a citation without an id"
	case len(ids) > maxCited:
		return ids, fmt.Sprintf("%d ids in one citation, at most %d: cite each where it is checked",
			len(ids), maxCited)
	case strings.HasSuffix(strings.TrimSpace(list), ","):
		return ids, "a citation ends with its line: begin the next line with another one"
	}
	return ids, ""
}

var scenarioPath = regexp.MustCompile(`(^|/)testdata/scenarios/[^/]+\.txt$`)

func isScenario(f *File) bool { return scenarioPath.MatchString(f.Path) }

// expectedFailure is the line by which a block of a scenario says what the product lacks for it.
var expectedFailure = regexp.MustCompile(`(?m)^\s+needs:`)

// tsComments leaves only comments, line by line. A comment marker inside a string literal is taken
// for a comment, which does no harm here.
func tsComments(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "*") || strings.HasPrefix(trimmed, "/*") {
			continue
		}
		_, comment, ok := strings.Cut(line, "//")
		if ok {
			comment = "//" + comment
		}
		lines[i] = comment
	}
	return strings.Join(lines, "\n")
}

// provesThings tells tests, and the suites that tests consist of, from product code.
func provesThings(f *File) bool {
	dir, base := f.Dir(), path.Base(f.Path)
	return f.IsTest() || isScenario(f) || strings.HasSuffix(dir, "test") ||
		covers("conformance/...", dir) ||
		slices.ContainsFunc([]string{".test.ts", ".test.tsx", ".spec.ts"}, func(suffix string) bool {
			return strings.HasSuffix(base, suffix)
		})
}

// checkIDs finds citations of ids that do not exist, malformed citations, and a status page that
// does not fit the requirements.
func checkIDs(repo *Repo) []Finding {
	ids, found := specified(repo)
	_, problems := excused(repo, ids)
	found = append(found, problems...)
	cites, problems := cited(repo)
	found = append(found, problems...)
	for _, c := range cites {
		if ids[c.id] == 0 {
			found = append(found, Finding{c.path, c.line, c.id + " does not exist in docs"})
		}
	}
	return found
}
