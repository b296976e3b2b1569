//go:build unix

package servers

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server answers once it was started, and leaves no process and no file behind.
func TestStartAndStop(t *testing.T) {
	k, err := Named("redis")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(loopback, strconv.Itoa(s.place.port))
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Answers(conn); err != nil {
		t.Error(err)
	}
	conn.Close()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	<-s.Ended()
	if _, err := os.Stat(s.place.dir); !os.IsNotExist(err) {
		t.Errorf("its directory is there: %v", err)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
}

// A server that is missing is an error that names the package to install.
func TestMissing(t *testing.T) {
	k := Kind{Name: "x", Binaries: []string{"no-such-server"}, Packages: "x-server"}
	if _, err := Start(t.Context(), &k); err == nil || !strings.Contains(err.Error(), "apt-get install x-server") {
		t.Errorf("%v", err)
	}
	if _, err := Named("oracle"); err == nil {
		t.Error("it is known")
	}
}
