// Which tracks of a monitor are shown: a search over all, those that differ most first.

import { type Track, trackName } from "./data";
import { h } from "./element";
import { correlation } from "./thin";

/** Entries that the list shows at once. */
const LISTED = 80;

/** Of the tracks that vary most, so many are looked at. */
const LOOKED_AT = 400;

/** What is less apart than this does not differ. */
const APART = 0.02;

/**
 * The tracks that tell most and not all the same: those in which the runs or levels are apart, the others by how much they vary;
 * another column each, while there are others.
 */
export function telling(tracks: Track[], many: number, between: (track: Track) => number, values: (track: Track) => Float64Array): Track[] {
  const lively = byLife(tracks).slice(0, LOOKED_AT).map((track) => ({ track, apart: between(track) }));
  const rank = ({ track, apart }: { track: Track; apart: number }) => (apart >= APART ? 1 + apart : track.liveliness > 0 ? 0 : -1);
  const ranked = lively.filter((one) => rank(one) >= 0).sort((a, b) => rank(b) - rank(a)).slice(0, 60);
  const chosen: { track: Track; values: Float64Array }[] = [];
  const take = (wanted: (track: Track) => boolean) => {
    for (const { track } of ranked) {
      if (chosen.length === many) return;
      if (!wanted(track)) continue;
      const own = values(track);
      if (chosen.every((other) => Math.abs(correlation(other.values, own)) < 0.95)) chosen.push({ track, values: own });
    }
  };
  take((track) => chosen.every((other) => other.track.column !== track.column));
  take((track) => !chosen.some((other) => other.track === track));
  return chosen.length === 0 ? tracks.slice(0, 1) : chosen.map(({ track }) => track);
}

function byLife(tracks: Track[]): Track[] {
  return [...tracks].sort((a, b) => b.liveliness - a.liveliness);
}

/** How to list them; "between" tells how far the runs or levels are apart in a track, from 0 to 1. */
const ORDERS = ["differs most", "varies most", "name"] as const;

export function picker(name: string, tracks: Track[], chosen: Set<Track>, between: (track: Track) => number, changed: () => void): HTMLElement {
  const all = byLife(tracks);
  const order = h("select", {}, ...ORDERS.map((kind) => h("option", { value: kind }, kind)));
  const search = h("input", { type: "search", placeholder: `search ${all.length} columns`, "aria-label": `Search columns of ${name}` });
  const list = h("div", { class: "choices", role: "group", "aria-label": `Columns of ${name}` });
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
  if (order === ORDERS[1]) return tracks;
  const shares = new Map(tracks.map((track) => [track, between(track)]));
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
