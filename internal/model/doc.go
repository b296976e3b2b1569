// Package model is Tidemark's dumb oracle: it says what a member has not read yet
// by looking at every message there is, one by one.
//
// A [World] is one workspace. It keeps every entry ever appended, also the removed
// and the trimmed ones, and one plain row of facts for each member in each scope.
// [World.Apply] changes facts; [World.Values], [World.Badge] and [World.Explain]
// scan. No number that could be counted is stored, so nothing here can drift, and
// nothing is shared with the packages that it judges: it imports the standard
// library only, does no I/O, starts no goroutine and reads no clock. Time is a
// number of seconds that operations advance.
//
// The package also makes histories. [DecodeOps] turns any bytes into a history
// (fuzz targets, property libraries), [RandomOps] draws one from a seeded source,
// and both lean towards the cases that plain chance finds too rarely. An [Op]
// prints as one line and [ParseOp] reads it back, so a failing history can be
// pasted into a transcript test (see testdata).
//
// # Duties of callers
//
// Members and scopes are small positive numbers; the caller maps its own ids. Apply
// operations in commit order. A World is not safe for concurrent use; take a
// [World.Clone] to keep a state for later.
//
// # Failures
//
// A refused operation returns an error that matches one of the Err variables and
// leaves the world exactly as it was. A history that names unknown scopes, members
// or entries is therefore legal input everywhere. Nothing panics on input.
//
// # Readings
//
// Where the rules leave a choice, the model takes these. Whoever implements the
// same rules should do likewise, or change this list.
//
//  1. A message counts for a member when its entry is readable, live, above the
//     retention floor, at or after the row's effective revision, and either above
//     the read cursor or at or after the revision of a manual mark; and when it
//     was not written by or for the member (sessions excepted), nor by somebody
//     the member blocks, and, in a task, was delivered to the member. Only the
//     author can be blocked, a notify principal cannot.
//  2. A read clears the manual mark when it names the current version, or names
//     none and comes from a service, and covers the mark: a mark without revision
//     is covered by every read, one with revision X by a request whose own
//     revision is X or more. A read naming another version still moves the cursor
//     and is no conflict. A member's read without a version is invalid.
//  3. Marking unread needs the current version; a service may leave it out. X lies in
//     1..head. The same mark again changes nothing and raises no version.
//  4. Starting an epoch at revision f (first join, rejoin without shared history,
//     follow) lowers an older cursor to at most f-1, clears the manual mark (the
//     version rises only if one was set) and moves the activity cursor to the
//     newest activity. Level, follow choice and visibility survive. A first row
//     has cursor 0 and version 0.
//  5. Joining a scope that one has joined is a change: an effective revision that
//     differs from the stored one replaces it and lowers the cursor to at most one
//     below it; the same one changes nothing. A read revision given on join only
//     raises the cursor, and touches no manual mark. A shared rejoin with an
//     explicit effective revision always lowers the cursor.
//  6. An effective revision lies in 1..head+1, a read revision given on join in
//     0..head; above that is the future and refused.
//  7. Membership of a thread is its follow: join and leave on a thread, and on a
//     session, are invalid. Threads hang under channels and dms.
//  8. When a thread is created, the author of its root and those the root names
//     follow it from revision 1. Each readable reply makes the root's author, its
//     own author and the members it names follow from that reply; an edit makes
//     only those follow whom it newly names, from the edited reply. It takes a
//     joined row in the parent (visible or not) and no explicit unfollow. A
//     principal follows only when it is also named. Editing the root makes nobody
//     follow. Once retention or a move took the root, nobody knows its author any more. A
//     message is the root of one thread at most.
//  9. A thread row whose parent epoch is not the parent row's epoch is as good as
//     none: the next follow starts a new epoch in it. Explicit follow and unfollow
//     do so at head+1, and are refused while the parent is not joined; they do not
//     look at visibility, which is the caller's to check.
//  10. An explicit follow of a live row only sets the choice and the level (all,
//     without end); it moves no point, so what piled up since is shown. Unfollow
//     likewise with level mentions. A later level replaces the level, not the
//     choice. Elsewhere it exists in planned tasks only (reading 25).
//  11. A level may be set to inherit everywhere; outside threads that means all.
//     Inherit with an end is invalid. An end is passed from that second on.
//  12. Reading, marking, levels and activity reads need a row that is joined and,
//     in a thread, has a joined parent of the same epoch; a member also needs
//     both visible, a service does not. Otherwise it is not found.
//  13. Both entries of a broadcast reply are removed, rewound, expired and edited
//     together, whichever is addressed, as far as each is still there. Trimming is
//     no deletion: it concerns its own log only. Names on the channel's entry make
//     nobody follow by themselves.
//  14. Removing a thread's root by whatever means but trimming archives the thread.
//     Its rows keep their numbers and are shown no more.
//  15. A move removes each entry at the source (with its twin, if it is a broadcast
//     reply; reading 14 applies) and appends one entry, without twin, at the
//     target, in order of seq. Without counting the new entry has no revision and
//     no names; with counting it is a post like any other (follows included) if
//     the old one was readable. Recipients do not travel: moved into a task, an
//     entry gets those the operation lists. Everyone cannot be moved into a task
//     with counting. One entry that is gone refuses the whole move; so does a
//     session on either side. A moved entry is still the same message, and a log
//     that holds a live entry of that message, its twin, refuses it; a tombstone that
//     a move has left does not.
//  16. Removing a tombstone changes nothing; removing or editing a trimmed or
//     unknown entry, or editing a tombstone, is not found. An edit that says the
//     same names changes nothing. Names and everyone are sets given whole.
//  17. Trimming through a seq above the newest trims all there is; rewinding to one
//     removes nothing.
//  18. Clocks remove nothing by themselves: an entry is live until a sweep after its
//     time. A sweep looks at all scopes and removes what is due at or before now.
//  19. A session's owner is its only row (effective from 1). After an operation that
//     changed the session by removal, rewind, sweep, trim, read, mark or merge and
//     left nothing unread, the cursor goes to the head. Posts, edits, blocks,
//     levels and run state do not do that; a send that moves the cursor does.
//  20. A merge copies every entry of the source in order: those above its effective
//     point get the next revisions of the destination, removed ones included, the
//     others become baseline. The version becomes the larger of both plus one even
//     when no flag changes. Run state, level, cursor and activities of the source
//     are dropped, and its id answers as replaced. Both need one owner.
//  21. A fork makes a session of the same owner with the live entries as baseline.
//  22. A send that advances the cursor may name revisions up to the head before it,
//     moves the cursor of the thread or channel that it was sent to, never clears a
//     mark, and does nothing for an author whose row is out of reach (reading 12,
//     as a service).
//  23. Archived scopes accept every operation; archiving only filters.
//  24. Activities count after the activity cursor only; joins, floors and the
//     effective revision do not cut them further. Recipients matter in tasks only.
//  25. A task is told who the recipients are, or it is planned and finds them by itself.
//     Then a readable entry goes to those who follow the task, its assignee and whom the
//     entry names, and a high-signal activity to the former two; in either case not to
//     its author, principal or actor, and only to those who are joined and visible at
//     that moment. Following is a choice and nothing else: it moves no point and no
//     level, outlives leaving, and can be ended by somebody who has left. Being
//     assigned takes a row that is joined and visible.
//  26. Each changed field of a planned task is one activity, a title's of low signal. The
//     assignee is the one after the change: who was assigned before is told as a watcher
//     or not at all.
//  27. With each readable entry of a planned task comes a low-signal activity by its
//     author. A read of a planned task through a revision also reads the activities
//     through the one of the newest entry at or below that revision, and so does a send
//     that moves the cursor.
package model
