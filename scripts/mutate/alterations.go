package main

import (
	_ "embed" // the list of alterations
	"fmt"
	"strings"
)

//go:embed alterations.txt
var list string

// alteration replaces old, which occurs once in the file, by new. The rule is what it breaks,
// unseen the reason why no test can notice, for those that change nothing observable.
type alteration struct {
	file, rule, old, new string
	unseen               string
}

func (a alteration) String() string {
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return fmt.Sprintf("%s: %s: %q -> %q", a.file, a.rule, flat(a.old), flat(a.new))
}

// parse reads a list; its first lines say how it is written.
func parse(text string) ([]alteration, error) {
	var all []alteration
	for i, line := range strings.Split(text, "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		if mark == "" || strings.HasPrefix(mark, "#") {
			continue
		}
		if mark == "@" {
			file, rule, ok := strings.Cut(rest, ": ")
			if !ok {
				return nil, fmt.Errorf("alterations.txt:%d: a file and a rule are needed", i+1)
			}
			all = append(all, alteration{file: file, rule: rule})
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("alterations.txt:%d: a line before the first alteration", i+1)
		}
		a := &all[len(all)-1]
		switch mark {
		case "-":
			a.old = joined(a.old, rest)
		case "+":
			a.new = joined(a.new, rest)
		case "=":
			a.unseen = rest
		default:
			return nil, fmt.Errorf("alterations.txt:%d: no line begins with %q", i+1, mark)
		}
	}
	return all, nil
}

func joined(text, line string) string {
	if text == "" {
		return line
	}
	return text + "\n" + line
}
