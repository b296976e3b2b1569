// Package inbox answers how many accounts have sent something new since a member last looked at the
// overview: the number on the bell. It counts senders, never messages, and it never touches how far
// anybody has read in a conversation.
//
// # What it holds
//
// Everything durable is in the store, behind facts.InboxStore. The items are facts: the lane writes
// them with the message that addresses somebody, each at the next position of its member's inbox. An
// [Inbox] adds what follows from them, in transactions of its own that check the term and raise no
// LSN: snapshots, acknowledgements with their receipts, and the projection. In memory it holds the
// names of inboxes that may be behind, and figures.
//
//	H  accepted      the highest position given out
//	A  acknowledged  what an overview that was acknowledged has shown; never falls
//	P  projected     up to where the projection is complete
//
// # The way of the number
//
//	message --> item at H+1                     the lane
//	worker  --> items (P, P+n] in order --> greatest position of each sender, P+n   one transaction
//	Badge   --> H, A, P, senders above A, tail (P, H], who is active, who is blocked   one snapshot
//	Open    --> the same, and a snapshot with the boundary H                        one transaction
//	Acknowledge --> A = max(A, boundary of the snapshot), receipt                   one transaction
//
// A sender counts if their newest live item lies above A, they are active, and the member does not
// block them. The tail is read as a whole and merged, so the number is exact for the moment of the
// read, wherever P is; an empty projection only makes the tail longer.
//
// # Invariants
//
//   - Positions above the floor have no gaps. A read that finds one answers [ErrGap], never a number
//     that may be too small.
//   - A never falls, and never comes from anything but a snapshot that was issued to this member.
//     What arrived after the snapshot stays new.
//   - P and the greatest positions change together. The greatest position of a sender falls only when
//     an item is retracted, in the transaction of the retraction, which raises the inbox's number of
//     retractions.
//   - A badge read writes nothing.
//   - Items at or below the floor are gone, but for the newest live one of each sender above A: it
//     vouches for the sender. A greatest position without an item that vouches counts for nothing.
//   - Whoever asks must be the member; callers have checked that already, and it is checked again.
//
// # Failures
//
//   - The worker is behind, stopped or killed: nothing but P and the length of the tail differs. Above
//     TailRows a read wakes the worker, waits as long as its caller does, and then answers
//     [ErrBehind].
//   - The worker dies within a batch: neither P nor any greatest position has changed.
//   - The store fails: facts.ErrUnavailable, and never zero. Whether an acknowledgement happened the
//     same operation id tells.
//   - Somebody else owns the workspace: facts.ErrNotOwner for what writes; the worker forgets it.
//   - A prepared summary is missing, old or cannot be reached: the store answers.
//   - A snapshot or receipt has outlived its retention: an acknowledgement with such a snapshot is
//     facts.ErrNotFound; an operation id whose receipt is gone runs as a new one, which can raise
//     nothing that its snapshot does not cover.
//
// # Duties of the caller
//
//  1. Give Terms that this process really owns, from memory.
//  2. Call [Inbox.Poke] after each commit that changed inboxes, once it is applied. One that is
//     forgotten is made up for within a while.
//  3. Let one [Inbox.Run] work, and close it before the engine and the store.
package inbox
