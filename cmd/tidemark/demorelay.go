package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/tidemark-im/tidemark/relay/journal"
	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

// demoRelay runs a development relay with two people: Ada with two devices, and Ben with one, who
// writes now and then.
func (c *demoCommand) demoRelay(ctx context.Context, m *Main) (err error) {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tidemark-demo-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var keys [3]*nostrx.Key // the relay, Ada, Ben
	for i := range keys {
		if keys[i], err = nostrx.NewKey(); err != nil {
			return err
		}
	}
	people := []nostrx.PubKey{keys[1].Public(), keys[2].Public()}
	relay, err := relaytest.Listen(ctx, host+":0", relaytest.Options{
		Name: "tidemark demo", Self: keys[0], Members: people, Community: uuid.New(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, relay.Close()) }()
	for id, kind := range map[string]string{"general": "stream", "random": "stream", "ada-and-ben": "dm"} {
		if err := relay.SetChannel(relaytest.Channel{ID: id, Name: id, Type: kind, Members: people}); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	text := "A Nostr relay of its own on " + relay.URL + "\n\n"
	addresses := []string{c.Listen, host + ":0", host + ":0"}
	for i, d := range []struct {
		who, file string
		key       *nostrx.Key
	}{
		{"Ada, on her laptop", "laptop", keys[1]}, {"Ada, on her phone", "phone", keys[1]},
		{"Ben", "ben", keys[2]},
	} {
		j, err := journal.Open(ctx, demoFile(dir, d.file), journal.Options{})
		if err != nil {
			return err
		}
		defer func() { _ = j.Close() }() // it is removed
		a, err := openAgent(ctx, j, relay.URL, addresses[i], d.key, nil)
		if err != nil {
			return err
		}
		text += fmt.Sprintf("  %s\n    %s\n\n", d.who, a.page())
		group.Go(func() error { return a.serve(ctx) })
	}
	text += "Open these side by side. What Ada reads on one device is read on the other, after five seconds\n" +
		"of quiet; the relay holds it encrypted. Ctrl+C ends everything, and nothing is kept.\n"
	if _, err := fmt.Fprint(m.Stdout, text); err != nil {
		return err
	}
	group.Go(func() error { return c.chatter(ctx, relay.URL, keys[2], keys[1].Public()) })
	return group.Wait()
}

// chatter has somebody write.
func (c *demoCommand) chatter(ctx context.Context, url string, by *nostrx.Key, to nostrx.PubKey) error {
	if c.Every == 0 {
		return nil
	}
	client, err := nostrx.Open(ctx, nostrx.Options{URL: url, Key: by})
	if err != nil {
		return err
	}
	defer client.Close()
	ticker := time.NewTicker(c.Every)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		channel := []string{"general", "random", "general", "ada-and-ben"}[i%4]
		tags := []nostrx.Tag{{"h", channel}}
		if i%6 == 2 {
			tags = append(tags, nostrx.Tag{"p", string(to)})
		}
		e, err := by.Sign(nostrx.Event{
			Kind: nostrx.KindChat, CreatedAt: time.Now().Unix(), Tags: tags, Content: fmt.Sprintf("Message %d", i+1),
		})
		if err != nil {
			return err
		}
		if _, err := client.Publish(ctx, e); err != nil && ctx.Err() == nil {
			return err
		}
	}
}
