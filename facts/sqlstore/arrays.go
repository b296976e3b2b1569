package sqlstore

// byteColumns are the names of the columns that hold bytes where a database has to be told: those
// that rows are found by, and those that an update writes.
var byteColumns = map[string]bool{
	"id": true, "op_id": true, "local_id": true, "name": true, "named": true, "payload": true,
	"owner": true, "error": true, "node": true, "text": true,
}

// columns turns the n keys at the beginning of args into one array for each of their columns. A key
// without any value is padding and left out.
func (s *session) columns(st *statement, n int, args []any) []any {
	width := len(st.keys)
	keys, tail := args[:n*width], args[n*width:]
	out := make([]any, 0, width+len(tail))
	padding := padded(keys, width)
	for i, name := range st.keys {
		if byteColumns[name] {
			out = append(out, byteArray(keys[:len(keys)-padding], i, width))
		} else {
			out = append(out, numberArray(keys[:len(keys)-padding], i, width))
		}
	}
	return append(out, tail...)
}

// padded returns how many parameters at the end of keys are of keys without a value.
func padded(keys []any, width int) int {
	n := 0
	for n < len(keys) {
		row := keys[len(keys)-n-width:][:width]
		for _, v := range row {
			if v != nil {
				return n
			}
		}
		n += width
	}
	return n
}

func byteArray(keys []any, at, width int) [][]byte {
	out := make([][]byte, 0, len(keys)/width)
	for ; at < len(keys); at += width {
		switch v := keys[at].(type) {
		case []byte:
			out = append(out, v)
		case string:
			out = append(out, []byte(v))
		default:
			out = append(out, nil) // NULL
		}
	}
	return out
}

// numberArray returns an []int64, or where one is missing an array of pointers.
func numberArray(keys []any, at, width int) any {
	out := make([]int64, 0, len(keys)/width)
	for i := at; i < len(keys); i += width {
		v, ok := keys[i].(int64)
		if !ok {
			return nullableArray(keys, at, width)
		}
		out = append(out, v)
	}
	return out
}

func nullableArray(keys []any, at, width int) []*int64 {
	out := make([]*int64, 0, len(keys)/width)
	for ; at < len(keys); at += width {
		var p *int64
		if v, ok := keys[at].(int64); ok {
			p = &v
		}
		out = append(out, p)
	}
	return out
}
