package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/demo"
	"github.com/tidemark-im/tidemark/internal/walk"
	"github.com/tidemark-im/tidemark/outbox"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/web/app"
)

const (
	demoTTL   = 24 * time.Hour
	demoDrain = 2 * time.Second
)

type demoCommand struct {
	logFlags
	settingFlags
	Story  string        `arg:"" optional:"" default:"" enum:"inbox,cluster,relay," help:"${about_demo_story}"`
	Listen string        `default:"127.0.0.1:8480" help:"Where the page is, as HOST:PORT."`
	Every  time.Duration `default:"4s" help:"How often somebody writes; 0 for silence."`
	Open   bool          `help:"Open the first link in the browser."`
}

// Validate implements kong's check.
func (c *demoCommand) Validate() error {
	if err := errors.Join(checkAddress("listen", c.Listen), c.load()); err != nil {
		return err
	}
	if c.Every == 0 {
		return nil
	}
	return checkRange("every", c.Every, 10*time.Millisecond, time.Hour)
}

func (c *demoCommand) run(ctx context.Context, m *Main) (err error) {
	switch c.Story {
	case "inbox":
		return walk.Inbox(ctx, m.Stdout)
	case "cluster":
		return c.cluster(ctx, m)
	case "relay":
		return c.demoRelay(ctx, m)
	}
	return c.people(ctx, m)
}

// people is the demo without a story: who writes, and who reads by the links.
func (c *demoCommand) people(ctx context.Context, m *Main) (err error) {
	if c.LogLevel == "info" {
		c.LogLevel = "warn" // the links are what one should see
	}
	log := c.logger(m.Stderr)
	listeners, err := listen(ctx, listenOptions{public: c.Listen})
	if err != nil {
		return err
	}
	defer listeners.close()
	dir, err := os.MkdirTemp("", "tidemark-demo-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	engine, err := tidemark.Open(ctx, tidemark.Options{
		Facts: sqlitePrefix + filepath.Join(dir, "demo.db"), Log: log, Now: m.Now,
		Runtime: c.values.Runtime, Lane: c.values.Lane,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	effects, err := startEffects(ctx, engine, outbox.Network{
		AllowHTTP: true, Allow: outbox.AllowPrivate(), // it listens on this machine alone
	}, c.values.Outbox, m.Now, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, effects.stop()) }()
	inboxes, err := startInboxes(ctx, engine, c.values.Inbox, nil, m.Now, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inboxes.stop()) }()
	if err := demo.Seed(ctx, engine); err != nil {
		return err
	}
	secret := make([]byte, httpapi.MinSecret)
	_, _ = rand.Read(secret) // never fails; see crypto/rand
	auth, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}, Now: m.Now, Log: log})
	if err != nil {
		return err
	}
	defer auth.Close()
	server, err := httpapi.New(httpapi.Config{
		Engine: engine, Outbox: effects.Outbox, Inbox: inboxes.Inbox, Auth: auth,
		Limits: c.values.HTTP, Live: c.values.Live,
		App: demoPages(), Log: log, Now: m.Now, Version: buildText(),
	})
	if err != nil {
		return err
	}
	links, err := signInLinks(listeners.url(), secret, m.Now().Add(demoTTL))
	if err != nil {
		return err
	}
	if err := printDemo(m.Stdout, listeners.url(), links); err != nil {
		return err
	}
	if c.Open {
		if err := m.Browse(ctx, links[0].url); err != nil {
			log.Warn("the browser cannot be opened", "error", err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return listeners.serve(ctx, server, c.values.HTTP, demoDrain, log) })
	group.Go(func() error { return c.traffic(ctx, engine) })
	group.Go(func() error { return demo.NewAgent(engine, effects.Outbox).Run(ctx) })
	return group.Wait()
}

// demoPages is the web app, and beside it the plain page on the same API.
func demoPages() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", app.Handler())
	mux.Handle(demo.PlainPath, http.StripPrefix(strings.TrimSuffix(demo.PlainPath, "/"), demo.Page()))
	return mux
}

func (c *demoCommand) traffic(ctx context.Context, engine *tidemark.Engine) error {
	if c.Every == 0 {
		return nil
	}
	ticker := time.NewTicker(c.Every)
	defer ticker.Stop()
	rng := mathrand.New(mathrand.NewPCG(mathrand.Uint64(), mathrand.Uint64()))
	return demo.NewTraffic(engine, rng).Run(ctx, ticker.C)
}

type signInLink struct{ who, url string }

func signInLinks(base string, secret []byte, expires time.Time) ([]signInLink, error) {
	var out []signInLink
	for _, l := range []struct {
		member      readstate.MemberID
		who, device string
	}{
		{demo.Ada, "Ada, on her laptop", "laptop"},
		{demo.Ada, "Ada, on her phone", "phone"},
		{demo.Ada, "Ada, both beside each other", ""},
		{demo.Ben, "Ben", "laptop"},
	} {
		token, err := httpapi.SignToken(secret, httpapi.Claims{
			Workspace: demo.Workspace, Member: l.member, Expires: expires,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, signInLink{l.who, demo.Link(base+app.Path, token, l.device)})
	}
	return out, nil
}

func printDemo(w io.Writer, base string, links []signInLink) error {
	text := "Tidemark demo on " + base + "\n\n" +
		"Open these side by side, and read, mark, mute and write:\n\n"
	for _, l := range links {
		text += fmt.Sprintf("  %s\n    %s\n\n", l.who, l.url)
	}
	text += "In another terminal, with one of these links in quotes: tidemark chat 'LINK'\n\n" +
		"API reference: " + base + docsPath + "\n" +
		"Everything is in a temporary database that goes with the demo. Ctrl+C ends it.\n"
	_, err := io.WriteString(w, text)
	return err
}

// browse hands an address to the system's browser, which goes on without this process.
func browse(ctx context.Context, url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	return exec.CommandContext(context.WithoutCancel(ctx), name, args...).Run()
}
