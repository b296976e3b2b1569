/**
 * What is decided without a network, a disk or a clock: how answers and events are merged, what a
 * window has a receipt for, what becomes of a read from the wish to the answer, and what counts.
 */
export { delay } from "./delay.js";
export * from "./operation.js";
export { type View, Outbox, newRead, newUnread, withoutMark } from "./outbox.js";
export * from "./row.js";
export * from "./state.js";
export * from "./values.js";
export { type Message, type Observation, type Page, Look, Window } from "./window.js";
