package httpapi

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-im/tidemark"
)

func TestSmoke(t *testing.T) {
	e, err := tidemark.Open(context.Background(), tidemark.Options{Facts: "sqlite:" + filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	j, err := NewJWT(JWTConfig{Secrets: [][]byte{make([]byte, 32)}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Engine: e, Auth: j})
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/hx/openapi.json", s.Document(), 0o644)
	os.WriteFile("/tmp/hx/docs.html", s.docs, 0o644)
}
