package scenario

import (
	"errors"
	"strings"
	"testing"
)

// head begins a file whose first operation stands on line 6.
const head = "# covers: SC-001\nA title\n\n1. A block\n    channel c: A B\n"

func TestParseErrorsSayWhereAndWhat(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"empty", "", "f.txt:1: expected a title"},
		{"no covers", "A title\n\n1. A block\n    channel c: A\n    expect A c unread=0\n",
			`f.txt:6: expected a line "# covers: SC-001"`},
		{"bad id", "# covers: SC-1\n",
			`f.txt:1: covers: expected an id such as SC-001, got "SC-1"`},
		{"no ids", "# covers:\n", "f.txt:1: covers: expected ids"},
		{"no blocks", "# covers: SC-001\nA title\n", "f.txt:3: expected a block"},
		{"block first", "# covers: SC-001\n1. A block\n", "f.txt:2: expected the title before"},
		{"early operation", "# covers: SC-001\nA title\n    channel c: A\n",
			`f.txt:3: expected a block such as "1. What happens" before the first operation`},
		{"numbering", head + "    expect B c unread=0\n3. Next\n",
			"f.txt:7: expected block number 2, got 3"},
		{"nameless block", "# covers: SC-001\nA title\n1.\n",
			"f.txt:3: expected words after the number"},
		{"second title", head + "Another title\n",
			`f.txt:6: expected a block such as "2. What happens"`},
		{"empty block", head + "    expect B c unread=0\n2. Next\n",
			"f.txt:7: block 2 has no operations"},
		{"expects nothing", head + "    post A m1 in c\n", "f.txt:4: block 1 expects nothing"},
		{"not UTF-8", "\xff", "f.txt:1: the file is not UTF-8"},
		{"needs late", head + "    needs: client\n",
			"f.txt:6: needs: expected directly under the heading"},
		{"needs unknown", "# covers: SC-001\nA title\n1. A block\n    needs: magic\n",
			"f.txt:4: needs: expected one of client, push"},
		{"needs unused", "# covers: SC-001\nA title\n1. A block\n    needs: client\n" +
			"    channel c: A\n    expect A c unread=0\n",
			`f.txt:3: block 1 needs "client" but no line uses it`},
		{"needs missing", head + "    stream B as phone\n    app phone offline\n",
			`f.txt:7: app needs the part "client": write "needs: client"`},
		{"never posted", head + "    read B m1 in c -> error not_found\n",
			"f.txt:6: message m1 is never posted in this block"},

		{"unknown verb", head + "    pots A m1 in c\n",
			`f.txt:6: expected an operation, got "pots"; did you mean "post"?`},
		{"only fields", head + "    unread=1\n",
			"f.txt:6: expected an operation, got nothing but fields"},
		{"short", head + "    post A m1 in\n",
			"f.txt:6: post: expected a scope, got the end of the line; " +
				"the form is: post <actor> <new-message...> in <scope>"},
		{"missing slot", head + "    post A in c\n",
			`f.txt:6: post: expected a new message, got "in"`},
		{"trailing word", head + "    leave B c now\n",
			`f.txt:6: leave: expected the end of the line, got "now"`},
		{"colon missing", head + "    channel d A\n",
			`f.txt:6: channel: expected ":" or the end of the line, got "A"`},
		{"unknown field", head + "    expect B c unraed=1\n",
			"f.txt:6: expect: expected one of the fields unread, "},
		{"not a number", head + "    expect B c unread=x\n",
			`f.txt:6: expect: unread=: expected a number, got "x"`},
		{"not a boolean", head + "    expect B c shown=1\n",
			`shown=: expected true or false, got "1"`},
		{"via whom", head + "    post A m1 in c via=B\n",
			`f.txt:6: post: via=: expected "service", got "B"`},
		{"spaces around =", head + "    expect B c unread= 1\n",
			"f.txt:6: expected key=value without spaces"},
		{"field twice", head + "    expect B c unread=1 unread=2\n",
			"f.txt:6: unread= is written twice"},
		{"nothing expected", head + "    expect B c\n",
			"f.txt:6: expect: expected at least one of unread"},
		{"bad answer", head + "    leave B c -> gone\n",
			"f.txt:6: expected one of ok, applied, unchanged"},
		{"empty answer", head + "    leave B c ->\n", `f.txt:6: expected an answer after "->"`},
		{"error without code", head + "    leave B c -> error\n",
			"f.txt:6: expected an error code such as not_found"},
		{"bad answer field", head + "    leave B c -> ok count=1\n",
			`f.txt:6: answer: expected one of the fields`},
		{"no answer allowed", head + "    clock B +1h -> ok\n",
			"f.txt:6: clock: has no answer to compare"},
		{"unread of nothing", head + "    unread B\n",
			`f.txt:6: unread: expected "from MESSAGE" or "in SCOPE"`},
		{"bad level", head + "    level B c loud\n",
			`f.txt:6: level: expected all, mentions, none or inherit, got "loud"`},
		{"bad offset", head + "    clock B soon\n",
			`f.txt:6: clock: expected a time such as +3h or -2s, got "soon"`},
		{"bad count", head + "    random many in c: A\n",
			"f.txt:6: random: expected a number from 1 to 100000"},
		{"bad range", head + "    post A m3..m1 in c\n",
			`f.txt:6: post: expected a rising range such as m1..m9, got "m3..m1"`},
		{"huge range", head + "    post A m1..m9999 in c\n", "has more than 1000 names"},
		{"mentions nobody", head + "    leave B c @A\n", "f.txt:6: leave: mentions nobody, got @A"},
		{"empty mention", head + "    post A m1 in c @\n",
			`f.txt:6: expected a member right after "@"`},

		{"unknown scope", head + "    expect B d unread=1\n",
			`f.txt:6: expect: expected a scope, but "d" is not declared above`},
		{"unknown member", head + "    post X m1 in c\n",
			`f.txt:6: post: expected a member or device, but "X" is not declared above`},
		{"unknown mention", head + "    post A m1 in c @X\n",
			`expected a member, but "X" is not declared above`},
		{"wrong kind", head + "    expect B A unread=1\n",
			"expected a scope, but A is a member (line 5)"},
		{"declared twice", head + "    channel c: A\n",
			"f.txt:6: channel: c is already a scope (line 5)"},
		{"reserved name", head + "    stream B as badge\n",
			`f.txt:6: stream: expected a new device, got "badge"`},
		{"bad name", head + "    channel -x: A\n",
			`expected a name of letters, digits, - and _ for a scope, got "-x"`},
		{"prepare what", head + "    prepare late\n",
			`f.txt:6: prepare: expected "prepare NAME: read ..."`},
		{"prepare setup", head + "    prepare late: leave B c\n",
			"f.txt:6: prepare: leave cannot be prepared"},
		{"prepare answer", head + "    prepare late: read B head in c -> ok\n",
			`f.txt:6: prepare: nothing is sent yet; write the answer behind "send"`},
		{"send unknown", head + "    send late\n",
			`expected a prepared call, but "late" is not declared above`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f.txt", c.text)
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("want a syntax error with %q, got %v", c.want, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Fatalf("want %q\n got %q", c.want, err)
			}
		})
	}
}

