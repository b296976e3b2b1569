package demo

import (
	"embed"
	"io/fs"
	"net/http"
	"net/url"
)

//go:embed page
var files embed.FS

// PlainPath is where the plain page lies, beside the web app.
const PlainPath = "/plain/"

// Page serves the demo's page. It needs no secrets: it is the same for everyone.
func Page() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // a constant path of this package
	}
	serve := http.FileServerFS(page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "+
			"connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "+
			"frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		serve.ServeHTTP(w, r)
	})
}

// Link is an address that signs in, at the page of the web app. The token is in the fragment, so that
// it stays in the browser; device is what the page calls itself, empty for both of a person's devices
// beside each other.
func Link(page, token, device string) string {
	v := url.Values{"token": {token}}
	if device == "" {
		return page + "?two#" + v.Encode()
	}
	v.Set("device", device)
	return page + "#" + v.Encode()
}
