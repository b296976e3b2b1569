package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/rueidis"

	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/inbox/redisset"
	"github.com/tidemark-im/tidemark/web/app"
)

type serveCommand struct {
	factsFlag
	authFlags
	logFlags
	settingFlags
	effectFlags
	Listen      string `default:"127.0.0.1:8480" help:"Where clients connect, as HOST:PORT."`
	AdminListen string `default:"127.0.0.1:8481" help:"${about_admin_listen}"`
	clusterFlags
	CORSOrigin   []string      `name:"cors-origin" placeholder:"ORIGIN" help:"${about_cors_origin}"`
	TLSCert      string        `name:"tls-cert" placeholder:"FILE" help:"Certificate chain; with --tls-key."`
	TLSKey       string        `name:"tls-key" placeholder:"FILE" help:"Its private key."`
	Substrate    string        `placeholder:"redis://HOST:PORT" help:"${about_substrate}"`
	SubstrateIn  string        `name:"substrate-file" placeholder:"FILE" help:"${about_substrate_file}"`
	DrainTimeout time.Duration `default:"10s" help:"How long open requests and streams may take to end."`
}

const noListener = "off"

// Validate implements kong's check.
func (c *serveCommand) Validate() error {
	if err := errors.Join(c.factsFlag.Validate(), c.effectFlags.Validate(), c.load()); err != nil {
		return err
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if err := checkAddress("listen", c.Listen); err != nil {
		return err
	}
	if c.SubstrateIn != "" {
		if c.Substrate != "" {
			return errors.New("--substrate and --substrate-file are both set")
		}
		text, err := secretText("substrate-file", c.SubstrateIn)
		if err != nil {
			return err
		}
		c.Substrate, c.SubstrateIn = text, ""
	}
	if c.Substrate != "" {
		if _, err := rueidis.ParseURL(c.Substrate); err != nil {
			return fmt.Errorf("--substrate: %w", err)
		}
	}
	if c.AdminListen != noListener {
		if err := checkAddress("admin-listen", c.AdminListen); err != nil {
			return err
		}
	}
	if err := c.check(c.inFile(), c.Listen); err != nil {
		return err
	}
	return checkRange("drain-timeout", c.DrainTimeout, 0, time.Hour)
}

func (c *serveCommand) run(ctx context.Context, m *Main) (err error) {
	log := c.logger(m.Stderr)
	auth, err := c.authenticator(m.Now, log)
	if err != nil {
		return err
	}
	defer auth.Close()
	listeners, err := c.listen(ctx)
	if err != nil {
		return err
	}
	defer listeners.close()
	if c.Profile == profileCentral {
		return c.runCentral(ctx, m, auth, listeners, log)
	}
	shared, err := c.share(ctx, listeners.url(), log)
	if err != nil {
		return err
	}
	engine, err := c.open(ctx, m, shared, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	effects, err := startEffects(ctx, engine, c.network, c.values.Outbox, m.Now, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, effects.stop()) }()
	summary, release, err := c.summary(log)
	if err != nil {
		return err
	}
	defer release()
	inboxes, err := startInboxes(ctx, engine, c.values.Inbox, summary, m.Now, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inboxes.stop()) }()
	metrics, err := processMetrics()
	if err != nil {
		return err
	}
	dots, err := startDots(ctx, c.Substrate, engine, metrics, log)
	if err != nil {
		return err
	}
	defer dots.stop()
	server, err := httpapi.New(httpapi.Config{
		Engine: engine, Cluster: shared.cluster(), Dots: dots.lists(), Outbox: effects.Outbox,
		Inbox: inboxes.Inbox, Auth: auth,
		Limits:      c.values.HTTP,
		Live:        c.values.Live,
		App:         app.Handler(),
		CORSOrigins: c.CORSOrigin, Metrics: metrics, Log: log, Now: m.Now, Version: buildText(),
	})
	if err != nil {
		return err
	}
	log.Info("serving", "url", listeners.url(), "app", listeners.url()+app.Path,
		"docs", listeners.url()+docsPath,
		"admin", listeners.adminURL(), "facts", sqlstore.Shown(c.Facts))
	c.tell(log)
	return shared.serve(ctx, engine, c.DrainTimeout, func(ctx context.Context) error {
		return listeners.serve(ctx, server, c.values.HTTP, c.DrainTimeout, log)
	})
}

const docsPath = "/docs"

// processMetrics makes the registry that the server's figures are added to.
func processMetrics() (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	err := errors.Join(
		r.Register(collectors.NewGoCollector()),
		r.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return r, nil
}

// summary connects to where prepared summaries are kept, if there is such a place.
func (c *serveCommand) summary(log *slog.Logger) (s inbox.Summary, release func(), err error) {
	if c.Substrate == "" {
		return nil, func() {}, nil
	}
	options, err := rueidis.ParseURL(c.Substrate)
	if err != nil {
		return nil, nil, fmt.Errorf("--substrate: %w", err)
	}
	options.DisableCache = true // what is read was written a moment ago
	d := redisset.Dial(options, log)
	return d, d.Close, nil
}

func (c *serveCommand) listen(ctx context.Context) (*listeners, error) {
	admin := c.AdminListen
	if admin == noListener {
		admin = ""
	}
	return listen(ctx, listenOptions{
		public: c.Listen, admin: admin, certificate: c.TLSCert, key: c.TLSKey,
	})
}

// logHTTP lets the HTTP servers' complaints, mostly of broken connections, into the log.
func logHTTP(log *slog.Logger, h http.Handler, limits httpapi.Limits) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: limits.HeaderTimeout,
		IdleTimeout:       limits.IdleTimeout,
		MaxHeaderBytes:    limits.HeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
