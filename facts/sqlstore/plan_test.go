package sqlstore

import (
	"context"
	"database/sql"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func openStore(t *testing.T) *Store {
	t.Helper()
	st, err := OpenSQLite(context.Background(), filepath.Join(t.TempDir(), "facts.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// plan returns SQLite's plan of a statement in one size, a line a step.
func plan(t *testing.T, db *sql.DB, text string) []string {
	t.Helper()
	args := make([]any, strings.Count(text, "?"))
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		out = append(out, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	// All blocks of a scope, the last entry of an index, and those who watch a task, who are few.
	wholeScope = []*statement{
		blockTables[0].counts, blockTables[1].counts, selectLatest, selectWatchers,
	}
	// All workspaces, and all nodes.
	wholeTable = []*statement{
		selectWorkspaces, selectExpiring, raiseTerms, selectFreshSpaces, surveyFresh, selectOwned, selectNodes,
	}
	framing = []*statement{beginTx, beginView, commitTx, rollbackTx}
	// What may be scanned: the keys themselves, results of a few rows, and the workspaces.
	scanned = regexp.MustCompile(`^SCAN (\(subquery-\d+\)|\d+-ROW VALUES CLAUSE|\d+ CONSTANT ROWS?|` +
		`CONSTANT ROW|k|p|h|f)$`)
	scannedWorkspaces = regexp.MustCompile(`^SCAN (w|w USING COVERING INDEX \w+|workspaces|n USING INDEX \w+)$`)
	// A search names at least a scope, a member or another whole key.
	searched = regexp.MustCompile(`^SEARCH \w+ (EXISTS )?USING .*\((scope|member|rowid|workspace|author|actor|op_actor|` +
		`parent|owner|sender|node|id|created_at|erased|recipient|webhook|slow|due_at|settled_at|died_at|<expr>)[=<>]`)
	sorts = "USE TEMP B-TREE FOR "
)

// Every statement enters every table through an index, whatever the number of its keys.
func TestPlansSearch(t *testing.T) {
	db := openStore(t).writer.db
	db.SetMaxOpenConns(2)
	for _, st := range statements {
		if contains(framing, st) {
			continue
		}
		sizes := []int{1}
		if st.width > 0 {
			sizes = append(sizes, 2, 16, 128)
		}
		for _, n := range sizes {
			for _, step := range plan(t, db, st.text(sqliteDialect, n)) {
				switch {
				case strings.Contains(step, "AUTOMATIC"), strings.Contains(step, "BLOOM FILTER ON"):
					t.Errorf("%s with %d keys builds an index: %s", st.name, n, step)
				case strings.HasPrefix(step, "SCAN "):
					all := contains(wholeTable, st)
					if !scanned.MatchString(step) && (!all || !scannedWorkspaces.MatchString(step)) {
						t.Errorf("%s with %d keys: %s", st.name, n, step)
					}
				case strings.HasPrefix(step, "SEARCH "):
					if !searched.MatchString(step) {
						t.Errorf("%s with %d keys: %s", st.name, n, step)
					}
					if strings.HasSuffix(step, "(scope=?)") && !contains(wholeScope, st) {
						t.Errorf("%s with %d keys walks through a scope: %s", st.name, n, step)
					}
				}
			}
		}
	}
}

func contains(all []*statement, st *statement) bool {
	for _, s := range all {
		if s == st {
			return true
		}
	}
	return false
}

// The statements that a cost is promised for use the index that is theirs.
func TestPlansIndex(t *testing.T) {
	db := openStore(t).writer.db
	db.SetMaxOpenConns(2)
	own := "(scope=? AND author=? AND revision"
	for _, c := range []struct {
		st    *statement
		steps []string
	}{
		{selectRanks, []string{
			"SEARCH m USING COVERING INDEX scope_messages_by_author " + own + "<?)",
			"SEARCH m USING COVERING INDEX scope_messages_by_principal (scope=? AND principal=? AND revision<?)",
		}},
		{selectCrossed, []string{
			"SEARCH m USING COVERING INDEX scope_messages_removed_by_author " + own + ">? AND revision<?)",
			"SEARCH m USING INDEX scope_messages_removed_by_principal " +
				"(scope=? AND principal=? AND revision>? AND revision<?)",
			"SEARCH v USING COVERING INDEX scope_everyone_by_author " + own + ">? AND revision<?)",
			"SEARCH v USING COVERING INDEX scope_everyone_by_principal " +
				"(scope=? AND principal=? AND revision>? AND revision<?)",
			"SEARCH t USING PRIMARY KEY (scope=? AND member=? AND revision>? AND revision<?)",
		}},
		{seekPairs, []string{
			"SEARCH m USING COVERING INDEX scope_messages_by_author " + own + "<?)",
			"SEARCH a USING COVERING INDEX scope_activity_events_by_actor (scope=? AND actor=? AND seq<?)",
		}},
		{selectRemovedBy, []string{
			"SEARCH m USING COVERING INDEX scope_messages_removed_by_author " + own + ">?)",
		}},
		{countOverlap, []string{
			"SEARCH m USING INDEX scope_messages_by_principal (scope=? AND principal=? AND revision>?)",
		}},
		{selectLatest, []string{"SEARCH m USING INDEX scope_messages_live (scope=?)"}},
		{selectLiveBefore, []string{"SEARCH m USING INDEX scope_messages_live (scope=? AND seq<?)"}},
		{selectExpired, []string{
			"SEARCH m USING INDEX scope_messages_expiring (<expr>=? AND expires_at<?)",
		}},
		{selectExpiring, []string{
			"SEARCH m USING COVERING INDEX scope_messages_expiring (<expr>=? AND expires_at>?)",
		}},
		{selectPayloads, []string{
			"SEARCH w USING PRIMARY KEY (scope=? AND member=?)",
			"SEARCH m USING INDEX scope_messages_by_author (scope=? AND author=? AND revision>?)",
		}},
		{selectUncountedPayloads, []string{
			"SEARCH m USING INDEX scope_messages_uncounted (author=?)",
		}},
		{trimMentions, []string{
			"SEARCH m USING COVERING INDEX message_mentions_by_revision (scope=? AND revision<?)",
		}},
		{trimTargets, []string{
			"SEARCH m USING COVERING INDEX message_targets_by_revision (scope=? AND revision<?)",
		}},
		{selectWatchers, []string{
			"SEARCH n USING COVERING INDEX scope_notification_settings_followed (scope=?)",
		}},
		{selectJoined, []string{
			"SEARCH j USING PRIMARY KEY (scope=? AND member<?)",
			"SEARCH m USING PRIMARY KEY (scope=? AND member>?)",
		}},
		{selectActivityAt, []string{
			"SEARCH a USING COVERING INDEX scope_activity_events_by_signal (scope=? AND seq<?)",
			"SEARCH a USING COVERING INDEX scope_activity_events_by_actor (scope=? AND actor=? AND seq<?)",
			"SEARCH t USING PRIMARY KEY (scope=? AND member=? AND activity_seq>? AND activity_seq<?)",
		}},
		{selectPairedActivity, []string{
			"SEARCH a USING COVERING INDEX scope_activity_events_by_revision (scope=? AND revision>? AND revision<?)",
		}},
		{selectTimelineBefore, []string{
			"SEARCH a USING INDEX scope_activity_events_of_task (scope=? AND seq<?)",
		}},
		{selectActivityPayloads, []string{
			"SEARCH a USING INDEX scope_activity_events_with_payload (actor=?)",
		}},
		{selectConversations, []string{
			"SEARCH c USING INDEX im_conversation_index_by_time " +
				"(member=? AND kind=? AND (sort_at,scope)<(?,?))",
		}},
		{selectScopePageByType, []string{
			"SEARCH s USING INDEX scopes_by_type (workspace=? AND type=? AND id>?)",
		}},
		{selectCounted, []string{
			"SEARCH m USING INDEX scope_messages_by_revision (scope=? AND revision>?)",
		}},
	} {
		steps := plan(t, db, c.st.text(sqliteDialect, 1))
		for _, want := range c.steps {
			if !strings.Contains(strings.Join(steps, "\n")+"\n", want+"\n") {
				t.Errorf("%s: no step %q in\n%s", c.st.name, want, strings.Join(steps, "\n"))
			}
		}
	}
	// What is read in the order of its index is not sorted.
	for _, st := range []*statement{
		selectMessagesUp, selectMessagesDown, selectLiveAfter, selectLiveBefore, selectStatesOf,
		selectRowsAfter, selectMemberPage, selectScopePage, selectScopePageByType,
		selectScopePageByParent, selectRoster, selectRanks, seekPairs, selectRevisionAt,
		selectPayloads, selectLatest, selectCounted, selectCountedTargets, selectActivitiesAfter,
		selectActivitiesBefore, selectTimelineAfter, selectTimelineBefore, selectActivityAt,
		selectPairedActivity, selectActivityPayloads, selectConversations,
	} {
		for _, step := range plan(t, db, st.text(sqliteDialect, 1)) {
			if strings.HasPrefix(step, sorts) {
				t.Errorf("%s: %s", st.name, step)
			}
		}
	}
}

// A page reads no message, but for the pairs of its blocks.
func TestPageReadsNoMessage(t *testing.T) {
	for _, st := range []*statement{
		selectWorkspaceLSN, selectMembers, selectBlocked, selectRecentRows, selectRowsAfter,
		selectParents, selectScopes, selectPageRows, selectBlockedWriters,
		blockTables[0].counts, blockTables[1].counts, blockTables[0].load, blockTables[1].load,
	} {
		if text := st.text(sqliteDialect, 1); strings.Contains(text, "message") &&
			!strings.Contains(text, "root_message") {
			t.Errorf("%s reads messages:\n%s", st.name, text)
		}
	}
}

func TestStatementNames(t *testing.T) {
	seen := map[string]bool{}
	for _, st := range statements {
		if seen[st.name] {
			t.Errorf("two statements are called %q", st.name)
		}
		seen[st.name] = true
		if marked := keysMark; strings.Contains(st.text(sqliteDialect, 1), marked) {
			t.Errorf("%s keeps its mark", st.name)
		}
	}
}
