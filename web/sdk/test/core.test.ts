import { describe, expect, it } from "vitest";
import {
  type Answer,
  type Operation,
  type State,
  Outbox,
  newRead,
  newUnread,
  nothingSaid,
} from "../src/core/index.js";

const said = (more: Partial<State>): State => ({ ...nothingSaid, contentRevision: 9, ...more });

/** An outbox with operations on top of a state, each made of what was shown then. */
function outboxOf(state: State, ...ops: ((o: Outbox, id: string) => Operation)[]): Outbox {
  const outbox = new Outbox();
  ops.forEach((make, i) => {
    const op = make(outbox, `o${i + 1}`);
    outbox.apply(outbox.add(op, state.version).change);
  });
  return outbox;
}

const read = (state: State, revision: number) => (o: Outbox, id: string) =>
  newRead(id, o.view("s", state), revision, 0);
const mark = (state: State, from: number) => (o: Outbox, id: string) =>
  newUnread(id, o.view("s", state), from, 0);

const accepted = (state: State): Answer => ({ status: 200, state });

describe("an outbox", () => {
  it("keeps the higher of two reads that wait", () => {
    const state = said({});
    const outbox = outboxOf(state, read(state, 7), read(state, 4));
    expect(outbox.operations).toMatchObject([{ id: "o1", revision: 7 }]);
    expect(outbox.view("s", state).readRevision).toBe(7);
  });

  it("shows a mark that begins at a message, and a read that ends below it leaves it", () => {
    const state = said({ readRevision: 9 });
    const outbox = outboxOf(state, mark(state, 5), read(state, 4));
    expect(outbox.view("s", state)).toMatchObject({
      manualUnread: true,
      fromRevision: 5,
      version: 1,
    });
    outbox.apply(outbox.add(read(state, 5)(outbox, "o3"), 0).change);
    expect(outbox.view("s", state)).toMatchObject({ manualUnread: false, version: 2 });
  });

  it("moves where a mark begins as a change of the mark", () => {
    const state = said({ manualUnread: true, version: 3, fromRevision: 5 });
    const outbox = outboxOf(state, mark(state, 2));
    expect(outbox.view("s", state)).toMatchObject({ fromRevision: 2, version: 4 });
    const [op] = outbox.operations;
    expect(op).toMatchObject({ flips: true, expectedVersion: 3, revision: 2 });
  });

  it("lets what builds on a mark stand only if exactly that mark came about", () => {
    const state = said({});
    const settle = (s: Partial<State>) => {
      const outbox = outboxOf(state, mark(state, 0), read(state, 9));
      outbox.apply(outbox.begin("o1"));
      outbox.apply(outbox.settle("o1", accepted(said(s))));
      return outbox.operations[0];
    };
    const after = { manualUnread: true, version: 1 };
    expect(settle(after)).toMatchObject({ id: "o2", after: "", expectedVersion: 1, flips: true });
    for (const other of [
      { ...after, version: 2 },
      { ...after, manualUnread: false },
      { ...after, fromRevision: 3 },
    ]) {
      expect(settle(other)).toMatchObject({ id: "o2", expectedVersion: 0, flips: false });
    }
  });

  it("names no version of another's mark on top of a read that lost its own", () => {
    const state = said({ readRevision: 4, version: 4 });
    const theirs = said({ readRevision: 4, manualUnread: true, version: 6 });
    for (const settled of [false, true]) {
      const outbox = outboxOf(state, mark(state, 0), read(state, 9));
      const seen = outbox.view("s", state);
      outbox.apply(outbox.begin("o1"));
      const refused = { status: 409, code: "version_conflict", state: theirs };
      outbox.apply(outbox.settle("o1", refused));
      if (settled) {
        outbox.apply(outbox.begin("o2"));
        outbox.apply(outbox.settle("o2", accepted({ ...theirs, readRevision: 9 })));
      }
      expect(() => outbox.add(newUnread("x", seen, 0, 0), 4)).toThrow("stale");
      outbox.apply(outbox.add(newRead("later", seen, 9, 0), 4).change);
      for (const op of outbox.operations) {
        expect(op).toMatchObject({ flips: false });
        expect(op.expectedVersion).toBeLessThan(5);
      }
    }
  });

  it("sends the operations of one scope one after the other", () => {
    const state = said({});
    const outbox = outboxOf(state, mark(state, 0), read(state, 9));
    expect(outbox.next(() => false)?.id).toBe("o1");
    outbox.apply(outbox.begin("o1"));
    expect(outbox.next(() => false)).toBeUndefined();
    outbox.settle("o1", { status: 503 });
    expect(outbox.next(() => false)?.id).toBe("o1");
    expect(outbox.next(() => true)).toBeUndefined();
  });
});
