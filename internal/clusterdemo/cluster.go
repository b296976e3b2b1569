package clusterdemo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/servers"
)

// Options configures a cluster. Binary is required.
type Options struct {
	Binary string   // the program, for the processes
	Env    []string // theirs, beside what Run sets
	// Every is the time between two messages of a workspace. Default 200 ms.
	Every time.Duration
	// Spaces is the number of workspaces. Default 6.
	Spaces int
	// Now is the clock for tokens; nil is time.Now.
	Now func() time.Time
}

// nodes is how many processes own workspaces.
const nodes = 3

// Cluster is what runs.
type Cluster struct {
	opts     Options
	dir      string
	postgres *servers.Server
	redis    *servers.Server // nil: none is installed
	Nodes    []*Node
	Central  *Node
	api      *api
	spaces   []*space
	views    views
}

// Start starts everything and waits until all workspaces can be written to. Close it.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if opts.Every == 0 {
		opts.Every = 200 * time.Millisecond
	}
	if opts.Spaces == 0 {
		opts.Spaces = 6
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	c := &Cluster{opts: opts}
	err := c.start(ctx)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	kind, err := servers.Named("postgres")
	if err != nil {
		return err
	}
	if c.postgres, err = servers.Start(ctx, kind); err != nil {
		return fmt.Errorf("a cluster needs PostgreSQL: %w", err)
	}
	if kind, err = servers.Named("redis"); err == nil {
		c.redis, _ = servers.Start(ctx, kind) // without it dots are withheld, which the page shows
	}
	if c.dir, err = os.MkdirTemp("", "tidemark-cluster-*"); err != nil {
		return err
	}
	if err := c.processes(ctx); err != nil {
		return err
	}
	for i := range c.opts.Spaces {
		c.spaces = append(c.spaces, &space{id: fmt.Sprintf("space-%d", i+1)})
	}
	if err := c.found(ctx); err != nil {
		return err
	}
	for _, n := range append([]*Node{c.Central}, c.Nodes...) {
		if err := n.Start(); err != nil {
			return err
		}
	}
	for _, s := range c.spaces {
		if err := c.eventually(ctx, s.id+" finds no owner", func() error {
			_, known, err := c.api.unread(ctx, c.Central.Address, s.id)
			if err == nil && !known {
				err = errUnknown
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// found makes the tables and the workspaces, with a process that has the database to itself.
func (c *Cluster) found(ctx context.Context) error {
	founder := &Node{
		Name: "founder", Address: c.Central.Address, binary: c.opts.Binary, env: c.Central.env,
		args: slices.DeleteFunc(slices.Clone(c.Central.args), func(arg string) bool {
			return arg == "--profile" || arg == "central"
		}),
	}
	if err := founder.Start(); err != nil {
		return err
	}
	defer founder.Stop()
	if err := c.ready(ctx, founder); err != nil {
		return err
	}
	for _, s := range c.spaces {
		if err := c.api.seed(ctx, c.Central.Address, s.id); err != nil {
			return fmt.Errorf("make %s: %w", s.id, err)
		}
	}
	return nil
}

// processes says how each of them is called.
func (c *Cluster) processes(ctx context.Context) error {
	secret := make([]byte, httpapi.MinSecret)
	_, _ = rand.Read(secret) // never fails; see crypto/rand
	text := hex.EncodeToString(secret)
	files := map[string]string{"facts": c.postgres.DSN, "secret": text}
	if c.redis != nil {
		files["substrate"] = c.redis.DSN
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text+"\n"), 0o600); err != nil {
			return err
		}
	}
	for i := range nodes + 1 {
		address, err := freeAddress(ctx)
		if err != nil {
			return err
		}
		n := &Node{Name: fmt.Sprintf("node-%d", i), Address: "http://" + address, binary: c.opts.Binary}
		n.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "TMPDIR=" + c.dir}, c.opts.Env...)
		n.args = []string{
			"serve", "--facts-file", filepath.Join(c.dir, "facts"), "--jwt-secret-file",
			filepath.Join(c.dir, "secret"), "--listen", address, "--admin-listen", "off",
			"--log-level", "warn", "--drain-timeout", "2s",
		}
		if c.redis != nil {
			n.args = append(n.args, "--substrate-file", filepath.Join(c.dir, "substrate"))
		}
		if i == 0 {
			n.Name = "central"
			n.args = append(n.args, "--profile", "central")
			c.Central = n
			continue
		}
		n.args = append(n.args, "--profile", "workspace", "--node", n.Name, "--advertise", n.Address)
		c.Nodes = append(c.Nodes, n)
	}
	var err error
	c.api, err = newAPI(c.Central.Address, []byte(text), c.opts.Now().Add(24*time.Hour))
	return err
}

func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close() //nolint:errcheck // nothing was accepted
	return l.Addr().String(), nil
}

// ready waits until a process answers, or has ended.
func (c *Cluster) ready(ctx context.Context, n *Node) error {
	return c.eventually(ctx, n.Name+" is not ready", func() error {
		if n.Condition() != Running {
			return fmt.Errorf("%w: %s", errOver, n.Said())
		}
		return c.api.alive(ctx, n.Address)
	})
}

// startTimeout bounds each step of a start.
const startTimeout = time.Minute

var errUnknown = errors.New("nobody can say what is unread")

var errOver = errors.New("the process has ended")

// eventually repeats what may fail while processes start and workspaces find their owners.
func (c *Cluster) eventually(ctx context.Context, what string, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		over := errors.Is(err, errOver)
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
		}
		if over {
			for _, n := range append([]*Node{c.Central}, c.Nodes...) {
				if said := n.Said(); said != "" {
					err = fmt.Errorf("%w\n%s: %s", err, n.Name, said)
				}
			}
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// Run writes and looks until ctx ends.
func (c *Cluster) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range c.spaces {
		group.Go(func() error { s.write(ctx, c.api, c.opts.Every); return nil })
	}
	group.Go(func() error { c.look(ctx); return nil })
	return group.Wait()
}

// Close ends all processes and removes all files.
func (c *Cluster) Close() error {
	var failed error
	for _, n := range append([]*Node{c.Central}, c.Nodes...) {
		if n != nil {
			n.Stop()
		}
	}
	if c.api != nil {
		c.api.client.CloseIdleConnections()
	}
	for _, s := range []*servers.Server{c.redis, c.postgres} {
		if s != nil {
			failed = errors.Join(failed, s.Stop())
		}
	}
	if c.dir != "" {
		failed = errors.Join(failed, os.RemoveAll(c.dir))
	}
	return failed
}
