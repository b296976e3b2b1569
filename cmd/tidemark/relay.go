package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-im/tidemark/relay/agent"
	"github.com/tidemark-im/tidemark/relay/broker"
	"github.com/tidemark-im/tidemark/relay/journal"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

const relayDrain = 2 * time.Second

type relayCommand struct {
	Relay   string   `required:"" help:"Address of the relay, as wss://relay.example." placeholder:"URL"`
	KeyFile string   `required:"" help:"${about_agent_key_file}" placeholder:"FILE"`
	Listen  string   `default:"127.0.0.1:8490" help:"Where windows find the agent, on this machine alone."`
	Data    string   `default:"tidemark-relay.db" placeholder:"FILE" help:"The journal of what was read."`
	Origin  []string `help:"${about_agent_origin}" placeholder:"ORIGIN"`
	Leave   bool     `help:"Forget everything that is kept of this relay and key, and end."`
}

func (c *relayCommand) run(ctx context.Context, m *Main) error {
	text, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return err
	}
	key, err := nostrx.ParseKey(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", c.KeyFile, err)
	}
	j, err := journal.Open(ctx, c.Data, journal.Options{})
	if err != nil {
		return err
	}
	if c.Leave {
		err := j.Leave(ctx, journal.Partition{Scope: c.Relay, Viewer: key.Public()})
		return errors.Join(err, j.Close())
	}
	a, err := openAgent(ctx, j, c.Relay, c.Listen, key, c.Origin)
	if err != nil {
		return errors.Join(err, j.Close())
	}
	_, _ = fmt.Fprintf(m.Stdout, "viewer  %s\nrelay   %s\nagent   %s\ntoken   %s\npage    %s\n"+
		"Whoever has the token reads and writes in your name. Ctrl+C ends it; what was read is in %s.\n",
		key.Public(), c.Relay, a.url(), a.token, a.page(), c.Data)
	return errors.Join(a.serve(ctx), j.Close())
}

// runningAgent is an agent with its broker on a port of this machine.
type runningAgent struct {
	agent    *agent.Agent
	listener net.Listener
	server   *http.Server
	token    string
}

func openAgent(
	ctx context.Context, j *journal.Journal, relay, address string, key *nostrx.Key, origins []string,
) (*runningAgent, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, wrongUsage("--listen %q: want HOST:PORT", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, wrongUsage("--listen %q: the agent is for this machine alone, as 127.0.0.1:8490", address)
	}
	var ports net.ListenConfig
	listener, err := ports.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	a, err := agent.Open(ctx, agent.Options{
		URL: relay, Key: key, Book: j.Book(journal.Partition{Scope: relay, Viewer: key.Public()}),
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	r := &runningAgent{agent: a, listener: listener, token: rand.Text()}
	r.server = &http.Server{
		Handler: broker.New(broker.Options{
			Agent: a, Token: r.token, Host: listener.Addr().String(), Origins: origins,
		}),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
	}
	return r, nil
}

func (r *runningAgent) url() string  { return "http://" + r.listener.Addr().String() }
func (r *runningAgent) page() string { return r.url() + "/#" + r.token }

// serve answers until the context ends, and closes the agent.
func (r *runningAgent) serve(ctx context.Context) error {
	streams, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	r.server.BaseContext = func(net.Listener) context.Context { return streams }
	group, serving := errgroup.WithContext(ctx)
	group.Go(func() error { return ended(r.server.Serve(r.listener)) })
	group.Go(func() error {
		<-serving.Done()
		end()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), relayDrain)
		defer cancel()
		return errors.Join(r.server.Shutdown(drain), r.server.Close())
	})
	err := group.Wait()
	r.agent.Close()
	return err
}

// demoFile names a file of a demonstration.
func demoFile(dir, name string) string { return filepath.Join(dir, name+".db") }
