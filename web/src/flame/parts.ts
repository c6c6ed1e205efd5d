// What became of every sample: parts that sum to 100 %.

import { h } from "../element";
import type { Side } from "./data";

export function parts(side: Side): HTMLElement {
  const all = side.parts.reduce((sum, [, samples]) => sum + samples, 0);
  const told = side.parts.filter(([, samples]) => samples > 0);
  const bar = h("span", { class: "flame-parts", "aria-hidden": true }, ...side.parts.map(([, samples], i) => piece(samples / (all || 1), i)));
  const words = told.map(([name, samples]) => `${percent(samples / all)} ${name}`).join(", ");
  return h("p", { class: "flame-account" }, bar, h("b", {}, side.name), ` ${all.toLocaleString("en")} samples: ${words}. From ${side.source}.`);
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

/** Never 0 % or 100 % where it is not. */
function percent(part: number): string {
  const text = (part * 100).toFixed(2);
  if (text === "0.00" && part > 0) return "<\u00a00.01\u00a0%";
  return text === "100.00" && part < 1 ? ">\u00a099.99\u00a0%" : `${text}\u00a0%`;
}
