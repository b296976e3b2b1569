package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v4"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
)

const (
	dashboardFile  = "../../deploy/grafana/tidemark.json"
	alertsFile     = "../../deploy/prometheus/alerts.yml"
	operationsFile = "../../docs/operations.md"
	operationsURL  = "https://github.com/tidemark-im/tidemark/blob/main/docs/operations.md"
)

// exported is every metric of a server by name. Prometheus itself adds up.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	db, _ := database(t)
	secret := secretFile(t, testSecret)
	s := serve(t, db, "--jwt-secret-file", secret, "--http-member-burst", "1", "--http-member-rate", "0.01")
	overwhelm(t, s, secret)
	names := map[string]bool{"up": true}
	for name := range samples(t, s) {
		names[name] = true
	}
	return names
}

// exportedInSnapshotMode is what a program that embeds the runtime exports.
func exportedInSnapshotMode(t *testing.T) map[string]bool {
	t.Helper()
	engine, err := tidemark.Open(t.Context(), tidemark.Options{Snapshots: &tidemark.Snapshots{
		Store: "sqlite:" + filepath.Join(t.TempDir(), "snapshots.db"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	auth, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{[]byte(testSecret)}})
	if err != nil {
		t.Fatal(err)
	}
	defer auth.Close()
	registry := prometheus.NewRegistry()
	if _, err := httpapi.New(httpapi.Config{Engine: engine, Auth: auth, Metrics: registry}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	return names
}

var (
	quoted     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	matchers   = regexp.MustCompile(`\{[^}]*\}`)
	ranges     = regexp.MustCompile(`\[[^\]]*\]|\b[0-9.]+[smhdwy]?\b`)
	groupings  = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	identifier = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*(\s*\()?`)
	labelNames = regexp.MustCompile(`([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)`)
)

// ownLabels are those of the server and of a scrape.
var ownLabels = []string{"method", "route", "code", "le", "instance", "job"}

// metricsOf finds the metrics that an expression names, and the labels it selects by.
func metricsOf(expr string) (names, labels []string) {
	bare := quoted.ReplaceAllString(expr, "")
	for _, braces := range matchers.FindAllString(bare, -1) {
		for _, m := range labelNames.FindAllStringSubmatch(braces, -1) {
			labels = append(labels, m[1])
		}
	}
	for _, cut := range []*regexp.Regexp{matchers, ranges} {
		bare = cut.ReplaceAllString(bare, "")
	}
	bare = groupings.ReplaceAllString(bare, "")
	for _, word := range identifier.FindAllString(bare, -1) {
		switch {
		case strings.HasSuffix(word, "("): // a function
		case slices.Contains([]string{"and", "or", "unless", "offset", "bool"}, word):
		default:
			names = append(names, word)
		}
	}
	return names, labels
}

// checkExpression holds an expression against what is exported.
func checkExpression(t *testing.T, where, expr string, names map[string]bool) {
	t.Helper()
	used, labels := metricsOf(expr)
	if len(used) == 0 || strings.Count(expr, "(") != strings.Count(expr, ")") {
		t.Errorf("%s: %q is no expression", where, expr)
	}
	for _, name := range used {
		if !names[name] {
			t.Errorf("%s: there is no metric %s", where, name)
		}
	}
	for _, label := range labels {
		if !slices.Contains(ownLabels, label) {
			t.Errorf("%s: no metric has the label %s", where, label)
		}
	}
}

func TestExpressionsAreUnderstood(t *testing.T) {
	names, labels := metricsOf(`sum by (route, le) (rate(a_total{code="5}0",route!~"x"}[$__rate_interval])) > 0.5 * b or c:d offset 5m`)
	if !slices.Equal(names, []string{"a_total", "b", "c:d"}) {
		t.Errorf("metrics %v", names)
	}
	if !slices.Equal(labels, []string{"code", "route"}) {
		t.Errorf("labels %v", labels)
	}
}

// notShown are counters that mean nothing to whoever watches.
var notShown = []string{
	"tidemark_unread_repeated_commits_total", "tidemark_outbox_released_leases_total",
	"tidemark_outbox_purged_rows_total", "tidemark_outbox_barriers_total",
	"tidemark_outbox_behind_total", // the rows that are behind now are shown
}

// settled matches the metrics of what somebody has set, and the parts of a histogram.
var settled = regexp.MustCompile(
	`_limit$|_(interval|timeout|horizon|heartbeat|retry|rescan|lease|defer)_seconds$|_keep_\w+$|_(sum|count)$`)

func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID, Title string
		Panels     []struct {
			ID          int
			Type, Title string
			GridPos     struct{ H, W, X, Y int }
			Targets     []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	names := exported(t)
	maps.Copy(names, exportedInSnapshotMode(t))
	shown := map[string]bool{}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: the id is there twice, or it has no title or place", p.ID, p.Title)
		}
		ids[p.ID] = true
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %q shows %d expressions", p.Title, len(p.Targets))
		}
		for _, target := range p.Targets {
			checkExpression(t, p.Title, target.Expr, names)
			used, _ := metricsOf(target.Expr)
			for _, name := range used {
				shown[name] = true
			}
		}
	}
	if board.UID == "" || len(board.Panels) < 10 {
		t.Errorf("%d panels, uid %q", len(board.Panels), board.UID)
	}
	// What counts refusals and failures must be somewhere to be seen.
	for name := range names {
		ours := strings.HasPrefix(name, "tidemark_") && !settled.MatchString(name)
		if ours && !shown[name] && !slices.Contains(notShown, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// Every alert looks at metrics that exist and leads to a section that does.
func TestAlerts(t *testing.T) {
	names := exported(t)
	maps.Copy(names, exportedInSnapshotMode(t))
	text, err := os.ReadFile(operationsFile)
	if err != nil {
		t.Fatal(err)
	}
	anchors := anchorsOf(string(text))
	seen := map[string]bool{}
	all := alerts(t)
	for _, a := range all {
		checkExpression(t, a.Alert, a.Expr, names)
		if seen[a.Alert] || a.Alert == "" || a.For == "" ||
			!slices.Contains([]string{"page", "ticket"}, a.Labels["severity"]) ||
			a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%q is there twice, or lacks something: %+v", a.Alert, a)
		}
		seen[a.Alert] = true
		page, anchor, _ := strings.Cut(a.Annotations["runbook_url"], "#")
		if page != operationsURL || !anchors[anchor] {
			t.Errorf("%s: the runbook is %q", a.Alert, a.Annotations["runbook_url"])
		}
		if !strings.Contains(string(text), "`"+a.Alert+"`") {
			t.Errorf("docs/operations.md does not speak of %s", a.Alert)
		}
	}
	if len(all) < 10 {
		t.Errorf("%d alerts", len(all))
	}
}

var notInAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)

// anchorsOf returns the anchors that the headings of a Markdown text have.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	fenced := false
	for line := range strings.Lines(text) {
		fenced = fenced != strings.HasPrefix(line, "```")
		if title := strings.TrimLeft(line, "#"); !fenced && title != line && strings.HasPrefix(title, " ") {
			title = notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			anchors[strings.ReplaceAll(title, " ", "-")] = true
		}
	}
	return anchors
}
