package chaos

import (
	"testing"

	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// serverKills are those of a plain run on each kind of server.
const serverKills = 4

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
