package figures

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// runStart measures the program from exec to the first page.
func runStart(ctx context.Context, r *bench.Run) (err error) {
	f := r.Figure(processStart)
	if r.Program.Path == "" {
		f.Skip("the program cannot be started again from here")
		return nil
	}
	large := bench.Pick(r.Scale, 20, 5_000, 50_000)
	small := bench.Pick(r.Scale, 2, 50, 50)
	var databases [2]*office
	for i, members := range []int{small, large} {
		o, err := fillDatabase(ctx, r, members)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.close()) }()
		databases[i] = o
	}
	cold := dropCaches(r.Scale)
	f.Note("%d read states in SQLite against %d. File cache: %s.", large*crowdScopes,
		small*crowdScopes, cold.text)
	next := 0
	return r.Each(ctx, func(ctx context.Context, round int) error {
		var took [3]float64
		order := []int{0, 1, 2}
		if round%2 == 1 {
			order = []int{2, 1, 0}
		}
		for _, k := range order {
			o, members := databases[[]int{0, 1, 0}[k]], []int{small, large, small}[k]
			if err := cold.drop(); err != nil {
				return err
			}
			next++
			d, err := firstPage(ctx, r, o, officeMember(next%members))
			if err != nil {
				return err
			}
			took[k] = float64(d)
		}
		f.Add("small database", bench.Nanoseconds, took[0])
		f.Add("large database", bench.Nanoseconds, took[1])
		f.Add("small database again", bench.Nanoseconds, took[2])
		f.Hold(took[1] / took[0])
		f.HoldControl(took[2] / took[0])
		return nil
	})
}

// fillDatabase writes members of 200 channels each through the library and closes it.
func fillDatabase(ctx context.Context, r *bench.Run, members int) (*office, error) {
	o, err := openOffice(ctx, tidemark.Options{
		Lane:    facts.LaneConfig{GroupRows: 20_000, GroupWait: 250 * time.Millisecond},
		Runtime: unread.Config{MaxEntries: 1_000},
	})
	if err != nil {
		return nil, err
	}
	channels := max(crowdScopes, members/25)
	rows := members * crowdScopes
	bar := r.Bar("filling", "rows", 2*channels+rows)
	defer bar.End()
	err = o.fill(ctx, 2*channels+rows, func(b *facts.Batch, i int) {
		switch n := i - 2*channels; {
		case i < channels:
			b.PutScope(facts.PutScope{ID: officeChannel(i), Type: readstate.Channel})
		case i < 2*channels:
			b.Post(facts.Post{
				Scope: officeChannel(i - channels), OpID: fmt.Sprint("first-", i), Author: "writer",
				Payload: payload, By: facts.Actor{Trusted: true}, CreateMembers: true,
			})
		default:
			first := readstate.Revision(1)
			m := n / crowdScopes
			b.PutMembership(facts.PutMembership{
				Scope:  officeChannel((m*31 + n%crowdScopes*(channels/crowdScopes)) % channels),
				Member: officeMember(m), CreateMember: true, Effective: &first,
			})
		}
	}, func(n int) { bar.Set(int64(n)) })
	if err = errors.Join(err, o.shut()); err != nil {
		return nil, errors.Join(err, o.close())
	}
	return o, nil
}

// cache is what is done about the system's file cache before a start.
type cache struct {
	text string
	drop func() error
}

const dropFile = "/proc/sys/vm/drop_caches"

// dropCaches finds out whether the file cache may be dropped. A quick run leaves it alone: it
// would slow others down for nothing.
func dropCaches(scale bench.Scale) cache {
	nothing := func() error { return nil }
	if scale == bench.Quick {
		return cache{"left as it was, at this scale", nothing}
	}
	drop := func() error { return os.WriteFile(dropFile, []byte("3\n"), 0) }
	if err := drop(); err != nil {
		return cache{fmt.Sprintf("left as it was (%v)", err), nothing}
	}
	return cache{"dropped before each start", drop}
}

// firstPage starts the program on a database and returns when a member's first page is there.
func firstPage(
	ctx context.Context, r *bench.Run, o *office, m readstate.MemberID,
) (took time.Duration, err error) {
	token, err := httpapi.SignToken(secret, httpapi.Claims{
		Workspace: space, Member: m, Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.Program.Path, "serve", "--facts", "sqlite:"+o.path(),
		"--listen", "127.0.0.1:0", "--admin-listen", "off", "--log-format", "json")
	cmd.Env = append(os.Environ(), r.Program.Env...)
	cmd.Env = append(cmd.Env, "TIDEMARK_JWT_SECRET="+string(secret))
	out, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, out)
		err = errors.Join(err, cmd.Wait())
	}()
	url, err := servingURL(out)
	if err != nil {
		return 0, err
	}
	if err := wholePage(ctx, url+unreadPath, token); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}

// servingURL waits for the log line that says where the server is.
func servingURL(out io.Reader) (string, error) {
	in := bufio.NewScanner(out)
	var last string
	for in.Scan() {
		var line struct{ Msg, URL string }
		last = in.Text()
		if json.Unmarshal(in.Bytes(), &line) == nil && line.Msg == "serving" {
			return line.URL, nil
		}
	}
	return "", fmt.Errorf("the program ended before it served: %s", strings.TrimSpace(last))
}

func wholePage(ctx context.Context, url, token string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var page live.Page
	if err := json.NewDecoder(res.Body).Decode(&page); err != nil {
		return err
	}
	for id, row := range page.Scopes {
		if row.Unread != 1 {
			return fmt.Errorf("%s has %d unread, want 1", id, row.Unread)
		}
	}
	if res.StatusCode != http.StatusOK || len(page.Scopes) != crowdScopes || !page.Complete {
		return fmt.Errorf("%s: %d scopes, complete %t", res.Status, len(page.Scopes), page.Complete)
	}
	return nil
}
