package retold

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/conformance"
	"github.com/tidemark-im/tidemark/internal/scenario"
)

// beyond are the verbs of blocks that cannot be retold; devices are the verbs that are left out.
var (
	beyond  = []string{"random", "app", "open-inbox", "ack-inbox"}
	devices = []string{
		"stream", "watch", "drop", "resume", "reconnect", "refresh", "replay", "restart",
	}
)

// fence begins the names of the scopes by which the runner waits for devices.
const fence = "scenario-fence"

// maxCase bounds the text of a case in bytes: some scenarios post hundreds of messages.
const maxCase = 12 << 10

// Make returns a suite for each scenario file in a directory that has blocks to retell.
func Make(ctx context.Context, dir string) ([]conformance.Suite, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no scenarios in %s: %w", dir, err)
	}
	store, err := os.MkdirTemp("", "retold")
	if err != nil {
		return nil, fmt.Errorf("make a store: %w", err)
	}
	defer func() { _ = os.RemoveAll(store) }() // what is left is in a place for such things
	server, err := Start(ctx, store)
	if err != nil {
		return nil, err
	}
	var out []conformance.Suite
	for _, path := range paths {
		suite, err := server.file(ctx, path)
		if err != nil {
			_ = server.Close() // the first error tells more
			return nil, err
		}
		if len(suite.Cases) > 0 {
			out = append(out, suite)
		}
	}
	return out, server.Close()
}

// file retells a file of scenarios.
func (s *Server) file(ctx context.Context, path string) (conformance.Suite, error) {
	var suite conformance.Suite
	text, err := os.ReadFile(path)
	if err != nil {
		return suite, fmt.Errorf("read scenario: %w", err)
	}
	file, err := scenario.Parse(filepath.Base(path), string(text))
	if err != nil {
		return suite, err
	}
	suite.Suite, suite.About = strings.ToLower(file.Covers[0]), file.Title+"."
	for i := range file.Blocks {
		block := &file.Blocks[i]
		if block.Needs != scenario.Hub || slices.ContainsFunc(block.Statements, isBeyond) {
			continue
		}
		steps, err := s.retell(ctx, file, block)
		if err != nil {
			return suite, err
		}
		size, err := json.Marshal(steps)
		if err != nil {
			return suite, fmt.Errorf("%s: %w", path, err)
		}
		if len(size) > maxCase || !slices.ContainsFunc(steps, looks) {
			continue
		}
		about := block.Title + "."
		if slices.ContainsFunc(block.Statements, isOfDevice) {
			about += " (Without its devices and restarts.)"
		}
		suite.Cases = append(suite.Cases, conformance.Case{
			Head: conformance.Head{
				ID:     fmt.Sprintf("%s-%d", suite.Suite, block.Number),
				Covers: file.Covers, About: about,
			},
			Steps: steps,
		})
	}
	return suite, nil
}

func isBeyond(s scenario.Statement) bool {
	return slices.Contains(beyond, s.Verb()) || strings.Contains(s.Text, "or hydrating")
}

func isOfDevice(s scenario.Statement) bool { return slices.Contains(devices, s.Verb()) }

// looks tells whether a step looks at more than a status.
func looks(s conformance.Step) bool {
	return s.Request.Method == http.MethodGet && len(s.Expect.Body) > 0
}

// retell plays a block and keeps what happens.
func (s *Server) retell(
	ctx context.Context, file *scenario.File, block *scenario.Block,
) ([]conformance.Step, error) {
	k := &keeper{actors: map[string]string{}}
	runner, err := scenario.New(scenario.Options{
		BaseURL: s.URL, HTTP: s.Client,
		Token: func(workspace, member, role string) (string, error) {
			token, err := s.Token(workspace, member, role)
			k.actors["Bearer "+token] = map[string]string{
				"admin": conformance.RoleAdmin, "service": conformance.RoleService, "member": member,
			}[role]
			return token, err
		},
		Restart:     func(context.Context) (string, error) { return s.URL, nil },
		OnStatement: func(st *scenario.Statement) { k.statement = st },
		OnExchange:  k.exchange,
	})
	if err != nil {
		return nil, err
	}
	if err := runner.Run(ctx, file, block); err != nil {
		return nil, err
	}
	return k.steps, k.err
}

// keeper keeps exchanges as steps.
type keeper struct {
	statement *scenario.Statement
	actors    map[string]string // by the header that tells them
	workspace string
	media     string // of the answer at hand
	steps     []conformance.Step
	err       error
}

func (k *keeper) exchange(req *http.Request, resp *http.Response, body []byte) {
	if k.err == nil {
		k.media = resp.Header.Get("Content-Type")
		k.err = k.keep(req, resp.StatusCode, body)
	}
}

func (k *keeper) keep(req *http.Request, status int, answer []byte) error {
	path := strings.Split(strings.TrimPrefix(req.URL.Path, "/api/v1/"), "/")
	if k.workspace == "" && len(path) > 1 {
		k.workspace = path[1]
	}
	switch {
	case strings.HasPrefix(k.media, "text/event-stream"), strings.Contains(req.URL.Path, fence),
		!k.looksAt(req.Method, path[min(2, len(path)):]):
		return nil
	}
	step := conformance.Step{Request: conformance.Request{
		As: k.actors[req.Header.Get("Authorization")], Method: req.Method,
		Path: k.named(req.URL.RequestURI()),
	}}
	if req.GetBody != nil {
		var sent bytes.Buffer
		r, err := req.GetBody()
		if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		if _, err := sent.ReadFrom(r); err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		if sent.Len() > 0 {
			step.Request.Body = json.RawMessage(k.named(sent.String()))
		}
	}
	step.Expect.Status = status
	told, err := k.told(path[min(2, len(path)):], answer)
	if err != nil {
		return err
	}
	step.Expect.Body = told
	if n := len(k.steps); n == 0 || req.Method != http.MethodGet || !reflect.DeepEqual(k.steps[n-1], step) {
		k.steps = append(k.steps, step)
	}
	return nil
}

// named puts the name of the workspace in place of the one that it had.
func (k *keeper) named(text string) string {
	text = strings.ReplaceAll(text, "/"+k.workspace+"/", "/{ws}/")
	text = strings.ReplaceAll(text, `"`+k.workspace+`"`, `"{ws}"`)
	if rest, ok := strings.CutSuffix(text, "/"+k.workspace); ok {
		text = rest + "/{ws}"
	}
	return text
}

// looksAt tells whether an exchange is part of what a block does or expects, and not of how the
// runner finds its way or compares surfaces with each other.
func (k *keeper) looksAt(method string, path []string) bool {
	last := ""
	if len(path) > 0 {
		last = path[len(path)-1]
	}
	switch {
	case last == "unread:query":
		return false
	case method != http.MethodGet:
		return true
	case k.statement == nil || k.statement.Verb() != "expect":
		return false
	}
	words := strings.Fields(k.statement.Text)
	is := func(word string) bool { return len(words) > 2 && (words[2] == word || words[len(words)-1] == word) }
	switch last {
	case "unread": // the list
		return is("badge") || is("rows") || is("absent")
	case "totals":
		return is("tag") || is("parent") || is("type")
	case "":
		return is("workspace")
	}
	return true
}
