package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

const (
	header = "unix_seconds,channel,topic,sender,mentions,length"
	// maxLineBytes holds MaxMentions numbers of ten digits and the other fields.
	maxLineBytes = 16 << 10
	bufferBytes  = 64 << 10
)

// Reader reads a trace row by row. It is not safe for concurrent use.
type Reader struct {
	lines   *bufio.Scanner
	line    int
	started bool
	homes   map[Topic]Channel
}

// NewReader reads a trace that is compressed by gzip or plain.
func NewReader(r io.Reader) (*Reader, error) {
	src := bufio.NewReaderSize(r, bufferBytes)
	magic, err := src.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	var plain io.Reader = src
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if plain, err = gzip.NewReader(src); err != nil {
			return nil, fmt.Errorf("read trace: %w: %w", ErrFormat, err)
		}
	}
	lines := bufio.NewScanner(plain)
	lines.Buffer(make([]byte, bufferBytes), bufferBytes)
	return &Reader{lines: lines, homes: map[Topic]Channel{}}, nil
}

// Read returns the next row, io.EOF after the last one. The row is the caller's.
func (r *Reader) Read() (Row, error) {
	if !r.started {
		if err := r.readHeader(); err != nil {
			return Row{}, err
		}
		r.started = true
	}
	text, err := r.next()
	if err != nil {
		return Row{}, err
	}
	row, err := parse(text)
	if err != nil {
		return Row{}, r.fail(err.Error())
	}
	if home, ok := r.homes[row.Topic]; !ok {
		r.homes[row.Topic] = row.Channel
	} else if home != row.Channel {
		return Row{}, r.fail(fmt.Sprintf("topic %d is in channel %d, not %d",
			row.Topic, home, row.Channel))
	}
	return row, nil
}

func (r *Reader) readHeader() error {
	text, err := r.next()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("read trace: %w: it is empty", ErrFormat)
	}
	if err != nil {
		return err
	}
	if text != header {
		return r.fail("the header is not " + header)
	}
	return nil
}

func (r *Reader) next() (string, error) {
	r.line++
	// After a failed read the scanner still gives what it has, and the last of it is half a line.
	if r.lines.Scan() && r.lines.Err() == nil {
		text := r.lines.Text()
		if len(text) > maxLineBytes {
			return "", r.fail("the line is too long")
		}
		return text, nil
	}
	switch err := r.lines.Err(); {
	case err == nil:
		return "", io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return "", r.fail("the line is too long")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrChecksum),
		errors.Is(err, gzip.ErrHeader):
		return "", r.fail("the file is damaged or cut off")
	default:
		return "", fmt.Errorf("read trace: line %d: %w", r.line, err)
	}
}

func (r *Reader) fail(why string) error {
	return fmt.Errorf("read trace: line %d: %w: %s", r.line, ErrFormat, why)
}

func parse(text string) (Row, error) {
	fields := strings.Split(text, ",")
	if len(fields) != 6 {
		return Row{}, fmt.Errorf("%d fields instead of 6", len(fields))
	}
	at, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || at < 0 {
		return Row{}, fmt.Errorf("unix_seconds is %.40q", fields[0])
	}
	var ids [3]uint32
	for i, name := range []string{"channel", "topic", "sender"} {
		if ids[i], err = parseID(fields[1+i]); err != nil {
			return Row{}, fmt.Errorf("%s is %.40q", name, fields[1+i])
		}
	}
	row := Row{At: at, Channel: Channel(ids[0]), Topic: Topic(ids[1]), Sender: User(ids[2])}
	if err := row.parseMentions(fields[4]); err != nil {
		return Row{}, err
	}
	if row.Length, err = strconv.Atoi(fields[5]); err != nil || row.Length < 0 {
		return Row{}, fmt.Errorf("length is %.40q", fields[5])
	}
	return row, nil
}

func (row *Row) parseMentions(text string) error {
	if text == "" {
		return nil
	}
	for word := range strings.SplitSeq(text, " ") {
		if word == "*" && !row.Everyone {
			row.Everyone = true
			continue
		}
		id, err := parseID(word)
		if err != nil || slices.Contains(row.Mentions, User(id)) {
			return fmt.Errorf("mentions are %.40q", text)
		}
		if len(row.Mentions) == MaxMentions {
			return fmt.Errorf("more than %d mentions", MaxMentions)
		}
		row.Mentions = append(row.Mentions, User(id))
	}
	return nil
}

// parseID takes a number only in the form in which it is written, so that two texts are never
// one thing.
func parseID(text string) (uint32, error) {
	id, err := strconv.ParseUint(text, 10, 32)
	if err == nil && strconv.FormatUint(id, 10) != text {
		err = strconv.ErrSyntax
	}
	return uint32(id), err
}
