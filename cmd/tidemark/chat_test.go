package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Without a terminal there is no chat, and no file is made for one.
func TestChatNeedsATerminal(t *testing.T) {
	dir := t.TempDir()
	store, token := filepath.Join(dir, "chat.db"), filepath.Join(dir, "token")
	flags := []string{"chat", "--url", "http://127.0.0.1:1", "--store", store}
	run(t, append(flags, "--token", "x")...).fails(t, exitFailed, "chat needs a terminal")
	if err := os.WriteFile(token, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, append(flags, "--token-file", token)...).fails(t, exitFailed, "is empty")
	run(t, append(flags, "--token-file", token+"s")...).fails(t, exitFailed, "--token-file: open")
	if _, err := os.Stat(store); !os.IsNotExist(err) {
		t.Errorf("a file was made: %v", err)
	}
}
