package tidy

import (
	"fmt"
	"strings"
)

// fixture is a small tree and the one thing that a rule says about it; nothing when want is empty.
type fixture struct {
	rule, name string
	files      files
	want       string
}

// The requirements that the fixtures of the rule ids refer to.
const spec = "# Requirements\n\nRT-001 | one | check: a\n\nRT-002 | two | check: b\nRT-003 | three | check: c\n"

var fixtures = []fixture{
	// Who imports whom.
	{"imports", "the algebra imports facts", files{"readstate/a.go": imports("readstate", "tide/facts")},
		"readstate/a.go:3: readstate must not import facts"},
	{"imports", "the algebra reads a clock", files{"readstate/a.go": imports("readstate", "time")},
		"readstate must not import time"},
	{"imports", "the algebra's own test may", files{
		"readstate/a_test.go": imports("readstate", "time", "pgregory.net/rapid", "tide/internal/model")},
		""},
	{"imports", "the algebra's test on a store", files{
		"readstate/a_test.go": imports("readstate", "tide/facts/sqlstore")},
		"must not import facts/sqlstore"},
	{"imports", "the oracle shares the algebra", files{"internal/model/a.go": imports("model", "tide/readstate")},
		"internal/model must not import readstate"},
	{"imports", "the oracle borrows", files{"internal/model/a.go": imports("model", "example.com/x")},
		"must not import other modules"},
	{"imports", "a test of the oracle shares the algebra", files{
		"internal/model/a_test.go": imports("model", "tide/readstate")},
		"internal/model must not import readstate"},
	{"imports", "a client knows the server's code", files{"client/a.go": imports("client", "tide/httpapi")},
		"client must not import httpapi"},
	{"imports", "a client's test runs against the server", files{
		"client/a_test.go": imports("client", "tide", "tide/httpapi", "tide/live")}, ""},
	{"imports", "what a client decides needs a clock", files{
		"client/readsync/a.go": imports("readsync", "time")},
		"client/readsync must not import time"},
	{"imports", "facts know the runtime", files{"facts/a.go": imports("facts", "tide/unread")},
		"facts must not import unread"},
	{"imports", "a store knows the runtime", files{"facts/sqlstore/a.go": imports("sqlstore", "tide/unread")},
		"facts/sqlstore must not import unread"},
	{"imports", "the runtime knows a store", files{"unread/a.go": imports("unread", "tide/facts/sqlstore")},
		"unread must not import facts/sqlstore"},
	{"imports", "the runtime's tests run on a store", files{
		"unread/a_test.go": imports("unread_test", "tide/unread", "tide/facts/sqlstore", "tide/internal/model")},
		""},
	{"imports", "the library opens a store", files{
		"a.go": imports("tide", "tide/facts", "tide/facts/sqlstore", "tide/unread", "tide/readstate")},
		""},
	{"imports", "the library knows an adapter", files{"a.go": imports("tide", "tide/live")},
		". must not import live"},
	{"imports", "adapters know each other", files{"live/a.go": imports("live", "tide/inbox")},
		"live must not import inbox"},
	{"imports", "an adapter's test knows another", files{"live/a_test.go": imports("live", "tide/outbox")},
		"live must not import outbox"},
	{"imports", "the API serves streams", files{"httpapi/a.go": imports("httpapi", "tide/live", "tide")},
		""},
	{"imports", "the API knows a store", files{"httpapi/a.go": imports("httpapi", "tide/facts/sqlstore")},
		"httpapi must not import facts/sqlstore"},
	{"imports", "the product imports its instruments", files{"live/a.go": imports("live", "tide/internal/model")},
		"live must not import internal/model"},
	{"imports", "the relay is a family", files{
		"relay/broker/a.go": imports("broker", "tide/relay/frontier", "tide/readstate")}, ""},
	{"imports", "the relay knows the hub", files{"relay/broker/a.go": imports("broker", "tide/facts")},
		"relay/broker must not import facts"},
	{"imports", "the client knows the server", files{"client/a.go": imports("client", "tide/httpapi")},
		"client must not import httpapi"},
	{"imports", "anything imports the command", files{
		"internal/chaos/a.go": imports("chaos", "tide/cmd/tidemark")}, "must not import cmd/tidemark"},
	{"imports", "a package without a place", files{"gossip/a.go": imports("gossip")},
		"gossip: the package has no place in the import table"},

	// What sits behind one part of ours.
	{"borrowed", "a driver in the runtime", files{"unread/a.go": imports("unread", "modernc.org/sqlite")},
		"unread must not import modernc.org/sqlite"},
	{"borrowed", "a driver's sub-package in the API", files{
		"httpapi/a.go": imports("httpapi", "modernc.org/sqlite/lib")},
		"httpapi must not import modernc.org/sqlite/lib"},
	{"borrowed", "SQL in the API", files{"httpapi/a.go": imports("httpapi", "database/sql")},
		"httpapi must not import database/sql"},
	{"borrowed", "SQL drivers implemented anywhere", files{
		"internal/probe/a.go": imports("probe", "database/sql", "database/sql/driver")}, ""},
	{"borrowed", "a store and the tests of all", files{
		"facts/sqlstore/a.go": imports("sqlstore", "database/sql", "modernc.org/sqlite"),
		"httpapi/a_test.go":   imports("httpapi", "database/sql")}, ""},

	// Sizes.
	{"sizes", "a file of 801 lines", files{"a/doc.go": long("a", 801, "a long package, see doc.go")},
		"a/doc.go: 801 lines, at most 800"},
	{"sizes", "a file of 800 lines that says why", files{"a/doc.go": long("a", 800, "see doc.go, one table")},
		""},
	{"sizes", "a file of 601 lines that does not", files{"a/a.go": long("a", 601, "about a")},
		"the package comment names the file"},
	{"sizes", "a file of 600 lines", files{"a/a.go": long("a", 600, "about a")}, ""},
	{"sizes", "another file's comment says why", files{
		"a/a.go": long("a", 700, ""), "a/doc.go": "// Package a has a table, which makes a.go long.\npackage a\n"},
		""},
	{"sizes", "a long generated file", files{
		"a/a.go": "// Code generated by b. DO NOT EDIT.\n" + long("a", 900, "")}, ""},
	{"sizes", "long case data", files{"a/testdata/a.ts": strings.Repeat("\n", 900)}, ""},
	{"sizes", "a long TypeScript file", files{"web/sdk/a.ts": strings.Repeat("x()\n", 601)},
		"web/sdk/a.ts: 601 lines"},
	{"sizes", "a long TypeScript file that says why", files{
		"web/sdk/a.ts": "// a.ts is one table.\n" + strings.Repeat("x()\n", 650)}, ""},

	// Names.
	{"names", "a directory", files{"facts/util/a.go": "package rows"}, "not util"},
	{"names", "a directory above", files{"pkg/rows/a.go": "package rows"}, "not pkg"},
	{"names", "a package clause", files{"facts/rows/a.go": "package helpers"}, "facts/rows/a.go:1: "},
	{"names", "a test's package clause", files{"facts/a_test.go": "package mocks_test"}, "not mocks"},
	{"names", "a name that only contains one", files{"facts/modelling/a.go": "package modelling"}, ""},

	// Package comments.
	{"docs", "no doc.go", files{"facts/a.go": "// Package facts is here.\npackage facts\n"},
		"facts: the package has no doc.go"},
	{"docs", "a doc.go without a comment", files{"facts/doc.go": "package facts\n"},
		"must begin with Package facts"},
	{"docs", "a detached comment", files{"facts/doc.go": "// Package facts.\n\npackage facts\n"},
		"must begin with"},
	{"docs", "a command", files{"cmd/x/doc.go": "// Command x does.\npackage main\n"}, ""},
	{"docs", "a command that speaks like a package", files{"cmd/x/doc.go": "// Package main does.\npackage main\n"},
		"or Command and its name"},
	{"docs", "an example without a comment", files{"examples/x/main.go": "package main\n"},
		"examples/x/main.go:1"},
	{"docs", "an example in one file", files{"examples/x/main.go": "// Command x shows.\npackage main\n"},
		""},
	{"docs", "tests alone", files{"chaos/a_test.go": "package chaos\n"}, ""},

	// Tests that wait.
	{"sleep", "a sleeping test", files{"a/a_test.go": body("a", "time", `time.Sleep(1)`)},
		"a/a_test.go:6: a test must not sleep"},
	{"sleep", "a sleeping suite", files{"facts/factstest/a.go": body("factstest", "time", `time.Sleep(1)`)},
		"must not sleep"},
	{"sleep", "under another name", files{"a/a_test.go": body("a", `t "time"`, `t.Sleep(1)`)},
		"must not sleep"},
	{"sleep", "a bare wait", files{"a/a_test.go": body("a", "time", `<-time.After(1)`)},
		"must not sleep"},
	{"sleep", "a deadline", files{"a/a_test.go": body("a", "time", "select { case <-c: case <-time.After(1): }")},
		""},
	{"sleep", "somebody else's Sleep", files{"a/a_test.go": body("a", "time", `clock.Sleep(time.Second)`)},
		""},
	{"sleep", "inside a bubble", files{"a/a_test.go": body("a", "time\"\n\t\"testing/synctest",
		`synctest.Test(t, func(t *testing.T) { time.Sleep(1) })`)}, ""},
	{"sleep", "beside a bubble", files{"a/a_test.go": body("a", "time\"\n\t\"testing/synctest",
		`synctest.Test(t, func(t *testing.T) {}); time.Sleep(1)`)}, "must not sleep"},
	{"sleep", "the product", files{"a/a.go": body("a", "time", `time.Sleep(1)`)}, ""},

	// Goroutines nobody watches.
	{"leaks", "a go statement", files{"live/a.go": body("live", "time", `go time.Now()`)},
		"live/a.go:6: live starts goroutines"},
	{"leaks", "a group's goroutine", files{"live/a.go": body("live", "sync", `var w sync.WaitGroup; w.Go(func() {})`)},
		"live starts goroutines"},
	{"leaks", "two of them are one finding", files{"live/a.go": body("live", "time", `go time.Now(); go time.Now()`)},
		"live starts goroutines"},
	{"leaks", "watched", files{
		"live/a.go":      body("live", "time", `go time.Now()`),
		"live/a_test.go": body("live_test", "go.uber.org/goleak", `goleak.VerifyTestMain(m)`)}, ""},
	{"leaks", "a suite for others", files{
		"facts/factstest/a.go": body("factstest", "testing", `go func(t *testing.T) {}(nil)`)}, ""},
	{"leaks", "goleak imported and not called", files{
		"live/a.go":      body("live", "time", `go time.Now()`),
		"live/a_test.go": body("live_test", "go.uber.org/goleak", `_ = goleak.IgnoreCurrent`)},
		"live starts goroutines"},

	// TypeScript.
	{"typescript", "a long line", files{"web/sdk/a.ts": "x()\n" + strings.Repeat("é", 101) + "\n"},
		"web/sdk/a.ts:2: a line ends by column 100"},
	{"typescript", "a line of 100 columns", files{"web/sdk/a.ts": strings.Repeat("é", 100) + "\n"}, ""},
	{"typescript", "a type that is none", files{"web/sdk/a.ts": "let x: any;\n"},
		"web/sdk/a.ts:1: name the type"},
	{"typescript", "a list of them", files{"web/sdk/a.tsx": "f(x as any[], y);\n"}, "name the type"},
	{"typescript", "an order to look away", files{"web/sdk/a.ts": "// @ts-ignore\n"}, "name the type"},
	{"typescript", "the word", files{"web/sdk/a.ts": "/* of any; */ // any\nconst any = 1;\n"}, ""},
	{"typescript", "a test that waits", files{"web/sdk/a.test.ts": "f();\nsetTimeout(f, 1);\n"},
		"a.test.ts:2: a test must not sleep"},
	{"typescript", "a part of tests that waits", files{"web/sdk/test/a.ts": "setInterval(f, 1);\n"},
		"must not sleep"},
	{"typescript", "the product may", files{"web/sdk/src/a.ts": "setTimeout(f, 1);\n"}, ""},

	// Ids.
	{"ids", "a citation of nothing", files{"docs/requirements/a.md": spec, "a/a_test.go": note("covers: RT-004")},
		"a/a_test.go:3: RT-004 does not exist"},
	{"ids", "citations in every place", files{
		"docs/requirements/a.md":     spec,
		"docs/scenarios.md":          "SC-001 | a | b -> c\n",
		"a/a_test.go":                note("Things hold. covers: RT-001, RT-002 (by hand)"),
		"facts/factstest/a.go":       note("covers: RT-002."),
		"web/sdk/a.test.ts":          "f() // covers: RT-003\n",
		"testdata/scenarios/001.txt": "# covers: SC-001\n"}, ""},
	{"ids", "a scenario of nothing", files{"testdata/scenarios/001.txt": "# covers: SC-001\n"},
		"001.txt:1: SC-001 does not"},
	{"ids", "a citation of nothing in TypeScript", files{
		"docs/requirements/a.md": spec, "web/sdk/a.test.ts": "/**\n * covers: RT-009\n */\n"},
		"a.test.ts:2: RT-009 does not"},
	{"ids", "a string that looks like one", files{"a/a_test.go": "package a\n\nvar s = \"covers: RT-009\"\n"},
		""},
	{"ids", "no id", files{"a/a_test.go": note("covers: everything")}, "a citation without an id"},
	{"ids", "prose", files{"a/a.go": note("Grammar: \"# covers:\" and what this place covers: nothing.")},
		""},
	{"ids", "an example in product code", files{"a/doc.go": note("\t# covers: RT-008 RT-009")}, ""},
	{"ids", "a run of ids", files{
		"docs/requirements/a.md": spec, "a/a_test.go": note("covers: RT-001..RT-003")},
		"RT-001..RT-003 is no id"},
	{"ids", "an open list", files{"docs/requirements/a.md": spec, "a/a_test.go": note("covers: RT-001,")},
		"ends with its line"},
	{"ids", "the product cites", files{"docs/requirements/a.md": spec, "a/a.go": note("covers: RT-001")},
		"only tests cite ids"},
	{"ids", "an id twice", files{"docs/requirements/a.md": spec + "RT-003 | again | check: d\n"},
		"a.md:7: RT-003 stands twice"},
	{"ids", "a gap", files{"docs/requirements/a.md": spec + "RT-005 | five | check: e\n"},
		"RT-004 is missing"},
	{"ids", "a full status page", files{"docs/requirements/a.md": spec,
		statusPath: "RT-001..RT-002 | later: the rest\nRT-003 | overruled: because\n"}, ""},
	{"ids", "a status without a reason", files{"docs/requirements/a.md": spec, statusPath: "RT-001 | later:\n"},
		"docs/requirements-status.md:1: not a status line"},
	{"ids", "a status of another kind", files{"docs/requirements/a.md": spec, statusPath: "RT-001 | never: no\n"},
		"not a status line"},
	{"ids", "a status of nothing", files{"docs/requirements/a.md": spec, statusPath: "RT-003..RT-004 | later: x\n"},
		"RT-004 does not exist"},
	{"ids", "a status given twice", files{"docs/requirements/a.md": spec,
		statusPath: "RT-001..RT-003 | later: x\n\nRT-002 | refined: y\n"},
		":3: RT-002 stands in line 1 already"},
	{"ids", "a run backwards", files{"docs/requirements/a.md": spec, statusPath: "RT-003..RT-001 | later: x\n"},
		"is no run"},

	// Text of one machine. The texts are put together so that this file keeps the rule.
	{"hygiene", "a path", files{"a.md": "see\n/wo" + "rk/main for it\n"}, "a.md:2: an absolute path"},
	{"hygiene", "a path in quotes", files{"a.sh": `cd "/ro` + `ot"`}, "an absolute path"},
	{"hygiene", "a home", files{"a.yml": "dir:/home" + "/ada/x\n"}, "an absolute path"},
	{"hygiene", "a temporary path", files{"a.sh": "rm /t" + "mp/x\n"}, "a fixed temporary path"},
	{"hygiene", "a registry", files{"a.sh": "GOPROXY=https://proxy.gol" + "ang.org\n"},
		"a package registry's host"},
	{"hygiene", "another registry", files{"a.json": `"https://registry.npm` + `js.org/x"`},
		"a package registry's host"},
	{"hygiene", "Windows line ends", files{"a.md": "a\r\nb\n"}, "a.md:1: a carriage return"},
	{"hygiene", "addresses and relative paths", files{
		"a.md": "https://example.com/wo" + "rk/x, ../wo" + "rk/y, https://go.dev/doc, a/t" + "mp/x\n"},
		""},
}

// imports writes a file that imports the targets.
func imports(pkg string, targets ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\n", pkg)
	for _, target := range targets {
		fmt.Fprintf(&b, "import _ %q\n", target)
	}
	return b.String()
}

// body writes a file with one function, whose statements are in line 6 if one package is imported
// by a name of its own or not.
func body(pkg, imported, statements string) string {
	name, target, named := strings.Cut(imported, ` "`)
	if !named {
		name, target = "", imported
	}
	spec := strings.TrimSpace(name + ` "` + strings.TrimSuffix(target, `"`) + `"`)
	return fmt.Sprintf("package %s\n\nimport (%s)\n\nfunc f() {\n\t%s\n}\n", pkg, spec, statements)
}

// note writes a file with one comment, in line 3.
func note(comment string) string { return "package a\n\n// " + comment + "\nvar x int\n" }

// long writes a file of so many lines that has the package comment, or none when it is empty.
func long(pkg string, lines int, comment string) string {
	head := "package " + pkg + "\n"
	if comment != "" {
		head = "// Package " + pkg + ": " + comment + "\n" + head
	}
	return head + strings.Repeat("// x\n", lines-strings.Count(head, "\n"))
}
