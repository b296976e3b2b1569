package facts

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of operations. Each is part of the documented contract.
const (
	// MaxIDBytes bounds every id, so that a row of keys fits an index page of any store.
	MaxIDBytes = 128
	// MaxMentions bounds the members one message may name, so that one message is one group.
	MaxMentions = 1000
	// MaxNamedPerRequest bounds the members one request may name over all its messages.
	MaxNamedPerRequest = 5000
	// MaxPayloadBytes bounds a message's payload.
	MaxPayloadBytes = 64 << 10
	// MaxBlocks bounds the members one member may block: each may cost a side record a scope.
	MaxBlocks = 1000
	// MaxTags bounds the tags of a scope.
	MaxTags = 32
	// MaxNameBytes bounds names, display names, avatars and tags.
	MaxNameBytes = 512
	// MaxMoved bounds the messages of one move, which is one commit.
	MaxMoved = 100
	// MaxWatchers bounds the members who watch one task: its watchers are read with every message.
	MaxWatchers = 1000
	// MaxRecipients bounds the members one task message or activity is delivered to: all watchers,
	// all it may name, and the assignee.
	MaxRecipients = MaxWatchers + MaxMentions + 1
	// ListedRecipients is how many of them a list of messages or activities names: more are for
	// nobody to read, and a page of large ones would be megabytes.
	ListedRecipients = 20
	// MaxIndexedDM bounds the members of a dm that are in im_conversation_index: each message of
	// such a dm writes their rows. A larger one is sorted by its own head.
	MaxIndexedDM = 100
	// MaxSessionCopied bounds the entries of a session that is forked or merged, tombstones
	// included: they are copied in one commit, which everybody else waits for.
	MaxSessionCopied = 10_000
	// MaxTypeBytes bounds the type of an activity and the type of what it refers to.
	MaxTypeBytes = 64
	// MaxThreadReads bounds the threads one read may carry.
	MaxThreadReads = 100
)

// CheckID says why an id of the given kind is not acceptable: ids are 1 to 128 bytes of UTF-8
// without control characters, and none of ".", ".." and "*".
func CheckID(kind, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: %s is missing", ErrInvalid, kind)
	case len(id) > MaxIDBytes:
		return fmt.Errorf("%w: %s is longer than %d bytes", ErrInvalid, kind, MaxIDBytes)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrInvalid, kind)
	case id == "." || id == ".." || id == "*":
		return fmt.Errorf("%w: %s may not be %q", ErrInvalid, kind, id)
	case strings.ContainsFunc(id, unicode.IsControl):
		return fmt.Errorf("%w: %s holds a control character", ErrInvalid, kind)
	}
	return nil
}

// checkText bounds a name or another short text for display.
func checkText(what, text string) error {
	if len(text) > MaxNameBytes {
		return fmt.Errorf("%w: %s is longer than %d bytes", ErrInvalid, what, MaxNameBytes)
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrInvalid, what)
	}
	return nil
}
