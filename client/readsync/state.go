package readsync

import "github.com/tidemark-im/tidemark/readstate"

// Revision is the rank of a readable message among those of its session, from 1.
type Revision = readstate.Revision

// Seq is the place of a message in its session, from 1.
type Seq = readstate.Seq

// Version counts the stored changes of a manual flag, from 0.
type Version uint64

// State is what a server has said of one session. The zero value is that of a session of which
// nothing is known: it is not unread.
type State struct {
	ContentRevision Revision `json:"contentRevision"`
	ReadRevision    Revision `json:"readRevision"` // inclusive
	ManualUnread    bool     `json:"manualUnread"`
	Version         Version  `json:"version"`
	// FromRevision is where a manual mark begins, zero for nowhere: a read below it leaves the mark.
	FromRevision Revision `json:"fromRevision,omitempty"`
}

// Merge returns what two statements of one server amount to, whichever came first: the higher of
// the revisions, and the flag of the higher version. Of one version with two flags the receiver's
// stays, since no server says that.
func (s State) Merge(other State) State {
	s.ContentRevision = max(s.ContentRevision, other.ContentRevision)
	s.ReadRevision = max(s.ReadRevision, other.ReadRevision)
	if other.Version > s.Version {
		s.ManualUnread, s.Version = other.ManualUnread, other.Version
		s.FromRevision = other.FromRevision
	}
	return s
}

// Unread tells whether a session is shown as unread. One that is at work is not, unless somebody
// marked it: what it writes meanwhile is unread once it stops.
func (s State) Unread(active, thinking bool) bool {
	running := active && thinking
	return s.ManualUnread || !running && s.ContentRevision > s.ReadRevision
}
