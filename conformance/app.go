package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

// goApp is package client as an App.
type goApp struct {
	transport http.RoundTripper
	store     string
	client    *client.Client // nil while the app is not running

	mu    sync.Mutex
	token string

	windows map[string]*client.Window // by the session they were opened on
	notes   map[string]map[string]client.Session
}

// NewGoApp returns an app made of package client, with its outbox in a file.
func NewGoApp(transport http.RoundTripper, store string) App {
	return &goApp{transport: transport, store: store}
}

// Do implements App.
func (a *goApp) Do(s *NetworkStep) (word string, err error) {
	if (a.client == nil) != (s.Do == "open") {
		return "", errors.New("the client runs once")
	}
	switch s.Do {
	case "open":
		return "", a.open(cmp.Or(s.Server, "http://server"), s.Token)
	case "quit":
		return "", a.Close()
	case "foreground":
		a.client.Foreground()
	case "token":
		a.setToken(s.Token)
		a.client.Renewed()
	case "window":
		a.windows[s.Session], err = a.client.OpenWindow(s.Session)
		return "", err
	case "see":
		list, _ := a.client.Sessions()
		a.notes[s.As] = map[string]client.Session{}
		for _, x := range list {
			a.notes[s.As][x.ID] = x
		}
	case "look":
		return a.look(s)
	case "markRead", "markUnread":
		return a.mark(s)
	default:
		return "", fmt.Errorf("no client does %q", s.Do)
	}
	return "", nil
}

func (a *goApp) setToken(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = token
}

func (a *goApp) open(server, token string) (err error) {
	a.setToken(token)
	a.windows, a.notes = map[string]*client.Window{}, map[string]map[string]client.Session{}
	a.client, err = client.OpenWith(context.Background(), server,
		func(context.Context) (string, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.token, nil
		}, a.store, client.Options{HTTP: &http.Client{Transport: a.transport}})
	return err
}

// Close implements App, and ends a client that a case quits.
func (a *goApp) Close() error {
	if a.client == nil {
		return nil
	}
	err := a.client.Close()
	a.client = nil
	return err
}

func (a *goApp) look(s *NetworkStep) (string, error) {
	w := a.windows[s.Session]
	if w == nil {
		return "", fmt.Errorf("no window was opened on %q", s.Session)
	}
	_, err := w.Observe(client.Observation{
		Snapshot: w.Snapshot(), Visible: true, Foreground: true, Loaded: true, TailInView: true,
	})
	return refusal(err), nil
}

// mark does something to a session as it is shown, or as it was seen earlier.
func (a *goApp) mark(s *NetworkStep) (string, error) {
	seen, err := a.client.Session(s.Session)
	if s.Note != "" {
		seen, err = a.notes[s.Note][s.Session], nil
	}
	if err != nil {
		return refusal(err), nil
	}
	if s.Do == "markRead" {
		_, err = a.client.MarkRead(seen)
	} else {
		_, err = a.client.MarkUnread(seen)
	}
	return refusal(err), nil
}

// refusal is why something was not done at once.
func refusal(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, client.ErrNotReady):
		return "not_ready"
	case errors.Is(err, client.ErrUnknownSession):
		return "unknown_session"
	case errors.Is(err, readsync.ErrStale):
		return "stale"
	}
	return err.Error()
}

// State implements App.
func (a *goApp) State() (map[string]any, error) {
	if a.client == nil {
		return map[string]any{"ready": false}, nil
	}
	list, complete := a.client.Sessions()
	status := a.client.Status()
	sessions, windows, lost := map[string]any{}, map[string]any{}, []any{}
	for _, x := range list {
		sessions[x.ID] = map[string]any{
			"contentRevision": x.ContentRevision, "readRevision": x.ReadRevision,
			"manualUnread": x.ManualUnread, "version": x.Version, "unread": x.Unread,
			"pending": x.Pending,
		}
	}
	for name, w := range a.windows {
		snapshot := w.Snapshot()
		ids := []any{}
		for _, m := range snapshot.Messages {
			ids = append(ids, m.ID)
		}
		windows[name] = map[string]any{
			"session": snapshot.Session, "messages": ids, "loaded": snapshot.Loaded,
			"receipt": snapshot.Through,
		}
	}
	for _, l := range status.Lost {
		lost = append(lost, map[string]any{
			"session": l.Operation.Session, "type": l.Operation.Kind, "reason": l.Reason,
		})
	}
	return map[string]any{
		"ready": complete, "sessions": sessions, "pending": status.Pending, "lost": lost,
		"windows": windows,
	}, nil
}
