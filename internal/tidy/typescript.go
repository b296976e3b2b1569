package tidy

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxColumns = 100 // of a line of TypeScript; Go has a formatter for that

var (
	// The place of a type that says any: nothing is checked there.
	tsUnchecked = regexp.MustCompile(`(?:[:<|&,]|=>|\bas|\bextends)\s*any\b`)
	tsText      = regexp.MustCompile("\"[^\"]*\"|'[^']*'|`[^`]*`")
	// A wait for a clock on the wall.
	tsWait = regexp.MustCompile(`\bset(?:Timeout|Interval)\(`)
)

// checkTypeScript looks at hand-written TypeScript: at its columns, at what takes it out of the type
// checker's sight, and at tests that wait.
func checkTypeScript(repo *Repo) []Finding {
	var found []Finding
	for _, f := range repo.Files {
		typed := slices.Contains([]string{".ts", ".tsx", ".mts"}, path.Ext(f.Path))
		if !typed || f.Generated() || f.inDir("dist") || strings.HasSuffix(f.Path, ".d.ts") {
			continue
		}
		number := 0
		for line := range strings.SplitSeq(f.Text, "\n") {
			number++
			if n := utf8.RuneCountInString(line); n > maxColumns {
				found = append(found, Finding{f.Path, number, "a line ends by column 100"})
			}
			code, _, _ := strings.Cut(tsText.ReplaceAllString(line, ""), "//")
			trimmed := strings.TrimSpace(line)
			if strings.HasPrefix(trimmed, "*") || strings.HasPrefix(trimmed, "/*") {
				continue
			}
			if tsUnchecked.MatchString(code) || strings.Contains(line, "@ts-") {
				found = append(found, Finding{f.Path, number, "name the type: any is checked by nobody"})
			}
			if (provesThings(f) || f.inDir("test")) && tsWait.MatchString(code) {
				found = append(found, Finding{f.Path, number,
					"a test must not sleep: move an injected clock, or await what is to happen"})
			}
		}
	}
	return found
}
