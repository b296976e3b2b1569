package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// Writer writes a trace row by row as plain CSV. It is not safe for concurrent use.
type Writer struct {
	out     *bufio.Writer
	scratch []byte
	started bool
}

// NewWriter writes to w. Flush at the end.
func NewWriter(w io.Writer) *Writer {
	return &Writer{out: bufio.NewWriterSize(w, bufferBytes)}
}

// Write appends a row. What it accepts, a Reader reads back as the same row.
func (w *Writer) Write(row Row) error {
	b := w.scratch[:0]
	if !w.started {
		b = append(b, header...)
		b = append(b, '\n')
		w.started = true
	}
	b = strconv.AppendInt(b, row.At, 10)
	for _, id := range []uint32{uint32(row.Channel), uint32(row.Topic), uint32(row.Sender)} {
		b = append(b, ',')
		b = strconv.AppendUint(b, uint64(id), 10)
	}
	b = append(b, ',')
	for i, user := range row.Mentions {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendUint(b, uint64(user), 10)
	}
	if row.Everyone {
		if len(row.Mentions) > 0 {
			b = append(b, ' ')
		}
		b = append(b, '*')
	}
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(row.Length), 10)
	b = append(b, '\n')
	w.scratch = b
	if _, err := w.out.Write(b); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

// Flush hands everything written so far to the underlying writer.
func (w *Writer) Flush() error {
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}
