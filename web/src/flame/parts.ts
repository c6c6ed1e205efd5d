// What became of every sample: parts that sum to 100 %.

import { h } from "../element";
import { count, share } from "../number";
import type { Side } from "./data";

export function parts(side: Side): HTMLElement {
  const all = side.parts.reduce((sum, [, samples]) => sum + samples, 0);
  const told = side.parts.filter(([, samples]) => samples > 0);
  const bar = h("span", { class: "flame-parts", "aria-hidden": true }, ...side.parts.map(([, samples], i) => piece(samples / (all || 1), i)));
  const words = told.map(([name, samples]) => `${share(samples / all)} ${name}`).join(", ");
  return h("p", { class: "flame-account" }, bar, h("b", {}, side.name), ` ${count(all)} samples: ${words}. From ${side.source}.`);
}

/** What the events could not see, each once. */
export function hidden(sides: Side[]): HTMLElement[] {
  const texts = new Set(sides.flatMap((side) => (side.hides === undefined ? [] : [side.hides])));
  return [...texts].map((text) => h("p", { class: "flame-hides" }, h("b", {}, "What this event hides: "), `${text}.`));
}

function piece(part: number, index: number): HTMLElement {
  const element = h("span", { class: `part${index}` });
  element.style.flexGrow = String(part);
  return element;
}
