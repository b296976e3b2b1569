package app

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"
)

// Path is where the app lies below the server's address.
const Path = "/app/"

//go:embed all:dist
var files embed.FS

// policy lets the page load its own files and talk to its own server, and nothing else. It may frame
// itself, to show two devices beside each other.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

// Handler serves the app at Path and leads there from "/"; everything else is not found. It needs no
// secrets: the files are the same for everyone.
func Handler() http.Handler {
	dist, err := fs.Sub(files, "dist")
	if err != nil {
		panic(err) // a constant path of this package
	}
	serve := http.StripPrefix(strings.TrimSuffix(Path, "/"), http.FileServerFS(dist))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/" || path == strings.TrimSuffix(Path, "/"):
			// A fragment, with the token of a sign-in link in it, goes along by itself.
			http.Redirect(w, r, Path, http.StatusFound)
			return
		case !strings.HasPrefix(path, Path) || path != Path && strings.HasSuffix(path, "/"):
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		if strings.HasPrefix(r.URL.Path, Path+"assets/") {
			// The name of a file says what is in it.
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		serve.ServeHTTP(w, r)
	})
}
