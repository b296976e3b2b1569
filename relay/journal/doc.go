// Package journal keeps the read state of a relay agent on disk and publishes it: one record for every
// community and viewer, changed in transactions that any number of processes may make at once, and
// published by one of them at a time.
//
// # A read, from the wish to the end
//
//	Act: the plan is made inside a transaction, on the record as it is then
//	  -> written, synchronous=FULL: the read is saved
//	Flush, under the publisher's lock:
//	  -> the own slots are read from the relay, and joined
//	  -> what is published is laid out over slots; new slots are saved
//	  -> per slot that is due: encrypted, signed and saved in one transaction
//	       -> sent -> accepted -> read back -> what was pending is forgotten
//	  -> the revision is accepted
//
// A process may be killed between any two of these steps. What was saved is published by the next
// flush, of whichever process; what was signed is sent again with the same bytes until its end is
// known, and nothing newer overtakes it.
//
// # What is kept
//
// The state that is synchronised has a budget ([MaxSyncBytes]). Three quarters of it keep broad marks
// before narrow ones, so that no amount of news evicts the mark of a quiet channel; the rest goes to
// what was touched last, so that old history that was just read stays read. What a broader kept mark
// reads is dropped; what does not fit goes to the reserve, which never leaves the device. Nothing is
// made up to save room. While there are registers of manual marks, everything that they could be
// measured by stays, or the save fails.
//
// Published is only what this installation raised itself ([Record.Own]), never the marks of messages,
// and nothing older than thirty days. It is spread over slots of 40 KiB. A key stays where the relay
// holds it; when it has to move it moves to a later slot, and later slots are sent first.
//
// # Invariants
//
//   - Nothing is signed for what is not on disk, and nothing is sent that is not saved.
//   - For every coordinate, times of events only rise, and never lead the clock by more than a minute.
//   - A frontier never falls: what the relay holds in the own slots is taken back before anything is
//     published.
//   - A record is checked as a whole when it is read and before it is written. A damaged one is an
//     error, and is never replaced by an empty one.
//
// # Duties of the caller
//
// Decide reading actions inside Act, with the record that it is given. Run a [Sync], and tell it what
// was saved: it publishes once five seconds of quiet have passed, and tries again only for Retry, for
// something new, or for a Load after a reconnection. Give Evidence of verified messages only. Leave
// deletes one partition.
//
// # Failures
//
//	the file cannot be written        ErrStorage: nothing changed, nothing was signed
//	the record is damaged             ErrCorrupt: nothing is written over it
//	too much to keep                  frontier.ErrCapacity: nothing changed
//	another process publishes         ErrBusy after ten seconds
//	no answer, or another refusal     the error; the same bytes are sent by the next flush
//	refused for its time, and old     renewed once, after a look whether it is needed
//	accepted, and not shown           ErrUnobserved; the bytes stay
//	another installation's slot       given up for a new one
package journal
