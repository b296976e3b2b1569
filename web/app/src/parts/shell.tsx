import { useEffect, useState } from "preact/hooks";
import { syncWords } from "../view/attention.js";
import type { Account, Accounts } from "../work/accounts.js";
import { claimsOf } from "../work/accounts.js";
import type { App } from "../work/app.js";
import { Dialogs } from "./dialogs.js";
import { Icon } from "./icons.js";
import { MenuButton } from "./menu.js";
import { focusOf } from "./reach.js";
import { Sidebar } from "./sidebar.js";
import { Workspace } from "./workspace.js";

/** The whole page of somebody who is signed in. It needs no counts to be there. */
export function Shell(props: {
  app: App;
  accounts: Accounts;
  change: (account: Account | null) => void;
}) {
  const { app, accounts, change } = props;
  useEffect(() => {
    const key = (e: KeyboardEvent) => pressed(app, e);
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, [app]);
  const sync = app.sync.value;
  const words = syncWords(sync);
  const count = app.inbox.value;
  const unread = app.badge.value;
  return (
    <div class={app.current.value ? "shell chosen" : "shell"}>
      <nav class="sidebar" aria-label="Conversations">
        <header class="bar">
          <Switcher app={app} accounts={accounts} change={change} />
          <span class="space" />
          <button
            type="button"
            class="quiet square bell"
            aria-label={count ? `Activity, ${count} new` : "Activity"}
            title="Activity"
            onClick={() => (app.dialog.value = { kind: "inbox" })}
          >
            <Icon name="bell" />
            {count ? <span class="number">{count}</span> : null}
          </button>
        </header>
        <Sidebar app={app} />
        <footer>
          <button
            type="button"
            class={`quiet status ${words.tone}`}
            onClick={() => (app.dialog.value = { kind: "diagnostics" })}
          >
            <span class="lamp" />
            <span role="status">{words.text}</span>
          </button>
          {unread.display !== null && unread.display > 0 && (
            <span class="quiet-text">{unread.display} unread</span>
          )}
        </footer>
      </nav>
      <Workspace app={app} />
      {app.notice.value && (
        <p class="notice inverse" role="alert">
          {app.notice.value}
          <button type="button" aria-label="Dismiss" onClick={() => (app.notice.value = null)}>
            <Icon name="close" />
          </button>
        </p>
      )}
      <Dialogs app={app} />
    </div>
  );
}

/** The workspaces of this tab, and what can be done to all of the one that is shown. */
function Switcher(props: {
  app: App;
  accounts: Accounts;
  change: (account: Account | null) => void;
}) {
  const { app, accounts, change } = props;
  const [names, setNames] = useState<ReadonlyMap<string, string>>(new Map());
  const others = accounts.all.filter((account) => account !== app.account);
  useEffect(() => {
    void Promise.allSettled(
      others.map(async ({ token }) => {
        const { name, hasUnread } = await app.api.workspaceOf(token);
        setNames((known) => new Map(known).set(token, hasUnread ? `${name} (unread)` : name));
      }),
    );
  }, []);
  const name = app.workspaceName.value || "Tidemark";
  const who = app.person(app.api.member).name;
  return (
    <MenuButton
      name={`Workspace ${name}, ${who}`}
      class="switcher"
      items={() => [
        {
          label: "Mark all as read",
          run: () => void app.attempt(() => app.hub.markAllChannelsRead()),
        },
        ...others.map((account) => {
          const { ws, sub } = claimsOf(account.token);
          return {
            label: `Go to ${names.get(account.token) ?? ws} as ${sub}`,
            run: () => change(account),
          };
        }),
        { label: "Add a workspace…", run: () => change(null) },
        { label: "Keys…", run: () => (app.dialog.value = { kind: "keys" }) },
        {
          label: "Sign out",
          run: () => {
            accounts.remove(app.account);
            change(accounts.current ?? null);
          },
        },
      ]}
    >
      <span class="name">{name}</span>
      <span class="quiet-text">
        {who}
        {app.account.device && `, ${app.account.device}`}
      </span>
    </MenuButton>
  );
}

/** Keys that work everywhere, unless something nearer has taken them. */
function pressed(app: App, e: KeyboardEvent): void {
  if (e.defaultPrevented || document.querySelector("dialog[open]")) return;
  const typing = (e.target as Element).matches("input, textarea");
  if (e.key === "Escape") {
    if (e.shiftKey) void app.attempt(() => app.hub.markAllChannelsRead());
    else markHere(app);
  } else if (e.key === "k" && (e.ctrlKey || e.metaKey)) {
    document.getElementById("search")?.focus();
  } else if (e.key === "F6") {
    nextPart(e.shiftKey ? -1 : 1);
  } else if (e.altKey && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
    const rows = app.sections.value.flatMap((section) => section.rows);
    const at = rows.findIndex((row) => row.id === app.current.value);
    const to = rows[at + (e.key === "ArrowDown" ? 1 : -1)];
    if (to) app.open(to.id);
  } else if (e.key === "?" && !typing) {
    app.dialog.value = { kind: "keys" };
  } else return;
  e.preventDefault();
}

/** Reads the thread that has the focus, else the channel that is shown. */
function markHere(app: App): void {
  const side = app.sideOpen.value ? app.side.value : null;
  const focus = focusOf(document.activeElement);
  const inThread = focus === "thread" || focus === "thread-tab";
  const { hub } = app;
  if (inThread && side?.kind === "thread") {
    const latest = hub.snapshot(side).latestMessage;
    if (latest) void app.attempt(() => hub.markThrough(side, latest.id));
  } else if (app.channel.value) {
    void app.attempt(() => hub.markChannelRead(app.current.value));
  }
}

function nextPart(step: number): void {
  const parts = [
    document.querySelector<HTMLElement>(".row[aria-current], .row"),
    document.querySelector<HTMLElement>(".conversation .messages"),
    document.querySelector<HTMLElement>(".conversation textarea"),
    document.querySelector<HTMLElement>(".side [role=tab][aria-selected=true]"),
    document.querySelector<HTMLElement>(".side .messages"),
  ].filter((part) => part !== null);
  const holds = parts.findIndex((part) => part.contains(document.activeElement));
  parts.at((holds + step + parts.length) % parts.length)?.focus();
}
