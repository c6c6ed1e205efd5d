// What the monitors recorded: the runs over one time axis, each since its own beginning; of a run alone, with its iterations as bands.

import { type Colouring, nameClasses } from "./colour";
import { type Monitor, type ReportData, type Run, shown, shownUnit, type Track, trackName, unpack } from "./data";
import { folded, h, onWidth, svg, table } from "./element";
import { pointing } from "./pointing";
import { date, moment, quantity } from "./number";
import { type Band, MARGIN, type Panel, panel, type PanelLine, shades } from "./panel";
import { picker, telling } from "./picker";
import { clockStep, linear, ticks } from "./scale";
import { legend } from "./strips";
import { apart, lowerBound, median } from "./thin";
import { View } from "./view";

const RIBBON = 12;
const SCALE = 22;
/** A run that is shown, with its number in the report and its colour. */
interface Shown { run: Run; index: number; colour: string }

/** What one run has of a monitor. */
interface Part extends Shown { monitor: Monitor; at: Float64Array; tracks: Map<string, Track> }

export function install(section: Element, data: ReportData, colours: Colouring): void {
  section.append(
    h("p", { class: "hint" }, "Shown are the columns that differ most. Hatched parts are gaps. Drag to zoom, double-click or press 0 to see all. With the keyboard: arrows move the cursor, + and − zoom, shift and arrows move along."),
    svg("svg", { width: 0, height: 0, class: "unseen", "aria-hidden": true }, svg("defs", {}, svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { class: "hatch", width: 2, height: 6 })))));
  const body = h("div", {});
  const classes = nameClasses(data.runs.map((run) => run.name));
  const all = data.runs.map((run, index): Shown => ({ run, index, colour: classes[index]! }));
  const show = (runs: Shown[]) => body.replaceChildren(...timeline(runs, colours));
  if (all.length > 1) {
    const select = h("select", {}, h("option", { value: -1 }, "all, over one another"), ...all.map(({ run, index }) => h("option", { value: index }, run.name)));
    select.addEventListener("change", () => show(all.filter(({ index }) => Number(select.value) < 0 || index === Number(select.value))));
    section.append(h("div", { class: "toolbar" }, h("label", { class: "control" }, "Runs ", select)));
  }
  section.append(body);
  show(all);
}

function timeline(runs: Shown[], colours: Colouring): HTMLElement[] {
  const view = new View(Math.max(...runs.map(({ run }) => run.length)));
  const names = [...new Set(runs.flatMap(({ run }) => run.monitors.map((monitor) => monitor.name)))];
  return [toolbar(runs, view, colours), ...names.map((name) => card(runs, name, view, colours))];
}

/** The iterations of a run, in the colours of their levels. */
function bandsOf({ run, index }: Shown, colours: Colouring): Band[] {
  return run.iterations.map((one) => ({ from: one.start, to: one.end, className: one.warmup ? "warmup" : colours.className(colours.of(index, one.case)) }));
}

function toolbar(runs: Shown[], view: View, colours: Colouring): HTMLElement {
  const reset = h("button", { type: "button", disabled: true, class: "reset" }, "Show all");
  reset.addEventListener("click", () => view.reset());
  const readout = h("output", { class: "readout" });
  const tell = () => {
    const size = view.span.to - view.span.from;
    reset.disabled = !view.zoomed;
    readout.textContent = view.cursor === undefined ? `${moment(view.span.from, size / 100)} to ${moment(view.span.to, size / 100)}` : under(runs, view.cursor, size);
  };
  view.listen(tell, tell);
  tell();
  const several = runs.length > 1;
  return h("div", { class: "toolbar sticky" }, several ? undefined : colours.control(), several ? runLegend(runs) : legend(colours), several ? undefined : started(runs[0]!), reset, readout);
}

