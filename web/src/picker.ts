// Which tracks of a monitor are shown: a search over all, the liveliest first.

import { type Monitor, shown, type Track, trackName, unpack } from "./data";
import { h } from "./element";
import { correlation } from "./thin";

/** Entries that the list shows at once. */
const LISTED = 80;

/** The liveliest tracks that do not all tell the same story: another column each, while there are others. */
export function liveliest(monitor: Monitor, many: number): Track[] {
  const at = unpack(monitor.at);
  const lively = byLife(monitor).filter((track) => track.liveliness > 0).slice(0, 60);
  const chosen: { track: Track; values: Float64Array }[] = [];
  const take = (wanted: (track: Track) => boolean) => {
    for (const track of lively) {
      if (chosen.length === many) return;
      if (!wanted(track)) continue;
      const values = shown(track, at);
      if (chosen.every((other) => Math.abs(correlation(other.values, values)) < 0.95)) chosen.push({ track, values });
    }
  };
  take((track) => chosen.every((other) => other.track.column !== track.column));
  take((track) => !chosen.some((other) => other.track === track));
  return chosen.length === 0 ? monitor.tracks.slice(0, 1) : chosen.map(({ track }) => track);
}

function byLife(monitor: Monitor): Track[] {
  return [...monitor.tracks].sort((a, b) => b.liveliness - a.liveliness);
}

/** How to list them; "between" tells how much of a track's variance its levels explain, from 0 to 1. */
const ORDERS = ["varies most", "differs most between colours", "name"] as const;

export function picker(monitor: Monitor, chosen: Set<Track>, between: (track: Track) => number, changed: () => void): HTMLElement {
  const all = byLife(monitor);
  const order = h("select", {}, ...ORDERS.map((name) => h("option", { value: name }, name)));
  const search = h("input", { type: "search", placeholder: `search ${all.length} columns`, "aria-label": `Search columns of ${monitor.name}` });
  const list = h("div", { class: "choices", role: "group", "aria-label": `Columns of ${monitor.name}` });
  const summary = h("summary", {});
  const count = () => (summary.textContent = `Columns: ${chosen.size} of ${all.length}`);
  const fill = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const found = sorted(all, order.value, between).filter((track) => words.every((word) => trackName(track).toLowerCase().includes(word)));
    const rest = found.length - LISTED;
    list.replaceChildren(...found.slice(0, LISTED).map((track) => choice(track, chosen, () => { count(); changed(); })),
      ...(rest > 0 ? [h("p", { class: "hint" }, `${rest} more: search to see them`)] : []),
      ...(found.length === 0 ? [h("p", { class: "hint" }, "no column has such a name")] : []));
  };
  search.addEventListener("input", fill);
  order.addEventListener("change", fill);
  const bar = h("div", { class: "toolbar" }, search, h("label", { class: "control" }, "First what ", order));
  const details = h("details", { class: "picker" }, summary, bar, list);
  details.addEventListener("toggle", fill, { once: true });
  count();
  return details;
}

function sorted(tracks: Track[], order: string, between: (track: Track) => number): Track[] {
  if (order === "name") return [...tracks].sort((a, b) => trackName(a).localeCompare(trackName(b), "en", { numeric: true }));
  if (order === ORDERS[0]) return tracks;
  const shares = new Map(tracks.map((track) => [track, track.liveliness > 0 ? between(track) : 0]));
  return [...tracks].sort((a, b) => shares.get(b)! - shares.get(a)!);
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
