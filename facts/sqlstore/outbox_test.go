package sqlstore

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/facts/factstest"
)

func TestOutbox(t *testing.T) {
	factstest.TestOutbox(t, func(t *testing.T) factstest.OutboxStore {
		st, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "facts.db"), Options{Unsafe: true})
		if err != nil {
			t.Fatal(err)
		}
		return st
	})
}

// What is waited for in order is read in order, and the frequent looks use their own index.
func TestOutboxPlans(t *testing.T) {
	db := openStore(t).writer.db
	db.SetMaxOpenConns(2)
	for _, c := range []struct {
		st   *statement
		step string
	}{
		{selectFreshRows, "SEARCH o USING PRIMARY KEY (workspace=? AND event>?)"},
		{selectDueEffects, "SEARCH s USING COVERING INDEX outbox_state_due (due_at<?)"},
		{selectTaken, "SEARCH s USING INDEX outbox_state_leased (workspace=?)"},
		{selectDueQueues, "SEARCH e USING INDEX wake_endpoints_due (slow=? AND due_at<?)"},
		{selectWakes, "SEARCH w USING PRIMARY KEY (recipient=? AND wake>?)"},
		{selectDelivered, "SEARCH s USING COVERING INDEX outbox_state_delivered (settled_at<?)"},
		{selectLetters, "SEARCH w USING INDEX dead_letters_by_workspace (workspace=? AND letter>?)"},
	} {
		steps := plan(t, db, c.st.text(sqliteDialect, 1))
		if !slices.Contains(steps, c.step) {
			t.Errorf("%s: no step %q in\n%s", c.st.name, c.step, strings.Join(steps, "\n"))
		}
		for _, step := range steps {
			if strings.HasPrefix(step, sorts) {
				t.Errorf("%s: %s", c.st.name, step)
			}
		}
	}
}
