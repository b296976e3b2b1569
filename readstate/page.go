package readstate

// Page is a bounded part of one member's rows, read at LSN in one snapshot of the store, with
// every scope fact needed to evaluate them. It owes nothing to any other page.
type Page struct {
	LSN    LSN
	Member MemberInfo
	Blocks []MemberKey // whom the member blocks, complete on every page
	// LeftLSN is the commit in which the member last left a scope that they have not joined
	// again; zero for none. Pages have no rows of such scopes.
	LeftLSN LSN
	Rows    []PageRow   // most recent activity first
	Scopes  []PageScope // each scope of Rows once, and the parents of its threads
	Next    string      // where the next page starts; empty after the last
}

// PageRow is one row of a page. Parent is the member's row in the thread's channel.
type PageRow struct {
	MemberRow
	Parent *MemberRow
}

// PageScope is what a page says of one scope: its ranks and its revision sets, the latter as
// counts of all blocks; the bits a row needs come with the row.
type PageScope struct {
	Info     ScopeInfo
	Ranks    ScopeRanks
	Removed  []BlockCount // ascending; blocks that are empty are left out
	Everyone []BlockCount
}

// ScopeRanks is where a scope stands.
type ScopeRanks struct {
	LatestSeq      Seq
	Head           Revision
	Floor          Revision
	LatestActivity Seq
	SignalHead     uint64
	LastLSN        LSN    // the commit that last changed anything a row of the scope shows
	Latest         Latest // newest live message, zero when there is none
	LastActivityAt int64  // milliseconds, message or activity
	Replies        uint64 // live readable entries, shown as a thread's reply count
	// Doubt is the highest revision that memory may have missed something at or below; zero
	// for none. Exact rows that count from below it are withheld.
	Doubt Revision
}

// Latest names the newest live message of a scope.
type Latest struct {
	ID string
	At int64
}
