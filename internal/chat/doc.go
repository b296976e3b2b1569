// Package chat is the room of tidemark chat: a terminal client of sessions, channels, direct messages
// and threads on top of package client.
//
// # What it holds
//
//	World   what the client says at one moment: rooms, the open one's messages, how it is doing
//	Model   what is on the screen and what has the focus; it does no input or output
//	Intent  what a key asks for beyond the screen: open, read, mark, post, quit
//	app     the adapter between Model, the terminal (bubbletea) and the client
//
// # The loop
//
//	key, resize, focus -> Model, Intents -> client
//	client's event     -> World          -> Model
//	each of them       -> lines
//	Model.Looking for a while, without a break -> Window.Observe with the snapshot that was drawn
//
// # Invariants
//
//   - Nothing is read by itself unless the messages have the focus, their tail is drawn, nothing hides
//     them, and the terminal has not said that it is another window's turn. Moving through the list
//     opens nothing.
//   - What is marked or read by a key is what was on the screen, and not what it has become.
//   - A number that is not known is a question mark.
//   - Text of others is drawn as text: it holds no sequence that a terminal obeys.
//   - What was written stays in the composer until the server has taken it, and is sent again under
//     the id that it had.
//
// # Failures
//
// Without a connection everything that was loaded stays on the screen, marks are kept by the client
// and sent later, also by another run, and the status line says how many wait. What the server
// refuses for good is told there, too.
package chat
