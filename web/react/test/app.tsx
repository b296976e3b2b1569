import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { UnreadProvider, useBadge, useReading, useSync, useUnread } from "../src/index.js";
import { Board } from "./board.js";

export const board = new Board();

export function Row({ channelId }: { readonly channelId: string }) {
  const { observedCount } = useUnread({ kind: "channel", channelId });
  return <p id="row">{`${channelId}: ${observedCount ?? "unknown"}`}</p>;
}

export function Panel() {
  const [channelId, setChannelId] = useState("c1");
  const { display } = useBadge();
  const { status } = useSync();
  useReading(channelId);
  return (
    <>
      <Row channelId={channelId} />
      <p id="badge">{display}</p>
      <p id="sync">{status}</p>
      <button onClick={() => setChannelId("c2")}>c2</button>
    </>
  );
}

/** Puts the panel into the page; the returned function takes it out. */
export function mount(element: Element): () => void {
  const root = createRoot(element);
  root.render(
    <StrictMode>
      <UnreadProvider value={board}>
        <Panel />
      </UnreadProvider>
    </StrictMode>,
  );
  return () => root.unmount();
}
