package scenario

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of one file. A file that needs more tells more than one story.
const (
	maxFileBytes  = 64 << 10
	maxLineBytes  = 400
	maxRangeNames = 1000
)

const rangeEnd = `([A-Za-z][A-Za-z0-9_-]*?)([0-9]+)`

var (
	coversLine = regexp.MustCompile(`^#\s*covers:(.*)$`)
	coversID   = regexp.MustCompile(`^SC-[0-9]{3}$`)
	blockLine  = regexp.MustCompile(`^([0-9]+)\.(?:\s+(.*))?$`)
	validName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	rangeWord  = regexp.MustCompile(`^` + rangeEnd + `\.\.` + rangeEnd + `$`)
)

// Parse reads one scenario file. Path only names it in errors, which are *SyntaxError.
func Parse(path, text string) (*File, error) {
	p := &parser{file: &File{Path: path}}
	if err := p.parse(text); err != nil {
		return nil, err
	}
	return p.file, nil
}

type parser struct {
	file  *File
	line  int
	names *names
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{Path: p.file.Path, Line: p.line, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) parse(text string) error {
	p.line = 1
	if len(text) > maxFileBytes {
		return p.fail("the file is longer than %d bytes", maxFileBytes)
	}
	if !utf8.ValidString(text) {
		return p.fail("the file is not UTF-8")
	}
	for i, line := range strings.Split(text, "\n") {
		p.line = i + 1
		line = strings.TrimRight(line, " \t\r")
		if len(line) > maxLineBytes {
			return p.fail("the line is longer than %d bytes", maxLineBytes)
		}
		if err := p.parseLine(line); err != nil {
			return err
		}
	}
	if err := p.endBlock(); err != nil {
		return err
	}
	switch f := p.file; {
	case f.Title == "":
		return p.fail("expected a title: one line that names the behaviour")
	case len(f.Covers) == 0:
		return p.fail(`expected a line "# covers: SC-001" with the ids this file is about`)
	case len(f.Blocks) == 0:
		return p.fail(`expected a block: "1. What happens"`)
	}
	return nil
}

func (p *parser) parseLine(line string) error {
	if m := coversLine.FindStringSubmatch(line); m != nil {
		return p.parseCovers(m[1])
	}
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		return nil
	case trimmed == line:
		return p.parseHeading(line)
	case len(p.file.Blocks) == 0:
		return p.fail(`expected a block such as "1. What happens" before the first operation`)
	}
	if rest, ok := strings.CutPrefix(trimmed, "needs:"); ok {
		return p.parseNeeds(strings.TrimSpace(rest))
	}
	statement, err := parseStatement(p.names, p.line, trimmed)
	if err != nil {
		return p.fail("%v", err)
	}
	block := &p.file.Blocks[len(p.file.Blocks)-1]
	block.Statements = append(block.Statements, statement)
	return nil
}

func (p *parser) parseCovers(rest string) error {
	ids := strings.Fields(strings.ReplaceAll(rest, ",", " "))
	if len(ids) == 0 {
		return p.fail("covers: expected ids such as SC-001")
	}
	for _, id := range ids {
		if !coversID.MatchString(id) {
			return p.fail("covers: expected an id such as SC-001, got %q", id)
		}
	}
	p.file.Covers = append(p.file.Covers, ids...)
	return nil
}

func (p *parser) parseHeading(line string) error {
	m := blockLine.FindStringSubmatch(line)
	switch {
	case m == nil && p.file.Title == "":
		p.file.Title = line
		return nil
	case m == nil:
		return p.fail("expected a block such as %q, or an indented operation; got %q",
			fmt.Sprintf("%d. What happens", len(p.file.Blocks)+1), line)
	case p.file.Title == "":
		return p.fail("expected the title before the first block")
	case m[2] == "":
		return p.fail("expected words after the number that say what this block is about")
	}
	if err := p.endBlock(); err != nil {
		return err
	}
	number, err := strconv.Atoi(m[1])
	if err != nil || number != len(p.file.Blocks)+1 {
		return p.fail("expected block number %d, got %s", len(p.file.Blocks)+1, m[1])
	}
	p.file.Blocks = append(p.file.Blocks, Block{Number: number, Title: m[2], Line: p.line})
	p.names = newNames()
	return nil
}

func (p *parser) parseNeeds(part string) error {
	block := &p.file.Blocks[len(p.file.Blocks)-1]
	if len(block.Statements) > 0 {
		return p.fail("needs: expected directly under the heading of the block")
	}
	var known []string
	for _, k := range parseParts() {
		if string(k) == part {
			block.Needs = k
			return nil
		}
		known = append(known, string(k))
	}
	return p.fail("needs: expected one of %s, got %q", strings.Join(known, ", "), part)
}

// endBlock checks what only a complete block can show.
func (p *parser) endBlock() error {
	if len(p.file.Blocks) == 0 {
		return nil
	}
	block := &p.file.Blocks[len(p.file.Blocks)-1]
	at := *p
	at.line = block.Line
	if len(block.Statements) == 0 {
		return at.fail("block %d has no operations", block.Number)
	}
	uses, checks := false, false
	for i := range block.Statements {
		s := &block.Statements[i]
		checks = checks || s.form.verb == "expect" || s.Answer != nil || s.form.verb == "random"
		uses = uses || s.Part() == block.Needs
		if part := s.Part(); part != Hub && part != block.Needs {
			at.line = s.Line
			return at.fail("%s needs the part %q: write \"needs: %s\" under the block's heading",
				s.Verb(), part, part)
		}
	}
	if !checks {
		return at.fail("block %d expects nothing", block.Number)
	}
	if !uses {
		return at.fail("block %d needs %q but no line uses it", block.Number, block.Needs)
	}
	if name, line := p.names.unresolved(); name != "" {
		at.line = line
		return at.fail("message %s is never posted in this block", name)
	}
	return nil
}

// expandNames splits "m1,m2" and unrolls "m1..m9".
func expandNames(words []string) ([]string, error) {
	var out []string
	for _, word := range words {
		for _, name := range strings.Split(word, ",") {
			if name == "" {
				continue
			}
			m := rangeWord.FindStringSubmatch(name)
			if m == nil {
				out = append(out, name)
				continue
			}
			from, err1 := strconv.Atoi(m[2])
			to, err2 := strconv.Atoi(m[4])
			if m[1] != m[3] || err1 != nil || err2 != nil || to < from {
				return nil, fmt.Errorf("expected a rising range such as m1..m9, got %q", name)
			}
			if to-from >= maxRangeNames {
				return nil, fmt.Errorf("range %q has more than %d names", name, maxRangeNames)
			}
			for n := from; n <= to; n++ {
				out = append(out, m[1]+strconv.Itoa(n))
			}
		}
		if len(out) > 10*maxRangeNames {
			return nil, fmt.Errorf("more than %d names in one line", 10*maxRangeNames)
		}
	}
	return out, nil
}
