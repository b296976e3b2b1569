import type { Badge, SyncState } from "@tidemark/sdk";

/** The title of the page. What is not known adds nothing. */
export function titleOf(badge: Badge, place: string): string {
  const rest = place ? `${place} · Tidemark` : "Tidemark";
  if (!badge.hasUnread) return rest;
  return badge.display ? `(${badge.display}) ${rest}` : `• ${rest}`;
}

/** What the icon of the page shows: a number, a dot, or nothing. */
export function iconOf(badge: Badge): string {
  if (!badge.hasUnread) return "";
  if (!badge.display) return "•";
  return badge.display > 99 ? "99+" : String(badge.display);
}

/** How it stands with the server, in words. */
export function syncWords(s: SyncState): { readonly text: string; readonly tone: string } {
  switch (s.status) {
    case "loading":
      return s.error
        ? { text: "Cannot connect, trying again", tone: "warn" }
        : { text: "Connecting", tone: "quiet" };
    case "pending":
      return { text: s.error ? "Offline, reads are saved here" : "Saving", tone: "warn" };
    case "stale":
      return { text: "Offline, showing what was known", tone: "warn" };
    case "error":
      return { text: s.error ?? "Something went wrong", tone: "bad" };
    default:
      return { text: "Up to date", tone: "good" };
  }
}
