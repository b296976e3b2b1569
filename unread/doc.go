// Package unread is the UnreadRuntime: it answers what members have not read from memory alone,
// exactly, and keeps that memory from committed events.
package unread
