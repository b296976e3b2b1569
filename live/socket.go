package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/tidemark-im/tidemark/live/strict"
)

// maxClientFrame holds a frame that watches as many members as a stream may have.
const maxClientFrame = 2 << 20

// CloseExpired is the status with which a socket ends after its token: reconnect with another.
const CloseExpired websocket.StatusCode = 4401

// Socket serves the stream as a WebSocket until it ends. The error says why; it is nil when the
// server or the client ended the stream in order. Whoever calls it has checked the Origin.
func (s *Stream) Socket(w http.ResponseWriter, r *http.Request) error {
	hub := s.hub
	defer s.Close()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the caller checked the origin against its own list
	})
	if err != nil {
		return fmt.Errorf("accept socket: %w", err)
	}
	conn.SetReadLimit(maxClientFrame)
	ctx, cancel := context.WithCancel(r.Context())
	commands := make(chan *command)
	readerEnded := make(chan error, 1)
	go func() {
		err := readFrames(ctx, conn, commands)
		readerEnded <- err
		cancel()
	}()
	to := &socketWriter{conn: conn, timeout: hub.opts.WriteTimeout}
	err = s.serve(ctx, to, commands)
	over := ctx.Err() != nil // the reader saw the end first
	if !over {
		_ = conn.Close(closing(err)) // says goodbye as well as it can
	}
	cancel()
	_ = conn.CloseNow() // ends the reader
	readErr := <-readerEnded
	if over && errors.Is(readErr, errProtocol) {
		return readErr
	}
	return hub.verdict(err, over)
}

// closing is how the end of a stream is told to the client.
func closing(err error) (websocket.StatusCode, string) {
	switch {
	case errors.Is(err, ErrDraining):
		return websocket.StatusGoingAway, "the server goes away: reconnect"
	case errors.Is(err, errMoved):
		return websocket.StatusGoingAway, "the workspace is served elsewhere: reconnect"
	case errors.Is(err, errExpired):
		return CloseExpired, "token_expired"
	case errors.Is(err, errProtocol):
		return websocket.StatusPolicyViolation, protocolReason(err)
	case errors.Is(err, errOverrun), errors.Is(err, errSlow):
		return websocket.StatusTryAgainLater, "too slow: reconnect and read the messages again"
	default:
		return websocket.StatusInternalError, "internal"
	}
}

// protocolReason says what is wrong with a frame, in as many bytes as a close frame has for it.
func protocolReason(err error) string {
	const most = 123
	_, why, _ := strings.Cut(err.Error(), errProtocol.Error()+": ")
	reason := "invalid_request: " + strings.ToValidUTF8(why, "\uFFFD")
	if len(reason) > most {
		reason = strings.ToValidUTF8(reason[:most-3], "") + "…"
	}
	return reason
}

// readFrames hands the client's frames over, one at a time.
func readFrames(ctx context.Context, conn *websocket.Conn, to chan<- *command) error {
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		c, err := parseFrame(kind, data)
		if err != nil {
			_ = conn.Close(closing(err))
			return err
		}
		select {
		case to <- &c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// parseFrame refuses what it does not know: a client that believes it subscribed must not wait
// for ever.
func parseFrame(kind websocket.MessageType, data []byte) (command, error) {
	var f ClientFrame
	if kind != websocket.MessageText {
		return command(f), fmt.Errorf("%w: not a text frame", errProtocol)
	}
	if err := strict.Decode(data, &f); err != nil {
		return command(f), fmt.Errorf("%w: %w", errProtocol, err)
	}
	return command(f), nil
}

// socketWriter writes frames as JSON messages.
type socketWriter struct {
	conn    *websocket.Conn
	timeout time.Duration
}

func (s *socketWriter) write(ctx context.Context, f Frame) error {
	data, err := f.encode()
	if err != nil {
		return fmt.Errorf("encode %s: %w", f.Event, err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return lost(s.conn.Write(ctx, websocket.MessageText, data))
}

func (s *socketWriter) beat(ctx context.Context) error {
	return s.write(ctx, Frame{Event: EventPing})
}
