package live

import (
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// AppendRow appends one row as JSON, as it stands in pages and deltas.
func AppendRow(b []byte, r *unread.Row) []byte {
	line := r.Line(nil)
	return appendRow(b, &line, new(instants))
}

// ScopeName is the id of a scope as it is listed among others: that of a session of the reader is
// "session:" and the session's own.
func ScopeName(s readstate.ScopeID) string {
	if _, id, ok := facts.SessionOf(s); ok {
		return facts.ReservedPrefix + id
	}
	return string(s)
}

// appendScope is ScopeName as a JSON string.
func appendScope(b, id []byte) []byte {
	if len(id) == 0 || id[0] >= ' ' { // nearly all of them
		return appendQuoted(b, id)
	}
	return appendQuoted(b, []byte(ScopeName(readstate.ScopeID(id))))
}
