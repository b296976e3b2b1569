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

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/unread"
)

type serveCommand struct {
	factsFlag
	authFlags
	logFlags
	Runtime      runtimeFlags  `embed:"" prefix:"unread-runtime-" group:"Budgets"`
	Budgets      budgetFlags   `embed:"" group:"Budgets"`
	Listen       string        `default:"127.0.0.1:8480" help:"Where clients connect, as HOST:PORT."`
	AdminListen  string        `default:"127.0.0.1:8481" help:"${about_admin_listen}"`
	Profile      string        `default:"all" enum:"all" help:"Which workspaces this process owns: ${enum}."`
	CORSOrigin   []string      `name:"cors-origin" placeholder:"ORIGIN" help:"${about_cors_origin}"`
	TLSCert      string        `name:"tls-cert" placeholder:"FILE" help:"Certificate chain; with --tls-key."`
	TLSKey       string        `name:"tls-key" placeholder:"FILE" help:"Its private key."`
	DrainTimeout time.Duration `default:"10s" help:"How long open requests and streams may take to end."`
}

const noListener = "off"

// Validate implements kong's check.
func (c *serveCommand) Validate() error {
	if err := errors.Join(c.factsFlag.Validate(), c.Runtime.Validate(), c.Budgets.Validate()); err != nil {
		return err
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if err := checkAddress("listen", c.Listen); err != nil {
		return err
	}
	if c.AdminListen != noListener {
		if err := checkAddress("admin-listen", c.AdminListen); err != nil {
			return err
		}
	}
	return checkRange("drain-timeout", c.DrainTimeout, 0, time.Hour)
}

// runtimeFlags bound what the counts in memory may take.
type runtimeFlags struct {
	HydrateBatchSize      int `default:"100" help:"Rows read at once when a member is loaded."`
	HydrateMaxConcurrency int `default:"2" help:"Members loaded at once."`
	MaxEntries            int `default:"1000000" help:"${about_max_entries}"`
}

// Validate implements kong's check.
func (f *runtimeFlags) Validate() error {
	return errors.Join(
		checkRange("unread-runtime-hydrate-batch-size", f.HydrateBatchSize, 1, 10_000),
		checkRange("unread-runtime-hydrate-max-concurrency", f.HydrateMaxConcurrency, 1, 64),
		checkRange("unread-runtime-max-entries", f.MaxEntries, 1000, 1<<30),
	)
}

func (f *runtimeFlags) config() unread.Config {
	return unread.Config{
		HydratePageSize: f.HydrateBatchSize, HydrateConcurrency: f.HydrateMaxConcurrency,
		MaxEntries: f.MaxEntries,
	}
}

// budgetFlags bound what one client may ask for.
type budgetFlags struct {
	MemberRate   float64 `default:"100" help:"Requests a second of one member token."`
	MemberBurst  int     `default:"500" help:"Requests of one member token at once."`
	ServiceRate  float64 `default:"5000" help:"Requests a second of one service or admin token."`
	ServiceBurst int     `default:"10000" help:"Requests of one service or admin token at once."`
	TokenStreams int     `default:"32" help:"Streams one token may have open."`
}

// Validate implements kong's check.
func (f *budgetFlags) Validate() error {
	return errors.Join(
		checkRange("member-rate", f.MemberRate, 0.01, 1e6),
		checkRange("member-burst", f.MemberBurst, 1, 1_000_000),
		checkRange("service-rate", f.ServiceRate, 0.01, 1e6),
		checkRange("service-burst", f.ServiceBurst, 1, 1_000_000),
		checkRange("token-streams", f.TokenStreams, 1, 100_000),
	)
}

func (f *budgetFlags) limits() httpapi.Limits {
	return httpapi.Limits{
		MemberRate: f.MemberRate, MemberBurst: f.MemberBurst,
		ServiceRate: f.ServiceRate, ServiceBurst: f.ServiceBurst, Streams: f.TokenStreams,
	}
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
	engine, err := tidemark.Open(ctx, tidemark.Options{
		Facts: c.Facts, Log: log, Now: m.Now, Runtime: c.Runtime.config(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	metrics, err := processMetrics()
	if err != nil {
		return err
	}
	server, err := httpapi.New(httpapi.Config{
		Engine: engine, Auth: auth, Limits: c.Budgets.limits(), CORSOrigins: c.CORSOrigin,
		Metrics: metrics, Log: log, Now: m.Now, Version: buildText(),
	})
	if err != nil {
		return err
	}
	log.Info("serving", "url", listeners.url(), "docs", listeners.url()+docsPath,
		"admin", listeners.adminURL(), "facts", c.Facts)
	return listeners.serve(ctx, server, c.DrainTimeout, log)
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
func logHTTP(log *slog.Logger, h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    1 << 20,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
