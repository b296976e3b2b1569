package intake

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/unread/snapshot"
	"github.com/tidemark-im/tidemark/unread/snapshot/sqlsnap"
)

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if EnvPrefix+pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// covers: RT-403 RT-404 RT-405 RT-408 RT-435 RT-436 RT-437 RT-438 RT-440 RT-447
func TestDefaults(t *testing.T) {
	c := Config{Store: new(sqlsnap.Store)}
	if err := c.FromEnv(env()); err != nil {
		t.Fatal(err)
	}
	c, err := c.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if c.Flush.FlushInterval != 30*time.Second || c.Flush.FlushBatchSize != 1000 ||
		c.Runtime.HydrateConcurrency != 2 || c.Runtime.HydratePageSize != 100 ||
		c.Runtime.HydrateRetry != 5*time.Second || c.MaxQueuedEvents != 10_000 ||
		c.DrainBatch != 500 || c.MaxPendingEvents != 1000 || c.MaxRoster != 10_000 ||
		c.Limits != (snapshot.Limits{
			Backlog: 100_000, Cached: 100_000, Scopes: 100_000, Held: 200, HeldTotal: 1_000_000,
		}) {
		t.Errorf("%+v", c)
	}
}

// covers: RT-440 RT-441 RT-442
func TestOverrides(t *testing.T) {
	c := Config{Store: new(sqlsnap.Store)}
	if err := c.FromEnv(env("SNAPSHOT_FLUSH_INTERVAL", "7s", "HYDRATE_BATCH_SIZE", "12")); err != nil {
		t.Fatal(err)
	}
	c, err := c.WithDefaults()
	if err != nil || c.Flush.FlushInterval != 7*time.Second || c.Runtime.HydratePageSize != 12 ||
		c.Flush.FlushBatchSize != 1000 || c.Runtime.HydrateConcurrency != 2 {
		t.Errorf("%+v %v", c, err)
	}
}

// Every variable refuses what is no positive number, and names itself.
// covers: RT-409 RT-443 RT-444 RT-445 RT-446
func TestBadOverrides(t *testing.T) {
	var c Config
	bad := func(name string, values ...string) {
		t.Helper()
		for _, v := range values {
			err := c.FromEnv(env(name, v))
			if err == nil || !strings.Contains(err.Error(), EnvPrefix+name) {
				t.Errorf("%s=%q: %v", name, v, err)
			}
		}
	}
	for _, b := range c.budgets() {
		bad(b.env, "0", "-1", "x", "1.5", "")
	}
	bad("MAX_BYTES", "0GiB", "-1MiB", "GiB", "1.5GiB", "9999999999TiB", "1GB")
	for _, d := range c.spans() {
		bad(d.env, "0s", "-1s", "30", "x", "")
	}
	for _, b := range c.budgets() {
		if *b.value != 0 {
			t.Errorf("a bad value left %s at %d", b.field, *b.value)
		}
	}
	for i := range c.budgets() {
		c := Config{Store: new(sqlsnap.Store)}
		*c.budgets()[i].value = -1
		if _, err := New(c); err == nil {
			t.Errorf("%s: -1 was accepted", c.budgets()[i].field)
		}
	}
	for i := range c.spans() {
		c := Config{Store: new(sqlsnap.Store)}
		*c.spans()[i].value = -1
		if _, err := New(c); err == nil {
			t.Errorf("%s: -1 was accepted", c.spans()[i].field)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("no store was accepted")
	}
}
