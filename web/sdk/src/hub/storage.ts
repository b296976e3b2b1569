import { type Change, type Operation, isEmpty } from "../core/operation.js";
import { Outbox } from "../core/outbox.js";
import type { Storage } from "./ports.js";

const databaseVersion = 1;
const table = "operations";

interface Stored {
  readonly n: number;
  readonly key: string;
  readonly operation: Operation;
}

/** The key of one member on one server. The namespace is the one that the server told (SE-107). */
export function storageKey(origin: string, workspace: string, member: string): string {
  return JSON.stringify([origin, workspace, member]);
}

/**
 * Operations in IndexedDB, one row each, in the order in which they were made. A write is one
 * transaction that begins with reading, so that tabs cannot overtake each other, and asks for
 * `strict` durability: what was shown as read is on disk.
 */
export function databaseStorage(factory: IDBFactory, name = "tidemark"): Storage {
  let opened: Promise<IDBDatabase> | undefined;
  const database = () => {
    opened ??= openDatabase(factory, name).then((db) => {
      db.onversionchange = () => {
        db.close();
        opened = undefined;
      };
      return db;
    });
    opened.catch(() => (opened = undefined)); // the next one tries again
    return opened;
  };
  return {
    async load(key) {
      const rows = (await database()).transaction(table).objectStore(table).index("key");
      return (await result<Stored[]>(rows.getAll(key))).map((row) => row.operation);
    },
    async write(key, plan) {
      const db = await database();
      const tx = db.transaction(table, "readwrite", { durability: "strict" });
      const committed = completion(tx);
      committed.catch(() => {}); // it is awaited below, unless the plan throws
      try {
        const rows = tx.objectStore(table);
        const stored = await result<Stored[]>(rows.index("key").getAll(key));
        const change = plan(stored.map((row) => row.operation));
        put(rows, key, stored, change);
        await committed;
        return {
          operations: applied(
            stored.map((row) => row.operation),
            change,
          ),
          change,
        };
      } catch (error) {
        abort(tx);
        throw error;
      }
    },
    close() {
      void opened?.then((db) => db.close()).catch(() => {});
      opened = undefined;
    },
  };
}

/** Operations in memory: for tests, and where losing what waits with the page is accepted. */
export function memoryStorage(): Storage {
  const kept = new Map<string, readonly Operation[]>();
  return {
    load: async (key) => kept.get(key) ?? [],
    async write(key, plan) {
      const before = kept.get(key) ?? [];
      const change = plan(before);
      const operations = applied(before, change);
      kept.set(key, operations);
      return { operations, change };
    },
    close() {},
  };
}

function applied(before: readonly Operation[], change: Change): readonly Operation[] {
  if (isEmpty(change)) return before;
  const outbox = new Outbox(before);
  outbox.apply(change);
  return outbox.operations;
}

function put(rows: IDBObjectStore, key: string, stored: readonly Stored[], change: Change): void {
  const numbers = new Map(stored.map((row) => [row.operation.id, row.n]));
  for (const id of change.remove) {
    const n = numbers.get(id);
    if (n !== undefined) rows.delete(n);
  }
  for (const operation of change.put) {
    const n = numbers.get(operation.id);
    rows.put(n === undefined ? { key, operation } : { n, key, operation });
  }
}

function openDatabase(factory: IDBFactory, name: string): Promise<IDBDatabase> {
  const request = factory.open(name, databaseVersion);
  request.onupgradeneeded = () => {
    const rows = request.result.createObjectStore(table, { keyPath: "n", autoIncrement: true });
    rows.createIndex("key", "key");
  };
  return result(request);
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the database failed"));
  });
}

function completion(tx: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    tx.oncomplete = () => resolve();
    tx.onabort = () => reject(tx.error ?? new Error("the write was given up"));
    tx.onerror = () => reject(tx.error ?? new Error("the write failed"));
  });
}

function abort(tx: IDBTransaction): void {
  try {
    tx.abort();
  } catch {
    // it has ended already
  }
}
