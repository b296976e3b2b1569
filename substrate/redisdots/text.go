package redisdots

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/substrate"
)

const (
	wantedIndex  = "tidemark:wanted"
	wantsChannel = "tidemark:wants"
	dotsChannel  = "tidemark:dots"
	valueWords   = 7
)

// coded is an id as part of a key or a text.
func coded(id string) string { return base64.RawURLEncoding.EncodeToString([]byte(id)) }

func decoded(text string) (string, bool) {
	id, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return string(id), err == nil && len(id) > 0
}

func in(w readstate.WorkspaceID) string { return "tidemark:{" + coded(string(w)) + "}:" }

func termKey(w readstate.WorkspaceID) string   { return in(w) + "term" }
func wantedKey(w readstate.WorkspaceID) string { return in(w) + "wanted" }
func dotKey(k substrate.Key) string            { return in(k.Workspace) + "dot:" + coded(string(k.Member)) }

// valueText is what the key of a dot holds.
func valueText(d *substrate.Dot) string {
	unread := uint64(0)
	if d.Unread {
		unread = 1
	}
	text := []byte("v1")
	for _, n := range [...]uint64{
		d.Term, uint64(d.LSN), unread, d.Badge.Messages, d.Badge.Conversations, d.Badge.Attention,
	} {
		text = strconv.AppendUint(append(text, ' '), n, 10)
	}
	return string(text)
}

// parseValue reads it; false for everything that valueText does not write.
func parseValue(k substrate.Key, text string) (substrate.Dot, bool) {
	words := strings.Split(text, " ")
	if len(words) != valueWords || words[0] != "v1" {
		return substrate.Dot{}, false
	}
	var n [valueWords - 1]uint64
	for i, word := range words[1:] {
		var err error
		if n[i], err = strconv.ParseUint(word, 10, 64); err != nil || n[i] > MaxNumber {
			return substrate.Dot{}, false
		}
	}
	d := substrate.Dot{
		Key: k, Term: n[0], LSN: readstate.LSN(n[1]), Unread: n[2] == 1,
		Badge: readstate.Badge{Messages: n[3], Conversations: n[4], Attention: n[5]},
	}
	return d, valueText(&d) == text && d.Unread == (d.Badge.Conversations > 0)
}

// dotText is what is said of a dot.
func dotText(d *substrate.Dot) string {
	return coded(string(d.Workspace)) + " " + coded(string(d.Member)) + " " + valueText(d)
}

func parseDot(text string) (substrate.Dot, bool) {
	w, rest, _ := strings.Cut(text, " ")
	m, value, _ := strings.Cut(rest, " ")
	workspace, ok1 := decoded(w)
	member, ok2 := decoded(m)
	d, ok3 := parseValue(substrate.Key{
		Workspace: readstate.WorkspaceID(workspace), Member: readstate.MemberID(member),
	}, value)
	return d, ok1 && ok2 && ok3
}

// wantsText is what is said of dots that are wanted.
func wantsText(w readstate.WorkspaceID, members []readstate.MemberID) string {
	words := []string{coded(string(w))}
	for _, m := range members {
		words = append(words, coded(string(m)))
	}
	return strings.Join(words, " ")
}

func parseWants(text string) ([]substrate.Key, bool) {
	words := strings.Split(text, " ")
	if len(words) < 2 || len(words) > MaxMembers {
		return nil, false
	}
	var w string
	keys := make([]substrate.Key, 0, len(words)-1)
	for i, word := range words {
		id, ok := decoded(word)
		switch {
		case !ok:
			return nil, false
		case i == 0:
			w = id
		default:
			keys = append(keys, substrate.Key{
				Workspace: readstate.WorkspaceID(w), Member: readstate.MemberID(id),
			})
		}
	}
	return keys, true
}
