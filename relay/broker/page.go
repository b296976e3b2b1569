package broker

import (
	_ "embed" // the page
	"net/http"
	"strconv"
)

//go:embed page/index.html
var page []byte

//go:embed page/page.js
var script []byte

func servePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy",
		"default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; "+
			"frame-ancestors 'none'")
	_, _ = w.Write(page)
}

func serveScript(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	_, _ = w.Write(script)
}

func (b *Broker) serveMessages(w http.ResponseWriter, req *http.Request) {
	number := func(name string, otherwise int64) int64 {
		if n, err := strconv.ParseInt(req.FormValue(name), 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	before, limit := number("before", 0), int(number("limit", 50))
	rows, err := b.o.Agent.Page(req.Context(), req.PathValue("id"), before, limit)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, map[string]any{"messages": rows})
}

func (b *Broker) write(w http.ResponseWriter, req *http.Request) {
	q, err := read(req)
	if err != nil {
		refuse(w, err)
		return
	}
	id, err := b.o.Agent.Write(req.Context(), req.PathValue("id"), q.Text, q.ReplyTo)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer(w, map[string]string{"id": id})
}
