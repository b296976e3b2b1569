package replay

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	tidemark "github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

const (
	listPage = 1_000 // members or scopes a page of a directory
	rowPage  = 5_000 // rows a page of a member's scopes
	// readers is how many members are read at a time. The engine loads two at a time by default;
	// the others are being summed up meanwhile.
	readers = 4
	// patience is how often a read that has waited for a member's rows in vain is repeated.
	patience = 30
)

// Totals are the sums over a workspace that was filled by a replay.
type Totals struct {
	Messages           uint64 `json:"messages"`
	Channels           int    `json:"channels"`
	Threads            int    `json:"threads"`
	Members            int    `json:"members"`
	ChannelMemberships int    `json:"channelMemberships"`
	ThreadFollows      int    `json:"threadFollows"`
	ChannelUnread      uint64 `json:"channelUnread"`
	ThreadUnread       uint64 `json:"threadUnread"`
	Attention          uint64 `json:"attention"`
	EntriesUnread      int    `json:"entriesUnread"` // memberships and follows with unread
	MembersUnread      int    `json:"membersUnread"` // members with unread anywhere
	SHA256             string `json:"sha256"`        // over all counts, see Counts.WriteTo
}

// Counts is every count of a workspace: one line `member,scope,unread,attention` for each
// membership and follow, zeros included, in bytewise order.
type Counts struct {
	Totals Totals
	lines  []string // each with its end of line
}

// WriteTo writes the lines. Totals.SHA256 is the sum over exactly these bytes.
func (c *Counts) WriteTo(w io.Writer) (int64, error) {
	out := bufio.NewWriter(w)
	var n int64
	for _, line := range c.lines {
		k, err := out.WriteString(line)
		n += int64(k)
		if err != nil {
			return n, fmt.Errorf("write counts: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return n, fmt.Errorf("write counts: %w", err)
	}
	return n, nil
}

// Count reads what every member is served. Progress, where not nil, is told how many members of
// how many are done, by one goroutine at a time.
func Count(
	ctx context.Context, w *tidemark.Workspace, progress func(done, of int),
) (*Counts, error) {
	members, err := listMembers(ctx, w)
	if err != nil {
		return nil, err
	}
	c := &Counts{}
	c.Totals.Members = len(members)
	if err := c.addScopes(ctx, w); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	done := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, id := range members {
		group.Go(func() error {
			rows, err := readMember(ctx, w, id)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			c.addMember(id, rows)
			done++
			if progress != nil {
				progress(done, len(members))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	c.seal()
	return c, nil
}

func listMembers(ctx context.Context, w *tidemark.Workspace) ([]readstate.MemberID, error) {
	var out []readstate.MemberID
	var after readstate.MemberID
	for {
		page, err := w.Members(ctx, after, listPage)
		if err != nil {
			return nil, err
		}
		for i := range page {
			out = append(out, page[i].ID)
		}
		if len(page) < listPage {
			return out, nil
		}
		after = page[len(page)-1].ID
	}
}

func (c *Counts) addScopes(ctx context.Context, w *tidemark.Workspace) error {
	filter := tidemark.ScopeFilter{Limit: listPage}
	for {
		page, err := w.Scopes(ctx, filter)
		if err != nil {
			return err
		}
		for i := range page {
			c.addScope(&page[i])
		}
		if len(page) < listPage {
			return nil
		}
		filter.After = page[len(page)-1].Info.ID
	}
}

func (c *Counts) addScope(s *facts.ScopeRow) {
	c.Totals.Messages += uint64(s.Ranks.Head)
	if s.Info.Type == readstate.Thread {
		c.Totals.Threads++
	} else {
		c.Totals.Channels++
	}
}

// readMember pages through everything a member is served, until the pages are complete. A row
// that comes twice, because its member was still being loaded, counts once, as it was last.
func readMember(
	ctx context.Context, w *tidemark.Workspace, id readstate.MemberID,
) (map[readstate.ScopeID]unread.Row, error) {
	rows := map[readstate.ScopeID]unread.Row{}
	cursor, waited := "", 0
	for {
		page, err := w.Unread(ctx, id, cursor, rowPage)
		if errors.Is(err, unread.ErrNotServable) && ctx.Err() == nil && waited < patience {
			waited++
			continue // the read itself waits for what is being loaded
		}
		if err != nil {
			return nil, fmt.Errorf("count %q: %w", id, err)
		}
		for i := range page.Rows {
			row := &page.Rows[i]
			if row.State != unread.Ready {
				return nil, fmt.Errorf("count %q in %q: %w", id, row.Scope.ID, unread.ErrNotServable)
			}
			if old, ok := rows[row.Scope.ID]; !ok || old.LSN <= row.LSN {
				rows[row.Scope.ID] = *row
			}
		}
		if page.Next == "" && page.Complete {
			return rows, nil
		}
		cursor = page.Next
	}
}

func (c *Counts) addMember(id readstate.MemberID, rows map[readstate.ScopeID]unread.Row) {
	t := &c.Totals
	unreadSomewhere := false
	for scope, row := range rows {
		v := row.Values
		if row.Scope.Type == readstate.Thread {
			t.ThreadFollows++
			t.ThreadUnread += v.Unread
		} else {
			t.ChannelMemberships++
			t.ChannelUnread += v.Unread
		}
		t.Attention += v.Attention
		if v.Unread > 0 {
			t.EntriesUnread++
			unreadSomewhere = true
		}
		c.lines = append(c.lines, fmt.Sprintf("%s,%s,%d,%d\n", id, scope, v.Unread, v.Attention))
	}
	if unreadSomewhere {
		t.MembersUnread++
	}
}

func (c *Counts) seal() {
	slices.Sort(c.lines)
	sum := sha256.New()
	for _, line := range c.lines {
		_, _ = io.WriteString(sum, line) // a hash takes everything
	}
	c.Totals.SHA256 = hex.EncodeToString(sum.Sum(nil))
}
