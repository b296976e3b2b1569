package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/ownership"
	"github.com/tidemark-im/tidemark/readstate"
)

// clusterFlags say what a process owns of a store.
type clusterFlags struct {
	Profile    string        `default:"all" enum:"all,workspace,central" help:"${about_profile}"`
	Node       string        `placeholder:"ID" help:"${about_node}"`
	Advertise  string        `placeholder:"URL" help:"${about_advertise}"`
	Workspaces []string      `placeholder:"WORKSPACE" help:"${about_workspaces}"`
	Lease      time.Duration `default:"10s" help:"${about_lease}"`
}

const (
	profileWorkspace = "workspace"
	profileCentral   = "central"
	minLease         = time.Second
	maxLease         = 10 * time.Minute
)

func (f *clusterFlags) check(inFile bool, listen string) error {
	if err := checkRange("lease", f.Lease, minLease, maxLease); err != nil {
		return err
	}
	if f.Profile != "all" && inFile {
		return fmt.Errorf("--profile %s needs --facts on a server: a file has one process", f.Profile)
	}
	if f.Profile != profileWorkspace {
		for flag, set := range map[string]bool{
			"node": f.Node != "", "advertise": f.Advertise != "", "workspaces": len(f.Workspaces) > 0,
		} {
			if set {
				return fmt.Errorf("--%s goes with --profile workspace only", flag)
			}
		}
		return nil
	}
	if f.Node == "" {
		return errors.New("--profile workspace needs --node")
	}
	if err := facts.CheckID("node", f.Node); err != nil {
		return fmt.Errorf("--node: %w", err)
	}
	return errors.Join(f.checkAdvertise(listen), f.checkWorkspaces())
}

func (f *clusterFlags) checkAdvertise(listen string) error {
	if f.Advertise == "" {
		return f.checkListen(listen)
	}
	u, err := url.Parse(f.Advertise)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--advertise is %q, want an address like http://HOST:PORT", f.Advertise)
	}
	return nil
}

// checkListen refuses to tell others the address of all interfaces.
func (f *clusterFlags) checkListen(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("--listen is %q: %w", listen, err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return fmt.Errorf("--listen is %q, which nobody can be sent to: set --advertise", listen)
	}
	return nil
}

func (f *clusterFlags) checkWorkspaces() error {
	for i, w := range f.Workspaces {
		if err := facts.CheckID("workspace", w); err != nil {
			return fmt.Errorf("--workspaces: %w", err)
		}
		if slices.Contains(f.Workspaces[:i], w) {
			return fmt.Errorf("--workspaces names %q twice", w)
		}
	}
	return nil
}

// only are the workspaces that the node may own, nil for any.
func (f *clusterFlags) only() []readstate.WorkspaceID {
	var out []readstate.WorkspaceID
	for _, w := range f.Workspaces {
		out = append(out, readstate.WorkspaceID(w))
	}
	return out
}

// sharing is a store with other processes on it, and this one's place among them; nil where it is alone.
type sharing struct {
	store  *sqlstore.Store
	flags  *clusterFlags
	log    *slog.Logger
	keeper *ownership.Keeper // from serve on
	gate   chan struct{}     // closed when there is a keeper
	at     string            // where others reach it
}

// share opens the store for a node among others.
func (c *serveCommand) share(
	ctx context.Context, url string, log *slog.Logger,
) (*sharing, error) {
	if c.Profile != profileWorkspace {
		return nil, nil
	}
	store, err := sqlstore.Open(ctx, c.Facts, sqlstore.Options{Shared: true, Idle: c.Lease / 2})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", sqlstore.Shown(c.Facts), err)
	}
	if c.Advertise != "" {
		url = c.Advertise
	}
	return &sharing{
		store: store, flags: &c.clusterFlags, log: log, gate: make(chan struct{}), at: url,
	}, nil
}

// serving is what the engine asks; nothing is served before there is a keeper.
func (s *sharing) serving() bool {
	select {
	case <-s.gate:
		return s.keeper.Serving()
	default:
		return false
	}
}

