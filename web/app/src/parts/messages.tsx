import type { Message, Timeline, TimelineSnapshot } from "@tidemark/sdk";
import { Component } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { App } from "../work/app.js";
import { ReadingList } from "../work/reading.js";
import { clockOf, itemsOf, textOf } from "../view/timeline.js";
import { Avatar } from "./avatar.js";
import { Icon } from "./icons.js";
import { type MenuItem, MenuButton } from "./menu.js";
import { surfacesNow } from "./reach.js";
import { ThreadLink } from "./threadlink.js";

const empty: TimelineSnapshot = { messages: [], loaded: false, earlier: false, error: null };

/** How far from the end a list may be and still goes along with what comes, px. */
const slack = 24;

/** The messages of a channel or a thread. It is of one scope for its whole life. */
export function Messages(props: { app: App; channelId: string; rootId?: string; main: boolean }) {
  const { app, channelId, rootId, main } = props;
  const { hub } = app;
  const scope = rootId ?? channelId;
  const list = useRef<HTMLDivElement>(null);
  const reading = useRef<ReadingList | undefined>(undefined);
  const timeline = useRef<Timeline | undefined>(undefined);
  const [shown, setShown] = useState(empty);
  const [first, setFirst] = useState<string | null>(null);
  const [atEnd, setAtEnd] = useState(true);
  const placed = useRef(false);
  const end = useRef(true);
  const target = useMemo(
    () =>
      rootId
        ? ({ kind: "thread", channelId, rootId } as const)
        : ({ kind: "channel", channelId } as const),
    [],
  );

  useEffect(() => {
    const opened = hub.timeline(scope);
    timeline.current = opened;
    const qualifies = () => surfacesNow(app)[main ? "main" : "thread"];
    const failed = (error: unknown) => (app.notice.value = `Not saved: ${String(error)}`);
    reading.current = new ReadingList(hub, channelId, rootId, list.current!, qualifies, failed);
    const told = () => setShown(opened.snapshot());
    const known = () => setFirst(hub.snapshot(target).firstUnread);
    const ends = [opened.subscribe(told), hub.subscribe(target, known)];
    told();
    known();
    return () => {
      for (const stop of ends) stop();
      reading.current!.dispose();
      opened.dispose();
    };
  }, []);

  const go = (id: string) => {
    const row = list.current?.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"]`);
    row?.scrollIntoView({ block: "center" });
    row?.focus({ preventScroll: true });
    return row !== undefined && row !== null;
  };

  // Rows are in place before the first of them can be looked at.
  useLayoutEffect(() => {
    const box = list.current!;
    if (!placed.current && shown.messages.length > 0) {
      placed.current = true;
      const wanted = main ? app.target.value : null;
      const line = box.querySelector<HTMLElement>(".separator");
      if (wanted && go(wanted)) app.target.value = null;
      else if (line) line.scrollIntoView({ block: "center" });
      else box.scrollTop = box.scrollHeight;
      end.current = box.scrollHeight - box.scrollTop - box.clientHeight < slack;
    } else if (end.current) {
      box.scrollTop = box.scrollHeight;
    }
    reading.current?.moved();
  }, [shown, first]);

  const scrolled = () => {
    const box = list.current!;
    end.current = box.scrollHeight - box.scrollTop - box.clientHeight < slack;
    setAtEnd(end.current);
    if (box.scrollTop < 200) void earlier();
  };
  const earlier = async () => {
    const box = list.current!;
    if (!timeline.current?.snapshot().earlier) return;
    const below = box.scrollHeight - box.scrollTop;
    await app.attempt(() => timeline.current!.loadEarlier());
    requestAnimationFrame(() => {
      if (!end.current) box.scrollTop = box.scrollHeight - below;
    });
  };
  const toFirst = async () => {
    if (!first) return;
    while (!timeline.current!.snapshot().messages.some((m) => m.id === first)) {
      const { earlier: more, messages } = timeline.current!.snapshot();
      if (!more) return;
      await timeline.current!.loadEarlier();
      if (timeline.current!.snapshot().messages.length === messages.length) return;
    }
    requestAnimationFrame(() => go(first));
  };
  const toLatest = () => {
    const box = list.current!;
    box.scrollTop = box.scrollHeight;
    box.focus();
  };

  const key = (e: KeyboardEvent) => {
    if ((e.target as Element).closest("[role=menu]")) return;
    const rows = [...list.current!.querySelectorAll<HTMLElement>("[data-id]")];
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const step = { ArrowUp: at < 0 ? rows.length - 1 : at - 1, ArrowDown: at + 1 }[e.key];
    const to = e.key === "End" ? rows.length - 1 : e.key === "Home" ? 0 : step;
    if (to === undefined || to < 0 || to >= rows.length) return;
    e.preventDefault();
    rows[to]!.focus();
  };

  const items = itemsOf(shown.messages, first, Date.now());
  const name = app.nameOf(scope) || "this conversation";
  const waits = app.drafts.value.filter((draft) => draft.scope === scope);
  const lineLoaded = items.some((item) => item.kind === "unread");
  return (
    <div class="messages-holder">
      {first && !atEnd && !lineLoaded && (
        <button type="button" class="jump top inverse" onClick={() => void toFirst()}>
          <Icon name="up" /> Jump to first unread
        </button>
      )}
      <div
        ref={list}
        class="messages"
        role="log"
        tabIndex={0}
        aria-label={`Messages of ${name}`}
        aria-busy={!shown.loaded}
        data-region={main ? "list" : "thread"}
        onScroll={scrolled}
        onKeyDown={key}
      >
        {shown.error && (
          <p class="state bad" role="alert">
            The messages could not be loaded: {shown.error}. It is tried again.
          </p>
        )}
        {!shown.loaded && !shown.error && <p class="state">Loading messages…</p>}
        {shown.loaded && shown.messages.length === 0 && (
          <p class="state">
            <strong>Nothing was written here yet.</strong>
            <br />
            What you write comes first.
          </p>
        )}
        {shown.messages.length > 0 && !shown.earlier && (
          <p class="begin">The beginning of {name}</p>
        )}
        {items.map((item) => {
          if (item.kind === "day") {
            return (
              <div key={item.key} class="day">
                <span>{item.label}</span>
              </div>
            );
          }
          if (item.kind === "unread") {
            return (
              <div key={item.key} class="separator" role="separator" aria-label="Unread from here">
                <span>Unread</span>
              </div>
            );
          }
          const { message, joined } = item;
          return (
            <MessageRow
              key={item.key}
              app={app}
              message={message}
              joined={joined}
              channelId={channelId}
              rootId={rootId}
              person={app.person(message.author ?? "")}
              thread={main ? threadOn(app, channelId, message.id) : undefined}
            />
          );
        })}
        {waits.map((draft) => (
          <div key={draft.opId} class={draft.error ? "draft bad" : "draft"}>
            <p>{draft.text}</p>
            {draft.error ? (
              <p role="alert">
                Not sent: {draft.error}.{" "}
                <button type="button" onClick={() => void app.send(scope, draft.text, draft.opId)}>
                  Send again
                </button>{" "}
                <button type="button" onClick={() => app.drop(draft.opId)}>
                  Discard
                </button>
              </p>
            ) : (
              <p>Sending…</p>
            )}
          </div>
        ))}
      </div>
      {!atEnd && (
        <button type="button" class="jump bottom inverse" onClick={toLatest}>
          <Icon name="down" /> Jump to latest
        </button>
      )}
    </div>
  );
}

