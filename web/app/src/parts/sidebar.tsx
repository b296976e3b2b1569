import { Component } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Copy, type Edge, edgeName, edgesOf } from "../view/offscreen.js";
import type { Row, Section } from "../view/sidebar.js";
import type { App } from "../work/app.js";
import { Avatar } from "./avatar.js";
import { Icon } from "./icons.js";

/** The list of conversations, with a search and what lies out of view. */
export function Sidebar({ app }: { app: App }) {
  const box = useRef<HTMLDivElement>(null);
  const [edges, setEdges] = useState<ReturnType<typeof edgesOf>>({ above: null, below: null });
  const sections = app.sections.value;
  const collapsed = app.collapsed.value;
  const searching = app.query.value.trim() !== "";
  const isOpen = (section: Section) => searching || !collapsed.has(section.id);

  // Most of what scrolls by changes no cue, and nothing is drawn for it.
  const measure = () => {
    const found = edgesOf(copiesIn(box.current!, sections, isOpen), viewOf(box));
    setEdges((known) => (sameEdge(known.above, found.above) && sameEdge(known.below, found.below)
      ? known
      : found));
  };
  useLayoutEffect(measure, [sections, collapsed, searching]);
  useEffect(() => {
    const sizes = new ResizeObserver(measure);
    sizes.observe(box.current!);
    return () => sizes.disconnect();
  }, [sections, collapsed, searching]);

  const reveal = (edge: Edge) => {
    const { collapsed: section, id } = edge.nearest;
    if (section) app.toggleSection(section);
    requestAnimationFrame(() => {
      const row = box.current!.querySelector<HTMLElement>(`[data-row="${CSS.escape(id)}"]`);
      row?.scrollIntoView({ block: "center" });
      row?.focus({ preventScroll: true });
    });
  };
  const key = (e: KeyboardEvent) => {
    const all = [...box.current!.querySelectorAll<HTMLElement>(".row, .fold")];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[e.key];
    if (at < 0 || to === undefined || !all[to]) return;
    e.preventDefault();
    all[to].focus();
  };

  return (
    <div class="sidebar-lists">
      <label class="search">
        <span class="hidden">Search conversations</span>
        <input
          id="search"
          type="search"
          placeholder="Search conversations"
          value={app.query.value}
          onInput={(e) => (app.query.value = e.currentTarget.value)}
          onKeyDown={(e) => {
            const first = box.current?.querySelector<HTMLElement>(".row");
            if (e.key === "Escape" && app.query.value) {
              app.query.value = "";
            } else if (e.key === "Enter" && first?.dataset["row"]) {
              app.open(first.dataset["row"]);
              app.query.value = "";
            } else if (e.key === "ArrowDown" && first) first.focus();
            else return;
            e.preventDefault();
            e.stopPropagation();
          }}
        />
        <kbd>Ctrl K</kbd>
      </label>
      <div class="rows-holder">
        <EdgeButton edge={edges.above} direction="above" reveal={reveal} />
        <div ref={box} class="rows" onScroll={measure} onKeyDown={key}>
          {sections.map((section) => (
            <section key={section.id} aria-label={section.name}>
              <h2>
                <button
                  type="button"
                  class="fold"
                  data-section={section.id}
                  aria-expanded={isOpen(section)}
                  onClick={() => app.toggleSection(section.id)}
                >
                  <Icon name="fold" />
                  {section.name}
                </button>
              </h2>
              {isOpen(section) && (
                <ul>
                  {section.rows.map((row, i) => (
                    <SidebarRow
                      key={row.id}
                      app={app}
                      row={row}
                      current={row.id === app.current.value}
                      first={i === 0}
                    />
                  ))}
                </ul>
              )}
            </section>
          ))}
          {sections.length === 0 && (
            <p class="state">
              {searching
                ? "Nothing has this in its name."
                : app.sync.value.status === "loading"
                  ? "Loading conversations…"
                  : "You are in no conversation yet."}
            </p>
          )}
        </div>
        <EdgeButton edge={edges.below} direction="below" reveal={reveal} />
      </div>
    </div>
  );
}

function sameEdge(a: Edge | null, b: Edge | null): boolean {
  if (!a || !b) return a === b;
  const people = (edge: Edge) => edge.people.map((person) => person.id).join("\n");
  return (
    a.count === b.count &&
    a.nearest.id === b.nearest.id &&
    a.nearest.collapsed === b.nearest.collapsed &&
    people(a) === people(b)
  );
}

function viewOf(box: { readonly current: HTMLDivElement | null }) {
  const { scrollTop: top, clientHeight } = box.current!;
  return { top, bottom: top + clientHeight };
}

