/** Every limit of this package, each with its reason. */

/** Operations that wait: a scope has a few, since reads that wait are folded. */
export const maxOperations = 10_000;
/** The age at which an operation is given up, ms: a day before the server forgets its receipts. */
export const giveUpAfter = 29 * 24 * 3600 * 1000;
/** How far ahead an operation may lie that was not made by a wrong clock, ms. */
export const clockSlack = 3_600_000;
/** A time that every clock has passed which was ever set, ms since 1970. */
export const clockFloor = 1_735_689_600_000;
/** Operations that are gone and are remembered: what was made meanwhile builds on a few of them. */
export const maxRemembered = 256;
/** Losses that are kept for those who look. */
export const maxLosses = 100;

/** Messages of a window. What comes at its end pushes the oldest out; they can be loaded again. */
export const maxMessages = 5000;
/** Live messages that wait for a gap to be closed. They can be asked for again. */
export const maxHeld = 500;
/** Messages that are asked for at once: a few screens. */
export const pageLimit = 100;

/** Scopes that a stream tells messages of, the server's limit; others load when it begins. */
export const maxSubscribed = 100;
/** Characters of an event: a message of 64 KiB, with what escaping makes of it. */
export const maxEvent = 1 << 20;
/** How long a stream may be silent before it has said how often it is not, ms. */
export const firstSilence = 60_000;
/** How long a request may take, ms. */
export const requestTimeout = 30_000;

/** Requests of the sender that are under way at once: each is of other scopes. */
export const maxSending = 4;
/** Scopes that are read by one request, the server's limit. */
export const maxBatch = 500;
/** How often the age of operations is looked at when nothing happens, ms. */
export const expiryCheck = 3_600_000;

/** How long rows have to stay in view to be read, ms (RL-035). */
export const dwellTime = 300;
/** Values that are kept though nobody has subscribed to them. */
export const maxIdle = 5000;