function threadOn(app: App, channelId: string, messageId: string): string | undefined {
  return app.threads.value.get(channelId)?.find((place) => place.rootMessage === messageId)?.id;
}

interface RowProps {
  app: App;
  message: Message;
  joined: boolean;
  channelId: string;
  rootId: string | undefined;
  person: ReturnType<App["person"]>;
  thread: string | undefined;
}

/** One message. It is drawn again only where it is another one. */
class MessageRow extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const { message, joined, thread, person } = this.props;
    const same = next.message === message && next.joined === joined && next.person === person;
    return !same || next.thread !== thread;
  }

  override render() {
    const { app, message, joined, channelId, person, thread } = this.props;
    const named =
      message.mentionsEveryone || message.mentions?.includes(app.api.member) ? " named" : "";
    return (
      <article
        class={`message${joined ? " joined" : ""}${named}`}
        data-id={message.id}
        tabIndex={-1}
        aria-label={`${person.name}, ${clockOf(message.createdAt)}`}
        onContextMenu={(e) => {
          e.preventDefault();
          (e.currentTarget as HTMLElement).querySelector<HTMLElement>(".row-menu")?.click();
        }}
        onKeyDown={(e) => {
          if (e.key !== "Enter" || e.target !== e.currentTarget) return;
          e.preventDefault();
          (e.currentTarget as HTMLElement).querySelector<HTMLElement>(".row-menu")?.click();
        }}
      >
        {joined ? <span class="gutter" /> : <Avatar person={person} />}
        <div class="body">
          {!joined && (
            <p class="byline">
              <strong>{person.name}</strong>
              {person.kind === "agent" && <span class="tag">agent</span>}
              <time dateTime={message.createdAt}>{clockOf(message.createdAt)}</time>
            </p>
          )}
          <p class="text">{textOf(message)}</p>
          {thread && <ThreadLink app={app} channelId={channelId} rootId={thread} />}
        </div>
        <MenuButton name="Message actions" class="row-menu" items={() => this.#items()} />
      </article>
    );
  }

  #items(): readonly MenuItem[] {
    const { app, message, channelId, rootId, thread } = this.props;
    const { hub } = app;
    const isDM = app.channels.value.find((c) => c.id === channelId)?.type === "dm";
    const target = rootId
      ? ({ kind: "thread", channelId, rootId } as const)
      : ({ kind: "channel", channelId } as const);
    const messageId = message.id;
    const items: MenuItem[] = [
      {
        label: "Mark unread from here",
        run: () => app.attempt(() => hub.markUnread({ kind: "message", channelId, messageId })),
      },
      {
        label: "Mark read through here",
        run: () => app.attempt(() => hub.markThrough(target, messageId)),
      },
    ];
    const followed = rootId ?? thread;
    if (thread) {
      items.unshift({ label: "Open thread", run: () => app.openThread(channelId, thread, "link") });
    }
    const known = followed ? hub.following(channelId, followed) : "unknown";
    if (followed && !isDM && known !== "unknown") {
      const follows = known === "following";
      items.push({
        label: follows ? "Unfollow thread" : "Follow thread",
        run: () => app.attempt(() => hub.follow(channelId, followed, !follows)),
      });
    }
    return items;
  }
}
