import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RelayAgent, RelayAgentError, connectRelayAgent } from "../../src/relay/index.js";
import type { Target, UnreadSnapshot } from "../../src/capability.js";

// The agents are the program's own, on a relay of its own: Ada's laptop, her phone, and Ben.

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tidemark-relay-"));
const pages: URL[] = [];
const open: RelayAgent[] = [];
let program: ChildProcess | undefined;

beforeAll(async () => {
  let binary = process.env["TIDEMARK_BINARY"];
  if (!binary) {
    binary = join(folder, "tidemark");
    execFileSync("go", ["build", "-o", binary, "./cmd/tidemark"], { cwd: root });
  }
  program = spawn(binary, ["demo", "relay", "--listen", "127.0.0.1:0", "--every", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface({ input: program.stdout! })) {
    if (line.includes("http://")) pages.push(new URL(line.trim()));
    if (pages.length === 3) break;
  }
});

afterAll(async () => {
  for (const agent of open) agent.close();
  const ended = new Promise((done) => program?.once("exit", done));
  program?.kill("SIGTERM");
  await ended;
  rmSync(folder, { recursive: true, force: true });
});

function connect(page: URL, token = page.hash.slice(1)): RelayAgent {
  const agent = connectRelayAgent({ url: page.origin, token });
  open.push(agent);
  return agent;
}

/** Resolves with the snapshot that is as wanted. */
function until(agent: RelayAgent, target: Target, ok: (s: UnreadSnapshot) => boolean) {
  return new Promise<UnreadSnapshot>((resolve) => {
    const look = (): void => {
      const s = agent.snapshot(target);
      if (!ok(s)) return;
      end();
      resolve(s);
    };
    const end = agent.subscribe(target, look);
    look();
  });
}

async function write(page: URL, channel: string, text: string): Promise<string> {
  const answer = await fetch(`${page.origin}/v1/channels/${channel}/messages`, {
    method: "POST",
    headers: { authorization: `Bearer ${page.hash.slice(1)}` },
    body: JSON.stringify({ text }),
  });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { id: string }).id;
}

// covers: RL-002, RL-006, RL-007
test("what one device reads is read on the other, and snapshots do not change", async () => {
  const [laptop, phone, ben] = pages as [URL, URL, URL];
  const one = connect(laptop);
  const two = connect(phone);
  const general: Target = { kind: "channel", channelId: "general" };
  expect(one.snapshot(general).observedCount).toBeNull();
  await Promise.all([one.ensure(), two.ensure(), connect(ben).ensure()]);
  const id = await write(ben, "general", "Hello");
  const [before] = await Promise.all([
    until(one, general, (s) => s.observedCount === 1),
    until(two, general, (s) => s.observedCount === 1),
  ]);
  expect(before).toMatchObject({ exact: false, coverage: "observed", syncedManualUnread: false });
  const reading = one.reading("general");
  await reading.observe([id], { bottom: true });
  await Promise.all([one, two].map((a) => until(a, general, (s) => s.observedCount === 0)));
  expect(before.observedCount).toBe(1);
  expect(() => Object.assign(before, { observedCount: 7 })).toThrow();
  reading.dispose();
  await expect(reading.observe([id], { bottom: true })).resolves.toBeUndefined();
});

test("a wrong token is refused, and shows nothing", async () => {
  const agent = connect(pages[0]!, "wrong");
  await expect(agent.markAllChannelsRead()).rejects.toBeInstanceOf(RelayAgentError);
  expect(agent.badge()).toMatchObject({ display: null, complete: false });
});
