package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

// clean makes text of others drawable: nothing in it is a command to the terminal, or turns the
// direction of what stands around it.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case unicode.IsControl(r), r == unicode.ReplacementChar:
			return -1
		case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u2028', r == '\u2029':
			return -1
		}
		return r
	}, ansi.Strip(strings.ReplaceAll(text, "\r\n", "\n")))
}

// cleanLine is clean for what has one line.
func cleanLine(text string) string { return strings.ReplaceAll(clean(text), "\n", " ") }

// textOf is what a message says: a payload that is a text, or has one, or parts with texts; else the
// payload itself.
func textOf(payload json.RawMessage) string {
	var text string
	if json.Unmarshal(payload, &text) == nil {
		return text
	}
	var object struct {
		Text  *string `json:"text"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	}
	if json.Unmarshal(payload, &object) != nil {
		return string(payload)
	}
	if object.Text != nil {
		return *object.Text
	}
	var parts []string
	for _, p := range object.Parts {
		if p.Text != "" {
			parts = append(parts, p.Text)
		}
	}
	return cmp.Or(strings.Join(parts, "\n"), string(payload))
}

// author is who is shown above a message. In a session the owner wrote what is a prompt, and their
// agent the rest.
func (m *Model) author(x *readsync.Message) string {
	name := x.Author
	if m.open.Session {
		name = "agent"
		if x.Kind == "prompt" {
			name = "you"
		}
	} else if name == m.world.Member {
		name = "you"
	}
	if x.Kind != "" && x.Kind != "text" && x.Kind != "prompt" {
		name += " (" + x.Kind + ")"
	}
	return cleanLine(name)
}

// wrap breaks a text into lines of a width, at least one.
func wrap(text string, width int) []string {
	return strings.Split(ansi.Wrap(text, max(width, 1), " -"), "\n")
}

// fit makes a text exactly so wide, in cells.
func fit(text string, width int) string {
	if width <= 0 {
		return ""
	}
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// explain says an error for people.
func explain(err error) string {
	var refused *client.RefusedError
	var network net.Error
	switch {
	case errors.As(err, &refused) && refused.Final():
		return "the server refused it: " + cleanLine(cmp.Or(refused.Detail, refused.Code))
	case errors.As(err, &refused) && refused.Code != "":
		return "the server cannot do it now: " + cleanLine(cmp.Or(refused.Detail, refused.Code))
	case errors.As(err, &refused):
		return "the server cannot be reached"
	case errors.Is(err, client.ErrCredentials):
		return "the server takes no token that there is"
	case errors.Is(err, client.ErrNamespace):
		return "the token is somebody else's now"
	case errors.Is(err, client.ErrNotReady):
		return "the server has not been reached yet"
	case errors.Is(err, readsync.ErrStale):
		return "it has changed since it was on the screen"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network):
		return "the server does not answer"
	}
	return cleanLine(err.Error())
}
