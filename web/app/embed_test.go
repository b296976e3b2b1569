package app_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/web/app"
)

// parts is what the built files are made of, as build/sources.ts names it, relative to web.
var parts = []string{
	"app/index.html", "app/package.json", "app/vite.config.ts", "app/build", "app/src", "sdk/src",
}

// What is committed as built was built from the sources as they are. No Node.js is needed to see that.
func TestBuiltFilesAreFresh(t *testing.T) {
	var lines []string
	for _, part := range parts {
		err := filepath.WalkDir(filepath.Join("..", part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name := strings.TrimPrefix(filepath.ToSlash(path), "../")
			lines = append(lines, fmt.Sprintf("%x  %s", sha256.Sum256(text), name))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	built, err := os.ReadFile(filepath.Join("dist", "sources.txt"))
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Split(strings.TrimSpace(string(built)), "\n")
	for _, line := range lines {
		if !slices.Contains(said, line) {
			t.Errorf("dist was not built from %s as it is: npm --prefix web run build -w app", line[66:])
		}
	}
	if len(said) != len(lines) {
		t.Errorf("dist was built from %d sources, there are %d", len(said), len(lines))
	}
}

// The page and all that it names are served, under a policy that runs nothing else.
func TestHandler(t *testing.T) {
	h := app.Handler()
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	for _, path := range []string{"/", "/app"} {
		if w := get(path); w.Code != 302 || w.Header().Get("Location") != app.Path {
			t.Errorf("%s: %d to %q", path, w.Code, w.Header().Get("Location"))
		}
	}
	page := get(app.Path)
	if page.Code != 200 || page.Header().Get("Cache-Control") != "no-cache" {
		t.Fatalf("page: %d %v", page.Code, page.Header())
	}
	policy := page.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
	named := regexp.MustCompile(`(?:src|href)="\./([^"]+)"`).FindAllStringSubmatch(page.Body.String(), -1)
	if len(named) != 3 {
		t.Fatalf("the page names %v", named)
	}
	for _, m := range named {
		w := get(app.Path + m[1])
		if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", m[1], w.Code, w.Header())
		}
	}
	for _, path := range []string{"/other", "/app/assets/", "/app/../embed.go", "/app/nothing.js"} {
		if w := get(path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
