package live

import "github.com/tidemark-im/tidemark/unread"

// AppendRow appends one row as JSON, as it stands in pages and deltas.
func AppendRow(b []byte, r *unread.Row) []byte {
	line := r.Line(nil)
	return appendRow(b, &line, new(instants))
}
