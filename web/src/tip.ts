// The box beside the pointer, and the same text for screen readers.

import { h } from "./element";

const box = h("div", { class: "tip", hidden: true, "aria-hidden": true });
const voice = h("div", { class: "unseen", role: "status", "aria-live": "polite" });

export function install(): void {
  document.body.append(box, voice);
  addEventListener("scroll", hide, { passive: true });
  addEventListener("pointerdown", (event) => { if (!(event.target instanceof Element && event.target.closest("svg.strip"))) hide(); });
}

/** Shows lines of text near a place of the window. */
export function show(lines: string[], x: number, y: number): void {
  box.replaceChildren(...lines.map((line, i) => h("div", { class: i === 0 ? "strong" : "" }, line)));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
  const top = y + 14 + height > innerHeight ? y - 14 - height : y + 14;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${Math.max(4, top)}px`;
}

export function hide(): void {
  box.hidden = true;
}

export function say(text: string): void {
  voice.textContent = text;
}
