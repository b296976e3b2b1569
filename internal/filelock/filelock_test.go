package filelock

import (
	"os"
	"path/filepath"
	"testing"
)

// A file is locked once, whoever opens it, and free again when it is closed.
func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	defer second.Close()
	if held, err := Try(first); !held || err != nil {
		t.Fatalf("the first: %t, %v", held, err)
	}
	if held, err := Try(second); held || err != nil {
		t.Errorf("the second beside it: %t, %v", held, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if held, err := Try(second); !held || err != nil {
		t.Errorf("the second afterwards: %t, %v", held, err)
	}
}
