package inbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/readstate"
)

// workerEnv names the database on which this program plays a worker that is killed.
const workerEnv = "TIDEMARK_TEST_INBOX_WORKER"

// playWorker projects item by item and says so after each; before the third commit it says so and
// waits for its end.
func playWorker(path string) error {
	ctx := context.Background()
	store, err := sqlstore.OpenSQLite(ctx, path, sqlstore.Options{})
	if err != nil {
		return err
	}
	rows, err := store.TakeOver(ctx)
	if err != nil {
		return err
	}
	steps := 0
	b, err := New(Options{
		Store: store, Limits: Limits{BatchRows: 1},
		Terms: func(facts.WorkspaceKey) (uint64, bool) { return rows[0].Term, true },
		OnProject: func(context.Context) error {
			if steps++; steps == 3 {
				fmt.Println("within the third")
				select {} // until it is killed
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	if err := b.rescan(ctx); err != nil {
		return err
	}
	_, err = b.Work(ctx)
	return errors.Join(errors.New("it was not killed"), err)
}

// A worker that is killed within a batch leaves P and the greatest positions as they were before it,
// and the next one goes on from there.
//
// covers: IN-085
func TestWorkerIsKilled(t *testing.T) {
	w := newWorld(t)
	for _, m := range []readstate.MemberID{"Bo", "Bo", "Cy", "Dee"} {
		w.send(m)
	}
	w.close()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+w.path)
	out, err := cmd.StdoutPipe()
	w.ok(err)
	w.ok(cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "within the third\n" {
		t.Fatalf("%q, %v", line, err)
	}
	w.ok(cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	w.open()
	b := w.inbox()
	w.wantBadge(b, "H4 A0 P2 tail 2: Bo Cy Dee")
	if got := w.maxima(); got != "Bo2" {
		t.Errorf("positions are %s", got)
	}
	w.ok(b.rescan(t.Context()))
	if n := w.work(b); n != 2 {
		t.Errorf("%d items were left", n)
	}
	w.wantBadge(b, "H4 A0 P4 tail 0: Bo Cy Dee")
}
