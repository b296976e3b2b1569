//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/tidemark-im/tidemark/internal/servers"
)

// program is what main runs; tests put other streams in.
type program struct {
	in       io.Reader
	out, err io.Writer
	ci       bool // a missing server is a failure
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	p := program{in: os.Stdin, out: os.Stdout, err: os.Stderr, ci: os.Getenv("CI") == "true"}
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run carries a command line out and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("services", flag.ContinueOnError)
	flags.SetOutput(p.err)
	only := flags.String("only", "postgres,mysql,redis", "servers to start, separated by commas")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	command, err := commandOf(flags.Args())
	if err != nil {
		p.say(err)
		return 2
	}
	kinds, err := choose(*only)
	if err != nil {
		p.say(err)
		return 2
	}
	started, err := p.startAll(ctx, kinds)
	defer func() {
		if err := stopAll(started); err != nil {
			p.say(err)
		}
	}()
	switch {
	case ctx.Err() != nil:
		return 1
	case err != nil && p.ci:
		p.say(errors.New("a server is missing, and CI=true"))
		return 1
	case command != nil:
		return p.command(ctx, command, started)
	}
	for _, s := range started {
		if _, err := fmt.Fprintf(p.out, "%s=%s\n", s.Kind().Variable, s.DSN); err != nil {
			return 1
		}
	}
	p.stay(ctx, started)
	return 0
}

// say prints a line to the standard error.
func (p *program) say(err error) { _, _ = fmt.Fprintln(p.err, "services:", err) }

// commandOf is what stands after "run --"; nil where there is nothing to run.
func commandOf(args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	if args[0] != "run" {
		return nil, fmt.Errorf("unknown word %q: services [--only ...] [run -- COMMAND...]", args[0])
	}
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil, errors.New("run: no command")
	}
	return args, nil
}

// choose finds kinds by their names.
func choose(names string) ([]*servers.Kind, error) {
	var chosen []*servers.Kind
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(servers.Kinds, func(k *servers.Kind) bool { return k.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--only: %q is not postgres, mysql or redis", name)
		}
		if !slices.Contains(chosen, servers.Kinds[i]) {
			chosen = append(chosen, servers.Kinds[i])
		}
	}
	return chosen, nil
}

// startAll starts the kinds beside each other. Its error joins those that could not be started;
// the others run all the same.
func (p *program) startAll(ctx context.Context, chosen []*servers.Kind) ([]*servers.Server, error) {
	type outcome struct {
		s   *servers.Server
		err error
	}
	ends := make([]chan outcome, len(chosen))
	for i, k := range chosen {
		ends[i] = make(chan outcome, 1)
		go func() {
			s, err := servers.Start(ctx, k)
			ends[i] <- outcome{s, err}
		}()
	}
	var started []*servers.Server
	var failed error
	for i, k := range chosen {
		o := <-ends[i]
		if o.err != nil {
			err := fmt.Errorf("%s: %w", k.Name, o.err)
			p.say(err)
			failed = errors.Join(failed, err)
			continue
		}
		started = append(started, o.s)
	}
	return started, failed
}

// stopAll stops every server and reports what went wrong.
func stopAll(all []*servers.Server) error {
	var failed error
	for _, s := range all {
		failed = errors.Join(failed, s.Stop())
	}
	return failed
}

// command runs a command with the servers' variables. It is asked to end when ctx does.
func (p *program) command(ctx context.Context, args []string, all []*servers.Server) int {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = servers.StopTimeout
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.in, p.out, p.err
	cmd.Env = os.Environ()
	for _, s := range all {
		cmd.Env = append(cmd.Env, s.Kind().Variable+"="+s.DSN)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode()
	}
	if err != nil {
		p.say(err)
		return 1
	}
	return 0
}

// stay returns when ctx ends, when the standard input does, or when a server ends by itself.
func (p *program) stay(ctx context.Context, all []*servers.Server) {
	over := make(chan string, len(all)+1)
	go func() { // left behind at the end of the process when a signal comes first
		_, _ = io.Copy(io.Discard, p.in)
		over <- ""
	}()
	for _, s := range all {
		go func() { // ends with the server, which is stopped after this
			<-s.Ended()
			over <- s.Kind().Name
		}()
	}
	select {
	case <-ctx.Done():
	case name := <-over:
		if name != "" {
			p.say(fmt.Errorf("%s has ended by itself", name))
		}
	}
}
