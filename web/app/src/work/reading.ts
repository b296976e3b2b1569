import { Dwell, type Hub, type Reading } from "@tidemark/sdk";

/** How long a list has to be still before it has stopped moving, ms. */
const stillAfter = 80;

/**
 * Tells the SDK how one list of messages stands on the screen. Rows are the elements with `data-id`
 * inside the list, from the oldest on; only those that are within the view in full are told of.
 */
export class ReadingList {
  readonly #lease: Reading;
  readonly #dwell: Dwell;
  readonly #list: HTMLElement;
  readonly #qualifies: () => boolean;
  readonly #sizes: ResizeObserver;
  readonly #ends: (() => void)[] = [];
  #still: ReturnType<typeof setTimeout> | undefined;

  constructor(
    hub: Hub,
    channelId: string,
    rootId: string | undefined,
    list: HTMLElement,
    qualifies: () => boolean,
    failed: (error: unknown) => void,
  ) {
    this.#list = list;
    this.#qualifies = qualifies;
    this.#lease = hub.reading(channelId, rootId);
    this.#dwell = new Dwell(this.#lease, { failed });
    this.#sizes = new ResizeObserver(() => this.moved());
    this.#sizes.observe(list);
    this.#on(list, "scroll", () => this.moved());
    for (const name of ["focusin", "focusout"]) {
      // After a focusout the next focusin follows: what has the focus then is what counts.
      this.#on(document, name, () => queueMicrotask(() => this.look()));
    }
    for (const name of ["focus", "blur"]) this.#on(window, name, () => this.look());
    this.moved();
  }

  /** Says that the list or its pane moves, or that its rows are others. */
  moved(): void {
    this.#dwell.moved();
    clearTimeout(this.#still);
    this.#still = setTimeout(() => {
      this.look();
      this.#dwell.settled();
    }, stillAfter);
  }

  /** Looks at the list as it is now. */
  look(): void {
    const view = this.#list.getBoundingClientRect();
    const rows = this.#list.querySelectorAll<HTMLElement>("[data-id]");
    const messageIds: string[] = [];
    for (let i = firstBelow(rows, view.top); i < rows.length; i++) {
      const row = rows[i]!;
      const at = row.getBoundingClientRect();
      if (at.bottom > view.bottom + 0.5) break;
      if (at.top >= view.top - 0.5 && at.height > 0) messageIds.push(row.dataset["id"]!);
    }
    const last = rows[rows.length - 1];
    const ends = last && last.getBoundingClientRect().bottom <= view.bottom + 0.5;
    this.#dwell.update({
      focused: document.hasFocus() && this.#qualifies(),
      covered: isCovered(this.#list, view),
      messageIds: view.height > 0 ? messageIds : [],
      bottom: ends && view.height > 0 ? last.dataset["id"]! : null,
    });
  }

  dispose(): void {
    clearTimeout(this.#still);
    this.#sizes.disconnect();
    for (const end of this.#ends) end();
    this.#dwell.dispose();
    this.#lease.dispose();
  }

  #on(target: EventTarget, name: string, call: () => void): void {
    target.addEventListener(name, call);
    this.#ends.push(() => target.removeEventListener(name, call));
  }
}

/** The first row that does not end above a height. Rows lie one below the other. */
function firstBelow(rows: NodeListOf<HTMLElement>, top: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]!.getBoundingClientRect().bottom <= top) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether something lies above the list: a dialog that is open, or whatever is at its middle. */
function isCovered(list: HTMLElement, view: DOMRect): boolean {
  for (const dialog of document.querySelectorAll("dialog[open]")) {
    if (!dialog.contains(list)) return true;
  }
  const at = document.elementFromPoint(view.left + view.width / 2, view.top + view.height / 2);
  return at !== null && !list.contains(at) && !at.contains(list);
}
