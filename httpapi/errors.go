package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi/framing"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/live/strict"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Code is the stable name of a refusal. Clients decide by it, never by the texts.
type Code string

const (
	CodeInvalidRequest       Code = "invalid_request"
	CodeRevisionInFuture     Code = "revision_in_future"
	CodeUnauthenticated      Code = "unauthenticated"
	CodeTokenExpired         Code = "token_expired"
	CodeForbidden            Code = "forbidden"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeOperationMismatch    Code = "operation_mismatch"
	CodeVersionConflict      Code = "version_conflict"
	CodeScopeReplaced        Code = "scope_replaced"
	CodeSourceGap            Code = "source_gap"
	CodeBodyTooLarge         Code = "body_too_large"
	CodeNotOwner             Code = "not_owner"
	CodeOverBudget           Code = "over_budget"
	CodeInternal             Code = "internal"
	CodeUnavailable          Code = "unavailable"
	CodeProjectionBehind     Code = "projection_behind"
)

// row is one line of the error table.
type row struct {
	code   Code
	status int
	title  string
	causes []error // matched with errors.Is
}

// table is the only way from an error to the wire. The first row with a matching cause counts.
var table = []row{
	{CodeInvalidRequest, 400, "The request makes no sense", []error{
		facts.ErrInvalid, unread.ErrCursor}},
	{CodeRevisionInFuture, 400, "The revision does not exist yet", []error{
		facts.ErrFuture, readstate.ErrFuture, strict.ErrUnsafe}},
	{CodeUnauthenticated, 401, "A valid token is needed", []error{ErrUnauthenticated}},
	{CodeTokenExpired, 401, "The token has expired", []error{ErrTokenExpired}},
	{CodeForbidden, 403, "Not allowed", []error{facts.ErrForbidden}},
	{CodeNotFound, 404, "Unknown or not visible", []error{
		facts.ErrNotFound, unread.ErrNoRow, unread.ErrNoMember, unread.ErrNoWorkspace}},
	{CodeMethodNotAllowed, 405, "The method is not allowed here", nil},
	{CodeUnsupportedMediaType, 415, "The body must be JSON", nil},
	{CodeOperationMismatch, 409, "This contradicts what was accepted before", []error{
		facts.ErrMismatch}},
	{CodeVersionConflict, 409, "Another device was faster", []error{
		facts.ErrConflict, readstate.ErrConflict}},
	{CodeScopeReplaced, 409, "The session was merged into another", []error{facts.ErrReplaced}},
	{CodeSourceGap, 409, "Sources are missing", []error{inbox.ErrGap}},
	{CodeBodyTooLarge, 413, "The body is too large", nil},
	{CodeNotOwner, 421, "Another process owns the workspace", []error{facts.ErrNotOwner}},
	{CodeOverBudget, 429, "Too much for now", []error{facts.ErrLimit, unread.ErrBudget}},
	{CodeUnavailable, 503, "Not available for now", []error{
		facts.ErrUnavailable, facts.ErrClosed, inbox.ErrClosed, unread.ErrNotServable, live.ErrDraining,
		context.DeadlineExceeded, context.Canceled}},
	{CodeProjectionBehind, 503, "The projection is behind", []error{inbox.ErrBehind}},
	{CodeInternal, 500, "Something broke", nil},
}

func rowOf(code Code) row {
	for _, r := range table {
		if r.code == code {
			return r
		}
	}
	panic("no row of the error table has the code " + string(code))
}

// Problem is the body of every refusal, RFC 9457.
//
//nolint:errname // the word of the standard, and the name of the schema
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   Code   `json:"code"`
	Owner  string `json:"owner,omitempty"`
	// ReplacedBy is the session to go on with.
	ReplacedBy string `json:"replacedBy,omitempty"`
}

// Error implements error.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// refuse makes a refusal with a row of the table.
func refuse(code Code, format string, args ...any) *Problem {
	r := rowOf(code)
	return &Problem{
		Type: "urn:tidemark:problem:" + string(code), Title: r.title, Status: r.status,
		Detail: fmt.Sprintf(format, args...), Code: code,
	}
}

// problemOf finds the row of an error.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var malformed *strict.Error
	if errors.As(err, &malformed) {
		return refuse(CodeInvalidRequest, "%s", malformed)
	}
	var frame *framing.Error
	if errors.As(err, &frame) {
		return refuse(CodeInvalidRequest, "%s", frame)
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return refuse(CodeBodyTooLarge, "at most %d bytes", large.Limit)
	}
	var replaced *facts.ReplacedError
	if errors.As(err, &replaced) {
		p := refuse(CodeScopeReplaced, "%s", detail(CodeScopeReplaced, replaced))
		p.ReplacedBy = replaced.By
		return p
	}
	for _, r := range table {
		for _, cause := range r.causes {
			if errors.Is(err, cause) {
				return refuse(r.code, "%s", detail(r.code, err))
			}
		}
	}
	return refuse(CodeInternal, "look for this id in the log: %s", errorID())
}

// detail is the text of an error as far as clients may read it: that of a refusal of their own
// request. The store's and the system's errors stay in the log.
func detail(code Code, err error) string {
	if code == CodeUnavailable {
		return "the operation may or may not have happened: repeat it with the same operation id"
	}
	return strings.ToValidUTF8(err.Error(), "\uFFFD")
}

func errorID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails; see crypto/rand
	return hex.EncodeToString(b[:])
}

// writeProblem answers with a refusal and returns its code.
func (s *Server) writeProblem(w http.ResponseWriter, r *http.Request, err error) Code {
	p := problemOf(err)
	if p.Code == CodeInternal {
		s.log.ErrorContext(r.Context(), "request failed", "method", r.Method,
			"path", r.URL.Path, "error", err, "answer", p.Detail)
	} else if p.Code == CodeUnavailable && r.Context().Err() == nil {
		s.log.WarnContext(r.Context(), "request cannot be answered now", "method", r.Method,
			"path", r.URL.Path, "error", err)
	}
	header := w.Header()
	switch p.Status {
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", `Bearer realm="tidemark"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if header.Get("Retry-After") == "" {
			header.Set("Retry-After", strconv.Itoa(retrySeconds))
		}
	}
	writeJSON(w, "application/problem+json", p.Status, p)
	return p.Code
}

// writeJSON answers with a body that encoding cannot fail for.
func writeJSON(w http.ResponseWriter, contentType string, status int, body any) {
	b, err := encode(body)
	if err != nil {
		panic(fmt.Sprintf("answer of type %T: %v", body, err))
	}
	b.data = append(b.data, '\n') // for terminals
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(b.data)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(b.data) // the client may have left
	b.release()
}
