import { useEffect, useRef, useState } from "preact/hooks";
import type { Explanation, OpenedInbox } from "../work/api.js";
import type { App, Dialog } from "../work/app.js";
import { syncWords } from "../view/attention.js";
import { Avatar } from "./avatar.js";
import { Icon } from "./icons.js";

/** The dialog that is open, if one is. It covers what lies below: nothing is read there. */
export function Dialogs({ app }: { app: App }) {
  const dialog = app.dialog.value;
  if (!dialog) return null;
  return <Frame key={JSON.stringify(dialog)} app={app} dialog={dialog} />;
}

function Frame({ app, dialog }: { app: App; dialog: Dialog }) {
  const box = useRef<HTMLDialogElement>(null);
  // It gives the focus back by itself when it closes.
  useEffect(() => box.current!.showModal(), []);
  const name = {
    explain: "Why this count?",
    settings: "Settings",
    inbox: "Activity",
    diagnostics: "Diagnostics",
    keys: "Keys",
  }[dialog.kind];
  return (
    <dialog ref={box} aria-label={name} onClose={() => (app.dialog.value = null)}>
      <header class="bar">
        <h2>{name}</h2>
        <span class="space" />
        <button
          type="button"
          class="quiet square"
          aria-label="Close"
          onClick={() => box.current!.close()}
        >
          <Icon name="close" />
        </button>
      </header>
      <div class="content">
        {dialog.kind === "explain" && <Explain app={app} scope={dialog.scope} />}
        {dialog.kind === "settings" && <Settings app={app} scope={dialog.scope} />}
        {dialog.kind === "inbox" && <Inbox app={app} />}
        {dialog.kind === "diagnostics" && <Diagnostics app={app} />}
        {dialog.kind === "keys" && <Keys />}
      </div>
    </dialog>
  );
}

/** Asks for something once; null while it is not there, a text where it cannot be had. */
function useAsked<T>(ask: () => Promise<T>): T | string | null {
  const [said, setSaid] = useState<T | string | null>(null);
  useEffect(() => {
    ask().then(setSaid, (error: unknown) => setSaid(String(error)));
  }, []);
  return said;
}

function Explain({ app, scope }: { app: App; scope: string }) {
  const said = useAsked<Explanation>(() => app.api.explain(scope));
  if (said === null) return <p>Asking the server…</p>;
  if (typeof said === "string") return <p role="alert">This cannot be explained now. {said}</p>;
  const terms: [string, number, string][] = [
    ["Messages so far", said.head, "the newest revision of the conversation"],
    ["Read or before your time", said.e, "nothing at or below this revision counts"],
    ["Removed since", said.removed, "taken back by somebody"],
    ["Your own since", said.own, "what you wrote counts for others"],
    ["Of people you block", said.blocked, "kept out of your counts"],
  ];
  return (
    <>
      <p class="sum">
        <strong>{said.unread}</strong> unread in {app.nameOf(scope)}
        {said.attention > 0 && `, ${said.attention} of them for you`}
      </p>
      <table>
        <tbody>
          {terms.map(([name, value, why], i) => (
            <tr key={name}>
              <th scope="row">
                {name}
                <small>{why}</small>
              </th>
              <td>
                {i > 0 && "− "}
                {value}
              </td>
            </tr>
          ))}
          <tr class="total">
            <th scope="row">Unread</th>
            <td>{said.unread}</td>
          </tr>
        </tbody>
      </table>
      <p class="quiet-text">
        Level {said.level}
        {said.manual && ", marked as unread by hand"}; {said.direct} name you, {said.everyone} name
        everyone; state {said.state} as of change {said.lsn}.
      </p>
    </>
  );
}

