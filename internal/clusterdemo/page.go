package clusterdemo

import (
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
)

//go:embed page
var files embed.FS

// Page serves the page, what it shows, and its buttons. It is for this machine alone.
func (c *Cluster) Page() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // a constant path of this package
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(page))
	mux.HandleFunc("GET /view", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.View()) // whoever asked may be gone
	})
	mux.HandleFunc("POST /nodes/{name}/{action}", c.act)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "+
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		mux.ServeHTTP(w, r)
	})
}

// act presses a button. A page of somebody else's must not.
func (c *Cluster) act(w http.ResponseWriter, r *http.Request) {
	if origin, err := url.Parse(r.Header.Get("Origin")); err != nil || origin.Host != r.Host {
		http.Error(w, "press it on the page", http.StatusForbidden)
		return
	}
	for _, n := range c.Nodes {
		if n.Name != r.PathValue("name") {
			continue
		}
		do := map[string]func() error{
			"kill": n.Kill, "pause": n.Pause, "resume": n.Resume, "start": n.Start,
		}[r.PathValue("action")]
		if do == nil {
			break
		}
		switch err := do(); {
		case errors.Is(err, errCondition):
			http.Error(w, err.Error(), http.StatusConflict)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
		return
	}
	http.NotFound(w, r)
}
