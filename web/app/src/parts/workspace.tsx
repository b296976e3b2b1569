import { useEffect, useState } from "preact/hooks";
import type { ActivityFact, SessionFacts, TaskFacts } from "../work/api.js";
import type { App } from "../work/app.js";
import { stranger } from "../view/people.js";
import { Avatar } from "./avatar.js";
import { Composer } from "./composer.js";
import { Icon } from "./icons.js";
import { type MenuItem, MenuButton } from "./menu.js";
import { Messages } from "./messages.js";
import { SidePane } from "./side.js";

/** The channel that is shown, with what stands beside it. */
export function Workspace({ app }: { app: App }) {
  const channel = app.channel.value;
  const id = app.current.value;
  const side = app.sideOpen.value ? app.side.value : null;
  if (!channel) {
    const lost = id !== "" && app.sync.value.status === "reconciled";
    return (
      <main class="workspace empty" data-workspace>
        <h1 class="hidden">Tidemark</h1>
        <div class="state">
          <strong>{lost ? "This conversation is not yours to see." : "Nothing is open."}</strong>
          <br />
          Choose a conversation on the left, or press <kbd>Ctrl K</kbd> to find one.
        </div>
      </main>
    );
  }
  const inMain = app.mainThread.value;
  return (
    <main class={`workspace${side ? " with-side" : ""}`} data-workspace>
      <div class="conversation">
        <Header app={app} />
        {channel.type === "task" && <TaskBar key={id} app={app} scope={id} />}
        {channel.type === "session" && <SessionBar key={id} app={app} scope={id} />}
        <Messages
          key={inMain ?? `${id} ${app.target.value === null ? "" : app.target.peek()}`}
          app={app}
          channelId={id}
          rootId={inMain ?? undefined}
          main
        />
        <Composer
          key={`composer ${inMain ?? id}`}
          app={app}
          scope={inMain ?? id}
          main
          hint={`Write to ${app.nameOf(inMain ?? id) || id}`}
        />
      </div>
      {side && <SidePane app={app} side={side} />}
    </main>
  );
}

function Header({ app }: { app: App }) {
  const channel = app.channel.value!;
  const { hub } = app;
  const id = channel.id;
  const peer = app.peers.value.get(id);
  const target = { kind: "channel", channelId: id } as const;
  const snapshot = hub.snapshot(target);
  const count = snapshot.observedCount;
  const level = (value: "all" | "mentions" | "none" | "inherit", until?: string) => () =>
    app.attempt(() => hub.setLevel(id, value, until ? { until } : {}));
  const items: MenuItem[] = [
    { label: "Mark as read", run: () => app.attempt(() => hub.markChannelRead(id)) },
    { label: "Mark as unread", run: () => app.attempt(() => hub.markUnread(target)) },
    channel.level === "none"
      ? { label: "Unmute", run: level("all") }
      : { label: "Mute", run: level("none") },
    {
      label: "Mute for an hour",
      run: () => level("none", new Date(Date.now() + 3_600_000).toISOString())(),
    },
    { label: "Only when I am named", run: level("mentions") },
    { label: "Why this count?", run: () => (app.dialog.value = { kind: "explain", scope: id }) },
    { label: "Settings…", run: () => (app.dialog.value = { kind: "settings", scope: id }) },
  ];
  if (channel.type === "dm") {
    const isFavourite = app.favourite.value === id;
    items.splice(2, 0, {
      label: isFavourite ? "No favourite any more" : "Make favourite",
      run: () => (app.favourite.value = isFavourite ? null : id),
    });
  }
  return (
    <header class="bar">
      <button
        type="button"
        class="quiet square back"
        aria-label="Back to the list"
        onClick={() => (app.current.value = "")}
      >
        <Icon name="fold" />
      </button>
      {peer && <Avatar person={peer} />}
      <h1>{peer?.name ?? (channel.name || id)}</h1>
      {snapshot.muted && (
        <span class="tag">
          <Icon name="muted" /> muted
        </span>
      )}
      {count !== null && count > 0 && (
        <button
          type="button"
          class="quiet count"
          title="Why this count?"
          onClick={() => (app.dialog.value = { kind: "explain", scope: id })}
        >
          {count} unread
        </button>
      )}
      <span class="space" />
      <button
        type="button"
        class="quiet square"
        title="Members"
        aria-label="Members"
        onClick={() => app.openTab({ kind: "members", channelId: id })}
      >
        <Icon name="people" />
      </button>
      <button
        type="button"
        class="quiet square"
        title="Media"
        aria-label="Media"
        onClick={() => app.openTab({ kind: "media", channelId: id })}
      >
        <Icon name="media" />
      </button>
      {app.tabs.value.length > 0 && (
        <button
          type="button"
          class="quiet square"
          title="Side pane"
          aria-label="Side pane"
          aria-pressed={app.sideOpen.value}
          onClick={() => (app.sideOpen.value = !app.sideOpen.value)}
        >
          <Icon name="side" />
        </button>
      )}
      <MenuButton name="Conversation actions" items={() => items} />
    </header>
  );
}

/** What is known of a task, and what happened in it. */
function TaskBar({ app, scope }: { app: App; scope: string }) {
  const [task, setTask] = useState<TaskFacts | null>(null);
  const [acts, setActs] = useState<readonly ActivityFact[]>([]);
  const changes = app.channels.value.find((channel) => channel.id === scope);
  useEffect(() => {
    let gone = false;
    void app.attempt(async () => {
      const [facts, list] = [await app.api.task(scope), await app.api.activities(scope)];
      if (gone) return;
      setTask(facts);
      setActs(list);
    });
    return () => (gone = true);
  }, [changes]);
  const last = acts.at(-1);
  return (
    <div class="facts">
      <span class="tag">{task?.status ?? "no status"}</span>
      {task?.assignee ? (
        <span class="who">
          <Avatar person={app.person(task.assignee)} size="s" /> {app.person(task.assignee).name}
        </span>
      ) : (
        <span>Nobody is assigned</span>
      )}
      {last && (
        <span class="last">
          {app.person(last.actor).name}: {last.type.replaceAll(/[._]/g, " ")}
        </span>
      )}
      {last && changes?.shown && (
        <button
          type="button"
          class="quiet"
          onClick={() => app.attempt(() => app.api.sawActivities(scope, last.activitySeq))}
        >
          Seen
        </button>
      )}
    </div>
  );
}

/** How it stands with an agent's session. */
function SessionBar({ app, scope }: { app: App; scope: string }) {
  const [facts, setFacts] = useState<SessionFacts | null>(null);
  const changes = app.channels.value.find((channel) => channel.id === scope);
  useEffect(() => {
    void app.attempt(async () => {
      const all = await app.api.sessions();
      setFacts(all.find((session) => `session:${session.id}` === scope) ?? null);
    });
  }, [changes]);
  const state = !facts
    ? "state not known"
    : facts.pendingPermission
      ? "asks for a permission"
      : facts.pendingInput
        ? "waits for you"
        : facts.thinking
          ? "is thinking"
          : facts.active
            ? "is at work"
            : "is idle";
  return (
    <div class="facts">
      <span class="who">
        <Avatar person={{ ...stranger("agent"), name: "Agent", kind: "agent" }} size="s" />
        The agent: {state}
      </span>
    </div>
  );
}
