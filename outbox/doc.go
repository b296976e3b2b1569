// Package outbox carries out what a committed fact has to cause beyond the counts of its humans:
// agents are woken, and webhooks are told of badges.
//
// # What it holds
//
// Everything durable is in the store, behind facts.OutboxStore: the outbox rows that facts write in
// their own transactions, what has become of each, a queue of wakes for each recipient, endpoints,
// webhooks, dead letters. An [Outbox] holds what is under way: one claim of rows, the queues that
// are being sent to, readers who wait, and what webhooks remember of members. All of that is
// bounded by [Limits], however much there is in the store.
//
// # The way of a row
//
//	fact's transaction --> row, with its recipients frozen
//	  claim: a lease --> projection --> account --> upsert --> [ wake, delivered ]  one transaction
//	                        |              |          |
//	                        |              +----------+--> deferred, tried again soon
//	                        +--> failed, tried again later --> dead letter
//	  behind: an earlier row of one of its agents is not finished
//
//	projection  who looks at the task has been told; where memory was brought up to date before the
//	            writer was answered, this is nothing
//	account     memory has counted the commit for the row's humans, or has nothing of them loaded
//	upsert      where counts are not facts: the humans' present rows are durable, see [Barrier]
//	wake        each agent of the row has one more wake in their queue
//	delivered   the mark
//
// The first three stages are the barrier. What is missing there, pending or failing defers the row:
// nothing is marked, nobody is woken and no budget is spent, however often (ErrPending says so
// explicitly; a missing runtime or barrier is the same). Only a projection can fail.
//
// # The way of a wake
//
//	queued --> claimed with its queue: a lease --> POST --> 2xx: gone from the queue
//	                                                |--> 410: the endpoint is disabled, all wakes stay
//	                                                |--> 429, 503 with a time: later, costs nothing
//	                                                +--> anything else: later --> dead letter
//	queued --> read by long poll --> acknowledged by reading on: gone from the queue
//	queued --> too old, or no room --> dead letter
//
// A request has the headers of the Standard Webhooks specification: webhook-id, the same with every
// attempt, webhook-timestamp, and webhook-signature with the base64 HMAC-SHA256 of id, timestamp
// and body, joined by dots. The body is a [Message]. A receiver may get one twice and has to know
// it by its id.
//
// # Invariants
//
//   - A row is worked on under a lease. It ends by time, or when the workspace has a new term;
//     what was found out under a lease that ended is not recorded.
//   - Wakes and the mark are one transaction: a row is woken for once or not at all.
//   - An agent's wakes are queued in the order of the rows' keys, and sent one after the other. A
//     row that is put off keeps back the later rows of its agents, and nobody else's. Only a dead
//     letter that is taken up again comes out of turn.
//   - Whoever does not answer waits with their own kind: see senders. One silent host takes a third of
//     the places until it is known.
//   - Transactions are short, shared by what is ready together, and check the term of each workspace
//     they touch. They change no unread value and raise no LSN.
//   - Addresses are looked at when they are dialled, not when they are set. Redirects and proxies
//     are not followed. What is read of an answer is bounded and means nothing.
//   - A webhook's event and what it remembers are one transaction; what is stored already is not
//     fired again.
//
// # Failures
//
//   - The process dies: leases of its term end with the next owner's start, and everything goes on
//     from what is stored. A wake that was accepted and not yet recorded is sent again.
//   - The store fails, or the answer of a commit is lost: settlements are tried again for a while;
//     what they were about is then found to be done, or is taken again when its lease ends.
//   - Somebody else owns a workspace: nothing of it is claimed or recorded any more.
//   - A port hangs: its call ends after StageTimeout and the row is deferred.
//   - A receiver is down for long: its wakes become dead letters by attempts, age or room. They
//     can be requeued for KeepDead.
//   - A member is erased: names in messages are looked up when they are sent, so the pseudonym
//     is sent from then on; an erased agent is not woken.
//
// # Duties of the caller
//
//  1. Give Terms that this process really owns, from memory.
//  2. Call [Outbox.Poke] after each commit that wrote outbox rows, once it is applied; call
//     [Outbox.Forget] when a member was erased.
//  3. Let one [Outbox.Run] work, and close it before the engine and the store.
//  4. Check who may set endpoints and webhooks: they decide where this process connects to.
package outbox
