package inbox

import (
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// onServer are the databases of tests that run below TestOnServers, by kind of server.
var onServer sync.Map // of dbtest.Database

// serverOf is the database of such a test.
func serverOf(t testing.TB) (dbtest.Database, bool) {
	parts := strings.SplitN(t.Name(), "/", 3)
	if len(parts) < 3 || parts[0] != "TestOnServers" {
		return dbtest.Database{}, false
	}
	db, ok := onServer.Load(parts[1])
	if !ok {
		return dbtest.Database{}, false
	}
	return db.(dbtest.Database), true
}

// What is true of inboxes in a file is true of them on every server.
//
// covers: IN-170
func TestOnServers(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			db := k.New(t)
			onServer.Store(k.Name, db)
			defer onServer.Delete(k.Name)
			for _, test := range []struct {
				name string
				run  func(t *testing.T)
			}{
				{"BadgeCountsSenders", TestBadgeCountsSenders},
				{"BadgeIsNotReading", TestBadgeIsNotReading},
				{"BadgeEligibility", TestBadgeEligibility},
				{"BadgeAtEveryP", TestBadgeAtEveryP},
				{"BadgeIsOfOneMoment", TestBadgeIsOfOneMoment},
				{"Open", TestOpen},
				{"OpenShowsWhatIsNew", TestOpenShowsWhatIsNew},
				{"Acknowledge", TestAcknowledge},
				{"AcknowledgeRefusals", TestAcknowledgeRefusals},
				{"WorkersAtOnce", TestWorkersAtOnce},
				{"Rebuild", TestRebuild},
				{"Retention", TestRetention},
			} {
				db.Clear(t)
				t.Run(test.name, test.run)
			}
		})
	}
}
