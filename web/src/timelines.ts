// What the monitors recorded, over the time of the run, with the iterations as bands.

import type { Colouring } from "./colour";
import { type Monitor, type ReportData, type Run, shown, shownUnit, type Track, trackName, unpack } from "./data";
import { folded, h, onWidth, svg, table } from "./element";
import { pointing } from "./pointing";
import { moment, quantity } from "./number";
import { type Band, MARGIN, type Panel, panel, shades } from "./panel";
import { liveliest, picker } from "./picker";
import { clockStep, linear, ticks } from "./scale";
import { legend } from "./strips";
import { explained, lowerBound, median } from "./thin";
import { View } from "./view";

const RIBBON = 12;
const SCALE = 22;

export function install(section: Element, data: ReportData, colours: Colouring): void {
  if (data.runs.every((run) => run.monitors.length === 0)) {
    section.append(h("p", { class: "empty" }, "No monitor recorded anything."));
    return;
  }
  section.append(
    h("p", { class: "hint" }, "Coloured bands are iterations, hatched stretches are gaps. Drag to zoom, double-click or press 0 to see all. With the keyboard: arrows move the cursor, + and − zoom, shift and arrows move along."),
    svg("svg", { width: 0, height: 0, class: "unseen", "aria-hidden": true }, svg("defs", {}, svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { class: "hatch", width: 2, height: 6 })))));
  const body = h("div", {});
  const show = (index: number) => body.replaceChildren(...timeline(data, index, colours));
  if (data.runs.length > 1) {
    const select = h("select", {}, ...data.runs.map((run, i) => h("option", { value: i }, run.name)));
    select.addEventListener("change", () => show(Number(select.value)));
    section.append(h("div", { class: "toolbar" }, h("label", { class: "control" }, "Run ", select)));
  }
  section.append(body);
  show(0);
}

function timeline(data: ReportData, index: number, colours: Colouring): HTMLElement[] {
  const run = data.runs[index]!;
  const view = new View(run.length);
  const bands = () => run.iterations.map((one): Band => ({ from: one.start, to: one.end, className: one.warmup ? "warmup" : colours.className(colours.of(index, one.case)) }));
  return [toolbar(run, view, colours), ...run.monitors.map((monitor) => card(monitor, run, index, view, bands, colours))];
}

function toolbar(run: Run, view: View, colours: Colouring): HTMLElement {
  const reset = h("button", { type: "button", disabled: true, class: "reset" }, "Show all");
  reset.addEventListener("click", () => view.reset());
  const readout = h("output", { class: "readout" });
  const tell = () => {
    const size = view.span.to - view.span.from;
    reset.disabled = !view.zoomed;
    readout.textContent = view.cursor === undefined ? `${moment(view.span.from, size / 100)} to ${moment(view.span.to, size / 100)}` : under(run, view.cursor, size);
  };
  view.listen(tell, tell);
  tell();
  return h("div", { class: "toolbar sticky" }, colours.control(), legend(colours), reset, readout);
}

function under(run: Run, at: number, size: number): string {
  const one = run.iterations.find((iteration) => iteration.start <= at && at <= iteration.end);
  const what = one === undefined ? "between iterations" : `${run.cases[one.case]?.label ?? ""} #${one.iteration}${one.warmup ? " (warm-up)" : ""}${one.failure === undefined ? "" : " failed"}`;
  return `${moment(at, size / 1000)}  ${what}`;
}

