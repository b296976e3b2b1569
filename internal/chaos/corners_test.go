package chaos

import (
	"net/http"
	"testing"

	"github.com/tidemark-im/tidemark/httpapi"
)

// A process that is killed while it makes a new database leaves one that the next process can
// finish, wherever it was.
func TestKilledWhileMakingTheDatabase(t *testing.T) {
	killedWhileMaking(t, func() store { return inFile(t) }, 5)
}

// killedWhileMaking kills a few processes, each over a new database.
func killedWhileMaking(t *testing.T, fresh func() store, times int) {
	t.Helper()
	s := launch(t, fresh(), nil)
	statements := s.opened
	s.kill()
	step := statements / times
	if soaking() {
		step = 1
	}
	for n := 1; n <= statements; n += step {
		in := fresh()
		if s := launch(t, in, &blow{Place: opening, After: n}); s != nil {
			t.Fatalf("statement %d of %d was never reached", n, statements)
		}
		s := launch(t, in, nil)
		w := dial(s)
		admin := token(t, "w", "the-admin", httpapi.RoleAdmin)
		for _, put := range []struct{ path, body string }{
			{address("w"), `{"name":"W"}`},
			{address("w", "members", "m"), `{"kind":"human"}`},
			{address("w", "scopes", "c"), `{"type":"channel"}`},
			{address("w", "scopes", "c", "members", "m"), `{}`},
		} {
			status, body, err := w.call(t.Context(), admin, http.MethodPut, put.path,
				[]byte(put.body))
			if err != nil || status != http.StatusOK {
				t.Fatalf("killed before statement %d: PUT %s: %d %s %v", n, put.path, status, body, err)
			}
		}
		w.close()
		s.kill()
		in.check(t)
	}
	t.Logf("a new database takes %d statements; killed before every %d.", statements, step)
}

// A rewind and a trim take several commits. Each leaves a correct state behind, and the operation
// that was never answered is finished when it is sent again.
func TestKilledBetweenTheCommitsOfOneOperation(t *testing.T) {
	s := newSiege(t, inFile(t), uint64(number(t, seedEnv, 1)))
	s.start(nil)
	s.found()
	s.watch()
	c := s.clients[0]
	scope := c.owned[0]
	do := func(a *act) bool {
		t.Helper()
		alive := c.do(t.Context(), s.wire, a)
		if c.fault != nil {
			s.fail("under load", c.fault.Error())
		}
		return alive
	}
	for _, k := range []kind{rewind, trim} {
		floods, through := 2, uint64(20)
		if k == trim { // what was taken back before is still there
			floods = 1
		}
		for range floods {
			if !do(c.collect(manyEntries, scope)) {
				s.fail("under load", "no answer")
			}
		}
		if k == trim {
			through = c.world.head(scope).seq - 20
		}
		a := c.cut(k, scope, through)
		for range 2 { // more than a thousand entries are three commits; it has to begin anew twice
			s.kills = append(s.kills, blow{Place: committed, After: 1})
			s.server.arm(t, s.kills[len(s.kills)-1])
			if do(a) {
				s.fail("under load", string(k)+" was answered in spite of the kill")
			}
			s.bury()
			s.start(nil)
			s.watch()
			s.judge(restarted)
		}
		durables := readDurable(t, s.store)
		if _, done := durables[c.world.name].receipts[a.OpID]; done {
			s.fail(restarted, string(k)+" was complete after two of its commits")
		}
		s.resolve(durables)
		s.judge(resolved)
		again := c.act(again, a.Method, a.Path)
		again.Body, again.Original = a.Body, a
		do(again)
	}
	s.server.kill()
	s.end()
}
