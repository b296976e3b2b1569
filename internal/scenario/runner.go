package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"
)

// Options is what a Runner needs to know of the world. It knows a server by its address only.
type Options struct {
	// BaseURL is the address in front of /api/v1, without a slash at the end.
	BaseURL string
	// Token signs a bearer token for a member of a workspace; role is member, service or admin.
	Token func(workspace, member, role string) (string, error)
	// Restart stops the server and starts it again on the same data, and returns its base URL.
	// Nil: blocks that say restart are skipped (ErrNoRestart).
	Restart func(context.Context) (baseURL string, err error)
	// App performs a gesture in the real client application of a device, and returns what the
	// gesture shows. Nil: no application is attached, and statements that need one fail.
	App func(ctx context.Context, workspace, member, device string, action []string) (string, error)
	// HTTP sends every request. Nil is http.DefaultClient. It must not have a total timeout,
	// since streams stay open as long as their block.
	HTTP *http.Client
	// Prefix begins the name of every workspace, so that runs can share a server.
	Prefix string
	// Timeout bounds one block; 0 is one minute. It ends a run that hangs and is never waited for.
	Timeout time.Duration
	// OnStatement is told of every statement before it is played. May be nil.
	OnStatement func(s *Statement)
	// OnExchange sees every request and answer, streams with a nil body. May be nil.
	OnExchange func(req *http.Request, resp *http.Response, body []byte)
	// OnEvent sees every event of every stream, on the goroutine of that stream. May be nil.
	OnEvent func(name string, data []byte)
}

// ErrNoRestart is returned by Run for a block that restarts a server which cannot be restarted.
var ErrNoRestart = errors.New("this run cannot restart the server")

var errNoApp = errors.New("no client application is attached to this run")

// Runner plays blocks against one server.
type Runner struct {
	opts Options
	base string // changes with restarts
}

// New checks nothing but the presence of what is required.
func New(opts Options) (*Runner, error) {
	if opts.BaseURL == "" || opts.Token == nil {
		return nil, errors.New("scenario: BaseURL and Token are required")
	}
	if opts.HTTP == nil {
		opts.HTTP = http.DefaultClient
	}
	if opts.Timeout == 0 {
		opts.Timeout = time.Minute
	}
	return &Runner{opts: opts, base: strings.TrimSuffix(opts.BaseURL, "/")}, nil
}

// Run plays one block to its first failure. The error is a *StatementError, ErrNoRestart, or says why
// the block could not begin.
func (r *Runner) Run(ctx context.Context, file *File, block *Block) (err error) {
	if r.opts.Restart == nil && block.restarts() {
		return ErrNoRestart
	}
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	w := newWorld(r, workspaceName(r.opts.Prefix, file, block))
	defer w.close()
	if err := w.create(ctx); err != nil {
		return fmt.Errorf("%s:%d: begin block %d: %w", file.Path, block.Line, block.Number, err)
	}
	for i := range block.Statements {
		s := &block.Statements[i]
		if hook := r.opts.OnStatement; hook != nil {
			hook(s)
		}
		if err := w.play(ctx, s); err != nil {
			return w.failure(ctx, file, s, err)
		}
	}
	return nil
}

func (b *Block) restarts() bool {
	for i := range b.Statements {
		if b.Statements[i].Verb() == "restart" {
			return true
		}
	}
	return false
}

// Judge turns what Run returned into the verdict on the block: nil for a pass and for a failure
// that the block announced, an error otherwise.
func Judge(block *Block, err error) error {
	if block.Needs == Hub || errors.Is(err, ErrNoRestart) {
		return err
	}
	if err == nil {
		return fmt.Errorf("block %d was expected to fail for want of %s, and passes: "+
			"remove its line \"needs: %s\"", block.Number, block.Needs, block.Needs)
	}
	var failed *StatementError
	if errors.As(err, &failed) && failed.Statement.Part() == block.Needs {
		return nil
	}
	return fmt.Errorf("block %d may fail only where it uses %s, but: %w",
		block.Number, block.Needs, err)
}

func workspaceName(prefix string, file *File, block *Block) string {
	name := strings.TrimSuffix(filepath.Base(file.Path), filepath.Ext(file.Path))
	if parts := strings.SplitN(name, "-", 3); len(parts) == 3 && parts[0] == "SC" {
		name = parts[0] + "-" + parts[1]
	}
	return fmt.Sprintf("%s%s-%d", prefix, strings.ToLower(name), block.Number)
}

// StatementError is a statement that did not hold.
type StatementError struct {
	Path      string
	Statement *Statement
	Err       error
	Context   []string // what the server says about the counts involved
}

func (f *StatementError) Unwrap() error { return f.Err }

func (f *StatementError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d: %s\n\t%s", f.Path, f.Statement.Line, f.Statement.Text,
		strings.ReplaceAll(f.Err.Error(), "\n", "\n\t"))
	for _, line := range f.Context {
		b.WriteString("\n\t" + line)
	}
	return b.String()
}

// mismatch is a comparison that failed.
type mismatch struct {
	what, want, got string
}

func (m *mismatch) Error() string {
	return fmt.Sprintf("expected  %s=%s\ngot       %s=%s", m.what, m.want, m.what, m.got)
}
