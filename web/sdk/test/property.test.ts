import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type State, merge, nothingSaid } from "../src/core/index.js";
import { EventReader, type ServerEvent } from "../src/hub/events.js";
import { type WireRow, Rows } from "../src/hub/rows.js";
import { Outbox } from "../src/core/outbox.js";
import { Ledger, headOf } from "./conformance/ledger.js";

/** What a server said of a session over time: states in the order in which they were in force. */
const course = fc
  .array(fc.constantFrom("post", "read", "mark", "clear"), { minLength: 1, maxLength: 7 })
  .map((steps) => {
    const w = new Ledger();
    const s = w.newLog("s", "channel");
    w.join(s, "ada", undefined, 0);
    const said: State[] = [];
    for (const step of steps) {
      const row = s.rows.get("ada")!;
      const draft = {
        message: 1,
        author: "ben",
        mentions: [],
        mentionsEveryone: false,
        expires: 0,
      };
      if (step === "post") w.append(s, draft, true);
      else if (step === "read") w.read(s, "ada", headOf(s), -1);
      else if (step === "mark") w.mark(s, "ada", 0, row.version);
      else w.read(s, "ada", row.readRevision, row.version);
      const { readRevision, manualUnread, version, fromRevision } = s.rows.get("ada")!;
      said.push({ contentRevision: headOf(s), readRevision, manualUnread, version, fromRevision });
    }
    return said;
  });

describe("merging", () => {
  // covers: SE-039, SE-040, SE-041
  it("amounts to the newest statement, in whichever order and however often they come", () => {
    fc.assert(
      fc.property(course, fc.array(fc.nat(6), { maxLength: 20 }), (said, picks) => {
        const order = picks.map((i) => said[i % said.length]!);
        const all = [...order, ...said].reverse();
        expect(all.reduce(merge, nothingSaid)).toEqual(said.at(-1));
      }),
    );
  });

  // covers: SE-042
  it("is the same in any grouping", () => {
    fc.assert(
      fc.property(course, (said) => {
        const left = said.reduce(merge);
        const right = said.reduceRight((sum, x) => merge(x, sum));
        expect(left).toEqual(right);
      }),
    );
  });
});

const wireRow = (unread: number): WireRow =>
  ({
    type: "channel",
    notification: "all",
    ...{ unread, attention: 0, activity: 0, shown: unread > 0, shownUnread: unread },
    state: "ready",
    contentRevision: unread,
    readState: { readRevision: 0, manualUnread: false, version: 0 },
  }) as WireRow;

describe("rows", () => {
  // covers: SE-041
  it("are those of the newest commit, whatever order deltas and pages come in", () => {
    const statement = fc.record({ lsn: fc.integer({ min: 1, max: 20 }), there: fc.boolean() });
    fc.assert(
      fc.property(
        fc.uniqueArray(statement, { selector: (s) => s.lsn, minLength: 1 }),
        fc.array(fc.nat()),
        (said, shuffle) => {
          const order = said
            .map((s, i) => ({ s, key: shuffle[i % (shuffle.length || 1)] ?? 0 }))
            .sort((a, b) => a.key - b.key)
            .map(({ s }) => s);
          const rows = new Rows();
          for (const { lsn, there } of order) {
            if (there) rows.put("c1", wireRow(lsn), lsn);
            else rows.remove("c1", lsn);
          }
          const newest = [...said].sort((a, b) => b.lsn - a.lsn)[0]!;
          const outbox = new Outbox();
          const shown = rows.show("c1", outbox.view("c1", rows.said("c1")));
          expect(shown?.unread).toBe(newest.there ? newest.lsn : undefined);
        },
      ),
    );
  });

  it("are gone that a whole list does not name, but not those that came meanwhile", () => {
    const rows = new Rows();
    rows.put("old", wireRow(1), 3);
    rows.put("new", wireRow(1), 9);
    const page = rows.list();
    const other = rows.list();
    page({ scopes: { c1: wireRow(2) }, lsn: 5, complete: false });
    other({ scopes: { old: wireRow(3) }, lsn: 6, complete: false });
    expect(rows.listed).toBe(false);
    page({ scopes: { c2: wireRow(2) }, lsn: 6, complete: true });
    expect([...rows.ids()].sort()).toEqual(["c1", "c2", "new", "old"]);
    other({ scopes: { c1: wireRow(2) }, lsn: 7, complete: true });
    expect([...rows.ids()].sort()).toEqual(["c1", "new", "old"]);
  });
});

describe("events", () => {
  it("are the same in pieces of any size", () => {
    const text =
      ': ping\n\nid: 7\r\nevent: unread\r\ndata: {"a":\r\ndata: 1}\r\n\r\nevent: x\rdata:ü\r\r' +
      "id\ndata: last\n\nevent: none\n\n";
    const read = (pieces: readonly string[]) => {
      const out: ServerEvent[] = [];
      const reader = new EventReader((e) => out.push(e));
      for (const piece of pieces) reader.feed(piece);
      return out;
    };
    const whole = [
      { event: "unread", data: '{"a":\n1}', id: "7" },
      { event: "x", data: "ü", id: "7" },
      { event: "message", data: "last", id: "" },
    ];
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: text.length }), { maxLength: 30 }), (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), text.length];
        const pieces = at.slice(1).map((end, i) => text.slice(at[i], end));
        expect(read(pieces)).toEqual(whole);
      }),
    );
  });

  it("end with one that is too long", () => {
    const reader = new EventReader(() => {});
    expect(() => reader.feed(`data: ${"x".repeat(2 << 20)}`)).toThrow("too long");
  });
});
