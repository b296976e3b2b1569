package agent

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/journal"
	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

// bubble plays a test on a network with one stream and one dm, in time of its own.
func bubble(t *testing.T, play func(*testing.T, *network)) {
	t.Helper()
	path := journalPath(t)
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, path, true)
		n.channel("a", "stream")
		n.channel("us", "dm")
		play(t, n)
	})
}

// log notes the filters of requests that come to the relay.
type log struct {
	mu      sync.Mutex
	filters []nostrx.Filter
	gate    func(nostrx.Filter) relaytest.Fault
}

func (l *log) on(n *network) {
	n.relay.Intercept(func(o relaytest.Occasion) relaytest.Fault {
		l.mu.Lock()
		gate := l.gate
		if o.Point == relaytest.AtRequest {
			l.filters = append(l.filters, o.Filters...)
		}
		l.mu.Unlock()
		if gate != nil && o.Point == relaytest.AtRequest && len(o.Filters) == 1 {
			return gate(o.Filters[0])
		}
		return relaytest.None
	})
}

// repairs returns the reads of messages of channels since the last call.
func (l *log) repairs() []nostrx.Filter {
	l.mu.Lock()
	defer l.mu.Unlock()
	got := slices.DeleteFunc(l.filters, func(f nostrx.Filter) bool {
		return f.Tags["h"] == nil || f.Authors != nil
	})
	l.filters = nil
	return got
}

func settle() {
	pass(2 * time.Second)
	synctest.Wait()
}

// Reads that many callers ask for at once are one; a refresh reads whole pages again, a period does not.
//
// covers: RL-004, RL-005, RL-129, RL-150
func TestEnsureIsShared(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		var l log
		l.on(n)
		n.post(n.other, nostrx.KindChat, nostrx.Tag{"h", "a"})
		d := n.device("one")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { must(t, d.Ensure(t.Context())) })
		}
		wg.Wait()
		settle()
		if got := l.repairs(); len(got) != 1 || got[0].Since != nil {
			t.Fatalf("%d reads: %+v", len(got), got)
		}
		must(t, d.Refresh(t.Context()))
		if got := l.repairs(); len(got) != 1 || got[0].Since != nil {
			t.Errorf("a refresh: %+v", got)
		}
		pass(Period + time.Second)
		synctest.Wait()
		if got := l.repairs(); len(got) != 1 || got[0].Since == nil {
			t.Errorf("after the period: %+v", got)
		}
	})
}

// A roster of 278 channels is three reads, one after the other; what came before a failure stays, and the
// failure is told and waits.
//
// covers: RL-126, RL-131, RL-132, RL-166
func TestRepairOfManyChannels(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		for i := range 276 {
			n.channel(string([]byte{'b', byte('a' + i/26), byte('a' + i%26)}), "stream")
		}
		n.post(n.other, nostrx.KindChat, nostrx.Tag{"h", "a"})
		l := log{gate: func(f nostrx.Filter) relaytest.Fault {
			if h := f.Tags["h"]; h != nil && h[0] != "a" {
				return relaytest.Refuse
			}
			return relaytest.None
		}}
		l.on(n)
		d := n.device("one")
		if err := d.Ensure(t.Context()); err == nil {
			t.Fatal("a batch failed, and nobody says so")
		}
		if got := d.see(channelTarget("a")); got.Observed != (Count{1, true}) || got.Freshness != Stale {
			t.Errorf("what the first batch brought: %+v", got)
		}
		if got := d.see(channelTarget("us")); got.Observed.Known {
			t.Errorf("of a batch that failed: %+v", got)
		}
		pass(10 * time.Second) // for the one that the first connection brings
		synctest.Wait()
		l.repairs()
		pass(time.Minute)
		synctest.Wait()
		if got := l.repairs(); len(got) != 0 {
			t.Errorf("%d reads that nobody asked for", len(got))
		}
		l.mu.Lock()
		l.gate = nil
		l.mu.Unlock()
		must(t, d.Refresh(t.Context()))
		var sizes []int
		for _, f := range l.repairs() {
			sizes = append(sizes, len(f.Tags["h"]))
		}
		if !slices.Equal(sizes, []int{128, 128, 22}) {
			t.Errorf("batches of %v", sizes)
		}
	})
}

