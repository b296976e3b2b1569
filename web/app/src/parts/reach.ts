import type { App } from "../work/app.js";
import { type Focus, surfacesOf } from "../view/surface.js";

/** Where an element lies, by the regions that parts of the page declare. */
export function focusOf(element: Element | null): Focus {
  const region = element?.closest<HTMLElement>("[data-region]")?.dataset["region"];
  if (region) return region as Focus;
  return element?.closest("[data-workspace]") ? "inside" : "elsewhere";
}

/** Which lists may be read in now. */
export function surfacesNow(app: App) {
  return surfacesOf({
    channelId: app.current.value,
    focus: focusOf(document.activeElement),
    visit: app.visit.value,
    side: app.sideOpen.value ? app.side.value : null,
    mainThread: app.mainThread.value,
  });
}
