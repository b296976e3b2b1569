import { describe, expect, it } from "vitest";
import { loadCases } from "./files.js";
import { type HistoryAnswer, type HistoryOp, apply } from "./history.js";
import { Ledger, headOf } from "./ledger.js";

interface Served {
  readonly member: string;
  readonly scope: string;
}

interface Totals {
  readonly member: string;
  readonly messages: number;
  readonly conversations: number;
  readonly attention: number;
}

interface HistoryStep {
  readonly op: HistoryOp;
  readonly expect: HistoryAnswer & {
    readonly rows?: readonly Served[];
    readonly gone?: readonly Served[];
    readonly badges?: readonly Totals[];
  };
}

interface HistoryCase {
  readonly id: string;
  readonly steps: readonly HistoryStep[];
}

const key = ({ member, scope }: Served) => `${member} ${scope}`;

/** A value without the parts that are 0, false or none, which cases leave out. */
function lean(row: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).filter(([, v]) => v !== 0 && v !== false && v !== "" && v !== undefined),
  );
}

function allRows(w: Ledger): Map<string, object> {
  const out = new Map<string, object>();
  for (const s of w.logs.values()) {
    for (const member of s.rows.keys()) {
      const { row, level, ...served } = w.serve(s, member);
      const { unread, attention, activity, counts, shown, shownUnread } = served;
      const { manualUnread, fromRevision, version, readRevision, activityRead } = row;
      const id = { member, scope: s.id };
      const notification = level === "all" ? "" : level;
      const numbers = { unread, attention, activity, counts, shown, shownUnread };
      const facts = { manualUnread, fromRevision, version, readRevision, notification };
      const rest = { activityReadSeq: activityRead, contentRevision: headOf(s) };
      out.set(key(id), lean({ ...id, ...numbers, ...facts, ...rest }));
    }
  }
  return out;
}

function allBadges(w: Ledger): Map<string, object> {
  const out = new Map<string, object>();
  const members = new Set([...w.logs.values()].flatMap((s) => [...s.rows.keys()]));
  for (const member of members) {
    const sum = lean(w.badge(member));
    if (Object.keys(sum).length > 0) out.set(member, { member, ...sum });
  }
  return out;
}

/** Expects the same of everybody. Comparing texts first is many times faster where they agree. */
function same(at: string, got: Map<string, object>, want: Map<string, object>): void {
  const sorted = (map: Map<string, object>) =>
    [...map]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, o]) => [id, Object.entries(o).sort(([a], [b]) => (a < b ? -1 : 1))]);
  const [g, w] = [sorted(got), sorted(want)];
  if (JSON.stringify(g) !== JSON.stringify(w)) expect(g, at).toEqual(w);
}

// The histories that the Go algebra and the server's model play.
//
// covers: SE-131
describe.each(loadCases<HistoryCase>("readstate"))("histories: $suite", ({ cases }) => {
  it.each(cases)("$id", ({ steps }) => {
    const w = new Ledger();
    const rows = new Map<string, object>();
    const badges = new Map<string, object>();
    for (const [i, { op, expect: want }] of steps.entries()) {
      const { rows: changed = [], gone = [], badges: told = [], ...answer } = want;
      const at = `step ${i + 1}: ${JSON.stringify(op)}`;
      expect(apply(w, op), at).toEqual(answer);
      for (const row of changed) rows.set(key(row), lean(row));
      for (const id of gone) rows.delete(key(id));
      for (const badge of told) {
        const sum = lean({ ...badge, member: "" });
        if (Object.keys(sum).length > 0) badges.set(badge.member, { member: badge.member, ...sum });
        else badges.delete(badge.member);
      }
      same(at, allRows(w), rows);
      same(at, allBadges(w), badges);
    }
  });
});
