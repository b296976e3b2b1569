package httpapi

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-im/tidemark/unread/intake"
)

// meters are the server's own figures. Labels are route patterns, methods and statuses: never
// anything that a client chooses freely.
type meters struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	refused  *prometheus.CounterVec
}

func newMeters(to prometheus.Registerer) (*meters, error) {
	m := &meters{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_http_requests_total",
			Help: "Answered requests by route pattern and status.",
		}, []string{"method", "route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tidemark_http_request_seconds",
			Help:    "Time from the request's head to the end of its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5},
		}, []string{"route"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_http_over_budget_total",
			Help: "Requests refused by a rate limit or another budget.",
		}, []string{"route"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.refused} {
		if err := to.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// methods that are counted by name; whatever else a client invents is one.
var methods = map[string]bool{
	"GET": true, "PUT": true, "POST": true, "PATCH": true, "DELETE": true, "OPTIONS": true,
	"HEAD": true,
}

func (m *meters) request(method, pattern string, status int, took time.Duration) {
	if !methods[method] {
		method = "other"
	}
	m.requests.WithLabelValues(method, pattern, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(pattern).Observe(took.Seconds())
}

// survey collects what others count: the runtime's memory, the lane, the streams, the remembered
// tokens, and the limit of each of them.
type survey struct{ s *Server }

type figure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*reading) float64
}

func describeFigure(name, help string, kind prometheus.ValueType, v func(*reading) float64) figure {
	return figure{prometheus.NewDesc(name, help, nil, nil), kind, v}
}

// figures are those that the engine and the outbox have, and outboxStoreFigures beside them.
func (c survey) figures() []figure {
	if c.s.central() { // it has nothing in memory but what it limits
		return slices.Concat(requestFigures, limitFigures)
	}
	all := figures
	if c.s.engine.Intake() != nil {
		all = slices.Concat(all, snapshotFigures)
	}
	if c.s.outbox != nil {
		all = slices.Concat(all, outboxFigures, outboxLimitFigures)
	}
	if c.s.inbox != nil {
		all = slices.Concat(all, inboxFigures)
	}
	return all
}

// Describe implements prometheus.Collector.
func (c survey) Describe(to chan<- *prometheus.Desc) {
	for _, f := range c.figures() {
		to <- f.desc
	}
	if c.s.outbox != nil {
		for _, f := range outboxStoreFigures {
			to <- f.desc
		}
	}
	if c.s.inbox != nil {
		to <- badgeSeconds
	}
}

// Collect implements prometheus.Collector.
func (c survey) Collect(to chan<- prometheus.Metric) {
	r := reading{
		hub: c.s.hub.Stats(), streams: c.s.hub.Options(), limits: c.s.limits,
	}
	r.tokens, r.forgotten = c.s.budgets.known()
	if j, ok := c.s.auth.(*JWT); ok {
		r.verified = j.Verified()
	}
	if !c.s.central() {
		r.runtime, r.lane = c.s.engine.Stats(), c.s.engine.LaneStats()
	}
	if in := c.s.intake(); in != nil {
		r.intake = in.Stats()
	}
	if c.s.inbox != nil {
		r.inbox = c.s.inbox.Stats()
		to <- badgeHistogram(&r.inbox)
	}
	all := c.figures()
	if c.s.outbox != nil {
		var counted bool
		if r.outbox, counted = c.readOutbox(); counted {
			all = slices.Concat(all, outboxStoreFigures)
		}
	}
	for _, f := range all {
		to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(&r))
	}
}

// intake is that of an engine without facts; nil where there is none.
func (s *Server) intake() *intake.Intake {
	if s.central() {
		return nil
	}
	return s.engine.Intake()
}
