// Package apicheck holds the answers of a server against the OpenAPI document that the same
// server publishes. It is for tests.
//
// A Checker is made from the served document and then given every exchange, event and frame of a
// test. It refuses a path, method, status or content type that the document does not know, and a
// body that does not match its schema. The document leaves answers open to new fields, for the
// sake of clients; the checker closes them, so that a field nobody documented is found.
//
// Outside the document are only the document itself, its readable page, and preflights. A Checker
// is safe for concurrent use; it keeps nothing of what it is shown but which operations it saw.
package apicheck
