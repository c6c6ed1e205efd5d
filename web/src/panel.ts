// One track over time: a line for each run, the iterations of a run alone behind it as bands, gaps hatched, the cursor.

import { type Gap, shownUnit, type Track, trackName } from "./data";
import { h, onWidth, svg } from "./element";
import { digits, quantity, scaled } from "./number";
import { axisSpan, linear, niceStep, ticks } from "./scale";
import { extremes, lowerBound, nearest } from "./thin";
import type { View } from "./view";

export const MARGIN = { left: 54, right: 10 };
const HEIGHT = 92;
const TOP = 8;
const BOTTOM = 8;

/** A range of time in the colour of a level. */
export interface Band { from: number; to: number; className: string }

/** What one run has of a track; its class gives its colour, none is the line of a run alone. */
export interface PanelLine { name: string; className: string; at: Float64Array; values: Float64Array; gaps: Gap[] }

export interface Panel {
  element: HTMLElement;
  draw: () => void;
  point: () => void;
  lines: PanelLine[];
  track: Track;
}

export function panel(track: Track, lines: PanelLine[], view: View, bands: () => Band[]): Panel {
  const unit = shownUnit(track);
  const chart = svg("svg", { class: "panel", height: HEIGHT, role: "img", "aria-label": summary(track, lines, unit) });
  const now = h("output", { class: "now" });
  const name = h("span", { class: "unit" });
  const element = h("div", { class: "track" }, h("div", { class: "track-head" }, h("b", {}, trackName(track)), name, now), chart);
  const cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
  let width = 0;
  const draw = () => {
    if (width === 0) return;
    chart.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const x = linear(view.span, { from: MARGIN.left, to: width - MARGIN.right });
    const seen = lines.map((one) => ({ one, first: Math.max(0, lowerBound(one.at, view.span.from) - 1), last: Math.min(one.at.length, lowerBound(one.at, view.span.to) + 1) }));
    const span = axisSpan(all(seen.map(({ one, first, last }) => present(one.values, first, last))), track.kind !== "gauge");
    const y = linear(span, { from: HEIGHT - BOTTOM, to: TOP });
    const inner = Math.max(1, width - MARGIN.left - MARGIN.right);
    const drawn = seen.map(({ one, first, last }) => svg("path", { class: `line ${one.className}`, d: line(extremes(one.values, first, last, inner), one.at, one.values, x, y) }));
    const clip = svg("svg", { x: MARGIN.left, y: 0, width: Math.max(0, width - MARGIN.left - MARGIN.right), height: HEIGHT, viewBox: `${MARGIN.left} 0 ${Math.max(1, width - MARGIN.left - MARGIN.right)} ${HEIGHT}` },
      ...shades(bands(), x, HEIGHT), ...lines.flatMap((one) => holes(one.gaps, x)), ...drawn, cursor);
    chart.replaceChildren(...axis(span, unit, y, width, name), clip);
    point();
  };
  const point = () => {
    if (view.cursor === undefined || width === 0) {
      cursor.setAttribute("visibility", "hidden");
      now.textContent = "";
      return;
    }
    const x = linear(view.span, { from: MARGIN.left, to: width - MARGIN.right })(view.cursor);
    cursor.setAttribute("visibility", "visible");
    cursor.setAttribute("x1", String(x));
    cursor.setAttribute("x2", String(x));
    const at = view.cursor;
    const value = (one: PanelLine) => quantity(one.values[nearest(one.at, at)] ?? NaN, unit);
    now.textContent = lines.map((one) => (lines.length > 1 ? `${one.name} ${value(one)}` : value(one))).join("   ");
  };
  onWidth(element, (next) => { width = next; draw(); });
  return { element, draw, point, lines, track };
}

function summary(track: Track, lines: PanelLine[], unit: string): string {
  const span = axisSpan(all(lines.map(({ values }) => present(values, 0, values.length))));
  return `${trackName(track)} over time, between ${quantity(span.from, unit)} and ${quantity(span.to, unit)}; numbers in the table below`;
}

function* all(parts: Iterable<number>[]): Generator<number> {
  for (const part of parts) yield* part;
}

function* present(values: Float64Array, from: number, to: number): Generator<number> {
  for (let i = from; i < to; i++) {
    const value = values[i]!;
    if (!Number.isNaN(value)) yield value;
  }
}

function line(chosen: number[], at: Float64Array, values: Float64Array, x: (t: number) => number, y: (v: number) => number): string {
  const parts: string[] = [];
  let pen = false;
  for (const i of chosen) {
    const value = values[i]!;
    if (Number.isNaN(value)) {
      pen = false;
      continue;
    }
    parts.push(`${pen ? "L" : "M"}${x(at[i]!).toFixed(1)} ${y(value).toFixed(1)}`);
    if (!pen) parts.push("h.1");
    pen = true;
  }
  return parts.join("");
}

/** Bands of one colour are one path, however many there are; what a pixel cannot show is left out. */
export function shades(bands: Band[], x: (t: number) => number, height: number): SVGElement[] {
  const paths = new Map<string, { parts: string[]; last: number }>();
  for (const band of bands) {
    const [from, to] = [x(band.from), x(band.to)];
    const path = paths.get(band.className) ?? { parts: [], last: -Infinity };
    paths.set(band.className, path);
    if (to < path.last + 0.4) continue;
    path.parts.push(`M${from.toFixed(1)} 0h${Math.max(0.5, to - from).toFixed(1)}v${height}H${from.toFixed(1)}z`);
    path.last = to;
  }
  return [...paths].map(([className, { parts }]) => svg("path", { class: `band ${className}`, d: parts.join("") }));
}

function holes(gaps: Gap[], x: (t: number) => number): SVGElement[] {
  return gaps.map((gap) => svg("rect", { class: "gap", x: x(gap.from), y: 0, width: Math.max(1, x(gap.to) - x(gap.from)), height: HEIGHT, fill: "url(#hatch)" },
    svg("title", {}, gap.reason)));
}

function axis(span: { from: number; to: number }, unit: string, y: (v: number) => number, width: number, name: HTMLElement): SVGElement[] {
  const scale = scaled(Math.max(Math.abs(span.from), Math.abs(span.to)), unit);
  name.textContent = scale.name;
  const shownSpan = { from: span.from * scale.factor, to: span.to * scale.factor };
  const wide = ticks(shownSpan, niceStep((shownSpan.to - shownSpan.from) / 2.5));
  const marks = wide.length > 1 ? wide : ticks(shownSpan, niceStep((shownSpan.to - shownSpan.from) / 5));
  return marks.flatMap((value) => {
    const place = y(value / scale.factor);
    return [
      svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: place, y2: place }),
      svg("text", { class: "tick", x: MARGIN.left - 6, y: place + 4, "text-anchor": "end" }, digits(Number(value.toPrecision(12))))];
  });
}
