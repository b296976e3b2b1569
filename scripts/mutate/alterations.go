package main

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed alterations/*.txt
var lists embed.FS

// alteration replaces old, which occurs once in the file, by new. The rule is what it breaks,
// unseen the reason why no test can notice, for those that change nothing observable.
type alteration struct {
	suite      *suite
	file, rule string
	old, new   string
	unseen     string
}

func (a alteration) String() string {
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return fmt.Sprintf("%s: %s: %q -> %q", a.file, a.rule, flat(a.old), flat(a.new))
}

// all reads the lists of all suites.
func all() ([]alteration, error) {
	var out []alteration
	for i := range suites {
		s := &suites[i]
		name := "alterations/" + s.name + ".txt"
		text, err := lists.ReadFile(name)
		if err != nil {
			return nil, err
		}
		list, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
		for j := range list {
			list[j].suite = s
		}
		out = append(out, list...)
	}
	return out, nil
}

// parse reads a list; the package comment says how it is written.
func parse(text string) ([]alteration, error) {
	var list []alteration
	for i, line := range strings.Split(text, "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		if mark == "" || strings.HasPrefix(mark, "#") {
			continue
		}
		if mark == "@" {
			file, rule, ok := strings.Cut(rest, ": ")
			if !ok {
				return nil, fmt.Errorf("%d: a file and a rule are needed", i+1)
			}
			list = append(list, alteration{file: file, rule: rule})
			continue
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%d: a line before the first alteration", i+1)
		}
		a := &list[len(list)-1]
		switch mark {
		case "-":
			a.old = joined(a.old, rest)
		case "+":
			a.new = joined(a.new, rest)
		case "=":
			a.unseen = rest
		default:
			return nil, fmt.Errorf("%d: no line begins with %q", i+1, mark)
		}
	}
	return list, nil
}

func joined(text, line string) string {
	if text == "" {
		return line
	}
	return text + "\n" + line
}
