package client_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/client"
)

// An answer that cannot be written settles nothing: the operation stays, is sent again once the disk
// works, and is done once.
func TestAnAnswerThatCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	if err := d.KeepAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.MarkUnread(d.see("s")); err != nil {
		t.Fatal(err)
	}
	w.await("a failure of the disk", func() bool {
		why := d.Status().Waiting
		return why != nil && strings.Contains(why.Error(), "the disk fails")
	})
	if said := w.said("s"); said != "2 0 true 1" || d.Status().Pending != 1 {
		t.Errorf("the server has %s, and %d are pending", said, d.Status().Pending)
	}
	d.shows("s", 2, 0, true, 1)
	if err := d.LetGo(); err != nil {
		t.Fatal(err)
	}
	d.Foreground()
	d.drained()
	if said := w.said("s"); said != "2 0 true 1" || len(d.events(client.EventLost)) != 0 {
		t.Errorf("the server has %s, and told was %+v", said, d.events(client.EventLost))
	}
	d.shut()
	if ids := stored(t, d.path, "id"); len(ids) != 0 {
		t.Errorf("the file has %v", ids)
	}
}

// A file that is damaged, cut off, or of a newer client is not opened, and stays as it is.
func TestFilesThatAreNotOpened(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	w.guard(offline)
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	d.shut()
	whole, err := os.ReadFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	newer := append([]byte(nil), whole...)
	newer[63]++ // user_version, of which this is the last byte
	for what, content := range map[string][]byte{
		"no database": []byte(strings.Repeat("a letter to somebody ", 500)),
		"cut off":     whole[:len(whole)/2],
		"newer":       newer,
	} {
		path := filepath.Join(t.TempDir(), "client.db")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := w.tryOpen(func(o *deviceOptions) { o.path = path }); err == nil {
			t.Errorf("a file that is %s was opened", what)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(content) {
			t.Errorf("a file that is %s is another one now: %v", what, err)
		}
	}
}
