package unread

import "github.com/tidemark-im/tidemark/readstate"

// Settled returns the commit up to which Next has handed out everything there is to tell; false
// while something is still on its way: changes that were not taken, a big scope whose watches
// are told step by step, or a row that is being loaded. Only a settled position may be given to
// a client to resume at.
func (w *Watch) Settled() (readstate.LSN, bool) {
	ws := w.ws
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	w.mu.Lock()
	open := w.gone || len(w.order)+len(w.held) > 0
	w.mu.Unlock()
	if open || ws.dropped || len(ws.st.marks) > 0 {
		return 0, false
	}
	for id := range ws.jobs {
		if _, mine := w.members[id]; mine {
			return 0, false
		}
	}
	return ws.st.lsn, true
}
