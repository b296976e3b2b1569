package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ClientCase is one thing that has to hold of a client: what it makes of what servers and people do.
type ClientCase struct {
	Head
	Steps []ClientStep `json:"steps"`
}

// ClientStep is something that happens to a client, and what has to be so right after it. Which
// fields matter depends on Do; README.md has the table.
type ClientStep struct {
	Do string `json:"do"`

	Session  string          `json:"session,omitempty"`
	Said     *Said           `json:"said,omitempty"`
	Op       string          `json:"op,omitempty"`   // an operation's id, given by the case
	As       string          `json:"as,omitempty"`   // a name for what is noted
	Note     string          `json:"note,omitempty"` // the name of what was noted
	Revision *uint64         `json:"readRevision,omitempty"`
	Page     string          `json:"page,omitempty"`  // latest, before or after
	After    uint64          `json:"after,omitempty"` // the seq that a page is after
	Answer   json.RawMessage `json:"answer,omitempty"`
	Status   int             `json:"status,omitempty"` // of HTTP; 0: no answer came
	Unsent   bool            `json:"unsent,omitempty"` // the request never left
	Message  *MessageEvent   `json:"message,omitempty"`
	By       string          `json:"by,omitempty"`
	Works    *bool           `json:"works,omitempty"`
	At       int64           `json:"at,omitempty"` // milliseconds since 1970

	Visible    *bool `json:"visible,omitempty"`
	Foreground *bool `json:"foreground,omitempty"`
	Loaded     *bool `json:"loaded,omitempty"`
	TailInView *bool `json:"tailInView,omitempty"`

	Steps []ClientStep `json:"steps,omitempty"` // of anyOrder

	Expect json.RawMessage `json:"expect,omitempty"`
}

// Said is what a server says of a session, in answers and events.
type Said struct {
	Active          bool       `json:"active,omitempty"`
	Thinking        bool       `json:"thinking,omitempty"`
	ContentRevision *uint64    `json:"contentRevision,omitempty"`
	ReadState       *ReadState `json:"readState,omitempty"`
}

// ReadState is a read state as servers write it.
type ReadState struct {
	ReadRevision uint64 `json:"readRevision"`
	ManualUnread bool   `json:"manualUnread"`
	Version      uint64 `json:"version"`
	FromRevision uint64 `json:"fromRevision,omitempty"`
}

// MessageEvent is a message as the stream tells of it.
type MessageEvent struct {
	Op      string          `json:"op"` // added, edited or removed
	Session string          `json:"session"`
	Message json.RawMessage `json:"message"`
}

// ClientSuite is a file of client cases.
type ClientSuite = file[ClientCase]

// LoadClient returns the client cases in the order of their names.
func LoadClient() ([]ClientSuite, error) {
	return load(clientFiles, "cases/client", (*ClientCase).check, (*ClientCase).head)
}

// ParseClient reads a file of client cases.
func ParseClient(r io.Reader) (ClientSuite, error) { return parse(r, (*ClientCase).check) }

func (c *ClientCase) head() *Head { return &c.Head }

func (c *ClientCase) check() error {
	if err := c.Head.check(len(c.Steps)); err != nil {
		return err
	}
	asks := false
	for i := range c.Steps {
		s := &c.Steps[i]
		asks = asks || s.Expect != nil
		if s.Do == "" {
			return fmt.Errorf("case %s, step %d does nothing", c.ID, i+1)
		}
		if n := len(s.Steps); (s.Do == anyOrder) != (n > 0) || n > maxOrder {
			return fmt.Errorf("case %s, step %d: %s with %d steps", c.ID, i+1, s.Do, n)
		}
	}
	if !asks {
		return fmt.Errorf("case %s expects nothing", c.ID)
	}
	return nil
}

const (
	anyOrder = "anyOrder"
	maxOrder = 6 // 720 orders
)

// Client is a client under test. Do lets something happen to it and returns how it is then: an
// object with the parts that README.md names, as JSON decodes it. An error says that the step makes
// no sense.
type Client interface {
	Do(s *ClientStep) (map[string]any, error)
}

// RunClient plays a case on new clients: on one, or on one for each order of its steps in any order.
func RunClient(newClient func() Client, c *ClientCase) (Result, error) {
	at := slices.IndexFunc(c.Steps, func(s ClientStep) bool { return s.Do == anyOrder })
	if at < 0 {
		return playClient(newClient(), c, c.Steps, func(i int) int { return i + 1 })
	}
	shuffled := slices.Clone(c.Steps[at].Steps)
	out := Result{Case: c.ID}
	err := permute(shuffled, 0, func() (bool, error) {
		flat := slices.Concat(c.Steps[:at], shuffled, c.Steps[at+1:])
		if n := len(shuffled); c.Steps[at].Expect != nil {
			flat[at+n-1].Expect = c.Steps[at].Expect
		}
		var err error
		out, err = playClient(newClient(), c, flat, func(i int) int {
			return min(i, at) + max(i-at-len(shuffled)+1, 0) + 1
		})
		return err == nil && out.OK(), err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

// errEnough ends a walk through orders.
var errEnough = errors.New("enough")

// playClient plays steps; number is the place of a step in the case, from 1.
func playClient(
	client Client, c *ClientCase, steps []ClientStep, number func(int) int,
) (Result, error) {
	for i := range steps {
		s := &steps[i]
		got, err := client.Do(s)
		if err != nil {
			return Result{}, fmt.Errorf("case %s, step %d: %s: %w", c.ID, number(i), s.Do, err)
		}
		if s.Expect == nil {
			continue
		}
		want, err := decode(s.Expect)
		if err != nil {
			return Result{}, fmt.Errorf("case %s, step %d: what is expected: %w", c.ID, number(i), err)
		}
		if d := differs(s.Do, want, got); d != "" {
			return Result{Case: c.ID, Step: number(i), Problem: d}, nil
		}
	}
	return Result{Case: c.ID}, nil
}

// permute calls f with every order of the elements from k on, until it says false or fails.
func permute[T any](list []T, k int, f func() (bool, error)) error {
	if k == len(list) {
		more, err := f()
		if err == nil && !more {
			err = errEnough
		}
		return err
	}
	for i := k; i < len(list); i++ {
		list[k], list[i] = list[i], list[k]
		err := permute(list, k+1, f)
		list[k], list[i] = list[i], list[k]
		if err != nil {
			return err
		}
	}
	return nil
}