/** Where conversations are drawn: rows, and for those of a collapsed section its summary. */
function copiesIn(box: HTMLElement, sections: readonly Section[], open: (s: Section) => boolean) {
  const copies: Copy[] = [];
  const origin = box.getBoundingClientRect().top - box.scrollTop;
  const place = (element: Element | null) => {
    const at = element?.getBoundingClientRect();
    return at ? { top: at.top - origin, bottom: at.bottom - origin } : undefined;
  };
  for (const section of sections) {
    const summary = open(section)
      ? undefined
      : place(box.querySelector(`[data-section="${section.id}"]`));
    for (const { id, unread, peer } of section.rows) {
      if (!unread) continue; // nothing is measured for the others
      const row = `[data-row="${CSS.escape(id)}"]`;
      const at = summary ?? place(box.querySelector(row));
      if (at) copies.push({ id, ...at, unread, peer, collapsed: summary ? section.id : null });
    }
  }
  return copies;
}

/** A floating button for what lies out of view. It keeps its last words while it leaves. */
function EdgeButton(props: {
  edge: Edge | null;
  direction: "above" | "below";
  reveal: (edge: Edge) => void;
}) {
  const { edge, direction, reveal } = props;
  const last = useRef(edge);
  if (edge) last.current = edge;
  const shown = last.current;
  if (!shown) return null;
  return (
    <button
      type="button"
      class={`edge inverse ${direction}${edge ? "" : " leaving"}`}
      inert={!edge}
      aria-label={edgeName(shown, direction)}
      onClick={() => edge && reveal(edge)}
    >
      <Icon name={direction === "above" ? "up" : "down"} />
      {shown.people.length > 0 && (
        <span class="stack" aria-hidden="true">
          {shown.people.map((person) => (
            <Avatar key={person.id} person={person} size="s" />
          ))}
        </span>
      )}
      {shown.count} unread
    </button>
  );
}

interface SidebarRowProps {
  app: App;
  row: Row;
  current: boolean;
  first: boolean;
}

class SidebarRow extends Component<SidebarRowProps> {
  override shouldComponentUpdate(next: SidebarRowProps): boolean {
    const { row, current, first } = this.props;
    return (
      next.current !== current ||
      next.first !== first ||
      (next.row !== row && JSON.stringify(next.row) !== JSON.stringify(row))
    );
  }

  override render() {
    const { app, row, current, first } = this.props;
    const { peer, threads } = row;
    const classes = ["row", row.strong && "strong", row.muted && "muted"].filter(Boolean).join(" ");
    return (
      <li>
        <button
          type="button"
          class={classes}
          data-row={row.id}
          tabIndex={current || first ? 0 : -1}
          aria-current={current ? "page" : undefined}
          onClick={() => app.open(row.id)}
        >
          {peer ? (
            <Avatar person={peer} size="s" />
          ) : (
            <span class="sign">
              <Icon name={signOf(row.kind)} />
            </span>
          )}
          <span class="label">{peer?.name ?? row.name}</span>
          {row.muted && <Icon name="muted" />}
          {row.says && <span class="hidden">, {row.says}</span>}
          {row.dot && threads.length === 0 && <span class="dot" />}
        </button>
        {threads.length > 0 && <ThreadDot app={app} row={row} />}
      </li>
    );
  }
}

function signOf(kind: string) {
  return kind === "task" || kind === "session" ? kind : kind === "dm" ? "people" : "channel";
}

/** The dot of a row with unread threads, and what lies behind it. Looking at it reads nothing. */
function ThreadDot({ app, row }: { app: App; row: Row }) {
  const [open, setOpen] = useState(false);
  const holder = useRef<HTMLSpanElement>(null);
  const name = `Unread threads of ${row.name}`;
  return (
    <span
      ref={holder}
      class="activity"
      onMouseEnter={() => setOpen(true)}
      onMouseLeave={() => setOpen(false)}
      onFocusIn={() => setOpen(true)}
      onFocusOut={(e) => {
        if (!holder.current?.contains(e.relatedTarget as Node | null)) setOpen(false);
      }}
      onKeyDown={(e) => {
        if (e.key !== "Escape" || !open) return;
        e.stopPropagation();
        setOpen(false);
      }}
    >
      <button
        type="button"
        class="quiet square"
        aria-label={name}
        aria-expanded={open}
        onClick={() => setOpen(true)}
      >
        {row.dot ? <span class="dot" /> : <Icon name="thread" />}
      </button>
      {open && (
        <span class="popover" role="group" aria-label={name}>
          {row.threads.map((thread) => (
            <button
              key={thread.id}
              type="button"
              onClick={() => {
                setOpen(false);
                app.openThread(row.id, thread.id, "link");
              }}
            >
              <span class="label">{thread.name}</span>
              <span class="count">{thread.replies > 0 ? `${thread.replies} new` : "marked"}</span>
            </button>
          ))}
        </span>
      )}
    </span>
  );
}
