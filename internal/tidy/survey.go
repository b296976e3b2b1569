package tidy

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Standing is where one family of ids stands.
type Standing struct {
	Family    string
	Total     int
	Cited     int      // named by a test that has to pass
	Overruled int      // explained by a decision and not cited
	Refined   int      // likewise
	Later     int      // the part does not exist yet and no test cites it
	Pending   []string // cited only by scenarios that are expected to fail
	Missing   []string // neither cited nor explained
	Stale     []string // said to be later although a test cites it
}

// Survey counts citations and explanations for every family, in the order of [Families]. Ids that
// break the rule ids are left out of it; run the rules for those.
func Survey(repo *Repo) []Standing {
	ids, _ := specified(repo)
	excuses, _ := excused(repo, ids)
	cites, _ := cited(repo)
	firm, pending := make(map[string]bool), make(map[string]bool)
	for _, c := range cites {
		if c.pending {
			pending[c.id] = true
		} else {
			firm[c.id] = true
		}
	}
	standings := make([]Standing, len(Families))
	for i, family := range Families {
		s := &standings[i]
		s.Family, s.Total = family, countFamily(ids, family)
		for n := 1; n <= s.Total; n++ {
			id := idOf(family, n)
			s.add(id, firm[id], pending[id], excuses[id].kind)
		}
	}
	return standings
}

func (s *Standing) add(id string, firm, pending bool, kind string) {
	switch {
	case firm:
		s.Cited++
		if kind == "later" {
			s.Stale = append(s.Stale, id)
		}
	case kind == "overruled":
		s.Overruled++
	case kind == "refined":
		s.Refined++
	case kind == "later":
		s.Later++
	case pending:
		s.Pending = append(s.Pending, id)
	default:
		s.Missing = append(s.Missing, id)
	}
}

// Complete tells whether every id of every family is cited or explained, and no explanation is out
// of date.
func Complete(standings []Standing) bool {
	return !slices.ContainsFunc(standings, func(s Standing) bool {
		return len(s.Missing) > 0 || len(s.Pending) > 0 || len(s.Stale) > 0
	})
}

// WriteReport prints the ids that need attention and one line of figures a family.
func WriteReport(w io.Writer, standings []Standing) error {
	var b strings.Builder
	for _, s := range standings {
		for _, list := range []struct {
			says string
			ids  []string
		}{
			{"cited by no test and not explained", s.Missing},
			{"cited only by scenarios that are expected to fail", s.Pending},
			{"explained as later, yet cited by a test", s.Stale},
		} {
			if len(list.ids) > 0 {
				fmt.Fprintf(&b, "%s %s:\n%s\n", s.Family, list.says, wrapped(runs(list.ids)))
			}
		}
	}
	const row = "%-8s%7v%7v%10v%9v%8v%9v%9v\n"
	fmt.Fprintf(&b, row, "family", "ids", "cited", "overruled", "refined", "later", "pending", "missing")
	for _, s := range standings {
		fmt.Fprintf(&b, row, s.Family, s.Total, s.Cited, s.Overruled, s.Refined, s.Later,
			len(s.Pending), len(s.Missing))
	}
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// runs joins neighbouring ids of one family, in order, into FIRST..LAST.
func runs(ids []string) []string {
	var out []string
	for i := 0; i < len(ids); {
		family, first := numberOf(ids[i])
		j := i + 1
		for j < len(ids) && ids[j] == idOf(family, first+j-i) {
			j++
		}
		if j-i > 2 {
			out = append(out, ids[i]+".."+ids[j-1])
		} else {
			out = append(out, ids[i:j]...)
		}
		i = j
	}
	return out
}

// wrapped sets words into indented lines of a terminal's width.
func wrapped(words []string) string {
	const width = 96
	var b strings.Builder
	column := 0
	for _, word := range words {
		if column == 0 || column+1+len(word) > width {
			if column > 0 {
				b.WriteByte('\n')
			}
			b.WriteString("  ")
			column = 2
		} else {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
