import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { openHub, readyHub } from "./support/desk.js";
import { quiet, until } from "./support/clock.js";
import { Server, json } from "./support/server.js";

const c1 = { kind: "channel", channelId: "c1" } as const;

function office(): Server {
  const server = new Server();
  server.scope("c1", "channel", ["ada", "ben"]);
  server.scope("c2", "channel", ["ada", "ben"]);
  return server;
}

/** What asks for the counts of more than one scope. */
const broad = (server: Server) =>
  server.seen.filter((r) => r.method === "GET" && /\/unread(\?|$|\/totals)/.test(r.path));

describe("after the bootstrap", () => {
  // covers: RT-366, RT-384, RT-479
  it("everything comes by the stream and by what was done here, and nothing is asked", async () => {
    const server = office();
    const { hub, clock, page } = await readyHub(server);
    server.post("c1", "ben");
    server.post("c1", "ben");
    await until(() => hub.snapshot(c1).observedCount === 2);
    await hub.markChannelRead("c1");
    expect(hub.snapshot(c1).observedCount).toBe(0);
    server.mark("c1", "ada");
    await until(() => hub.snapshot(c1).manual === "synced");
    for (const shown of [false, true]) page.show(shown); // a visit elsewhere, and the return
    for (let i = 0; i < 10; i++) {
      clock.pass(5_000); // heartbeats come and go
      await quiet();
    }
    expect(broad(server)).toEqual([]);
  });

  // covers: RT-385
  it("nothing is asked again in the first seconds", async () => {
    const server = office();
    const { clock } = await readyHub(server);
    const before = server.seen.length;
    clock.pass(5_000);
    await quiet();
    expect(server.seen.slice(before)).toEqual([]);
  });

  // covers: RT-366
  it("a stream that broke goes on where it was, and asks for no counts", async () => {
    const server = office();
    const { hub, clock } = await readyHub(server);
    server.cut();
    await quiet();
    clock.pass(60_000);
    await until(() => hub.sync().status === "reconciled");
    server.post("c1", "ben");
    await until(() => hub.snapshot(c1).observedCount === 1);
    expect(broad(server)).toEqual([]);
  });
});

describe("numbers that cannot be vouched for", () => {
  // covers: RT-383, RT-387
  it.each(["hydrating", "stale", "unavailable"])("are not shown while %s", async (state) => {
    const server = office();
    server.post("c1", "ben");
    server.answer = (r) => {
      if (!r.path.includes("/events")) return undefined;
      const page = { hasUnread: false, counts: {}, state };
      const text = `event: hello\ndata: {"heartbeatSeconds":20,"resumed":false}\n\n`;
      const body = new ReadableStream<Uint8Array>({
        start(c) {
          const event = `event: snapshot\ndata: ${JSON.stringify(page)}\n\n`;
          c.enqueue(new TextEncoder().encode(text + event));
        },
      });
      return new Response(body, { status: 200 });
    };
    const { hub } = openHub(server);
    await until(() => server.requests("GET", "/events").length > 0);
    await quiet();
    expect(hub.snapshot(c1).observedCount).toBeNull();
    expect(hub.badge()).toMatchObject({ display: null, hasUnread: false, complete: false });
    expect(broad(server)).toEqual([]);
  });

  // covers: RT-386
  it("are needed by nothing that is drawn first", () => {
    const server = office();
    server.answer = () => json({}, 503);
    const { hub } = openHub(server);
    expect(hub.channels()).toEqual([]);
    expect(hub.badge().display).toBeNull();
    expect(hub.sync().status).toBe("loading");
  });
});

// covers: RT-453
it("only what loads the list anew names the endpoint of all counts", () => {
  const web = fileURLToPath(new URL("../../", import.meta.url));
  const found: string[] = [];
  for (const part of ["sdk/src", "react/src", "app/src"]) {
    for (const name of readdirSync(join(web, part), { recursive: true, encoding: "utf8" })) {
      if (!/\.tsx?$/.test(name)) continue;
      const lines = readFileSync(join(web, part, name), "utf8").split("\n");
      const named = /["'`][^"'`]*\/unread(\?|["'`]|\/totals|:query)/;
      const asks = lines.filter((line) => named.test(line));
      found.push(...asks.map((line) => `${part}/${name}: ${line.trim()}`));
    }
  }
  // One caller: refresh, which somebody asks for, and where there is no stream at all.
  expect(found).toEqual([
    "sdk/src/hub/link.ts: const path = this.transport.path(`/unread?limit=100${query}`);",
  ]);
});
