package chat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/client"
)

// What is refused for now is not told as refused, and a machine on the way is not the server.
func TestRefusalsAreExplained(t *testing.T) {
	for _, c := range []struct {
		refused client.RefusedError
		want    string
	}{
		{client.RefusedError{Status: 403, Code: "forbidden", Detail: "not yours"}, "the server refused it: not yours"},
		{client.RefusedError{Status: 400, Code: "invalid_request"}, "the server refused it: invalid_request"},
		{client.RefusedError{Status: 503, Code: "unavailable"}, "the server cannot do it now: unavailable"},
		{client.RefusedError{Status: 429, Code: "over_budget", Detail: "\x1b[2Jlater"}, "the server cannot do it now: later"},
		{client.RefusedError{Status: 401}, "the server cannot be reached"},
		{client.RefusedError{Status: 404}, "the server cannot be reached"},
	} {
		got := explain(fmt.Errorf("post: %w", &c.refused))
		if got != c.want || strings.Contains(got, "\x1b") {
			t.Errorf("%+v is %q", c.refused, got)
		}
	}
}
