import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const executable = process.platform === "win32" ? "tidemark.exe" : "tidemark";

/** The program itself, serving a database of its own, with a workspace `acme`. */
export class Program {
  private readonly folder = mkdtempSync(join(tmpdir(), "tidemark-web-"));
  private readonly binary: string;
  private process: ChildProcess | undefined;
  url = "";
  private service = "";
  private opIds = 0;

  private constructor() {
    this.binary = process.env["TIDEMARK_BINARY"] ?? join(this.folder, executable);
  }

  /** Starts it, or rejects when it does not start. */
  static async start(): Promise<Program> {
    const program = new Program();
    if (!process.env["TIDEMARK_BINARY"]) {
      execFileSync("go", ["build", "-o", program.binary, "./cmd/tidemark"], { cwd: root });
    }
    writeFileSync(join(program.folder, "secret"), "0123456789abcdef0123456789abcdef\n", {
      mode: 0o600,
    });
    await program.serve();
    await program.ask("PUT", "", { name: "Acme" }, program.token("root", "*", "admin"));
    program.service = program.token("backend", "acme", "service");
    return program;
  }

  /** Serves, at the address of before where there was one. */
  async serve(): Promise<void> {
    const listen = this.url ? new URL(this.url).host : "127.0.0.1:0";
    const facts = `sqlite:${join(this.folder, "facts.db")}`;
    const args = [
      "serve",
      "--listen",
      listen,
      "--admin-listen",
      "127.0.0.1:0",
      "--cors-origin",
      "*",
    ];
    const child = spawn(
      this.binary,
      [...args, "--facts", facts, "--jwt-secret-file", this.secret, "--log-format", "json"],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    this.process = child;
    const lines = createInterface({ input: child.stderr! });
    for await (const line of lines) {
      const said = JSON.parse(line) as { msg: string; url?: string };
      if (said.msg !== "serving") continue;
      this.url = said.url!;
      child.stderr!.resume();
      return;
    }
    throw new Error("the program ended instead of serving");
  }

  /** Kills it, as a crash would. */
  async kill(): Promise<void> {
    const child = this.process!;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  token(sub: string, ws = "acme", role = "member"): string {
    const args = ["token", "--jwt-secret-file", this.secret, "--ws", ws, "--sub", sub];
    return execFileSync(this.binary, [...args, "--role", role], { encoding: "utf8" }).trim();
  }

  /** Asks as the service, or with another token; it rejects when it is refused. */
  async ask(method: string, path: string, body: object, token = this.service): Promise<unknown> {
    const response = await fetch(`${this.url}/api/v1/workspaces/acme${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  async scope(id: string, body: object, members: readonly string[]): Promise<void> {
    await this.ask("PUT", `/scopes/${id}`, body);
    for (const m of members) await this.ask("PUT", `/scopes/${id}/members/${m}?create=members`, {});
  }

  async post(scope: string, author: string, more: object = {}): Promise<string> {
    const body = { opId: `p${++this.opIds}`, author, payload: { text: "hello" }, ...more };
    const { messageId } = (await this.ask("POST", `/scopes/${scope}/messages`, body)) as {
      messageId: string;
    };
    return messageId;
  }

  private get secret(): string {
    return join(this.folder, "secret");
  }
}
