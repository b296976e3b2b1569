package unread

import "github.com/tidemark-im/tidemark/readstate"

// connected is what a member with watches needs beside the slabs.
type connected struct {
	id       readstate.MemberID
	watchers []*Watch
	at       []int32 // for each row of the run, 1 + its position in the scope's audience
	sum      running
}

func (st *state) watchers(m int32) []*Watch {
	if c := st.connected[m]; c != nil {
		return c.watchers
	}
	return nil
}

// connect adds watches of a member, whose rows become part of their scopes' audiences.
func (st *state) connect(m int32, watches ...*Watch) {
	if len(watches) == 0 {
		return
	}
	c := st.connected[m]
	if c == nil {
		c = &connected{id: st.memberID(m)}
		st.connected[m] = c
		x := st.members.At(m).run()
		for e := x.at; e < x.at+x.n; e++ {
			st.watchEntry(m, e)
		}
	}
	c.watchers = append(c.watchers, watches...)
}

// disconnect takes a watch of a member away and reports that it was the last one.
func (st *state) disconnect(m int32, w *Watch) bool {
	c := st.connected[m]
	if c == nil {
		return true
	}
	rest := c.watchers[:0]
	for _, x := range c.watchers {
		if x != w {
			rest = append(rest, x)
		}
	}
	clear(c.watchers[len(rest):])
	if c.watchers = rest; len(rest) > 0 {
		return false
	}
	x := st.members.At(m).run()
	for e := x.at; e < x.at+x.n; e++ {
		st.unwatchEntry(e)
	}
	delete(st.connected, m)
	return true
}

func (st *state) watchEntry(m, e int32) {
	c := st.connected[m]
	if c == nil {
		return
	}
	i := e - st.members.At(m).run().at
	for int32(len(c.at)) <= i {
		c.at = append(c.at, 0)
	}
	s := st.rows.scope(e)
	st.audience[s] = append(st.audience[s], e)
	c.at[i] = int32(len(st.audience[s]))
	c.sum.forget()
	st.watched++
}

// position is where the position of a row in its scope's audience is kept; nil where the row is
// not watched.
func (st *state) position(e int32) *int32 {
	m := st.rows.member(e)
	c := st.connected[m]
	if c == nil {
		return nil
	}
	i := e - st.members.At(m).run().at
	if i >= int32(len(c.at)) || c.at[i] == 0 {
		return nil
	}
	return &c.at[i]
}

// rewatch follows a row of a watched member from one position in its run to another.
func (st *state) rewatch(m, from, to, e int32) {
	c := st.connected[m]
	if c == nil || from >= int32(len(c.at)) || c.at[from] == 0 {
		return
	}
	at := c.at[from]
	c.at[from] = 0
	c.at[to] = at
	st.audience[st.rows.scope(e)][at-1] = e
}

func (st *state) unwatchEntry(e int32) {
	at := st.position(e)
	if at == nil {
		return
	}
	s := st.rows.scope(e)
	audience := st.audience[s]
	i, last := *at-1, len(audience)-1
	*at = 0
	if int(i) != last {
		audience[i] = audience[last]
		*st.position(audience[i]) = i + 1
	}
	if last == 0 {
		delete(st.audience, s)
	} else {
		st.audience[s] = audience[:last]
	}
	st.watched--
}
