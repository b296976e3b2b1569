package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// ErrCredentials means that the server took no token of those that there were. Nothing is sent
// until there is another one.
var ErrCredentials = errors.New("another token is needed")

// identity knows whom tokens speak for, as the server told.
type identity struct {
	// asking is held by whoever asks the server about a token: all others need its answer.
	asking chan struct{}

	mu      sync.Mutex
	of      Namespace // empty until the first answer; never another one then
	known   string    // the token that is of the namespace
	refused string    // the last token that the server did not take
}

func newIdentity() identity { return identity{asking: make(chan struct{}, 1)} }

func (i *identity) namespace() (ns Namespace, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.of, i.of != Namespace{}
}

// refuse notes that the server does not take a token.
func (i *identity) refuse(token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refused = token
	if i.known == token {
		i.known = ""
	}
}

// authorize returns a token that the server has told to be of the client's namespace. A new token
// costs a request; nothing else is sent with it before.
func (c *Client) authorize(ctx context.Context) (string, error) {
	i := &c.auth
	select {
	case i.asking <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-i.asking }()
	token, err := c.token(ctx)
	if err != nil {
		return "", fmt.Errorf("get a token: %w", err)
	}
	i.mu.Lock()
	known, refused, of := i.known, i.refused, i.of
	i.mu.Unlock()
	switch token {
	case known:
		if known != "" {
			return token, nil
		}
	case refused:
		return "", ErrCredentials
	}
	if token == "" {
		return "", ErrCredentials
	}
	ns, err := c.whoami(ctx, token)
	if err != nil {
		return "", err
	}
	if of != (Namespace{}) && ns != of {
		return "", ErrNamespace
	}
	i.mu.Lock()
	i.of, i.known = ns, token
	i.mu.Unlock()
	return token, nil
}

// whoami asks the server whom a token speaks for. What the token looks like says nothing.
func (c *Client) whoami(ctx context.Context, token string) (Namespace, error) {
	const path = "/api/whoami"
	r, err := c.exchange(ctx, token, http.MethodGet, path, nil)
	if err != nil {
		return Namespace{}, fmt.Errorf("GET %s: %w", path, err)
	}
	if r.refusesToken() {
		c.auth.refuse(token)
		return Namespace{}, ErrCredentials
	}
	var ns Namespace
	return ns, r.decode(path, &ns)
}
