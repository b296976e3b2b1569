package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/ownership"
	"github.com/tidemark-im/tidemark/readstate"
)

// nodeFlags say which part of a cluster a process is.
type nodeFlags struct {
	Profile    string   `default:"all" enum:"all,workspace,central" help:"${about_profile}"`
	Node       string   `placeholder:"ID" help:"Name of this process among those that share the database."`
	Advertise  string   `placeholder:"URL" help:"Where others reach this process."`
	Workspaces []string `placeholder:"ID" help:"The only workspaces that this process may own; all without it."`
}

// Validate implements kong's check.
func (f *nodeFlags) Validate() error {
	if f.Profile == profileWorkspace && (f.Node == "" || f.Advertise == "") {
		return errors.New("--profile=workspace needs --node and --advertise")
	}
	if u, err := url.Parse(f.Advertise); f.Advertise != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("--advertise is %q, want http://HOST:PORT", f.Advertise)
	}
	return nil
}

const (
	profileAll       = "all"
	profileWorkspace = "workspace"
	profileCentral   = "central"
)

// node is this process among those that share a database; nil where it has the database to itself.
type node struct {
	keeper *ownership.Keeper
	ended  chan error
	over   context.CancelCauseFunc
}

// open opens the engine, and begins to own what the profile says. The context ends with the node.
func (c *serveCommand) open(
	ctx context.Context, opts tidemark.Options,
) (*tidemark.Engine, *node, context.Context, error) {
	if c.Profile == profileAll {
		engine, err := tidemark.Open(ctx, opts)
		return engine, nil, ctx, err
	}
	if _, file := sqlstore.File(c.Facts); file {
		return nil, nil, ctx, wrongUsage("--profile=%s needs facts on a server", c.Profile)
	}
	n := &node{ended: make(chan error, 1)}
	store, err := sqlstore.Open(ctx, c.Facts, sqlstore.Options{Shared: true})
	if err != nil {
		return nil, nil, ctx, fmt.Errorf("open %s: %w", sqlstore.Shown(c.Facts), err)
	}
	opts.Shared = &tidemark.Shared{Serving: func() bool { return n.keeper != nil && n.keeper.Serving() }}
	engine, err := tidemark.OpenStore(ctx, store, opts)
	if err != nil {
		return nil, nil, ctx, errors.Join(err, store.Close())
	}
	self := facts.NodeInfo{Node: c.Node, Address: c.Advertise}
	for _, id := range c.Workspaces {
		self.Only = append(self.Only, readstate.WorkspaceID(id))
	}
	if c.Profile == profileCentral {
		host, _ := os.Hostname() // any name does
		self = facts.NodeInfo{Node: fmt.Sprintf("central-%s-%d", host, os.Getpid()), Only: []readstate.WorkspaceID{}}
	}
	n.keeper, err = ownership.New(ownership.Options{
		Registry: store.Registry(), Engine: engine, Self: self, Log: opts.Log,
	})
	if err != nil {
		return nil, nil, ctx, errors.Join(err, engine.Close())
	}
	serving, over := context.WithCancelCause(ctx)
	n.over = over
	go func() { // ends with stop
		err := n.keeper.Run(context.WithoutCancel(ctx))
		over(err)
		n.ended <- err
	}()
	return engine, n, serving, nil
}

// stop gives everything up and waits.
func (n *node) stop() error {
	if n == nil {
		return nil
	}
	n.keeper.Drain()
	return <-n.ended
}

// routes sends what is about a workspace to its owner.
func (n *node) routes(profile string, next http.Handler, log *slog.Logger) http.Handler {
	if profile != profileCentral {
		return next
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			owner, _ := r.In.Context().Value(ownerKey{}).(*url.URL)
			r.SetURL(owner)
			r.SetXForwarded()
		},
		FlushInterval: -1, // streams
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			log.Debug("an owner does not answer", "error", err)
			unavailable(w)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v1/workspaces/")
		name, rest, below := strings.Cut(rest, "/")
		id, err := url.PathUnescape(name)
		if !ok || !below || rest == "" || err != nil {
			next.ServeHTTP(w, r)
			return
		}
		address, known := n.keeper.Picture().Owner(readstate.WorkspaceID(id))
		owner, err := url.Parse(address)
		if !known || err != nil {
			unavailable(w)
			return
		}
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ownerKey{}, owner)))
	})
}

type ownerKey struct{}

// retryAfter is when to ask again for a workspace that is being taken over.
const retryAfter = time.Second

func unavailable(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Retry-After", fmt.Sprint(int(retryAfter.Seconds())))
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = fmt.Fprintln(w, `{"type":"about:blank","title":"Nobody can answer now","status":503,`+
		`"code":"unavailable"}`)
}