// Nothing is known before the relay has answered, and nothing of what the viewer may not see: null, and
// never zero. Evidence brings no reading about.
//
// covers: RL-107, RL-108, RL-109, RL-125
func TestUnknownIsNotZero(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		n.channel("closed", "stream", n.other.Public())
		n.post(n.other, nostrx.KindChat, nostrx.Tag{"h", "a"})
		d := n.device("one")
		for _, c := range []string{"a", "closed", "nowhere"} {
			if got := d.see(channelTarget(c)); got.Observed.Known || got.Attention.Known || got.Coverage != Unknown {
				t.Errorf("%s before anything is known: %+v", c, got)
			}
		}
		must(t, d.Ensure(t.Context()))
		if got := d.see(channelTarget("closed")); got.Observed.Known {
			t.Errorf("of a channel of others: %+v", got)
		}
		if got := d.see(channelTarget("a")).Observed; got != (Count{1, true}) {
			t.Errorf("one message: %+v", got)
		}
		if r := d.record(); r.Revision != 0 || len(r.State.Frontiers) != 0 {
			t.Errorf("observation has read something: %+v", r.State)
		}
	})
}

// Access that is lost is lost for everything before anybody is told of anything, keeps what was saved,
// and revives no reading when it comes back.
//
// covers: RL-028, RL-561, RL-562, RL-563, RL-564
func TestRevocation(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		n.channel("b", "stream")
		e := n.post(n.other, nostrx.KindChat, nostrx.Tag{"h", "a"})
		n.post(n.other, nostrx.KindChat, nostrx.Tag{"h", "b"})
		d := n.device("one")
		must(t, d.Ensure(t.Context()))
		lease, err := d.Reading("a", "")
		must(t, err)
		must(t, d.Observe(t.Context(), lease, []string{string(e.ID)}, false))
		told := 0
		for _, c := range []string{"a", "b"} {
			end, err := d.Subscribe(channelTarget(c), func() {
				for _, c := range []string{"a", "b"} {
					if s, _ := d.Snapshot(channelTarget(c)); s.Observed.Known {
						t.Errorf("%s is still shown while somebody is told", c)
					}
				}
				told++
			})
			must(t, err)
			defer end()
		}
		n.channel("a", "stream", n.other.Public())
		n.channel("b", "stream", n.other.Public())
		must(t, d.Refresh(t.Context()))
		if told < 2 {
			t.Errorf("told %d times", told)
		}
		if _, ok := d.record().State.Frontiers[frontier.MessageKey(string(e.ID))]; !ok {
			t.Error("what was saved is gone")
		}
		if err := d.MarkChannelRead(t.Context(), "a"); !errors.Is(err, ErrDenied) {
			t.Errorf("an action without access: %v", err)
		}
	})
}

// Access that comes back does not bring readings back.
//
// covers: RL-027, RL-306
func TestRegrantRevivesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		e := n.post(n.other, nostrx.KindChat, nostrx.Tag{"h", "a"})
		d := n.device("one")
		must(t, d.Ensure(t.Context()))
		lease, err := d.Reading("a", "")
		must(t, err)
		ended, err := d.Reading("a", "")
		must(t, err)
		d.Dispose(ended)
		n.channel("a", "stream", n.other.Public())
		must(t, d.Refresh(t.Context()))
		n.channel("a", "stream")
		must(t, d.Refresh(t.Context()))
		for _, id := range []frontier.LeaseID{lease, ended} {
			if err := d.Observe(t.Context(), id, []string{string(e.ID)}, true); !errors.Is(err, frontier.ErrExpired) {
				t.Errorf("a reading that has ended: %v", err)
			}
		}
		if got := d.see(channelTarget("a")).Observed; got != (Count{1, true}) {
			t.Errorf("%+v", got)
		}
	})
}

