/** A sign-in of this tab. */
export interface Account {
  readonly token: string;
  /** What the device calls itself; a device of its own keeps its reads apart from others. */
  readonly device: string;
}

const memory = "tidemark.app.v1";

interface Remembered {
  readonly accounts: readonly Account[];
  readonly current: number;
}

/**
 * The sign-ins of this tab, and the one that is used. A token comes in the fragment of the address,
 * stays in this tab, and leaves the address at once.
 */
export class Accounts {
  #state: Remembered;
  readonly #storage: Storage;
  /** A frame has the sign-in of its address alone. */
  readonly #framed: boolean;

  constructor(storage: Storage, location: Location, history: History, framed: boolean) {
    this.#storage = storage;
    this.#framed = framed;
    this.#state = framed ? { accounts: [], current: 0 } : parse(storage.getItem(memory));
    const link = new URLSearchParams(location.hash.slice(1));
    const token = link.get("token");
    if (!token) return;
    this.add({ token, device: link.get("device") ?? "" });
    if (!framed) history.replaceState(null, "", location.pathname + location.search);
  }

  get all(): readonly Account[] {
    return this.#state.accounts;
  }

  get current(): Account | undefined {
    return this.#state.accounts[this.#state.current];
  }

  /** Adds a sign-in and uses it. One of the same workspace and member takes the old one's place. */
  add(account: Account): void {
    const rest = this.all.filter((a) => whoIs(a.token) !== whoIs(account.token));
    this.#set({ accounts: [...rest, account], current: rest.length });
  }

  use(account: Account): void {
    this.#set({ ...this.#state, current: Math.max(0, this.all.indexOf(account)) });
  }

  /** Forgets a sign-in. */
  remove(account: Account): void {
    this.#set({ accounts: this.all.filter((a) => a !== account), current: 0 });
  }

  #set(state: Remembered): void {
    this.#state = state;
    if (!this.#framed) this.#storage.setItem(memory, JSON.stringify(state));
  }
}

function parse(text: string | null): Remembered {
  try {
    const said = JSON.parse(text ?? "") as Partial<Remembered>;
    return { accounts: said.accounts ?? [], current: said.current ?? 0 };
  } catch {
    return { accounts: [], current: 0 };
  }
}

/** What tells sign-ins apart, for the list alone: the server decides whose a token is. */
export function whoIs(token: string): string {
  const { ws, sub } = claimsOf(token);
  return JSON.stringify([ws, sub]);
}

/** What a token says of itself; empty where it says nothing readable. */
export function claimsOf(token: string): { readonly ws: string; readonly sub: string } {
  try {
    const part = token.split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/");
    const { ws = "", sub = "" } = JSON.parse(atob(part)) as { ws?: string; sub?: string };
    return { ws, sub };
  } catch {
    return { ws: "", sub: "" };
  }
}
