/** Somebody as they are drawn. */
export interface Person {
  readonly id: string;
  readonly name: string;
  readonly kind: "human" | "agent";
  /** The address of a picture; empty where initials take its place. */
  readonly avatar: string;
}

/** Somebody of whom nothing else is known. */
export function stranger(id: string): Person {
  return { id, name: id, kind: "human", avatar: "" };
}

/** At most two letters that stand for a name. */
export function initialsOf(name: string): string {
  const words = name.replace(/\(.*?\)/g, "").split(/[\s._-]+/).filter(Boolean);
  const first = words[0] ?? "?";
  const last = words.length > 1 ? words.at(-1)! : "";
  return ([...first][0]! + ([...last][0] ?? "")).toUpperCase();
}

/** People are circles, agents are squircles. */
export function shapeOf(person: Person): "circle" | "squircle" {
  return person.kind === "agent" ? "squircle" : "circle";
}

/** One of eight hues, the same for one id everywhere. */
export function hueOf(id: string): number {
  let sum = 0;
  for (const c of id) sum = (sum * 31 + c.codePointAt(0)!) % 997;
  return sum % 8;
}

/** Whom a text names: `@everyone`, or `@` and a member's id. */
export function namedIn(text: string, ids: Iterable<string>): {
  readonly mentions: readonly string[];
  readonly everyone: boolean;
} {
  const words = new Set([...text.matchAll(/@([\w.-]+)/g)].map((m) => m[1]!.toLowerCase()));
  const mentions = [...ids].filter((id) => words.has(id.toLowerCase()));
  return { mentions, everyone: words.has("everyone") };
}
