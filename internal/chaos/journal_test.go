package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// kind is what an act does.
type kind string

const (
	makeWorkspace kind = "make workspace"
	makeMembers   kind = "make members"
	makeScope     kind = "make scope"
	makeThread    kind = "make thread"
	post          kind = "post"
	batch         kind = "batch"
	edit          kind = "edit"
	remove        kind = "remove"
	rewind        kind = "rewind"
	trim          kind = "trim"
	move          kind = "move"
	read          kind = "read"
	readAll       kind = "read all"
	markUnread    kind = "mark unread"
	join          kind = "join"
	leave         kind = "leave"
	level         kind = "level"
	visible       kind = "visible"
	follow        kind = "follow"
	block         kind = "block"
	archive       kind = "archive"
	display       kind = "display"
	observe       kind = "observe"
	list          kind = "list"
	again         kind = "again"
)

// act is one request of the load, or one item of a batch, with what is known of its fate. A
// client has one act under way at a time, so the acts of a client are in order.
type act struct {
	Client    int
	Kind      kind
	Workspace string
	Member    string // whom it is about: an author, a reader
	Scope     string
	To        string // move: the target
	Other     string // block: who is blocked
	Messages  []string
	OpID      string
	Principal string
	Named     []string
	Everyone  bool
	Broadcast string // post: the channel that gets a copy
	Expires   bool
	Renames   bool   // edit: Named and Everyone replace what was
	Revision  uint64 // read: how far; post: what was observed; mark: from; join: effectiveFrom
	Through   uint64 // rewind, trim: a seq
	Version   *uint64
	Level     string
	On        bool   // visible, follow, block, archive
	Counted   bool   // move
	Original  *act   // again: what was sent and answered before
	Threads   []*act // read: what was observed below, without answers of their own

	Method, Path string
	Body         json.RawMessage
	Token        string
	Items        []*act // batch, read all: the parts, without requests of their own

	// Sent and Done order what the judge saw: when the request first left, when its answer was
	// there. Done is zero while nobody knows what became of it.
	Sent, Done int64
	Status     int
	Answer     answer
}

// applied reports that the act was carried out, now or before.
func (a *act) applied() bool { return a.Done > 0 && a.Status < http.StatusMultipleChoices }

// unknown reports that the server may have carried the act out without saying so.
func (a *act) unknown() bool { return a.Sent > 0 && a.Done == 0 }

// before reports that a was answered before b was sent.
func (a *act) before(b *act) bool { return a.Done > 0 && a.Done < b.Sent }

func (a *act) String() string {
	fate := "unanswered"
	if a.Done > 0 {
		fate = fmt.Sprintf("answered %d: %d lsn %d seq %d revision %d %s %s", a.Done, a.Status,
			a.Answer.LSN, a.Answer.Seq, a.Answer.ContentRevision, a.Answer.MessageID, a.Answer.Code)
		if a.Answer.Duplicate {
			fate += "duplicate"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d client %d %s %s %s %s; %s", a.Sent, a.Client, a.Kind, a.Method, a.Path,
		clip(a.Body), fate)
	return b.String()
}

func clip(text []byte) string {
	const most = 300
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// answer is what the load reads of all bodies.
type answer struct {
	MessageID       string            `json:"messageId"`
	Seq             uint64            `json:"seq"`
	ContentRevision uint64            `json:"contentRevision"`
	Channel         *copied           `json:"channel"`
	LSN             uint64            `json:"lsn"`
	Duplicate       bool              `json:"duplicate"`
	Code            string            `json:"code"`
	ReadState       *readState        `json:"readState"`
	LatestSeq       uint64            `json:"latestSeq"`
	State           string            `json:"state"`
	Results         []json.RawMessage `json:"results"`
	Error           *struct {
		Status int    `json:"status"`
		Code   string `json:"code"`
	} `json:"error"`
}

type copied struct {
	Seq             uint64 `json:"seq"`
	ContentRevision uint64 `json:"contentRevision"`
}

type readState struct {
	ReadRevision uint64 `json:"readRevision"`
	ManualUnread bool   `json:"manualUnread"`
	Version      uint64 `json:"version"`
	FromRevision uint64 `json:"fromRevision"`
}

// journal is the log of acknowledgements. It lives in the judging process, which no kill
// reaches.
type journal struct {
	mu      sync.Mutex
	clock   int64
	acts    []*act
	answers int
	strike  func() // called once when alarm answers are there
	alarm   int
}

// send notes that an act leaves for the first time.
func (j *journal) send(a *act) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if a.Sent > 0 {
		return
	}
	j.clock++
	a.Sent = j.clock
	for _, item := range a.Items {
		item.Sent = j.clock
	}
	j.acts = append(j.acts, a)
}

// answer notes what an act was answered with.
func (j *journal) answer(a *act, status int, body []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clock++
	a.Done, a.Status = j.clock, status
	if err := json.Unmarshal(body, &a.Answer); err != nil {
		return fmt.Errorf("%s: answer %q: %w", a, clip(body), err)
	}
	if a.applied() && len(a.Answer.Results) != len(a.Items) && (a.Kind == batch || a.Kind == readAll) {
		return fmt.Errorf("%s: %d results", a, len(a.Answer.Results))
	}
	for i, item := range a.Items {
		item.Done, item.Status = j.clock, status
		if !a.applied() {
			continue
		}
		if err := json.Unmarshal(a.Answer.Results[i], &item.Answer); err != nil {
			return fmt.Errorf("%s: result %q: %w", a, clip(a.Answer.Results[i]), err)
		}
		if item.Answer.Error != nil {
			item.Status, item.Answer.Code = item.Answer.Error.Status, item.Answer.Error.Code
		}
	}
	j.answers++
	if j.answers == j.alarm {
		j.strike()
	}
	return nil
}

// alarmAfter has strike called with the n-th answer from now.
func (j *journal) alarmAfter(n int, strike func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.alarm, j.strike = j.answers+n, strike
}

// each calls fn with every act, and in place of a batch with its parts, in the order of sending.
func (j *journal) each(fn func(*act)) {
	for _, a := range j.acts {
		if len(a.Items) == 0 {
			fn(a)
			for _, t := range a.Threads {
				t.Sent, t.Done, t.Status = a.Sent, a.Done, a.Status
				fn(t)
			}
			continue
		}
		for _, item := range a.Items {
			fn(item)
		}
	}
}

// open returns the acts of unknown fate.
func (j *journal) open() []*act {
	var out []*act
	for _, a := range j.acts {
		if a.unknown() {
			out = append(out, a)
		}
	}
	return out
}

// last writes the newest acts, one a line.
func (j *journal) last(n int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b strings.Builder
	for _, a := range j.acts[max(0, len(j.acts)-n):] {
		fmt.Fprintln(&b, a)
	}
	return b.String()
}
