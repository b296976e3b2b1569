package settings

import "github.com/tidemark-im/tidemark/inbox"

const forgotten = "it is dropped; 36500 keeps all of them for ever"

// inboxes bound the newly-unread badge. Each kind of what is kept has a time of its own.
var inboxes = []Setting{
	{
		Name: "TIDEMARK_INBOX_TAIL_ROWS", Kind: Count,
		Does:   "items beyond the projection that one read merges",
		Beyond: "the read waits for the worker, then `projection_behind`",
		Why:    "they are read one by one, in one snapshot",
		Limit:  "tidemark_inbox_tail_rows_limit", Use: "tidemark_inbox_tail_rows",
		Over:  "tidemark_inbox_behind_total",
		least: 1, most: 1_000_000, field: func(v *Values) any { return &v.Inbox.TailRows },
	},
	{
		Name: "TIDEMARK_INBOX_BATCH_ROWS", Kind: Count,
		Does: "items that one transaction projects", Beyond: "the next transaction goes on",
		Why:   "writers wait for a transaction",
		Limit: "tidemark_inbox_batch_rows_limit", Use: "tidemark_inbox_lag_positions",
		least: 1, most: 100_000, field: func(v *Values) any { return &v.Inbox.BatchRows },
	},
	{
		Name: "TIDEMARK_INBOX_BATCH_INBOXES", Kind: Count,
		Does: "inboxes that share one such transaction", Beyond: "the next transaction goes on",
		Why:   "a durable write is shared by them",
		Limit: "tidemark_inbox_batch_inboxes_limit", Use: "tidemark_inbox_pending",
		least: 1, most: 10_000, field: func(v *Values) any { return &v.Inbox.BatchInboxes },
	},
	{
		Name: "TIDEMARK_INBOX_OPEN_ITEMS", Kind: Count,
		Does:   "items that an opened inbox lists, the newest",
		Beyond: "older ones are left out; the senders are complete, and all of it can be acknowledged",
		Why:    "they are one answer",
		Limit:  "tidemark_inbox_open_items_limit",
		least:  1, most: 10_000, field: func(v *Values) any { return &v.Inbox.OpenItems },
	},
	{
		Name: "TIDEMARK_INBOX_RESCAN", Kind: Duration,
		Does: "time after which all inboxes are looked through", Beyond: "",
		Why:   "what was missed is found then, and what is not kept is dropped",
		Limit: "tidemark_inbox_rescan_seconds",
		least: ms(100), most: ms(3_600_000), field: func(v *Values) any { return &v.Inbox.Rescan },
	},
	{
		Name: "TIDEMARK_INBOX_KEEP_ITEMS", Kind: Count,
		Does:   "days that items are kept for a projection to be derived again",
		Beyond: "they are dropped as far as nobody counts by them; 36500 keeps all of them for ever",
		Why:    "it raises the floor below which nothing can be derived again",
		Limit:  "tidemark_inbox_keep_items_days",
		least:  1, most: inbox.KeepForever, field: func(v *Values) any { return &v.Inbox.KeepItems },
	},
	{
		Name: "TIDEMARK_INBOX_KEEP_SNAPSHOTS", Kind: Count,
		Does: "days that an opening can be acknowledged", Beyond: forgotten,
		Why:   "an acknowledgement with an older one is `not_found`",
		Limit: "tidemark_inbox_keep_snapshots_days",
		least: 1, most: inbox.KeepForever, field: func(v *Values) any { return &v.Inbox.KeepSnapshots },
	},
	{
		Name: "TIDEMARK_INBOX_KEEP_RECEIPTS", Kind: Count,
		Does: "days that the receipt of an acknowledgement is kept", Beyond: forgotten,
		Why:   "a repetition after it counts as new, which can only acknowledge what its snapshot showed",
		Limit: "tidemark_inbox_keep_receipts_days",
		least: 1, most: inbox.KeepForever, field: func(v *Values) any { return &v.Inbox.KeepReceipts },
	},
}