/** Which colour is which run, and when it started. */
function runLegend(runs: Shown[]): HTMLElement {
  const line = (shown: Shown) => svg("svg", { width: 18, height: 12, "aria-hidden": true }, svg("path", { class: `line ${shown.colour}`, d: "M1 6H17" }));
  return h("ul", { class: "legend", "aria-label": "Runs" }, ...runs.map((shown) => h("li", {}, line(shown), shown.run.name, " ", started(shown))));
}

function started({ run }: Shown): HTMLElement {
  return h("span", { class: "faint small" }, run.start > 0 ? `from ${date(run.start)}` : "");
}

function under(runs: Shown[], at: number, size: number): string {
  if (runs.length > 1) return `${moment(at, size / 1000)} after each run's beginning`;
  const { run } = runs[0]!;
  const one = run.iterations.find((iteration) => iteration.start <= at && at <= iteration.end);
  const what = one === undefined ? "between iterations" : `${run.cases[one.case]?.label ?? ""} #${one.iteration}${one.warmup ? " (warm-up)" : ""}${one.failure === undefined ? "" : " failed"}`;
  return `${moment(at, size / 1000)}  ${what}`;
}

/** A track by name and unit: the same in every run. */
function keyOf(track: Track): string {
  return `${trackName(track)}\n${shownUnit(track)}`;
}

function partsOf(runs: Shown[], name: string): Part[] {
  return runs.flatMap((shown) => shown.run.monitors.filter((monitor) => monitor.name === name).map((monitor) => (
    { ...shown, monitor, at: unpack(monitor.at), tracks: new Map(monitor.tracks.map((track) => [keyOf(track), track])) })));
}

function card(runs: Shown[], name: string, view: View, colours: Colouring): HTMLElement {
  const parts = partsOf(runs, name);
  const { monitor } = parts.find((part) => part.monitor.tracks.length > 0) ?? parts[0]!;
  const every = monitor.interval > 0 ? `every ${quantity(monitor.interval, "us")}` : "";
  const head = h("h3", {}, name, " ", h("span", { class: "faint" }, [monitor.source, every, parts.some((part) => part.monitor.thinned) ? "thinned to extremes" : ""].filter((text) => text !== "").join(" · ")));
  const box = h("div", { class: "card monitor", "data-monitor": name }, head, ...parts.flatMap((part) => gapList(part, parts.length > 1)));
  const known = new Map<string, Track>();
  for (const part of parts) for (const [key, track] of part.tracks) if ((known.get(key)?.liveliness ?? -1) < track.liveliness) known.set(key, track);
  const tracks = [...known.values()];
  if (tracks.length === 0) return box;
  const alone = parts.length === 1 && runs.length === 1 ? parts[0]! : undefined;
  const lines = (track: Track): PanelLine[] => parts.flatMap((part) => {
    const own = part.tracks.get(keyOf(track));
    return own === undefined ? [] : [{ name: part.run.name, className: alone === undefined ? part.colour : "", at: part.at, values: shown(own, part.at), gaps: part.monitor.gaps }];
  });
  /** How far the levels, or the runs, are apart in a track: from 0 to 1. */
  const between = (track: Track) => {
    const found = lines(track);
    if (alone === undefined) return apart(found.map((line) => [...line.values]));
    return apart(colours.legend.map((_, level) => within(found[0]!, alone, level, colours)));
  };
  const values = (track: Track) => Float64Array.from(lines(track).flatMap((line) => [...line.values]));
  const chosen = new Set(telling(tracks, 3, between, values));
  const bands = () => (alone === undefined ? [] : bandsOf(alone, colours));
  const made = new Map<Track, Panel>();
  const stack = h("div", { class: "stack", tabindex: 0, role: "group", "aria-roledescription": "timeline", "aria-label": `Timelines of ${name}` });
  const rule = ruler(parts, view, colours);
  const panels = () => [...chosen].map((track) => {
    const ready = made.get(track) ?? panel(track, lines(track), view, bands);
    made.set(track, ready);
    return ready;
  });
  const fill = () => { stack.replaceChildren(rule.element, ...panels().map((one) => one.element)); panels().forEach((one) => one.draw()); };
  const redraw = () => { rule.draw(); panels().forEach((one) => one.draw()); };
  view.listen(redraw, () => panels().forEach((one) => one.point()));
  colours.listen(redraw);
  pointing(stack, view);
  fill();
  const numbers = () => h("div", {}, summary(panels(), alone, colours));
  const folding = folded(["Numbers of these columns"], numbers);
  box.append(picker(name, tracks, chosen, between, () => { fill(); folding.querySelector("div")?.replaceWith(numbers()); }), stack, folding);
  return box;
}