// A reply in a thread that is not here is quiet and pending until a lookup has found what the viewer once
// wrote there, with one question for all parents of the channel; what was fetched counts for nothing.
//
// covers: RL-241, RL-242, RL-249, RL-256, RL-260
func TestLookup(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		old := time.Now().Unix() - 40*24*3600
		root, err := n.other.Sign(nostrx.Event{Kind: nostrx.KindChat, CreatedAt: old, Tags: []nostrx.Tag{{"h", "a"}}})
		must(t, err)
		mine, err := n.viewer.Sign(nostrx.Event{Kind: nostrx.KindChat, CreatedAt: old + 1, Tags: []nostrx.Tag{
			{"h", "a"}, {"e", string(root.ID), "", "reply"},
		}})
		must(t, err)
		must(t, n.relay.Keep(root, mine))
		for range 501 { // so that neither is in a page
			e, err := n.viewer.Sign(nostrx.Event{Kind: nostrx.KindChat, CreatedAt: time.Now().Unix(), Tags: []nostrx.Tag{{"h", "a"}},
				Content: time.Now().String()})
			must(t, err)
			must(t, n.relay.Keep(e))
			pass(time.Second)
		}
		open := make(chan struct{})
		l := log{gate: func(f nostrx.Filter) relaytest.Fault {
			if f.IDs != nil {
				<-open
			}
			return relaytest.None
		}}
		l.on(n)
		reply := n.post(n.other, nostrx.KindChat, nostrx.Tag{"h", "a"}, nostrx.Tag{"e", string(root.ID), "", "reply"})
		d := n.device("one")
		must(t, d.Ensure(t.Context()))
		settle()
		target := Target{Kind: "message", ChannelID: "a", MessageID: string(reply.ID)}
		if got := d.see(target); !got.Pending || got.Observed != (Count{0, true}) || got.Attention.Known {
			t.Errorf("while it is looked up: %+v", got)
		}
		close(open)
		settle()
		if got := d.see(target); got.Pending || got.Observed != (Count{1, true}) || got.Attention != (Count{1, true}) {
			t.Errorf("after it was looked up: %+v", got)
		}
		if got := d.see(channelTarget("a")).Observed; got != (Count{1, true}) {
			t.Errorf("what was fetched is counted: %+v", got)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		asked := slices.ContainsFunc(l.filters, func(f nostrx.Filter) bool {
			return slices.Equal(f.Authors, []nostrx.PubKey{n.viewer.Public()}) && f.Aux && *f.Limit == 500 &&
				slices.Equal(f.Tags["e"], []string{string(root.ID)}) && slices.Equal(f.Tags["h"], []string{"a"})
		})
		if !asked {
			t.Errorf("the viewer's own replies were not asked for: %+v", l.filters)
		}
	})
}

// Choices are this device's: they are saved, come back with it, are never published, and go with the
// partition.
//
// covers: RL-219, RL-220, RL-225
func TestFollow(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		root := string(n.post(n.other, nostrx.KindChat, nostrx.Tag{"h", "a"}).ID)
		n.post(n.other, nostrx.KindChat, nostrx.Tag{"h", "a"}, nostrx.Tag{"e", root, "", "reply"})
		d := n.device("one")
		must(t, d.Ensure(t.Context()))
		settle()
		must(t, d.Follow(t.Context(), "a", root, true))
		d.stop()
		d.start()
		must(t, d.Ensure(t.Context()))
		if following, known := d.Following("a", root); !following || !known {
			t.Error("the choice is gone after a restart")
		}
		if got := d.see(channelTarget("a")).Observed; got != (Count{2, true}) {
			t.Errorf("with the reply in it: %+v", got)
		}
		pass(time.Minute)
		if got := n.relay.Stored(nostrx.Filter{Kinds: []int{nostrx.KindAppData}}); len(got) != 0 {
			t.Errorf("a choice was published: %+v", got)
		}
		if err := d.Follow(t.Context(), "us", root, true); err == nil {
			t.Error("threads of a dm are not followed")
		}
		must(t, n.journal.Leave(t.Context(), journal.Partition{Scope: "one", Viewer: n.viewer.Public()}))
		if got, err := d.book().Choices(t.Context(), chooseFollow); err != nil || len(got) != 0 {
			t.Errorf("after leaving: %v, %v", got, err)
		}
	})
}

