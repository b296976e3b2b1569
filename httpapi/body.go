package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/live/strict"
)

// none is the body of a request that has none: nothing at all, or an empty object.
type none struct{}

// readBody reads and decodes a body of at most limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close") // nobody is going to read it
		return refuse(CodeBodyTooLarge, "at most %d bytes", limit)
	}
	data, err := slurp(w, r, limit)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		if reflect.TypeOf(into).Elem() == reflect.TypeFor[none]() {
			return nil
		}
		return refuse(CodeInvalidRequest, "a body is missing")
	}
	if err := checkMediaType(r.Header); err != nil {
		return err
	}
	return strict.Decode(data, into)
}

func slurp(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, err
	case err != nil:
		w.Header().Set("Connection", "close")
		return nil, refuse(CodeInvalidRequest, "the body ends too early")
	}
	// It was set when the request came. What watches for a client that leaves reads on.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return data, nil
}

func checkMediaType(h http.Header) error {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset := params["charset"]
	switch {
	case err != nil || kind != "application/json":
		return refuse(CodeUnsupportedMediaType, "the body must be application/json")
	case charset != "" && !strings.EqualFold(charset, "utf-8"):
		return refuse(CodeUnsupportedMediaType, "the body must be UTF-8")
	}
	if encoding := h.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return refuse(CodeUnsupportedMediaType, "the body must not be compressed")
	}
	return nil
}