function Settings({ app, scope }: { app: App; scope: string }) {
  const channel = app.channels.value.find((c) => c.id === scope);
  const snapshot = app.hub.snapshot({ kind: "channel", channelId: scope });
  const levels = [
    ["all", "Everything"],
    ["mentions", "When I am named"],
    ["none", "Nothing (muted)"],
  ] as const;
  const count = snapshot.observedCount === null ? "not known" : String(snapshot.observedCount);
  return (
    <>
      <fieldset>
        <legend>{channel?.name ?? scope} tells me of</legend>
        {levels.map(([value, label]) => (
          <label key={value}>
            <input
              type="radio"
              name="level"
              checked={channel?.level === value}
              onChange={() => app.attempt(() => app.hub.setLevel(scope, value))}
            />
            {label}
          </label>
        ))}
      </fieldset>
      <section aria-label="Diagnostics">
        <h3>Diagnostics</h3>
        <p>
          Unread: {count}; {snapshot.exact ? "exact" : "not exact"}, {snapshot.freshness}
          {snapshot.pending && ", being looked up"}.
        </p>
        <div class="buttons">
          <button
            type="button"
            onClick={() => app.attempt(() => app.hub.markChannelRead(scope))}
          >
            Mark as read
          </button>
          <button
            type="button"
            onClick={() =>
              app.attempt(() => app.hub.markUnread({ kind: "channel", channelId: scope }))
            }
          >
            Mark as unread
          </button>
          <button type="button" onClick={() => app.attempt(() => app.hub.refresh())}>
            Refresh
          </button>
        </div>
      </section>
    </>
  );
}

function Inbox({ app }: { app: App }) {
  const said = useAsked<OpenedInbox>(() => app.api.openInbox());
  const done = async (snapshotId: string) => {
    await app.attempt(() => app.api.acknowledge(snapshotId, crypto.randomUUID()));
    app.dialog.value = null;
    void app.refreshInbox();
  };
  if (said === null) return <p>Opening…</p>;
  if (typeof said === "string") return <p role="alert">The inbox cannot be opened now. {said}</p>;
  if (said.messages.length === 0) return <p class="state">Nothing new is addressed to you.</p>;
  return (
    <>
      <ul class="feed">
        {[...said.messages].reverse().map((m) => {
          const told = (m.payload as { text?: string } | undefined)?.text;
          const text = m.text ?? told ?? "wrote to you";
          return (
            <li key={m.position}>
              <button
                type="button"
                disabled={!m.scope}
                onClick={() => {
                  app.dialog.value = null;
                  app.open(m.scope!, "link", m.messageId ?? null);
                }}
              >
                <Avatar person={app.person(m.sender)} />
                <span>
                  <strong>{app.person(m.sender).name}</strong>
                  {m.scope && <small>{app.nameOf(m.scope)}</small>}
                  <br />
                  {text}
                </span>
              </button>
            </li>
          );
        })}
      </ul>
      <button type="button" class="primary" onClick={() => void done(said.snapshotId)}>
        Clear the bell
      </button>
    </>
  );
}

function Diagnostics({ app }: { app: App }) {
  const sync = app.sync.value;
  const badge = app.badge.value;
  const losses = app.hub.losses();
  const facts = [
    ["Connection", syncWords(sync).text],
    ["Status", sync.error ? `${sync.status}: ${sync.error}` : sync.status],
    ["Member", `${app.api.member || "?"} of ${app.workspaceName.value || app.api.workspace}`],
    ["Conversations", String(app.channels.value.length)],
    ["Badge", `${badge.messages} messages in ${badge.conversations} conversations`],
    ["All of it is known", badge.complete ? "yes" : "no"],
    ["Reads that were lost", String(losses.length)],
  ];
  return (
    <>
      <table>
        <tbody>
          {facts.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="buttons">
        <button type="button" onClick={() => app.attempt(() => app.hub.retrySync())}>
          Try again
        </button>
        <button type="button" onClick={() => app.attempt(() => app.hub.refresh())}>
          Refresh
        </button>
      </div>
    </>
  );
}

const keys = [
  ["Ctrl K", "find a conversation"],
  ["↑ ↓", "go through rows or messages"],
  ["Enter", "open a row; actions of a message"],
  ["Escape", "mark the conversation as read"],
  ["Shift Escape", "mark everything as read"],
  ["Alt ↑ ↓", "the conversation before or after"],
  ["F6", "next part of the page"],
  ["?", "this list"],
];

function Keys() {
  return (
    <table>
      <tbody>
        {keys.map(([key, what]) => (
          <tr key={key}>
            <th scope="row">
              <kbd>{key}</kbd>
            </th>
            <td>{what}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