func (s *sharing) cluster() *httpapi.Cluster {
	if s == nil {
		return nil
	}
	registry := s.store.Registry()
	return &httpapi.Cluster{
		Registry: registry, Owners: ownership.NewLookup(registry, s.flags.lookupAge()),
		Node: s.flags.Node, Serving: s.serving,
	}
}

// lookupAge is how old a picture of who owns what may be: as old as that of a node.
func (f *clusterFlags) lookupAge() time.Duration {
	return min(f.Lease/10, ownership.DefaultLookupAge)
}

// open opens the engine.
func (c *serveCommand) open(
	ctx context.Context, m *Main, s *sharing, log *slog.Logger,
) (*tidemark.Engine, error) {
	o := tidemark.Options{
		Facts: c.Facts, Log: log, Now: m.Now, Runtime: c.values.Runtime, Lane: c.values.Lane,
	}
	if s == nil {
		return tidemark.Open(ctx, o)
	}
	o.Shared = &tidemark.Shared{Serving: s.serving}
	e, err := tidemark.OpenStore(ctx, s.store, o)
	if err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	return e, nil
}

// serve runs a server until ctx ends or the node is taken by another process. A node that is asked to end
// gives its workspaces up first: by the time its streams and requests end, others serve them.
func (s *sharing) serve(
	ctx context.Context, engine *tidemark.Engine, timeout time.Duration,
	serve func(context.Context) error,
) error {
	if s == nil {
		return serve(ctx)
	}
	var err error
	s.keeper, err = ownership.New(ownership.Options{
		Registry: s.store.Registry(), Engine: engine, TTL: s.flags.Lease, Log: s.log,
		Self: facts.NodeInfo{
			Node: s.flags.Node, Address: s.at, Only: s.flags.only(),
		},
	})
	if err != nil {
		return err
	}
	close(s.gate)
	keeping, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	kept := make(chan error, 1)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() {
		err := s.keeper.Run(keeping)
		kept <- err
		stop() // drained, or expelled
	}()
	release := context.AfterFunc(ctx, func() {
		s.log.Info("giving workspaces up", "node", s.flags.Node)
		s.keeper.Drain()
		time.AfterFunc(timeout, cut) // the registry may not answer
	})
	defer release()
	err = serve(serving)
	cut() // also where a port broke
	if keptErr := <-kept; !errors.Is(keptErr, context.Canceled) {
		err = errors.Join(err, keptErr)
	}
	return err
}

// runCentral serves without owning anything.
func (c *serveCommand) runCentral(
	ctx context.Context, m *Main, auth httpapi.Authenticator, listeners *listeners, log *slog.Logger,
) (err error) {
	store, err := sqlstore.Open(ctx, c.Facts, sqlstore.Options{Shared: true, Idle: c.Lease / 2})
	if err != nil {
		return fmt.Errorf("open %s: %w", sqlstore.Shown(c.Facts), err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	metrics, err := processMetrics()
	if err != nil {
		return err
	}
	dots, err := startDots(ctx, c.Substrate, nil, metrics, log)
	if err != nil {
		return err
	}
	defer dots.stop()
	registry := store.Registry()
	server, err := httpapi.New(httpapi.Config{
		Dots: dots.lists(),
		Cluster: &httpapi.Cluster{
			Registry: registry, Owners: ownership.NewLookup(registry, c.lookupAge()), Central: store,
		},
		Auth: auth, Limits: c.values.HTTP, Live: c.values.Live,
		CORSOrigins: c.CORSOrigin, Metrics: metrics, Log: log, Now: m.Now, Version: buildText(),
	})
	if err != nil {
		return err
	}
	log.Info("serving", "url", listeners.url(), "docs", listeners.url()+docsPath,
		"admin", listeners.adminURL(), "facts", sqlstore.Shown(c.Facts), "profile", c.Profile)
	c.tell(log)
	return listeners.serve(ctx, server, c.values.HTTP, c.DrainTimeout, log)
}
