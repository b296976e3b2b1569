package client_test

import (
	"io"
	"strings"
)

// teeBody keeps what is read of a body.
type teeBody struct {
	io.ReadCloser
	to *strings.Builder
}

func (b teeBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.to.Write(p[:n])
	return n, err
}
