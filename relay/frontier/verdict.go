package frontier

// Horizon is how far back messages can be unread, in seconds: 30 days. Whatever is as old or older is
// read, and frontiers as old are not published.
const Horizon = 30 * 24 * 60 * 60

// View is everything that decides what is read, at one moment. Its state is that of journal and
// reserve together. It is not changed here.
type View struct {
	State  State
	Manual map[Key]uint64 // local marks, with the revision of each; they never leave the device
	Now    Time
}

// Verdict says what is unread of one message.
type Verdict struct {
	Counts    bool     // it is one of the observed unread messages
	Attention Category // of those that count; NoCategory is none, Broadcast is attention
	Marked    bool     // the viewer marked this message unread on this device
	Pending   bool     // a lookup decides whether it counts; it is quiet until then
}

// Unread tells whether the message itself is to be shown as unread. A local mark shows it, and adds to
// no count.
func (v Verdict) Unread() bool { return v.Counts || v.Marked }

// Verdict evaluates a message.
func (v View) Verdict(m Message) Verdict {
	if m.Own || m.Quiet || m.Deleted {
		return Verdict{}
	}
	out := Verdict{}
	_, out.Marked = v.Manual[m.Key()]
	if !v.unread(m) {
		return out
	}
	if !m.relevant() {
		out.Pending = m.Reply && m.Belongs == Undecided
		return out
	}
	out.Counts, out.Attention = true, m.Category()
	return out
}

// Covered tells whether the frontiers read a message. Local marks and the horizon have no part in it.
func (v View) Covered(m Message) bool {
	f, known := v.frontier(m)
	return known && m.At <= f
}

// frontier is the frontier in force for a message: those of its context, and what was caught up with.
func (v View) frontier(m Message) (t Time, known bool) {
	t, known = v.State.Effective(m.Key(), m.Home())
	take := func(k Key) {
		if f, ok := v.State.Frontiers[k]; ok {
			t, known = max(t, f), true
		}
	}
	if m.Reply && m.Root != "" {
		take(ThreadActivityKey(m.Root))
	}
	if m.ordinary() {
		take(ActivityKey(m.Channel))
	}
	return t, known
}

// unread tells whether the message would be unread if it counted.
func (v View) unread(m Message) bool {
	if v.overridden(m) {
		return true
	}
	if int64(m.At) <= int64(v.Now)-Horizon {
		return false
	}
	return !v.Covered(m)
}

// overridden tells whether a mark of another client makes the message unread.
func (v View) overridden(m Message) bool {
	marked := func(k Key, home Home) bool {
		r, ok := v.State.Overrides[k]
		if !ok {
			return false
		}
		f, _ := v.State.Effective(k, home)
		return r.Active(f)
	}
	home := Home{Channel: m.Channel}
	return marked(m.Key(), m.Home()) || marked(ChannelKey(m.Channel), home) ||
		m.Root != "" && marked(ThreadKey(m.Root), home)
}

// Counts are what is known to be unread among given messages. They are observed, and neither exact nor
// a bound: a missing frontier makes them too high, a missing message too low.
type Counts struct {
	Observed  int
	Attention int
	Pending   bool // of some message it is not known yet whether it counts
}

// Count evaluates messages.
func (v View) Count(messages []Message) Counts {
	var c Counts
	for _, m := range messages {
		verdict := v.Verdict(m)
		c.Pending = c.Pending || verdict.Pending
		if verdict.Counts {
			c.Observed++
			if verdict.Attention != NoCategory {
				c.Attention++
			}
		}
	}
	return c
}

// Latest returns the latest message, own and read ones included; false when there is none that is
// left.
func Latest(messages []Message) (Message, bool) {
	var latest Message
	found := false
	for _, m := range messages {
		if !m.Deleted && (!found || newer(m, latest)) {
			latest, found = m, true
		}
	}
	return latest, found
}
