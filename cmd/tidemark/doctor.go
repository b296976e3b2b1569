package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

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
	home := doctor.Home(c.path())
	all := []doctor.Finding{
		{What: "build", Text: buildText()},
		c.configuration(m), c.budgets(),
		doctor.Clock(m.Now, home), doctor.Disk(home), doctor.Space(home), doctor.Files(),
		c.database(ctx),
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
	switch {
	case schema.Version > schema.Newest:
		f.Verdict = doctor.Failure
		f.Text += fmt.Sprintf(", newer than this program, which knows %d", schema.Newest)
	case schema.Version < schema.Newest:
		f.Verdict = doctor.Warning
		f.Text += fmt.Sprintf(", serve will bring it to %d", schema.Newest)
	}
	return f
}