function gapList({ run, monitor }: Part, several: boolean): HTMLElement[] {
  const where = several ? ` of ${run.name}` : "";
  return monitor.gaps.map((gap) => h("p", { class: "warning" }, h("strong", {}, `Gap${where}`), ` from ${moment(gap.from)} to ${moment(gap.to)}: ${gap.reason}`));
}

/** Time axis, and the iterations of each run as a ribbon in full colour. */
function ruler(parts: Part[], view: View, colours: Colouring): { element: HTMLElement; draw: () => void } {
  const height = SCALE + parts.length * (RIBBON + 2);
  const chart = svg("svg", { class: "ruler", height, "aria-hidden": true });
  const element = h("div", { class: "ruler-box" }, chart);
  let width = 0;
  const draw = () => {
    if (width === 0) return;
    const inner = Math.max(1, width - MARGIN.left - MARGIN.right);
    const x = linear(view.span, { from: MARGIN.left, to: width - MARGIN.right });
    const step = clockStep((view.span.to - view.span.from) / Math.max(2, inner / 90));
    const marks = ticks(view.span, step).map((time) => svg("text", { class: "tick", x: x(time), y: 13, "text-anchor": x(time) > width - 40 ? "end" : "middle" }, moment(time, step)));
    const ribbon = (part: Part, i: number) => {
      const y = SCALE - 2 + i * (RIBBON + 2);
      const name = parts.length > 1 ? [svg("text", { class: "tick", x: 0, y: y + 10 }, clipped(part.run.name))] : [];
      return [...name, svg("svg", { class: "ribbon", x: MARGIN.left, y, width: inner, height: RIBBON, viewBox: `${MARGIN.left} 0 ${inner} ${RIBBON}` }, ...shades(bandsOf(part, colours), x, RIBBON))];
    };
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.replaceChildren(svg("text", { class: "tick", x: 0, y: 13 }, "time"), ...marks, ...parts.flatMap(ribbon));
  };
  onWidth(element, (next) => { width = next; draw(); });
  return { element, draw };
}

/** As much of a name as the margin has room for. */
function clipped(name: string): string {
  return name.length > 8 ? `${name.slice(0, 7)}…` : name;
}

/** The table behind the charts: extremes, and the median of each run, or while each level ran. */
function summary(panels: Panel[], alone: Part | undefined, colours: Colouring): HTMLElement {
  const names = alone === undefined ? (panels[0]?.lines ?? []).map((line) => line.name) : colours.legend;
  const rows = panels.map(({ track, lines }) => {
    const unit = shownUnit(track);
    const all = lines.flatMap((line) => [...line.values]).filter((value) => !Number.isNaN(value));
    const groups = alone === undefined ? names.map((name) => [...(lines.find((line) => line.name === name)?.values ?? [])]) : names.map((_, level) => within(lines[0]!, alone, level, colours));
    const [least, most] = all.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    return [trackName(track), quantity(least, unit), quantity(median(all), unit), quantity(most, unit), ...groups.map((group) => quantity(median(group), unit))];
  });
  return table("Numbers of the columns shown", ["Column", "Least", "Median", "Most", ...names.map((name) => `Median, ${name}`)], rows, 1);
}

function within({ values, at }: PanelLine, { run, index }: Shown, level: number, colours: Colouring): number[] {
  return run.iterations.flatMap((one) => {
    if (one.warmup || colours.of(index, one.case) !== level) return [];
    return [...values.slice(lowerBound(at, one.start), lowerBound(at, one.end))];
  });
}
