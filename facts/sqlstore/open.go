package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/tidemark-im/tidemark/facts"
)

// What a name of a database begins with.
const (
	sqlitePrefix = "sqlite:"
	factsForms   = "sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE or mysql://USER:PASSWORD@HOST/DATABASE"
)

// Check says whether a name has one of the forms that Open takes; facts.ErrInvalid otherwise, whose
// text is the name and what is wanted. It looks at the name only.
func Check(name string) error {
	if path, ok := strings.CutPrefix(name, sqlitePrefix); ok && path != "" {
		return nil
	}
	_, err := parseServer(name, Options{})
	return err
}

// File returns the path within a name of a SQLite file; false for a database on a server.
func File(name string) (path string, ok bool) { return strings.CutPrefix(name, sqlitePrefix) }

// Shown is a name without its password, for people and logs.
func Shown(name string) string {
	if _, ok := File(name); ok {
		return name
	}
	u, err := url.Parse(name)
	if err != nil {
		return "a database whose name is not understood"
	}
	// Besides its usual place, a password may be a parameter.
	q := u.Query()
	for key := range q {
		if strings.Contains(strings.ToLower(key), "pass") {
			q.Set(key, "xxxxx")
		}
	}
	u.RawQuery = q.Encode()
	return u.Redacted()
}

// Open opens a database by its name, makes what is missing in it, migrates it and owns it until
// Close. One that is open already, here or elsewhere, is facts.ErrNotOwner, after
// Options.BusyTimeout for one on a server; a name that is not understood is facts.ErrInvalid; every
// other failure is facts.ErrUnavailable with its cause.
func Open(ctx context.Context, name string, o Options) (*Store, error) {
	if path, ok := File(name); ok && path != "" {
		return OpenSQLite(ctx, path, o)
	}
	sv, err := parseServer(name, o)
	if err != nil {
		return nil, err
	}
	st, err := sv.open(ctx, o)
	return st, sv.d.fail("open "+sv.shown, err)
}

// SchemaOf looks at the database of a name, which may be in use by its owner, and changes nothing.
func SchemaOf(ctx context.Context, name string) (Schema, error) {
	if path, ok := File(name); ok {
		return SchemaSQLite(ctx, path)
	}
	sv, err := parseServer(name, Options{})
	if err != nil {
		return Schema{}, err
	}
	s, err := sv.schema(ctx)
	return s, sv.d.fail("look at "+sv.shown, err)
}

// nameError is a name that Open does not take.
type nameError struct {
	shown string
	why   error
}

func (e *nameError) Error() string { return fmt.Sprintf("%q, %v", e.shown, e.why) }
func (e *nameError) Unwrap() error { return facts.ErrInvalid }

func parseServer(name string, o Options) (*server, error) {
	scheme, _, _ := strings.Cut(name, "://")
	var sv *server
	var err error
	switch scheme {
	case "postgres", "postgresql":
		sv, err = parsePostgres(name, o)
	case "mysql":
		sv, err = parseMySQL(name, o)
	default:
		err = errors.New("want " + factsForms)
	}
	if err != nil {
		return nil, &nameError{Shown(name), err}
	}
	sv.shown = Shown(name)
	return sv, nil
}
