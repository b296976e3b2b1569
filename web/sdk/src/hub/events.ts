import { maxEvent } from "../limits.js";

/** One server-sent event. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  /** The last id that the stream told, empty where it told none. */
  readonly id: string;
}

/**
 * Reads server-sent events from text in pieces of any size, by the rules of the HTML standard. Feed
 * calls back for each event that has ended; what has not waits for the next piece.
 */
export class EventReader {
  #rest = "";
  #event = "";
  #data: string[] = [];
  #size = 0;
  #id = "";

  constructor(private readonly on: (event: ServerEvent) => void) {}

  /** Throws when an event is longer than any server of ours sends. */
  feed(text: string): void {
    this.#rest += text;
    let begin = 0;
    for (;;) {
      const end = this.#rest.slice(begin).search(/[\r\n]/);
      if (end < 0) break;
      const at = begin + end;
      const isReturn = this.#rest[at] === "\r";
      if (isReturn && at + 1 === this.#rest.length) break; // a line feed may belong to it
      this.#line(this.#rest.slice(begin, at));
      begin = at + (isReturn && this.#rest[at + 1] === "\n" ? 2 : 1);
    }
    this.#rest = this.#rest.slice(begin);
    if (this.#rest.length + this.#size > maxEvent) throw new Error("an event is too long");
  }

  #line(line: string): void {
    if (line === "") {
      const event = this.#event || "message";
      if (this.#data.length > 0) this.on({ event, data: this.#data.join("\n"), id: this.#id });
      this.#event = "";
      this.#data = [];
      this.#size = 0;
      return;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") {
      this.#data.push(value);
      this.#size += value.length;
    } else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
  }
}
