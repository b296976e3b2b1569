package client_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/client"
)

// One file, two members and two servers: each has its own outbox, and what waits in it is sent to
// its own server with its own token.
//
// covers: SE-105 SE-106 SE-107 SE-109
func TestOutboxesAreOfAServerAndANamespace(t *testing.T) {
	here, there := newWorld(t), newWorld(t)
	for _, w := range []*world{here, there} {
		w.session("s", 2)
		w.want(201, "POST", "/api/sessions", w.token("x.y:z"), object{"id": "s"})
		w.want(201, "POST", "/api/sessions/s/messages", w.token("x.y:z"), object{"localId": "1", "payload": "x"})
	}
	d := here.open().ready(1)
	here.guard(offline)
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	here.guard(nil)
	as := func(w *world, member string) *device {
		token := w.token(member)
		return w.open(at(d), func(o *deviceOptions) {
			o.token = func(context.Context) (string, error) { return token, nil }
		}).ready(1)
	}
	other := as(here, "x.y:z")
	if n := other.Status().Pending; n != 0 {
		t.Errorf("another namespace has %d operations", n)
	}
	if ns := other.Status().Namespace; ns != (client.Namespace{Workspace: "W", Member: "x.y:z"}) {
		t.Errorf("the namespace is %v", ns)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	other = as(there, "A")
	if n := other.Status().Pending; n != 0 {
		t.Errorf("another server has %d operations", n)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if sent := there.requests("PUT /api/sessions"); len(sent) != 0 || there.said("s") != "2 0 false 0" {
		t.Errorf("the wrong server got %v", sent)
	}
	if got := stored(t, d.path, "origin || ' ' || workspace || ' ' || member"); len(got) != 1 || got[0] != here.http.URL+" W A" {
		t.Errorf("the file has %v", got)
	}
	as(here, "A").drained()
	if said := here.said("s"); said != "2 2 false 0" {
		t.Errorf("the server has %s", said)
	}
}

func TestAFileHasOneClient(t *testing.T) {
	w := newWorld(t)
	d := w.open()
	if _, err := w.tryOpen(at(d)); !errors.Is(err, client.ErrInUse) {
		t.Errorf("got %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	w.open(at(d))
	foreign := t.TempDir() + "/other.db"
	db, err := sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE x (y)"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for _, bad := range []func(*deviceOptions){
		func(o *deviceOptions) { o.path = foreign },
		func(o *deviceOptions) { o.path = t.TempDir() },
		func(o *deviceOptions) { o.base = "ftp://host" },
		func(o *deviceOptions) { o.base = "https://user@host" },
		func(o *deviceOptions) { o.base = "nowhere" },
	} {
		if _, err := w.tryOpen(bad); err == nil {
			t.Error("opened")
		}
	}
}

// covers: SE-105
func TestAddressesOfOneServerAreOne(t *testing.T) {
	for _, c := range [][]string{
		{"https://chat.example", "https://chat.example/", "HTTPS://Chat.Example:443"},
		{"http://chat.example:8480/unread", "http://chat.example:8480/unread/"},
		{"http://[::1]:80", "http://[::1]"},
	} {
		for _, address := range c {
			if got, err := client.Normalize(address); err != nil || got != strings.ToLower(c[0]) && got != c[len(c)-1] {
				t.Errorf("%s is %s, %v", address, got, err)
			}
		}
	}
	seen := map[string]bool{}
	for _, address := range []string{
		"http://chat.example", "https://chat.example", "https://chat.example:8480",
		"https://chat.example/a", "https://chat.example/b", "https://other.example",
	} {
		got, err := client.Normalize(address)
		if err != nil || seen[got] {
			t.Errorf("%s is %s, like another, %v", address, got, err)
		}
		seen[got] = true
	}
}
