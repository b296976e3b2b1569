package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

type relayDevCommand struct {
	Listen    string   `default:"127.0.0.1:4869" help:"Address to listen on." placeholder:"ADDR"`
	Member    []string `help:"${about_relay_member}" placeholder:"KEY"`
	Channel   []string `default:"general" help:"${about_relay_channel}" placeholder:"ID[=TYPE]"`
	KeyFile   string   `help:"${about_relay_key_file}" placeholder:"FILE"`
	Community string   `help:"${about_relay_community}" placeholder:"UUID"`
	Fault     []string `help:"${about_relay_fault}" placeholder:"NAME"`
}

func (c *relayDevCommand) run(ctx context.Context, m *Main) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	relay, err := relaytest.Listen(ctx, c.Listen, o)
	if err != nil {
		return err
	}
	if err := c.fill(relay, o.Members); err != nil {
		return errors.Join(err, relay.Close())
	}
	c.greet(m.Stdout, relay, o)
	<-ctx.Done()
	return relay.Close()
}

// options checks the flags.
func (c *relayDevCommand) options() (relaytest.Options, error) {
	o := relaytest.Options{Name: "tidemark relay-dev", Control: true}
	if len(c.Member) == 0 {
		return o, wrongUsage("--member is missing: nobody could use the relay")
	}
	for _, text := range c.Member {
		if !nostrx.IsHex(text, 64) {
			return o, wrongUsage("--member %q: want a public key, 64 lower-case hexadecimal digits", text)
		}
		o.Members = append(o.Members, nostrx.PubKey(text))
	}
	for _, name := range c.Fault {
		if !slices.Contains(relaytest.Faults, relaytest.Fault(name)) {
			return o, wrongUsage("--fault %q: want one of %s", name, faultNames())
		}
	}
	var err error
	if o.Community = uuid.New(); c.Community != "" {
		if o.Community, err = uuid.Parse(c.Community); err != nil {
			return o, wrongUsage("--community %q: want a UUID", c.Community)
		}
	}
	if c.KeyFile == "" {
		o.Self, err = nostrx.NewKey()
		return o, err
	}
	text, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return o, err
	}
	if o.Self, err = nostrx.ParseKey(string(text)); err != nil {
		return o, fmt.Errorf("%s: %w", c.KeyFile, err)
	}
	return o, nil
}

func faultNames() string {
	var names []string
	for _, f := range relaytest.Faults {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// fill makes the channels, of which everybody is a member, and switches the faults on.
func (c *relayDevCommand) fill(relay *relaytest.Server, members []nostrx.PubKey) error {
	for _, text := range c.Channel {
		id, kind, ok := strings.Cut(text, "=")
		if !ok {
			kind = "stream"
		}
		if id == "" || !slices.Contains([]string{"stream", "forum", "dm"}, kind) {
			return wrongUsage("--channel %q: want an id, and stream, forum or dm behind a =", text)
		}
		if err := relay.SetChannel(relaytest.Channel{ID: id, Name: id, Type: kind, Members: members}); err != nil {
			return fmt.Errorf("channel %s: %w", id, err)
		}
	}
	for _, name := range c.Fault {
		relay.Switch(relaytest.Fault(name), true)
	}
	return nil
}

func (c *relayDevCommand) greet(w io.Writer, relay *relaytest.Server, o relaytest.Options) {
	_, _ = fmt.Fprintf(w, "relay      %s\ncommunity  %s\nits key    %s\n"+
		"faults     POST %s/faults {\"lose-receipts\": true}\n"+
		"Everything is in memory and gone when it ends.\n",
		relay.URL, o.Community, o.Self.Public(), "http"+strings.TrimPrefix(relay.URL, "ws"))
}
