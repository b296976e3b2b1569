/** Draws what is unread onto the page's icon, and onto the app's where the platform has badges. */
export class PageIcon {
  #shown = "";
  readonly #link = document.querySelector<HTMLLinkElement>("#icon")!;
  readonly #plain = this.#link.href;

  /** Text is a number, a dot for unread without one, or empty for nothing. */
  show(text: string, number: number | null): void {
    if (text === this.#shown) return;
    this.#shown = text;
    this.#badge(text, number);
    if (!text) {
      this.#link.href = this.#plain;
      return;
    }
    const picture = new Image();
    picture.onload = () => {
      if (this.#shown === text) this.#link.href = drawn(picture, text);
    };
    picture.src = this.#plain;
  }

  #badge(text: string, number: number | null): void {
    const done = text ? navigator.setAppBadge?.(number ?? undefined) : navigator.clearAppBadge?.();
    done?.catch(() => {}); // a page that is not installed has no badge
  }
}

function drawn(picture: HTMLImageElement, text: string): string {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 64;
  const c = canvas.getContext("2d")!;
  c.drawImage(picture, 0, 0, 64, 64);
  const wide = text.length > 2 ? 27 : 21;
  c.fillStyle = "#c2410c";
  c.beginPath();
  c.roundRect(64 - 2 * wide, 22, 2 * wide, 42, 21);
  c.fill();
  if (text !== "•") {
    c.fillStyle = "#fff";
    c.font = "bold 32px sans-serif";
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.fillText(text, 64 - wide, 45);
  }
  return canvas.toDataURL();
}
