// What the colours of the picture mean.

import { h } from "../element";
import { share } from "../number";
import { ofCategory, ofDifference, type Theme } from "./colour";
import type { Picture } from "./data";
import type { View } from "./model";

export function legend(view: View, picture: Picture, theme: Theme): HTMLElement[] {
  return view.shown.length === 2 ? differences(view, theme) : [categories(view, picture, theme)];
}

function categories(view: View, picture: Picture, theme: Theme): HTMLElement {
  const samples = new Map<number, number>();
  view.tree.own[0]!.forEach((own, n) => { if (own > 0) samples.set(view.tree.category[n]!, (samples.get(view.tree.category[n]!) ?? 0) + own); });
  const used = [...samples].sort((a, b) => a[0] - b[0]);
  const entry = ([category, own]: [number, number]) => {
    const { name } = picture.categories[category]!;
    const part = own / (view.kept[0] || 1);
    return item(ofCategory(picture.categories[category]!, name, theme), `${name} ${share(part)}`);
  };
  return h("ul", { class: "legend" }, ...used.map(entry), item("", "(where samples end, of all that were kept)"));
}

function differences(view: View, theme: Theme): HTMLElement[] {
  const list = h("ul", { class: "legend" },
    item(ofDifference("more", 0, 1, theme), "larger share after"), item(ofDifference("less", 1, 0, theme), "smaller share after"),
    item(ofDifference("noise", 1, 1, theme), "inside the noise, or too few samples to judge"), item("stripes", "on one side only"));
  const basis = view.basis === undefined ? "These two sides were not judged." : `Judged by ${view.basis}.`;
  const apart = view.drawn.every((drawn) => drawn.changes.size === 0) ? " Nothing that is shown now was judged: a range of time or a focus has other shares." : "";
  return [list, h("p", { class: "hint" }, `Shares of each side's own samples, so rates and lengths may differ. ${basis}${apart}`)];
}

function item(colour: string, text: string): HTMLElement {
  if (colour === "") return h("li", { class: "faint" }, text);
  const swatch = h("span", { class: colour === "stripes" ? "swatch stripes" : "swatch", "aria-hidden": true });
  if (colour !== "stripes") swatch.style.background = colour;
  return h("li", {}, swatch, text);
}
