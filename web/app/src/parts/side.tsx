import { useEffect, useState } from "preact/hooks";
import type { Person } from "../view/people.js";
import type { SideView } from "../view/surface.js";
import { textOf } from "../view/timeline.js";
import { type App, keyOf } from "../work/app.js";
import { Avatar } from "./avatar.js";
import { Composer } from "./composer.js";
import { Icon } from "./icons.js";
import { Messages } from "./messages.js";

/** The pane beside the conversation: threads, members and media, one tab each. */
export function SidePane({ app, side }: { app: App; side: SideView }) {
  const tabs = app.tabs.value;
  const key = (e: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    const next = step && tabs[tabs.indexOf(side) + step];
    if (!next) return;
    e.preventDefault();
    app.side.value = next;
    requestAnimationFrame(() => document.getElementById(`tab ${keyOf(next)}`)?.focus());
  };
  return (
    <aside class="side" aria-label="Side pane">
      <div class="bar">
        <div class="tabs" role="tablist" aria-label="Side pane" onKeyDown={key}>
          {tabs.map((tab) => (
            <button
              key={keyOf(tab)}
              id={`tab ${keyOf(tab)}`}
              type="button"
              role="tab"
              class="tab"
              aria-selected={tab === side}
              tabIndex={tab === side ? 0 : -1}
              data-region={tab === side && tab.kind === "thread" ? "thread-tab" : undefined}
              onClick={() => (app.side.value = tab)}
            >
              {nameOf(app, tab)}
            </button>
          ))}
        </div>
        <span class="space" />
        <button
          type="button"
          class="quiet square"
          aria-label="Close tab"
          title="Close tab"
          onClick={() => app.closeTab(side)}
        >
          <Icon name="close" />
        </button>
      </div>
      <div class="panel" role="tabpanel" aria-label={nameOf(app, side)} key={keyOf(side)}>
        {side.kind === "thread" && <ThreadPanel app={app} {...side} />}
        {side.kind === "members" && <Members app={app} scope={side.channelId} />}
        {side.kind === "media" && <Media app={app} scope={side.channelId} />}
      </div>
    </aside>
  );
}

function nameOf(app: App, tab: SideView): string {
  if (tab.kind === "members") return "Members";
  if (tab.kind === "media") return "Media";
  const place = app.threads.value.get(tab.channelId)?.find((p) => p.id === tab.rootId);
  return app.nameOf(tab.rootId) || place?.name || "Thread";
}

function ThreadPanel(props: { app: App; channelId: string; rootId: string }) {
  const { app, channelId, rootId } = props;
  const { hub } = app;
  const target = { kind: "thread", channelId, rootId } as const;
  const [follows, setFollows] = useState(() => hub.following(channelId, rootId));
  useEffect(
    () => hub.subscribe(target, () => setFollows(hub.following(channelId, rootId))),
    [channelId, rootId],
  );
  const isFollowing = follows === "following";
  return (
    <section class="thread" data-region="thread" aria-label={`Thread ${app.nameOf(rootId)}`}>
      <div class="facts">
        <span>In {app.nameOf(channelId)}</span>
        <span class="space" />
        {follows !== "unknown" && (
          <button
            type="button"
            class="quiet"
            onClick={() => app.attempt(() => hub.follow(channelId, rootId, !isFollowing))}
          >
            {isFollowing ? "Unfollow thread" : "Follow thread"}
          </button>
        )}
        <button type="button" class="quiet" onClick={() => (app.mainThread.value = rootId)}>
          Open large
        </button>
      </div>
      <Messages app={app} channelId={channelId} rootId={rootId} main={false} />
      <Composer app={app} scope={rootId} main={false} hint="Reply in the thread" />
    </section>
  );
}

function Members({ app, scope }: { app: App; scope: string }) {
  const [people, setPeople] = useState<readonly Person[] | null>(null);
  useEffect(() => void app.attempt(async () => setPeople(await app.api.membersOf(scope))), []);
  if (!people) return <p class="state">Loading members…</p>;
  return (
    <ul class="people">
      {people.map((person) => (
        <li key={person.id}>
          <Avatar person={person} /> <span>{person.name}</span>
          {person.kind === "agent" && <span class="tag">agent</span>}
        </li>
      ))}
    </ul>
  );
}

/** What is no text among the loaded messages. It is no place to read in. */
function Media({ app, scope }: { app: App; scope: string }) {
  const [list, setList] = useState<readonly { id: string; text: string; who: string }[]>([]);
  useEffect(() => {
    const timeline = app.hub.timeline(scope);
    const told = () =>
      setList(
        timeline
          .snapshot()
          .messages.filter((m) => m.kind === "media")
          .map((m) => ({ id: m.id, text: textOf(m), who: app.person(m.author ?? "").name })),
      );
    const end = timeline.subscribe(told);
    told();
    return () => {
      end();
      timeline.dispose();
    };
  }, []);
  if (list.length === 0) {
    return <p class="state">No pictures or files among the loaded messages.</p>;
  }
  return (
    <ul class="people">
      {list.map((item) => (
        <li key={item.id}>
          <Icon name="media" /> <span>{item.text}</span> <span class="quiet-text">{item.who}</span>
        </li>
      ))}
    </ul>
  );
}
