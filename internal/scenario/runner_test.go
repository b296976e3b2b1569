package scenario

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runFiles plays every block of every file and reports what Judge says of it.
func runFiles(t *testing.T, r *Runner, files []*File) {
	for _, file := range files {
		t.Run(strings.TrimSuffix(file.Path, ".txt"), func(t *testing.T) {
			for i := range file.Blocks {
				block := &file.Blocks[i]
				t.Run(strconv.Itoa(block.Number), func(t *testing.T) {
					err := r.Run(t.Context(), file, block)
					if errors.Is(err, ErrNoRestart) {
						t.Skip(err)
					}
					if wrong := Judge(block, err); wrong != nil {
						t.Error(wrong)
					} else if err != nil {
						t.Logf("expected failure, needs %s: %v", block.Needs, err)
					}
				})
			}
		})
	}
}

// The files are right by a second opinion: a server that recounts everything passes them all.
func TestScenariosAgreeWithARecount(t *testing.T) {
	runFiles(t, serveDumb(t, ""), parseAll(t))
}

func parseBlock(t *testing.T, operations string) *File {
	t.Helper()
	text := "# covers: SC-001\nA title\n1. A block\n" + operations
	file, err := Parse("f.txt", text)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A runner that cannot fail proves nothing: each wrong server is caught at the right line.
func TestWrongServersAreCaught(t *testing.T) {
	cases := []struct{ fault, operations, want string }{
		{"deleted messages count", `
    channel c: A B
    post A m1 in c
    delete m1
    expect B c unread=0`, "f.txt:8: expect B c unread=0\n" +
			"\texpected  unread=0\n\tgot       unread=1\n\trow       {unread=1 "},
		{"the cursor moves back", `
    channel c: A B
    post A m1, m2 in c
    read B m2
    read B m1 -> unchanged`, "f.txt:8: read B m1 -> unchanged\n" +
			"\texpected  unchanged\n\tgot       200 "},
		{"late reads clear marks", `
    channel c: A B
    post A m1 in c
    read B m1
    prepare late: read B m1
    unread B from m1
    send late -> manual=true`, "f.txt:10: send late -> manual=true\n" +
			"\texpected  manual=true\n\tgot       manual=false"},
		{"muted messages are shown", `
    channel c: A B
    mute B c
    post A m1 in c
    expect B badge messages=0`, "f.txt:8: expect B badge messages=0\n" +
			"\texpected  messages=0\n\tgot       messages=1"},
		{"the badge drifts", `
    channel c: A B
    post A m1, m2 in c
    expect B c unread=2`, "the listed rows add up to {Messages:2 "},
		{"leaving does nothing", `
    channel c: A B
    leave B c
    expect B c absent`, "f.txt:7: expect B c absent\n\tc is listed for B"},
		{"deltas come twice", `
    channel c: A B
    stream B as phone
    watch phone
    post A m1 in c
    expect phone deltas c count=1`, "expected  count=1\n\tgot       count=2"},
		{"deltas are late", `
    channel c: A B
    stream B as phone
    post A m1 in c
    expect phone c unread=1`, "phone and the list disagree about c: on the device {unread=0 "},
		{"the query is stale", `
    channel c: A B
    expect B c unread=0`, "the query and the list disagree about c:\n\t{unread=1 "},
		{"cold with numbers", `
    channel c: A B
    expect B c unread=0`, "state is hydrating, yet there are numbers"},
		{"reading all acknowledges the inbox", `
    dm d: A B
    post A m1 in d
    read-all B
    expect B inbox count=1`, "f.txt:8: expect B inbox count=1\n" +
			"\texpected  count=1\n\tgot       count=0"},
		{"an acknowledgement reaches the head", `
    dm d: A B
    post A m1 in d
    open-inbox B as overview
    post A m2 in d
    ack-inbox B overview
    expect B inbox count=1`, "f.txt:10: expect B inbox count=1\n" +
			"\texpected  count=1\n\tgot       count=0"},
		{"always cold", `
    channel c: A B
    expect B c unread=0`, "the list of B stays hydrating"},
	}
	for _, c := range cases {
		t.Run(c.fault, func(t *testing.T) {
			file := parseBlock(t, c.operations)
			if err := serveDumb(t, "").Run(t.Context(), file, &file.Blocks[0]); err != nil {
				t.Fatalf("a right server fails: %v", err)
			}
			err := serveDumb(t, c.fault).Run(t.Context(), file, &file.Blocks[0])
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("want a failure with\n%s\ngot\n%v", c.want, err)
			}
		})
	}
}

