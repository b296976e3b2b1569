import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Browser, Page, openHub } from "./support/desk.js";
import { ManualClock, quiet, until } from "./support/clock.js";
import { Server, json } from "./support/server.js";
import type { Hub, Target } from "../src/index.js";

const scopes = ["c1", "c2", "d1"];

type Step = readonly [what: string, scope: string, device: number, n: number];

const step: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom(
    ...["post", "post", "mention", "own", "remove", "read", "mark", "all", "look", "bottom"],
    ...["offline", "refuse", "heal", "cut", "time", "restart"],
  ),
  fc.constantFrom(...scopes),
  fc.nat(1),
  fc.nat(5),
);

/**
 * Two devices of one member, one with two tabs' worth of storage, and a server with a bad network.
 */
class World {
  readonly server = new Server();
  readonly clock = new ManualClock();
  private readonly browsers = [new Browser(), new Browser()];
  readonly hubs: Hub[] = [];

  constructor() {
    this.server.scope("c1", "channel", ["ada", "ben"]);
    this.server.scope("c2", "channel", ["ada", "ben"]);
    this.server.scope("d1", "dm", ["ada", "ben"]);
    for (const i of [0, 1]) this.open(i);
  }

  open(i: number): void {
    const { storage, locks, channel } = this.browsers[i]!;
    const visibility = new Page();
    const options = { storage, locks, channel, clock: this.clock, visibility };
    this.hubs[i] = openHub(this.server, options).hub;
  }

  /**
   * The highest revision that a member could have seen, by scope: nothing beyond it may be read.
   */
  readonly head = (scope: string) => {
    const { entries } = this.server.ledger.open(scope);
    return entries.findLast((e) => e.contentRevision)?.contentRevision ?? 0;
  };

  async play([what, scope, device, n]: Step): Promise<void> {
    const hub = this.hubs[device]!;
    const target: Target = { kind: "channel", channelId: scope };
    const attempt = (p: Promise<unknown>) => p.catch(() => {}); // what is unknown yet is refused
    const { server } = this;
    if (what === "post") server.post(scope, "ben");
    else if (what === "mention") server.post(scope, "ben", { mentions: ["ada"] });
    else if (what === "own") server.post(scope, "ada");
    else if (what === "remove") {
      const e = server.ledger.open(scope).entries[n];
      if (e?.live) server.remove(scope, e.id);
    } else if (what === "read") await attempt(hub.markChannelRead(scope));
    else if (what === "mark") await attempt(hub.markUnread(target));
    else if (what === "all") await attempt(hub.markAllChannelsRead());
    else if (what === "look" || what === "bottom") {
      const timeline = hub.timeline(scope);
      const lease = hub.reading(scope);
      await quiet(3);
      const ids = timeline.snapshot().messages.map((m) => m.id);
      const bottom = what === "bottom";
      await attempt(lease.observe(bottom ? ids : ids.slice(0, n + 1), { bottom }));
      lease.dispose();
      timeline.dispose();
    } else if (what === "offline") server.online = false;
    else if (what === "refuse")
      server.answer = (r) => (n > 2 || r.method === "PUT" ? json({}, 503) : undefined);
    else if (what === "heal") this.heal();
    else if (what === "cut") server.cut();
    else if (what === "time") this.clock.pass(n * 1000);
    else {
      await hub.close();
      this.open(device);
    }
    if (n > 1) await quiet(n);
  }

  heal(): void {
    this.server.online = true;
    this.server.answer = () => undefined;
  }
}

describe("simulated devices", () => {
  // At the end every device shows what the server counts, and nothing is pending.
  //
  // covers: SE-094, SE-095
  it("agree with the server, whatever the network did", { timeout: 60_000 }, async () => {
    const runs = Number(process.env["TIDEMARK_SEEDS"] ?? 60);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const w = new World();
        try {
          for (const s of steps) await w.play(s);
          w.heal();
          for (let i = 0; i < 5; i++) {
            w.clock.pass(61_000);
            await quiet();
            for (const hub of w.hubs) await hub.retrySync();
            await quiet();
          }
          for (const hub of w.hubs) {
            await until(() => hub.sync().status === "reconciled", JSON.stringify(hub.sync()));
            for (const scope of scopes) {
              const s = w.server.ledger.open(scope);
              const { unread, attention, row } = w.server.ledger.serve(s, "ada");
              expect(row.readRevision).toBeLessThanOrEqual(w.head(scope));
              expect(hub.snapshot({ kind: "channel", channelId: scope })).toMatchObject({
                observedCount: unread,
                attentionCount: attention,
                exact: true,
                manual: row.manualUnread ? "synced" : "none",
              });
            }
            expect(hub.badge()).toMatchObject(w.server.ledger.badge("ada"));
          }
        } finally {
          for (const hub of w.hubs) await hub.close();
        }
      }),
      { numRuns: runs },
    );
  });
});
