package chaos

import (
	"testing"

	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// serverKills are those of a plain run on each kind of server.
const serverKills = 3

// What holds in a file holds on a server, which goes on while its processes are killed.
//
// covers: RT-355
func TestKillsBesideServers(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			s := newSiege(t, onServer(t, k), uint64(number(t, seedEnv, 1)))
			kills := serverKills
			if soaking() {
				kills = soakKills
			}
			s.endure(number(t, killsEnv, kills))
		})
	}
}

// A process that is killed while it makes the tables on a server leaves some that the next one can
// finish, wherever it was.
func TestKilledWhileMakingTables(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			killedWhileMaking(t, func() store { return onServer(t, k) }, 2)
		})
	}
}

// A server that drops all sessions in the middle of the load, as it does when it starts anew, costs
// nobody an answer: what was cut off is looked up or done again.
//
// covers: RT-355
func TestCutsUnderLoad(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			s := newSiege(t, onServer(t, k), uint64(number(t, seedEnv, 1)))
			cuts := serverKills
			if soaking() {
				cuts = soakKills
			}
			s.start(nil)
			s.found()
			s.watch()
			for range cuts {
				s.journal.alarmAfter(1+s.rng.IntN(60), func() { s.store.cut(t) })
				if s.load(80) {
					s.fail("under load", "the server died")
				}
				s.judge(loaded)
				if troubles := s.server.troubles(); len(troubles) > 0 {
					s.fail("running", troubles...)
				}
			}
			s.server.kill()
			s.end()
			t.Logf("%d cuts; %d requests answered, %d served rows equal a recount", cuts,
				s.journal.answers, s.counted)
		})
	}
}
