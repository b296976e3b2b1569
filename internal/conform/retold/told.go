package retold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// counts are the fields of answers that cases look at: what says how much is unread, and how far
// somebody has read.
var counts = []string{
	"unread", "attention", "activity", "shown", "shownUnread", "manualUnread", "readState", "readRevision",
	"version", "fromRevision", "contentRevision", "counts", "status", "code", "messages", "conversations",
	"display", "hasUnread", "badge", "messageId", "seq", "duplicate", "notification", "firstUnread",
	"firstAttention", "groups", "page", "hasMore", "unreadBefore", "readThroughRevision", "receipts",
	"member", "replyCount", "scopes", "results", "error",
}

// maxList is the longest list of which every element is expected.
const maxList = 20

// told returns of an answer what a case expects, nothing where that is the status alone.
func (k *keeper) told(path []string, answer []byte) (json.RawMessage, error) {
	if len(answer) == 0 || k.statement == nil {
		return nil, nil
	}
	var v map[string]any
	if err := json.Unmarshal(answer, &v); err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	words := strings.Fields(k.statement.Text)
	out := map[string]any{}
	last := ""
	if len(path) > 0 {
		last = path[len(path)-1]
	}
	switch {
	case last == "" && words[0] == "expect": // the workspaces of a member: this one
		dot, _ := v["workspaces"].([]any)
		out["workspaces"] = pick(dot)
	case last == "first":
		for _, key := range []string{"firstUnread", "firstAttention"} {
			if out[key] = "<absent>"; v[key] != nil {
				out[key] = pick(v[key])
			}
		}
	case last == "messages" && words[0] == "expect": // a page
		out = k.page(v)
	case last == "badge" && words[0] == "expect": // of an inbox
		for _, key := range []string{"accepted_through", "acknowledged_through", "count", "senders"} {
			out[key] = v[key]
		}
	case last == "unread" && words[0] == "expect":
		out = k.list(v, words)
	case slices.Contains([]string{
		"read-state", "messages", "explain", "totals", "receipts", "read-all",
	}, last):
		out = pick(v).(map[string]any)
	default:
		if code, refused := v["code"]; refused {
			out["code"] = code
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return plain(out)
}

// plain is JSON with < and > as they are.
func plain(v any) (json.RawMessage, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(text.Bytes()), err
}

// pick keeps the fields that cases look at. The keys of groups and scopes are names of the case.
func pick(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			switch {
			case !slices.Contains(counts, key):
			case key == "groups" || key == "scopes":
				named := map[string]any{}
				if all, ok := inner.(map[string]any); ok {
					for name, value := range all {
						named[name] = pick(value)
					}
				}
				out[key] = named
			default:
				if list, ok := inner.([]any); !ok || len(list) <= maxList {
					out[key] = pick(inner)
				}
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = pick(v[i])
		}
		return out
	}
	return v
}

// list keeps of a list its badge, and the rows if the statement asks for them. A scope that must
// not be listed is expected to be absent.
func (k *keeper) list(v map[string]any, words []string) map[string]any {
	out := pick(v).(map[string]any)
	switch {
	case words[2] == "rows":
	case words[len(words)-1] == "absent":
		out = map[string]any{"scopes": map[string]any{words[2]: "<absent>"}}
	default:
		delete(out, "scopes")
	}
	return out
}

// page keeps of a page which messages it has and what it says of the rest.
func (k *keeper) page(v map[string]any) map[string]any {
	out := map[string]any{"page": pick(v["page"])}
	if list, ok := v["messages"].([]any); ok && len(list) <= maxList {
		ids := []any{}
		for _, m := range list {
			if m, ok := m.(map[string]any); ok {
				ids = append(ids, map[string]any{"id": m["id"]})
			}
		}
		out["messages"] = ids
	}
	return out
}
