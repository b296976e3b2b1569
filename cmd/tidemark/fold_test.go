package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/intake"
)

// protectedSnapshots is a file with two rows behind their barriers, and the engine that has it open.
func protectedSnapshots(t *testing.T, path string) *tidemark.Engine {
	t.Helper()
	eng, err := tidemark.Open(t.Context(), tidemark.Options{
		Snapshots: &tidemark.Snapshots{Store: "sqlite:" + path},
	})
	if err != nil {
		t.Fatal(err)
	}
	in := eng.Intake()
	if err := in.Open("w"); err != nil {
		t.Fatal(err)
	}
	to := []readstate.MemberID{"b", "x"}
	err = eng.Workspace("w").Tell(
		intake.ScopeStateChanged{Scope: "t", Type: readstate.Task},
		intake.MembershipChanged{Scope: "t", Member: "b", Joined: true},
		intake.MembershipChanged{Scope: "t", Member: "x", Joined: true},
		intake.MessageStored{Scope: "t", Seq: 1, Revision: 1, Author: "a", Recipients: to},
	)
	if err == nil {
		err = in.Settle(t.Context(), "w")
	}
	if err == nil {
		err = in.Barrier(t.Context(), "w", intake.Delivery{Scope: "t", Revision: 1, Recipients: to})
	}
	if err != nil {
		t.Fatal(err)
	}
	return eng
}

// The way back of a snapshot file is refused while somebody has it, names the rows that stop it, and
// otherwise leaves regular columns alone.
//
// covers: RT-307 RT-308 RT-312 RT-313 RT-314
func TestMigrateSnapshots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snap.db")
	file := "--snapshots=sqlite:" + path
	run(t, "migrate", file, "--fold").fails(t, exitFailed, "no such file")
	eng := protectedSnapshots(t, path)
	for _, flag := range []string{"--check", "--fold"} {
		run(t, "migrate", file, flag).fails(t, exitFailed, "owned by another process")
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	alter := func(query string) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const update = `UPDATE member_scope_unread_runtime_snapshots SET task_snapshot_format_version = `
	alter(update + `999 WHERE member_id = x'78'`)
	for _, flag := range []string{"--check", "--fold"} {
		o := run(t, "migrate", file, flag)
		o.fails(t, exitFailed, "1 of 2 protected rows")
		if !strings.Contains(o.out, `row of "x" of "w" in "t" cannot go back: its Task columns`) {
			t.Errorf("%s: %q", flag, o.out)
		}
	}
	alter(update + `1 WHERE member_id = x'78'`)
	for flag, want := range map[string]string{
		"--check": "2 rows with Task columns, nothing stops", "--check=true": "nothing stops",
	} {
		if o := run(t, "migrate", file, flag, "--fold").done(t); !strings.Contains(o.out, want) {
			t.Errorf("%s: %q", flag, o.out)
		}
	}
	if o := run(t, "migrate", file, "--fold").done(t); !strings.Contains(o.out, "2 rows went back") {
		t.Errorf("%q", o.out)
	}
	if o := run(t, "migrate", file, "--fold").done(t); !strings.Contains(o.out, "nothing to do") {
		t.Errorf("%q", o.out)
	}
	run(t, "migrate", "--fold").fails(t, exitUsage, "--fold goes with --snapshots")
	run(t, "migrate", file, "--back-to=3").fails(t, exitUsage, "--back-to without")
	run(t, "migrate", "--snapshots=mysql:x").fails(t, exitUsage, "want sqlite:PATH")
}

// Facts whose file has protected snapshot rows do not go back before those did.
//
// covers: RT-314
func TestMigrateBackWithSnapshots(t *testing.T) {
	db, path := database(t)
	run(t, "migrate", db).done(t)
	if err := protectedSnapshots(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if o := run(t, "migrate", db, "--check").done(t); !strings.Contains(o.out,
		"below schema 5 not: 2 snapshot rows are protected by Task columns") {
		t.Errorf("%q", o.out)
	}
	run(t, "migrate", db, "--back-to=4").fails(t, exitFailed, "something stops the way back")
	run(t, "migrate", "--snapshots=sqlite:"+path, "--fold").done(t)
	run(t, "migrate", db, "--back-to=4").done(t)
}
