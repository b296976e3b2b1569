/**
 * Hooks over the Unread of `@tidemark/sdk`: they subscribe and return its snapshots, nothing more.
 */
import type { Badge, Reading, SyncState, Target, Unread, UnreadSnapshot } from "@tidemark/sdk";
import {
  createContext,
  useCallback,
  useContext,
  useEffect,
  useRef,
  useSyncExternalStore,
} from "react";

const UnreadContext = createContext<Unread | null>(null);

/** Gives an Unread to everything below it: `<UnreadProvider value={hub}>`. */
export const UnreadProvider = UnreadContext.Provider;

/** The Unread that was given above. It throws where there is none. */
export function useUnreadClient(): Unread {
  const unread = useContext(UnreadContext);
  if (!unread) throw new Error("there is no UnreadProvider above");
  return unread;
}

/** What is known of a target. */
export function useUnread(target: Target): UnreadSnapshot {
  const unread = useUnreadClient();
  const same = useSame(target);
  const subscribe = useCallback((call: () => void) => unread.subscribe(same, call), [unread, same]);
  const snapshot = () => unread.snapshot(same);
  return useSyncExternalStore(subscribe, snapshot, snapshot);
}

/** What is unread altogether. */
export function useBadge(): Badge {
  const unread = useUnreadClient();
  const subscribe = useCallback((call: () => void) => unread.subscribeBadge(call), [unread]);
  const badge = () => unread.badge();
  return useSyncExternalStore(subscribe, badge, badge);
}

/** How far this device and the server are in step; of an Unread that can be asked to tell of it. */
export function useSync(): SyncState {
  const unread = useUnreadClient() as Unread & {
    subscribeSync?: (call: () => void) => () => void;
  };
  const subscribe = useCallback(
    (call: () => void) => unread.subscribeSync?.(call) ?? unread.subscribeBadge(call),
    [unread],
  );
  const sync = () => unread.sync();
  return useSyncExternalStore(subscribe, sync, sync);
}

/**
 * A reading lease for as long as the component shows the target and active is true, null otherwise
 * and before the component is mounted.
 */
export function useReading(
  channelId: string,
  rootId?: string,
  active = true,
): { readonly current: Reading | null } {
  const unread = useUnreadClient();
  const lease = useRef<Reading | null>(null);
  useEffect(() => {
    if (!active) return;
    const reading = unread.reading(channelId, rootId);
    lease.current = reading;
    return () => {
      lease.current = null;
      reading.dispose();
    };
  }, [unread, channelId, rootId, active]);
  return lease;
}

/** The target as the same object for as long as it says the same. */
function useSame(target: Target): Target {
  const ref = useRef(target);
  if (JSON.stringify(ref.current) !== JSON.stringify(target)) ref.current = target;
  return ref.current;
}
