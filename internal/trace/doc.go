// Package trace holds the format in which a chat is recorded for replay, and a generator of such
// recordings.
//
// A trace is one message a line, in the order of acceptance, reduced to who, where and whom it
// names: no text, no names of people. It is CSV with a header, usually compressed:
//
//	unix_seconds,channel,topic,sender,mentions,length
//	1519660926,0,0,0,,111
//	1519661181,1,2,1,3 7,35
//	1519661190,1,2,3,*,20
//
// [NewReader] and [NewWriter] stream; neither holds more than a line. A topic belongs to the
// channel of its first message; the reader keeps that of every topic and refuses a line that
// says otherwise, so that whoever reads a trace may rely on it.
//
// [Generate] makes a chat that looks like a grown one: a few big channels and many small ones,
// topics that flare up and die, a few people who write most, evenings and weekends. It is a
// function of its settings alone; the same seed gives the same bytes on every machine.
//
// # Failures
//
// A malformed line is [ErrFormat] with its number. Errors of the underlying reader or writer come
// through wrapped.
package trace
