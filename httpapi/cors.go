package httpapi

import (
	"net/http"
	"slices"
)

// cors answers browsers of other origins. Tokens travel in a header, never in cookies, so no
// credentials are allowed and "*" is safe to configure.
type cors struct {
	origins []string
}

func (c cors) allows(origin string) bool {
	return slices.Contains(c.origins, "*") || slices.Contains(c.origins, origin)
}

// answer adds what a browser needs to hand the answer to its page.
func (c cors) answer(w http.ResponseWriter, r *http.Request) {
	if len(c.origins) == 0 {
		return
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !c.allows(origin) {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Retry-After, Allow")
}

// preflight answers OPTIONS.
func (c cors) preflight(w http.ResponseWriter, r *http.Request, allow string) {
	h := w.Header()
	h.Set("Allow", allow)
	if h.Get("Access-Control-Allow-Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != "" {
		h.Set("Access-Control-Allow-Methods", allow)
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID")
		h.Set("Access-Control-Max-Age", "600")
	}
	w.WriteHeader(http.StatusNoContent)
}
