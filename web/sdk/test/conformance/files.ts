import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A file of cases, as its name and the cases in it. */
export interface Suite<Case> {
  readonly suite: string;
  readonly cases: readonly Case[];
}

/** Reads the files of a folder of cases, in the order of their names. */
export function loadCases<Case>(folder: string): Suite<Case>[] {
  const at = new URL(`../../../../conformance/cases/${folder}/`, import.meta.url);
  return readdirSync(fileURLToPath(at))
    .filter((name) => name.endsWith(".json"))
    .sort()
    .map((name) => JSON.parse(readFileSync(new URL(name, at), "utf8")) as Suite<Case>);
}

/**
 * Says how an answer differs from what is expected of it, empty where it does not. Of objects only
 * the fields that are expected are looked at; lists are compared element by element.
 */
export function differs(at: string, want: unknown, got: unknown): string {
  if (Array.isArray(want)) {
    if (!Array.isArray(got) || got.length !== want.length) {
      return `${at}: ${want.length} elements were expected, not ${JSON.stringify(got)}`;
    }
    return want.map((w, i) => differs(`${at}[${i}]`, w, got[i])).find((d) => d !== "") ?? "";
  }
  if (want !== null && typeof want === "object") {
    if (got === null || typeof got !== "object" || Array.isArray(got)) {
      return `${at}: an object was expected, not ${JSON.stringify(got)}`;
    }
    const fields = got as Record<string, unknown>;
    for (const [name, w] of Object.entries(want)) {
      const there = name in fields && fields[name] !== undefined;
      if (w === "<absent>") {
        if (there) return `${at}.${name} must not be there`;
        continue;
      }
      if (!there) return `${at}.${name} is missing`;
      const d = differs(`${at}.${name}`, w, fields[name]);
      if (d !== "") return d;
    }
    return "";
  }
  if (want === "<any>" && got !== null) return "";
  return want === got ? "" : `${at} is ${JSON.stringify(got)}, expected ${JSON.stringify(want)}`;
}

/** All orders of a list. */
export function* orders<T>(list: readonly T[]): Generator<T[]> {
  if (list.length <= 1) yield [...list];
  for (let i = 0; i < list.length; i++) {
    const rest = [...list.slice(0, i), ...list.slice(i + 1)];
    for (const order of orders(rest)) yield [list[i]!, ...order];
  }
}
