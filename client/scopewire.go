package client

import (
	"encoding/json"
	"time"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// wireRow is one scope in a page or an event of the hub, whole.
type wireRow struct {
	Type          string `json:"type"`
	Name          string `json:"name"`
	Parent        string `json:"parent"`
	Notification  string `json:"notification"`
	Archived      bool   `json:"archived"`
	State         string `json:"state"`
	Unread        uint64 `json:"unread"`
	Attention     uint64 `json:"attention"`
	Activity      uint64 `json:"activity"`
	Shown         bool   `json:"shown"`
	ShownUnread   uint64 `json:"shownUnread"`
	LatestMessage *struct {
		At time.Time `json:"at"`
	} `json:"latestMessage"`
	wireState
}

// wireScopes is a page of the list. One without scopes says that they cannot be vouched for.
type wireScopes struct {
	Scopes   map[string]wireRow `json:"scopes"`
	Complete bool               `json:"complete"`
	LSN      uint64             `json:"lsn"`
	Next     string             `json:"next"`
}

// whole is true of every one: what has no scopes withholds them.
func (*wireScopes) whole() bool { return true }

// wireDelta is the present state of one scope; without a row it is no longer the member's.
type wireDelta struct {
	Scope string   `json:"scope"`
	Row   *wireRow `json:"row"`
	LSN   uint64   `json:"lsn"`
}

type wireScopeMessage struct {
	Op      string           `json:"op"`
	Scope   string           `json:"scope"`
	Message readsync.Message `json:"message"`
}

// wireScopeState is an answer to an operation. Unread is nil where the counts are not known.
type wireScopeState struct {
	LSN    uint64 `json:"lsn"`
	Counts struct {
		Unread      *uint64 `json:"unread"`
		Attention   uint64  `json:"attention"`
		Activity    uint64  `json:"activity"`
		Shown       bool    `json:"shown"`
		ShownUnread uint64  `json:"shownUnread"`
	} `json:"counts"`
	wireState
}

// decode tells whether the body was an answer that says the state.
func (w *wireScopeState) decode(body []byte) bool {
	if json.Unmarshal(body, w) != nil {
		return false
	}
	_, told := w.state()
	return told
}
