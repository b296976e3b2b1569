package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestPlainLines(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	var out bytes.Buffer
	b := New(&out, "loading", "messages", 2000, c.now)
	for done := int64(100); done <= 2000; done += 100 {
		c.at = c.at.Add(500 * time.Millisecond)
		b.Set(done)
	}
	if took := b.End(); took != 10*time.Second {
		t.Errorf("took %v", took)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 10 {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	for i, want := range map[int]string{
		0: "loading   10 %  200 of 2,000 messages  200/s  9s left",
		9: "loading  100 %  2,000 of 2,000 messages  200/s",
	} {
		if lines[i] != want {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	if strings.ContainsAny(out.String(), "\r\x1b") {
		t.Error("plain output moves the cursor")
	}
}

func TestTerminalIsDrawnAnewAndCleared(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	var out bytes.Buffer
	b := New(&out, "loading", "messages", 1000, c.now)
	b.terminal = true
	for done := int64(1); done <= 1000; done++ { // a second in all
		c.at = c.at.Add(time.Millisecond)
		b.Set(done)
	}
	b.End()
	draws := strings.Split(out.String(), clearLine)
	if n := len(draws); n < 8 || n > 13 {
		t.Errorf("drawn %d times", n)
	}
	if !strings.Contains(out.String(), "█") || !strings.HasSuffix(out.String(), clearLine) {
		t.Errorf("got %q", out.String())
	}
	if strings.Contains(out.String(), "\n") {
		t.Error("the bar leaves lines behind")
	}
}

func TestNothingToDo(t *testing.T) {
	var out bytes.Buffer
	b := New(&out, "counting", "members", 0, time.Now)
	b.Set(0)
	b.End()
	if out.Len() != 0 {
		t.Errorf("got %q", out.String())
	}
}
