// Package ownership decides which process owns which workspace of a store that many processes share,
// and tells a process until when it may answer for what it owns.
//
// # One owner
//
// A workspace has one owner at a time: one process has its memory, orders its commits and answers
// for it. Two things keep it that way, and neither depends on the other:
//
//   - The term. Every commit checks the term of its workspace in the store, and whoever claims a
//     workspace raises it. A process that lost a workspace can write nothing to it, however late it
//     notices.
//   - The deadline. Memory is served only before the end of the process's own lease, less a margin,
//     by its own clock counted from before the renewal was sent. Nobody claims a workspace whose
//     owner's lease lasts by the store's clock. Whatever the network or the scheduler does to a
//     process, it has stopped answering when somebody else starts.
//
// # A node
//
//	           Enroll                  Renew, every third of the lease
//	[started] --------> [holding] <--------------------------------------+
//	                        |  \______________________________________/
//	                        |
//	                        | the deadline passes: renewals fail, or the process was stopped
//	                        v
//	                   [suspended]  serves nothing, commits nothing; goes on renewing
//	                     |       |
//	         renewed     |       | ErrNotOwner: another process has the name
//	         in time:    |       v
//	         what nobody |    [expelled]  drops everything for good; the caller ends the process
//	         claimed is  |
//	         served on   +--> [holding]
//
//	[holding] -- Drain --> [draining]  releases everything, claims nothing --> Retire --> [ended]
//
// # A workspace
//
//	[unowned] --Claim: term + 1--> [owned by n] --Release--> [unowned]
//	                                    |
//	                                    +-- the lease of n ends --> claimable --Claim--> [owned by m]
//
// Which node claims a workspace follows from the nodes that live and from what they may own, by
// rendezvous: all of them come to the same answer without talking to each other, and a node that
// comes or goes moves only what it gets or had. An owner that is not the chosen one any more releases
// a few workspaces at a time, so that a node that joins is not met by all of them at once.
//
// # Failures
//
//   - The process dies: its lease ends, its workspaces are claimed by others; a process that starts
//     under the same name takes them back at once.
//   - It is paused beyond its lease and wakes: the deadline has passed, so it serves nothing; its
//     commits are refused by the term where somebody claimed, and by the deadline where nobody did.
//   - The store is out of reach: nobody can claim either. Everything is served until the deadline,
//     then withheld. When the store is back, owners renew and go on with what they had.
//   - It is paused, or its way to the store breaks, with a transaction open: what that has locked cannot
//     be claimed before the store ends it, which it is asked to do after half a lease. No answer of the
//     registry is waited for longer than a quarter of a lease, so that nobody else's renewals wait.
//   - Clocks run at different speeds: the margin covers one part in ten of the lease.
//   - Two processes are started under one name: the later one expels the earlier one.
//
// # Duties of the caller
//
//  1. Ask [Keeper.Serving] before memory answers and before a group of operations begins.
//  2. Carry out Adopt and Release: after Release returned nothing of the workspace is answered or
//     written.
//  3. End the process when [Keeper.Run] returns ErrExpelled.
package ownership
