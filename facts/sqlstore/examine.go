package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Condition is what can be said of a database on a server.
type Condition struct {
	Version   string        // of the server, in its own words
	RoundTrip time.Duration // of a statement that reads nothing, the median of a few
	Doubts    []string      // settings of the server under which an acknowledged write may be lost
}

const roundTrips = 9

// Examine asks the server of a name how it is set up, and times it. The name is one of a server.
func Examine(ctx context.Context, name string) (Condition, error) {
	sv, err := parseServer(name, Options{})
	if err != nil {
		return Condition{}, err
	}
	db := sv.handle(roleKeeping, nil)
	defer db.Close() //nolint:errcheck // it was only read
	c, err := examine(ctx, sv.d, db)
	return c, sv.d.fail("look at "+sv.shown, err)
}

func examine(ctx context.Context, d *dialect, db *sql.DB) (c Condition, err error) {
	db.SetMaxOpenConns(1)
	if err = db.QueryRowContext(ctx, "SELECT version()").Scan(&c.Version); err != nil {
		return c, err
	}
	var took []time.Duration
	for range roundTrips {
		started, one := time.Now(), 0
		if err = db.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
			return c, err
		}
		took = append(took, time.Since(started))
	}
	slices.Sort(took)
	c.RoundTrip = took[len(took)/2]
	if d == postgresDialect {
		c.Version, _, _ = strings.Cut(c.Version, " on ")
		c.Doubts, err = doubts(ctx, db, map[string]string{
			"SELECT current_setting('fsync')":            "on",
			"SELECT current_setting('full_page_writes')": "on",
		})
		return c, err
	}
	if strings.Contains(c.Version, "TiDB") {
		return c, nil // it has no such settings
	}
	if !strings.Contains(c.Version, "MariaDB") {
		c.Version = "MySQL " + c.Version
	}
	c.Doubts, err = doubts(ctx, db, map[string]string{
		"SELECT @@innodb_flush_log_at_trx_commit": "1", "SELECT @@innodb_doublewrite": "1",
	})
	return c, err
}

// doubts asks for settings and returns those that are not as they should be. Where a server says yes
// in another word, that is right, too.
func doubts(ctx context.Context, db *sql.DB, wanted map[string]string) ([]string, error) {
	var out []string
	for query, want := range wanted {
		var is string
		if err := db.QueryRowContext(ctx, query).Scan(&is); err != nil {
			return nil, err
		}
		on, err := strconv.ParseBool(is)
		yes := strings.EqualFold(is, "on") || err == nil && on
		if is != want && !yes {
			name := strings.NewReplacer("SELECT ", "", "@@", "", "current_setting('", "", "')", "").Replace(query)
			out = append(out, fmt.Sprintf("%s is %s", name, is))
		}
	}
	slices.Sort(out)
	return out, nil
}
