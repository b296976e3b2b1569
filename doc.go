// Package tidemark is an unread engine to embed: it keeps who has read what, durably, and
// answers "what has this member not read yet?" from memory, exactly and at once.
//
//	eng, err := tidemark.Open(ctx, tidemark.Options{Facts: "sqlite:unread.db"})
//	ws := eng.Workspace("acme")
//	ws.Post(ctx, ...)         // durable and counted when it returns
//	ws.Unread(ctx, "bob", "", 100)
//
// An Engine is one facts store (package facts), one lane that commits, and one runtime that
// serves (package unread):
//
//	Workspace.Post, MarkRead, ... -> facts.Lane -> commit -> Engine.apply -> unread.Runtime
//	                                                                      -> Feed (messages)
//	Workspace.Row, Unread, Watch  <- unread.Runtime  <- pages of facts, when an entry is cold
//
// Every write returns after it is durable and applied: a caller reads their own writes, and
// nothing is ever visible that a crash could take back. Reads of unread state ask memory; the
// reads of directory.go and history.go ask the store within one short read transaction.
//
// A program that keeps its messages and cursors elsewhere sets Options.Snapshots instead of Facts
// and tells the engine what it has made durable (package intake): the same runtime serves it, from
// snapshot rows that are hints after a restart.
//
// Errors are those of packages facts and unread; match them with errors.Is.
//
// One process owns a store at a time. A second Open of the same SQLite file fails with
// facts.ErrNotOwner.
package tidemark
