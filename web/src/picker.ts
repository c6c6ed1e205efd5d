// Which tracks of a monitor are shown: a search over all, the liveliest first.

import { type Monitor, shown, type Track, trackName, unpack } from "./data";
import { h } from "./element";
import { correlation } from "./thin";

/** Entries that the list shows at once. */
const LISTED = 80;

/** The liveliest tracks that do not all tell the same story. */
export function liveliest(monitor: Monitor, many: number): Track[] {
  const at = unpack(monitor.at);
  const chosen: { track: Track; values: Float64Array }[] = [];
  for (const track of byLife(monitor).slice(0, 60)) {
    if (chosen.length === many || track.liveliness <= 0) break;
    const values = shown(track, at);
    if (chosen.every((other) => Math.abs(correlation(other.values, values)) < 0.95)) chosen.push({ track, values });
  }
  if (chosen.length === 0) return monitor.tracks.slice(0, 1);
  return chosen.map(({ track }) => track);
}

function byLife(monitor: Monitor): Track[] {
  return [...monitor.tracks].sort((a, b) => b.liveliness - a.liveliness);
}

export function picker(monitor: Monitor, chosen: Set<Track>, changed: () => void): HTMLElement {
  const all = byLife(monitor);
  const names = all.map((track) => trackName(track).toLowerCase());
  const search = h("input", { type: "search", placeholder: `search ${all.length} columns`, "aria-label": `Search columns of ${monitor.name}` });
  const list = h("div", { class: "choices", role: "group", "aria-label": `Columns of ${monitor.name}` });
  const summary = h("summary", {});
  const count = () => (summary.textContent = `Columns: ${chosen.size} of ${all.length}`);
  const fill = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const found = all.filter((_, i) => words.every((word) => names[i]!.includes(word)));
    const rest = found.length - LISTED;
    list.replaceChildren(...found.slice(0, LISTED).map((track) => choice(track, chosen, () => { count(); changed(); })),
      ...(rest > 0 ? [h("p", { class: "hint" }, `${rest} more: search to see them`)] : []),
      ...(found.length === 0 ? [h("p", { class: "hint" }, "no column has such a name")] : []));
  };
  search.addEventListener("input", fill);
  const details = h("details", { class: "picker" }, summary, search, list);
  details.addEventListener("toggle", fill, { once: true });
  count();
  return details;
}

function choice(track: Track, chosen: Set<Track>, changed: () => void): HTMLElement {
  const box = h("input", { type: "checkbox" });
  box.checked = chosen.has(track);
  box.addEventListener("change", () => {
    if (box.checked) chosen.add(track);
    else chosen.delete(track);
    changed();
  });
  return h("label", { class: track.liveliness > 0 ? "" : "faint" }, box, trackName(track), track.liveliness > 0 ? undefined : h("span", { class: "small" }, " constant"));
}
