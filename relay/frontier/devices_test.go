package frontier

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// device is one installation in the model: what it knows, and what it would publish.
type device struct {
	view View
	own  map[Key]Time // what it advanced itself, without the marks of messages
	sent [][]byte
}

// publish writes what the device would publish.
func (d *device) publish(t *rapid.T, n int) {
	text, err := Blob{ClientID: fmt.Sprint(n), State: State{Frontiers: d.own}}.Encode(MaxBlobOut)
	if err != nil {
		t.Fatal(err)
	}
	d.sent = append(d.sent, text)
}

// accept joins a blob that somebody published, at whatever time.
func (d *device) accept(t *rapid.T, text []byte) {
	b, err := ParseBlob(text)
	if err != nil {
		t.Fatal(err)
	}
	d.replace(t, join(t, d.view.State, b.State))
}

// replace sets a state, which must not be lower than the last.
func (d *device) replace(t *rapid.T, s State) {
	if !s.Covers(d.view.State) {
		t.Fatalf("a frontier was lowered: %v to %v", d.view.State, s)
	}
	d.view.State = s
}

// act does one thing that a reader does, and checks what it promises.
func (d *device) act(t *rapid.T, messages []Message) {
	s := Surface{Channel: "c", Messages: messages}
	m := rapid.SampledFrom(messages).Draw(t, "message")
	if m.Reply && rapid.Bool().Draw(t, "in thread") {
		s.Root = m.Root
	}
	var p Plan
	var err error
	action := rapid.SampledFrom([]string{"observe", "catch up", "through", "all", "mark"}).Draw(t, "action")
	switch action {
	case "observe":
		p, err = d.view.Observe(s, []string{m.ID})
	case "catch up":
		p, err = d.view.CatchUp(s, m.ID)
	case "through":
		p, err = d.view.MarkThrough(ChannelKey("c"), s, m.ID)
	case "all":
		p = d.view.MarkChannelRead(s, true)
	case "mark":
		d.view.Manual[m.Key()] = 1
	}
	if err != nil && !p.Empty() {
		t.Fatalf("%s: a refusal with a plan: %v, %+v", action, err, p)
	}
	next := d.view.apply(p)
	d.replace(t, next.State)
	d.view = next
	for k, at := range p.Advance {
		if !k.IsMessage() {
			d.own[k] = max(d.own[k], at)
			if at > d.view.Now {
				t.Fatalf("%s raised %q to %d, now is %d", action, k, at, d.view.Now)
			}
		}
	}
	d.promised(t, action, m, messages, err)
}

// promised checks that what an action read is read.
func (d *device) promised(t *rapid.T, action string, m Message, messages []Message, err error) {
	for _, o := range messages {
		read := action == "observe" && o.ID == m.ID || action == "all" ||
			action == "through" && CompareShown(o, m) <= 0
		if err == nil && read && d.view.Verdict(o).Counts && (action != "observe" || !m.Reply || m.Root != "") {
			t.Fatalf("after %s through %+v, %+v is unread", action, m, o)
		}
	}
}

// Devices that do what readers do, and get each other's blobs late, twice, in another order or not at
// all, lower nothing; and once everything has come, they say the same of every message, except for
// what is their own: marks of messages.
func TestDevicesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		devices := make([]*device, 3)
		for i := range devices {
			devices[i] = &device{view: View{Now: 1000, Manual: map[Key]uint64{}}, own: make(map[Key]Time)}
		}
		var messages []Message
		for n := range rapid.IntRange(1, 12).Draw(t, "messages") {
			m := Message{ID: id(n), Channel: "c", At: Time(rapid.IntRange(900, 1100).Draw(t, "at")),
				Mentioned: rapid.Bool().Draw(t, "mention"), Broadcast: rapid.Bool().Draw(t, "broadcast")}
			if n > 0 && rapid.Bool().Draw(t, "reply") {
				m.Reply, m.Belongs, m.Root = true, Inside, id(rapid.IntRange(0, n-1).Draw(t, "root"))
			}
			messages = append(messages, m)
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			n := rapid.IntRange(0, len(devices)-1).Draw(t, "device")
			d := devices[n]
			switch from := devices[rapid.IntRange(0, len(devices)-1).Draw(t, "from")]; {
			case rapid.Bool().Draw(t, "acts"):
				d.act(t, messages)
				d.publish(t, n)
			case len(from.sent) > 0:
				d.accept(t, rapid.SampledFrom(from.sent).Draw(t, "blob"))
			}
		}
		settle(t, devices)
		for _, m := range messages {
			var verdicts []bool
			for _, d := range devices {
				shared := d.view
				shared.State = withoutMessages(shared.State)
				verdicts = append(verdicts, shared.Verdict(m).Counts)
			}
			if slices.Contains(verdicts, true) && slices.Contains(verdicts, false) {
				t.Fatalf("%+v: %v", m, verdicts)
			}
		}
	})
}

// settle delivers the last blob of each device to all.
func settle(t *rapid.T, devices []*device) {
	for _, from := range devices {
		if len(from.sent) == 0 {
			continue
		}
		for _, d := range devices {
			d.accept(t, from.sent[len(from.sent)-1])
		}
	}
}

func withoutMessages(s State) State {
	c := s.Clone()
	for k := range s.Frontiers {
		if k.IsMessage() {
			delete(c.Frontiers, k)
		}
	}
	return c
}
