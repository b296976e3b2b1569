import type { Message } from "@tidemark/sdk";

/** What is drawn between and of messages, from the oldest on. */
export type Item =
  | { readonly kind: "day"; readonly key: string; readonly label: string }
  | { readonly kind: "unread"; readonly key: string }
  | {
      readonly kind: "message";
      readonly key: string;
      readonly message: Message;
      /** It goes on what the same author wrote a moment before. */
      readonly joined: boolean;
    };

const pause = 5 * 60_000;

/** The items of a list of messages, with the separator before the first unread one. */
export function itemsOf(
  messages: readonly Message[],
  firstUnread: string | null,
  now: number,
): readonly Item[] {
  const items: Item[] = [];
  let day = "";
  let before: Message | undefined;
  for (const message of messages) {
    const at = message.createdAt ? new Date(message.createdAt) : undefined;
    const today = at ? at.toDateString() : day;
    if (today !== day) {
      day = today;
      items.push({ kind: "day", key: `day ${day}`, label: dayOf(at!, now) });
      before = undefined;
    }
    if (message.id === firstUnread) {
      items.push({ kind: "unread", key: "unread" });
      before = undefined;
    }
    items.push({ kind: "message", key: message.id, message, joined: goesOn(before, message) });
    before = message;
  }
  return items;
}

function goesOn(before: Message | undefined, m: Message): boolean {
  if (!before || before.author !== m.author) return false;
  return Date.parse(m.createdAt ?? "") - Date.parse(before.createdAt ?? "") < pause;
}

/** A day in words. */
export function dayOf(at: Date, now: number): string {
  const today = new Date(now);
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  if (at.toDateString() === today.toDateString()) return "Today";
  if (at.toDateString() === yesterday.toDateString()) return "Yesterday";
  return at.toLocaleDateString(undefined, { weekday: "long", month: "long", day: "numeric" });
}

/** A time of the day. */
export function clockOf(at: string | undefined): string {
  if (!at) return "";
  return new Date(at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

/** The text of a message; what is no text is named. */
export function textOf(m: Message): string {
  const { payload } = m;
  if (typeof payload === "string") return payload;
  const text = (payload as { text?: unknown } | null | undefined)?.text;
  return typeof text === "string" ? text : `(${m.kind ?? "message"})`;
}