// Markers that cannot be read are told by the synchronisation, and messages stay what they are; the other
// way round as well.
//
// covers: RL-117, RL-165
func TestMarkersFailApart(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		n.relay.Switch(relaytest.Partial, true)
		e, err := n.viewer.Sign(nostrx.Event{Kind: nostrx.KindAppData, CreatedAt: time.Now().Unix(), Tags: []nostrx.Tag{{"d", "x"}}})
		must(t, err)
		must(t, n.relay.Keep(e))
		n.post(n.other, nostrx.KindChat, nostrx.Tag{"h", "a"})
		d := n.device("one")
		must(t, d.Ensure(t.Context()))
		if got := d.SyncDoc(t.Context()); got.Status != "error" || got.Error == nil {
			t.Errorf("a snapshot that lacks an event: %+v", got)
		}
		if got := d.see(channelTarget("a")); got.Freshness != Observed || got.Observed.Known {
			t.Errorf("counts without markers: %+v", got)
		}
		n.relay.Switch(relaytest.Partial, false)
		must(t, d.RetrySync(t.Context()))
		if got := d.see(channelTarget("a")).Observed; got != (Count{1, true}) {
			t.Errorf("with markers: %+v", got)
		}
		n.relay.Switch(relaytest.Stall, true)
		if d.Refresh(t.Context()) == nil {
			t.Error("the relay does not answer")
		}
		n.relay.Switch(relaytest.Stall, false)
		must(t, d.RetrySync(t.Context()))
		if got := d.SyncDoc(t.Context()); got.Error != nil {
			t.Errorf("%+v", got)
		}
		if got := d.see(channelTarget("a")); got.Freshness != Stale || got.Observed != (Count{1, true}) {
			t.Errorf("%+v", got)
		}
	})
}

// What one device reads is read on the other, and one that was marked unread on purpose stays so.
//
// covers: RL-029, RL-011
func TestTwoDevices(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		e := n.post(n.other, nostrx.KindChat, nostrx.Tag{"h", "a"})
		one, two := n.device("one"), n.device("two")
		must(t, one.Ensure(t.Context()))
		must(t, two.Ensure(t.Context()))
		lease, err := two.Reading("a", "")
		must(t, err)
		must(t, two.MarkUnread(t.Context(), channelTarget("a")))
		if err := two.Observe(t.Context(), lease, []string{string(e.ID)}, true); !errors.Is(err, frontier.ErrExpired) {
			t.Errorf("a reading from before the mark: %v", err)
		}
		n.relay.Switch(relaytest.Refuse, true)
		must(t, one.MarkChannelRead(t.Context(), "a")) // saved, whatever the relay says
		if got := one.SyncDoc(t.Context()).Status; got != "pending" {
			t.Errorf("status %s", got)
		}
		n.relay.Switch(relaytest.Refuse, false)
		pass(time.Minute)
		must(t, one.RetrySync(t.Context()))
		settle()
		if got := two.see(channelTarget("a")); got.Observed != (Count{0, true}) || got.Manual != "local" {
			t.Errorf("on the other device: %+v", got)
		}
	})
}
