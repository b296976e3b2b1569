package walk

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The whole walk-through, on a loopback port and a private database, step by step.
//
// covers: IN-025 IN-093 IN-094 IN-097 IN-098 IN-099 IN-100 IN-101 IN-102 IN-103 IN-104
// covers: IN-105 IN-106 IN-107 IN-108 IN-109 IN-110 IN-111 IN-112 IN-113 IN-115 IN-146 IN-161
func TestInboxWalkThrough(t *testing.T) {
	var out bytes.Buffer
	if err := Inbox(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	text := out.String()
	for _, want := range []string{
		`{"accepted_through":3,"acknowledged_through":0,"count":2,"projected_through":0,"senders":["Bo","Cy"],"tail_rows":3}`,
		`{"accepted_through":4,"acknowledged_through":3,"count":1,"projected_through":0,"senders":["Dee"],"tail_rows":4}`,
		`{"accepted_through":4,"acknowledged_through":3,"count":1,"projected_through":4,"senders":["Dee"],"tail_rows":0}`,
		"empty transfer encoding 400", "huge numeric length     400", "ambiguous length        400",
		"short body              400", "unpaired surrogate      400", "read positions [0, 0, 0]", "15. The source is made unavailable", "a set that is cleared counts 0",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %s\n%s", want, text)
		}
	}
}

// Each subject of the verification has a test of its own, by name; what the walk-through and the probes
// are not, has one, too.
//
// covers: IN-167, IN-126, IN-176
func TestEverySubjectHasATest(t *testing.T) {
	for subject, at := range map[string][2]string{
		"duplicate suppression":          {"facts/factstest/laneinbox.go", "testInboxSends"},
		"changed content":                {"facts/factstest/laneinbox.go", "testInboxSends"},
		"arrival race":                   {"inbox/histories_test.go", "TestArrivalRaceHistories"},
		"clear-all control":              {"inbox/histories_test.go", "TestPlantedFaultsAreReported"},
		"interruption and reopen":        {"inbox/worker_test.go", "TestWorkerIsInterrupted"},
		"kill":                           {"inbox/kill_test.go", "TestWorkerIsKilled"},
		"delayed projection":             {"inbox/badge_test.go", "TestBadgeAtEveryP"},
		"two devices":                    {"inbox/overview_test.go", "TestAcknowledge"},
		"ownership refusals":             {"inbox/overview_test.go", "TestAcknowledgeRefusals"},
		"ownership refusals on the wire": {"httpapi/inbox_test.go", "TestInboxIsItsMembers"},
		"probes":                         {"httpapi/inbox_test.go", "TestInboxRefusalsChangeNothing"},
		"thread read positions":          {"inbox/badge_test.go", "TestBadgeIsNotReading"},
		"unavailability":                 {"inbox/badge_test.go", "TestStoreGone"},
		"credentials":                    {"httpapi/errortable_test.go", "TestNobodyGetsIn"},
		"load":                           {"internal/bench/figures/figures_test.go", "TestBell"},
		"random histories":               {"inbox/random_test.go", "TestRandomHistories"},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(at[0])))
		if err != nil || !strings.Contains(string(text), "\nfunc "+at[1]+"(t *testing.T") {
			t.Errorf("%s has no test %s in %s: %v", subject, at[1], at[0], err)
		}
	}
}