func TestParseReadsEveryPartOfAStatement(t *testing.T) {
	text := head + `    # a comment
    post A m1..m3, m5 in c @B,@everyone silent kind=text -> ok seq=4   # behind it
    prepare late: read B m5 by-message version=3
    send late -> conflict version=1
    expect B c unread=2 or hydrating

2. Another
    needs: client
    channel c: A
    device phone of A
    app phone open c in peace
    expect A c absent
`
	file, err := Parse("f.txt", text)
	if err != nil {
		t.Fatal(err)
	}
	if file.Title != "A title" || len(file.Blocks) != 2 || file.Covers[0] != "SC-001" {
		t.Fatalf("file %+v", file)
	}
	post := file.Blocks[0].Statements[1]
	if got := strings.Join(post.slots["new-message"], " "); got != "m1 m2 m3 m5" {
		t.Errorf("messages %q", got)
	}
	if got := strings.Join(post.Mentions, " "); got != "B everyone" {
		t.Errorf("mentions %q", got)
	}
	if !post.flag("silent") || post.Answer.Outcome != "ok" || post.Line != 7 {
		t.Errorf("statement %+v, answer %+v", post, post.Answer)
	}
	if post.Text != "post A m1..m3, m5 in c @B,@everyone silent kind=text -> ok seq=4" {
		t.Errorf("text %q", post.Text)
	}
	read := file.Blocks[0].Statements[2]
	if read.one("prepared") != "late" || read.one("mark") != "m5" || !read.flag("by-message") {
		t.Errorf("prepared %+v", read.slots)
	}
	if !file.Blocks[0].Statements[4].has("hydrating") {
		t.Error("or hydrating is lost")
	}
	if b := file.Blocks[1]; b.Needs != Client || b.Number != 2 || b.Line != 12 {
		t.Errorf("block %+v", b)
	}
}

// A file that parses can be played: whatever the bytes are, the parser answers, and a file it
// accepts keeps the promises the runner builds on.
func FuzzParse(f *testing.F) {
	for _, path := range scenarioFiles(f) {
		f.Add(readFile(f, path))
	}
	f.Add(head + "    post A m1..m3 in c @B -> ok\n    expect B c unread=3\n")
	f.Add("# covers: SC-001\nT\n1. b\n  thread T in c on m [: A]\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f.txt", text)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 {
				t.Fatalf("not a syntax error with a line: %v", err)
			}
			return
		}
		for i, block := range file.Blocks {
			if block.Number != i+1 || len(block.Statements) == 0 {
				t.Fatalf("block %+v", block)
			}
			for _, s := range block.Statements {
				if handlers[s.Verb()] == nil {
					t.Fatalf("nobody plays %q", s.Verb())
				}
			}
		}
	})
}
