import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons.js";

/** One thing that a menu offers. */
export interface MenuItem {
  readonly label: string;
  readonly run: () => void;
}

/** A button with a menu. Arrows move in it, Escape closes it and gives the focus back. */
export function MenuButton(props: {
  name: string;
  /** Asked for when the menu opens, so that it offers what holds then. */
  items: () => readonly MenuItem[];
  class?: string;
  children?: ComponentChildren;
}) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    menu.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const away = (e: Event) => {
      const at = e.target as Node;
      if (!menu.current?.contains(at) && !button.current?.contains(at)) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    document.addEventListener("focusin", away);
    return () => {
      document.removeEventListener("pointerdown", away);
      document.removeEventListener("focusin", away);
    };
  }, [open]);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const key = (e: KeyboardEvent) => {
    const items = [...menu.current!.querySelectorAll<HTMLElement>("[role=menuitem]")];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[e.key];
    if (e.key === "Escape") close();
    else if (to !== undefined) items.at(to % items.length)?.focus();
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <span class="menu-holder">
      <button
        ref={button}
        type="button"
        class={`quiet square ${props.class ?? ""}`}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={props.children ? undefined : props.name}
        title={props.name}
        onClick={() => setOpen(!open)}
      >
        {props.children ?? <Icon name="more" />}
      </button>
      {open && (
        <div ref={menu} role="menu" aria-label={props.name} class="menu" onKeyDown={key}>
          {props.items().map((item) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              tabIndex={-1}
              onClick={() => {
                close();
                item.run();
              }}
            >
              {item.label}
            </button>
          ))}
        </div>
      )}
    </span>
  );
}
