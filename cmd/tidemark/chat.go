package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/internal/chat"
	"github.com/tidemark-im/tidemark/web/app"
)

type chatCommand struct {
	Link      string `arg:"" optional:"" help:"${about_chat_link}"`
	URL       string `help:"Where the server is." placeholder:"URL"`
	Token     string `help:"A member's token." placeholder:"TOKEN"`
	TokenFile string `help:"${about_chat_token_file}" placeholder:"FILE"`
	Store     string `help:"${about_chat_store}" placeholder:"FILE"`
}

func (c *chatCommand) run(ctx context.Context, m *Main) error {
	token, err := c.credentials()
	if err != nil {
		return err
	}
	out, isFile := m.Stdout.(*os.File)
	if !isFile || !isatty.IsTerminal(out.Fd()) || !isatty.IsTerminal(os.Stdin.Fd()) {
		return errors.New("chat needs a terminal: its input and output are not both one")
	}
	store, err := c.store()
	if err != nil {
		return err
	}
	err = chat.Run(ctx, chat.Options{
		URL: c.URL, Token: token, Store: store, In: os.Stdin, Out: out, Environ: os.Environ(),
	})
	if errors.Is(err, client.ErrInUse) {
		return fmt.Errorf("%s is in use by another chat; choose another file with --store", store)
	}
	return err
}

// credentials returns what gives the token, and takes a link apart.
func (c *chatCommand) credentials() (client.Token, error) {
	if c.Link != "" {
		if err := c.follow(); err != nil {
			return nil, err
		}
	}
	if u, err := url.Parse(c.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, wrongUsage("--url is %q, want https://host[:port][/path], or give a sign-in link", c.URL)
	}
	switch {
	case c.Token != "" && c.TokenFile != "":
		return nil, wrongUsage("--token and --token-file are both set")
	case c.Token != "":
		return func(context.Context) (string, error) { return c.Token, nil }, nil
	case c.TokenFile != "":
		return c.readToken, c.checkTokenFile()
	}
	return nil, wrongUsage("no token: give --token or --token-file, or a sign-in link")
}

// follow takes a sign-in link apart: the token is in its fragment.
func (c *chatCommand) follow() error {
	if c.URL != "" || c.Token != "" || c.TokenFile != "" {
		return wrongUsage("a sign-in link takes the place of --url, --token and --token-file, also of those in" +
			" environment (TIDEMARK_URL, TIDEMARK_TOKEN)")
	}
	base, fragment, _ := strings.Cut(c.Link, "#")
	values, err := url.ParseQuery(fragment)
	if err != nil || values.Get("token") == "" {
		return wrongUsage("the link has no token in it; is it whole, and quoted?")
	}
	base, _, _ = strings.Cut(base, "?")
	c.URL = strings.TrimSuffix(strings.TrimSuffix(base, app.Path), "/")
	c.Token = values.Get("token")
	return nil
}

func (c *chatCommand) readToken(context.Context) (string, error) {
	raw, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

func (c *chatCommand) checkTokenFile() error {
	token, err := c.readToken(context.Background())
	if err == nil && token == "" {
		err = fmt.Errorf("--token-file: %s is empty", c.TokenFile)
	}
	return err
}

// store is the file of the client. It says what somebody reads, so that its directory is theirs.
func (c *chatCommand) store() (string, error) {
	if c.Store != "" {
		return c.Store, nil
	}
	settings, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no place for the marks: %w; choose a file with --store", err)
	}
	dir := filepath.Join(settings, "tidemark")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("no place for the marks: %w; choose a file with --store", err)
	}
	return filepath.Join(dir, "chat.db"), nil
}