function card(monitor: Monitor, run: Run, index: number, view: View, bands: () => Band[], colours: Colouring): HTMLElement {
  const every = monitor.interval > 0 ? `every ${quantity(monitor.interval, "us")}` : "";
  const head = h("h3", {}, monitor.name, " ", h("span", { class: "faint" }, [monitor.source, every, monitor.thinned ? "thinned to extremes" : ""].filter((text) => text !== "").join(" · ")));
  const box = h("div", { class: "card monitor", "data-monitor": monitor.name }, head, ...gapList(monitor));
  if (monitor.tracks.length === 0) return box;
  const at = unpack(monitor.at);
  const chosen = new Set(liveliest(monitor, 3));
  const made = new Map<Track, Panel>();
  const stack = h("div", { class: "stack", tabindex: 0, role: "group", "aria-roledescription": "timeline", "aria-label": `Timelines of ${monitor.name}` });
  const rule = ruler(view, bands);
  const panels = () => [...chosen].map((track) => {
    const ready = made.get(track) ?? panel(track, at, monitor.gaps, view, bands);
    made.set(track, ready);
    return ready;
  });
  const fill = () => { stack.replaceChildren(rule.element, ...panels().map((one) => one.element)); panels().forEach((one) => one.draw()); };
  const redraw = () => { rule.draw(); panels().forEach((one) => one.draw()); };
  view.listen(redraw, () => panels().forEach((one) => one.point()));
  colours.listen(redraw);
  pointing(stack, view);
  fill();
  const numbers = () => h("div", {}, summary(panels(), at, run, index, colours));
  const folding = folded(["Numbers of these columns"], numbers);
  const between = (track: Track) => {
    const values = shown(track, at);
    return explained(colours.legend.map((_, level) => within(values, at, run, index, level, colours)));
  };
  box.append(picker(monitor, chosen, between, () => { fill(); folding.querySelector("div")?.replaceWith(numbers()); }), stack, folding);
  return box;
}

function gapList(monitor: Monitor): HTMLElement[] {
  return monitor.gaps.map((gap) => h("p", { class: "warning" }, h("strong", {}, "Gap"), ` from ${moment(gap.from)} to ${moment(gap.to)}: ${gap.reason}`));
}

/** Time axis and the iterations as a ribbon in full colour. */
function ruler(view: View, bands: () => Band[]): { element: HTMLElement; draw: () => void } {
  const chart = svg("svg", { class: "ruler", height: RIBBON + SCALE, "aria-hidden": true });
  const element = h("div", { class: "ruler-box" }, chart);
  let width = 0;
  const draw = () => {
    if (width === 0) return;
    const inner = Math.max(1, width - MARGIN.left - MARGIN.right);
    const x = linear(view.span, { from: MARGIN.left, to: width - MARGIN.right });
    const step = clockStep((view.span.to - view.span.from) / Math.max(2, inner / 90));
    const marks = ticks(view.span, step).map((time) => svg("text", { class: "tick", x: x(time), y: 13, "text-anchor": x(time) > width - 40 ? "end" : "middle" }, moment(time, step)));
    chart.setAttribute("viewBox", `0 0 ${width} ${RIBBON + SCALE}`);
    chart.replaceChildren(...marks, svg("svg", { class: "ribbon", x: MARGIN.left, y: SCALE - 2, width: inner, height: RIBBON, viewBox: `${MARGIN.left} 0 ${inner} ${RIBBON}` }, ...shades(bands(), x, RIBBON)));
  };
  onWidth(element, (next) => { width = next; draw(); });
  return { element, draw };
}

/** The table behind the charts: extremes, and the median while each level ran. */
function summary(panels: Panel[], at: Float64Array, run: Run, index: number, colours: Colouring): HTMLElement {
  const rows = panels.map(({ track, values }) => {
    const unit = shownUnit(track);
    const all = [...values].filter((value) => !Number.isNaN(value));
    const during = colours.legend.map((_, level) => quantity(median(within(values, at, run, index, level, colours)), unit));
    return [trackName(track), quantity(Math.min(...all), unit), quantity(median(all), unit), quantity(Math.max(...all), unit), ...during];
  });
  return table("Numbers of the columns shown", ["Column", "Least", "Median", "Most", ...colours.legend.map((name) => `Median, ${name}`)], rows, 1);
}

function within(values: Float64Array, at: Float64Array, run: Run, index: number, level: number, colours: Colouring): number[] {
  return run.iterations.flatMap((one) => {
    if (one.warmup || colours.of(index, one.case) !== level) return [];
    return [...values.slice(lowerBound(at, one.start), lowerBound(at, one.end))];
  });
}