func TestAWithheldListIsAskedForAgainAfterASnapshot(t *testing.T) {
	file := parseBlock(t, `
    channel c: A B
    post A m1 in c
    expect B c unread=1 or hydrating
    expect B c unread=1 state=ready`)
	r := serveDumb(t, "cold until streamed")
	if err := r.Run(t.Context(), file, &file.Blocks[0]); err != nil {
		t.Fatal(err)
	}
}

func TestAFailureCarriesTheExplanation(t *testing.T) {
	file := parseBlock(t, `
    channel c: A B
    post A m1 in c
    expect B c unread=2`)
	err := serveDumb(t, "").Run(t.Context(), file, &file.Blocks[0])
	var failed *StatementError
	if !errors.As(err, &failed) || len(failed.Context) != 1 {
		t.Fatalf("want a failure with one explanation, got %v", err)
	}
	if want := `explain   B c: 200 {"head":1,"messages":["m1"]}`; failed.Context[0] != want {
		t.Fatalf("want %s\ngot %s", want, failed.Context[0])
	}
}

// A delta that never comes ends the block at its deadline, with the reason.
func TestASilentServerEndsAtTheDeadline(t *testing.T) {
	file := parseBlock(t, `
    channel c: A B
    stream B as phone
    post A m1 in c
    expect phone c unread=1`)
	ctx, cancel := context.WithCancelCause(t.Context())
	r := serveDumb(t, "departures are silent")
	r.opts.OnEvent = func(_ string, data []byte) {
		if strings.Contains(string(data), fenceScope) {
			cancel(errors.New("the deadline"))
		}
	}
	err := r.Run(ctx, file, &file.Blocks[0])
	if err == nil || !strings.Contains(err.Error(), "f.txt:8: expect phone c unread=1") {
		t.Fatalf("want a failure at the expectation, got %v", err)
	}
}

func TestJudgeAcceptsOnlyTheAnnouncedFailure(t *testing.T) {
	needy := parseBlock(t, `    needs: push
    channel c: A B
    device phone of B
    post A m1 in c
    expect B c unread=1
    expect phone push badge=0`)
	block := &needy.Blocks[0]
	r := serveDumb(t, "")
	err := r.Run(t.Context(), needy, block)
	if err == nil || Judge(block, err) != nil {
		t.Fatalf("the announced failure must be accepted: %v", err)
	}
	if wrong := Judge(block, nil); wrong == nil ||
		!strings.Contains(wrong.Error(), `remove its line "needs: push"`) {
		t.Errorf("a pass must be reported: %v", wrong)
	}
	elsewhere := &StatementError{Statement: &block.Statements[3], Err: errors.New("wrong count")}
	if Judge(block, elsewhere) == nil {
		t.Error("a failure elsewhere must be reported")
	}
	if Judge(block, errors.New("no connection")) == nil {
		t.Error("a block that could not begin must be reported")
	}
	plain := parseBlock(t, "    channel c: A\n    expect A c unread=0")
	if Judge(&plain.Blocks[0], nil) != nil || Judge(&plain.Blocks[0], elsewhere) == nil {
		t.Error("a block without needs is judged by its own result")
	}
}

func TestBlocksThatRestartAreSkippedWithoutARestart(t *testing.T) {
	file := parseBlock(t, "    channel c: A\n    restart\n    expect A c unread=0")
	r := serveDumb(t, "")
	r.opts.Restart = nil
	if err := r.Run(t.Context(), file, &file.Blocks[0]); !errors.Is(err, ErrNoRestart) {
		t.Fatalf("want ErrNoRestart, got %v", err)
	}
}

// The hooks see every exchange and every event, so that they can be validated.
func TestHooksSeeExchangesAndEvents(t *testing.T) {
	file := parseBlock(t, `
    channel c: A B
    stream B as phone
    post A m1 in c
    expect phone c unread=1`)
	r := serveDumb(t, "")
	exchanges := map[string]int{}
	events := make(chan string, 100)
	r.opts.OnExchange = func(req *http.Request, resp *http.Response, body []byte) {
		exchanges[req.Method+" "+strconv.Itoa(resp.StatusCode)]++
		if stream := strings.HasSuffix(req.URL.Path, "/events"); stream != (body == nil) {
			t.Errorf("%s has body %q", req.URL.Path, body)
		}
	}
	r.opts.OnEvent = func(name string, _ []byte) { events <- name }
	if err := r.Run(t.Context(), file, &file.Blocks[0]); err != nil {
		t.Fatal(err)
	}
	if exchanges["POST 201"] != 1 || exchanges["PUT 200"] < 5 || exchanges["GET 200"] < 3 {
		t.Errorf("exchanges %v", exchanges)
	}
	if first, second := <-events, <-events; first != "hello" || second != "snapshot" {
		t.Errorf("events begin with %s, %s", first, second)
	}
}
