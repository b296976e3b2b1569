package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/doctor"
)

type doctorCommand struct {
	factsFlag
	authFlags
	settingFlags
}

// errUnwell ends a doctor's visit that found a failure.
var errUnwell = errors.New("not everything is well")

func (c *doctorCommand) run(ctx context.Context, m *Main) error {
	all := []doctor.Finding{{What: "build", Text: buildText()}, c.configuration(m), c.budgets()}
	if c.inFile() {
		home := doctor.Home(c.path())
		all = append(all, doctor.Clock(m.Now, home), doctor.Disk(home), doctor.Space(home),
			doctor.Files(), c.database(ctx))
	} else {
		all = append(all, doctor.Clock(m.Now, os.TempDir()), doctor.Files(), c.onServer(ctx))
	}
	if c.JWTSecretFile != "" {
		all = append(all, doctor.Secret(c.JWTSecretFile))
	}
	table := tabwriter.NewWriter(m.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range all {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", f.Verdict, f.What, f.Text)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if doctor.Worst(all) == doctor.Failure {
		return errUnwell
	}
	return nil
}

// configuration says how a server with these settings would check tokens.
func (c *doctorCommand) configuration(m *Main) doctor.Finding {
	f := doctor.Finding{What: "tokens"}
	auth, err := c.authenticator(m.Now, nil)
	switch {
	case errors.Is(err, errNoKeys):
		f.Verdict, f.Text = doctor.Warning, errNoKeys.Error()
	case err != nil:
		f.Verdict, f.Text = doctor.Failure, err.Error()
	default:
		defer auth.Close()
		secrets, _ := c.secrets() // they have just been read
		f.Text = english.Plural(len(secrets), "secret", "")
		if c.JWKS != "" {
			f.Text += ", key set " + c.JWKS
		}
	}
	return f
}

// budgets says which settings are not their defaults.
func (c *doctorCommand) budgets() doctor.Finding {
	f := doctor.Finding{What: "settings", Text: "all defaults"}
	if err := c.load(); err != nil {
		f.Verdict, f.Text = doctor.Failure, oneLine(err)
		return f
	}
	var texts []string
	for _, s := range c.changed() {
		texts = append(texts, s.Name+"="+s.Text(&c.values))
	}
	if len(texts) > 0 {
		f.Text = strings.Join(texts, " ")
	}
	return f
}

// database reads the whole file.
func (c *doctorCommand) database(ctx context.Context) doctor.Finding {
	f := doctor.Finding{What: "database"}
	info, err := os.Stat(c.path())
	if errors.Is(err, os.ErrNotExist) {
		f.Text = c.path() + " is not there yet; serve makes it"
		home := doctor.Home(c.path())
		if _, err := os.Stat(home); err != nil {
			f.Verdict, f.Text = doctor.Failure, "serve cannot make it: there is no directory "+home
		}
		return f
	}
	schema, err := sqlstore.SchemaSQLite(ctx, c.path())
	if err == nil {
		err = sqlstore.CheckSQLite(ctx, c.path())
	}
	if err != nil {
		f.Verdict, f.Text = doctor.Failure, oneLine(err)
		return f
	}
	f.Text = fmt.Sprintf("%s: sound, %s, schema %d", c.path(),
		humanize.IBytes(uint64(info.Size())), schema.Version)
	judgeSchema(&f, schema)
	return f
}

// slowRoundTrip is when a commit of a few dozen statements takes longer than people wait gladly.
const slowRoundTrip = 5 * time.Millisecond

// onServer asks the server how it is.
func (c *doctorCommand) onServer(ctx context.Context) doctor.Finding {
	f := doctor.Finding{What: "database"}
	schema, err := sqlstore.SchemaOf(ctx, c.Facts)
	var condition sqlstore.Condition
	if err == nil {
		condition, err = sqlstore.Examine(ctx, c.Facts)
	}
	if err != nil {
		f.Verdict, f.Text = doctor.Failure, oneLine(err)
		return f
	}
	f.Text = fmt.Sprintf("%s: %s, %.1f ms there and back, ", c.shown(), condition.Version,
		float64(condition.RoundTrip.Microseconds())/1000)
	if condition.RoundTrip > slowRoundTrip {
		f.Verdict = doctor.Warning
		f.Text += "which is slow: a commit takes a few dozen of them, "
	}
	for _, doubt := range condition.Doubts {
		f.Verdict = doctor.Warning
		f.Text += doubt + ": a crash of the server may lose what was acknowledged, "
	}
	if schema.Version == 0 {
		f.Text += "empty; serve makes the tables"
		return f
	}
	f.Text += fmt.Sprintf("schema %d", schema.Version)
	judgeSchema(&f, schema)
	return f
}

// judgeSchema says what serve would do with a schema.
func judgeSchema(f *doctor.Finding, schema sqlstore.Schema) {
	switch {
	case schema.Version > schema.Newest:
		f.Verdict = doctor.Failure
		f.Text += fmt.Sprintf(", newer than this program, which knows %d", schema.Newest)
	case schema.Version < schema.Newest:
		f.Verdict = doctor.Warning
		f.Text += fmt.Sprintf(", serve will bring it to %d", schema.Newest)
	}
}
