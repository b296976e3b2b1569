package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// config is the file that --config names: one JSON object whose keys are names of flags, with or
// without dashes ("admin-listen" or "adminListen").
type config map[string]any

// readConfig is kong's loader.
func readConfig(r io.Reader) (kong.Resolver, error) {
	decoder := json.NewDecoder(r)
	decoder.UseNumber()
	raw := map[string]any{}
	if err := decoder.Decode(&raw); err != nil {
		return nil, fmt.Errorf("the configuration is not a JSON object: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the configuration goes on after its JSON object")
	}
	c := config{}
	for key, value := range raw {
		name := plain(key)
		if _, twice := c[name]; twice {
			return nil, fmt.Errorf("configuration: %q is there twice", key)
		}
		text, err := flagText(value)
		if err != nil {
			return nil, fmt.Errorf("configuration: %q: %w", key, err)
		}
		c[name] = text
	}
	return c, nil
}

// plain makes one spelling of the two.
func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "")) }

// flagText writes a value as it would stand on a command line.
func flagText(value any) (any, error) {
	switch v := value.(type) {
	case string, bool:
		return v, nil
	case json.Number:
		return v.String(), nil
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			text, ok := item.(string)
			if !ok || strings.Contains(text, ",") {
				return nil, errors.New("a list holds texts without commas")
			}
			parts[i] = text
		}
		return strings.Join(parts, ","), nil
	}
	return nil, errors.New("want a text, a number, true, false or a list of texts")
}

// Validate implements kong.Resolver: a key that no command knows is a mistake.
func (c config) Validate(app *kong.Application) error {
	known := map[string]bool{}
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known[plain(flag.Name)] = true
		}
		return next(nil)
	})
	delete(known, "config")
	delete(known, "help")
	delete(known, "version")
	for name := range c {
		if !known[name] {
			return fmt.Errorf("configuration: there is no flag %q", name)
		}
	}
	return nil
}

// Resolve implements kong.Resolver. The environment wins over the file.
func (c config) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, ok := os.LookupEnv(env); ok {
			return nil, nil
		}
	}
	return c[plain(flag.Name)], nil
}
