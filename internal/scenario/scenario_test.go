package scenario

import (
	"testing"
)

// startServer starts the product on a database of its own and returns how to reach it. Nil until
// the product has a server to start.
var startServer func(t *testing.T) Options

// Every scenario holds on the real server, or fails where it says that it will.
func TestScenarios(t *testing.T) {
	if startServer == nil {
		t.Skip("there is no server to play on yet")
	}
	r, err := New(startServer(t))
	if err != nil {
		t.Fatal(err)
	}
	runFiles(t, r, parseAll(t))
}
