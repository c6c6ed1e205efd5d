// Every iteration as a dot, in the order of time: one strip per metric and case, coloured by level.

import { type Colouring, shape } from "./colour";
import type { Metric, ReportData } from "./data";
import { folded, h, onWidth, svg, table } from "./element";
import { moment, quantity, scaled, digits } from "./number";
import { axisSpan, linear, niceStep, ticks } from "./scale";
import { median } from "./thin";
import * as tip from "./tip";

/** Strips of a metric that are drawn before somebody asks for all. */
const FIRST = 24;
const HEIGHT = 190;
const MARGIN = { left: 54, right: 10, top: 22, bottom: 36 };

interface Dot {
  run: number; case: number; iteration: number; start: number;
  /** None where the iteration failed. */
  value: number | undefined; failure: string | undefined;
}

interface Strip { metric: Metric; subject: string; dots: Dot[] }

export function install(section: Element, data: ReportData, colours: Colouring): void {
  if (data.runs.every((run) => run.metrics.length === 0)) {
    section.append(h("p", { class: "empty" }, "No iteration gave a value."));
    return;
  }
  const body = h("div", {});
  section.append(
    h("p", { class: "hint" }, "One dot an iteration, from left to right as they were run. Lines: medians. Crosses: iterations that failed. With the keyboard: arrow keys inside a strip."),
    h("div", { class: "toolbar" }, colours.control(), legend(colours)), body);
  const fill = () => body.replaceChildren(...content(data, colours));
  colours.listen(fill);
  fill();
}

/** Metrics that decide, then the others folded. */
function content(data: ReportData, colours: Colouring): HTMLElement[] {
  const strips = collect(data, colours);
  const primary = strips.filter((strip) => strip.metric.primary);
  const others = strips.filter((strip) => !strip.metric.primary);
  if (primary.length === 0 || others.length === 0) return byMetric(strips, data, colours);
  const count = h("span", { class: "count" }, String(new Set(others.map((strip) => strip.metric.name)).size));
  const rest = () => h("div", {}, ...byMetric(others, data, colours));
  return [...byMetric(primary, data, colours), folded(["Explanatory metrics ", count], rest, { class: "more explanatory" })];
}

/** What the colours mean. */
export function legend(colours: Colouring): HTMLElement {
  const list = h("ul", { class: "legend", "aria-label": "Colours" });
  const fill = () => list.replaceChildren(...colours.legend.map((name, level) =>
    h("li", {}, svg("svg", { width: 12, height: 12, "aria-hidden": true }, svg("path", { d: shape(level, 6, 6), class: `dot ${colours.className(level)}` })), name)));
  colours.listen(fill);
  fill();
  return list;
}

function collect(data: ReportData, colours: Colouring): Strip[] {
  const strips = new Map<string, Strip>();
  data.runs.forEach((run, r) => run.metrics.forEach((metric) => metric.value.forEach((value, i) => {
    const index = metric.case[i]!;
    const subject = colours.rest(r, index);
    const key = `${metric.name}\n${metric.unit}\n${subject}`;
    const strip = strips.get(key) ?? { metric, subject, dots: [] };
    strips.set(key, strip);
    strip.dots.push({ run: r, case: index, iteration: metric.iteration[i]!, start: metric.start[i]!, value, failure: undefined });
  })));
  for (const strip of strips.values()) addFailures(strip, data, colours);
  return [...strips.values()].sort((a, b) => firstCase(a) - firstCase(b));
}

/** The plan's order of cases is the order of the page. */
function firstCase(strip: Strip): number {
  return Math.min(...strip.dots.map((dot) => dot.case));
}

function addFailures(strip: Strip, data: ReportData, colours: Colouring): void {
  data.runs.forEach((run, r) => run.iterations.forEach((one) => {
    if (one.failure === undefined || one.warmup || colours.rest(r, one.case) !== strip.subject) return;
    strip.dots.push({ run: r, case: one.case, iteration: one.iteration, start: one.start, value: undefined, failure: one.failure });
  }));
  strip.dots.sort((a, b) => a.run - b.run || a.start - b.start);
}

function byMetric(strips: Strip[], data: ReportData, colours: Colouring): HTMLElement[] {
  const names = [...new Set(strips.map((strip) => strip.metric.name))];
  return names.map((name) => {
    const ours = strips.filter((strip) => strip.metric.name === name);
    const { unit, direction } = ours[0]!.metric;
    const good = direction === "neither" ? "neither way is better" : `${direction} is better`;
    const grid = h("div", { class: "strips" }, ...ours.slice(0, FIRST).map((strip) => figure(strip, data, colours)));
    const group = h("div", { class: "card" }, h("h3", {}, name, " ", h("span", { class: "faint" }, `${unit}, ${good}`)), grid);
    if (ours.length > FIRST) {
      const more = h("button", { type: "button" }, `Show ${ours.length - FIRST} more cases`);
      more.addEventListener("click", () => { grid.append(...ours.slice(FIRST).map((strip) => figure(strip, data, colours))); more.remove(); });
      group.append(more);
    }
    group.append(folded(["Values as a table"], () => values(ours, data)));
    return group;
  });
}

function values(strips: Strip[], data: ReportData): HTMLElement {
  const rows = strips.flatMap((strip) => strip.dots.map((dot) => [
    data.runs[dot.run]!.cases[dot.case]?.label ?? "", data.runs[dot.run]!.name, String(dot.iteration), moment(dot.start),
    dot.value === undefined ? `failed: ${dot.failure}` : quantity(dot.value, strip.metric.unit)]));
  return table(`Values of ${strips[0]!.metric.name}`, ["Case", "Run", "Iteration", "Began", "Value"], rows, 2);
}

function figure(strip: Strip, data: ReportData, colours: Colouring): HTMLElement {
  const label = `${strip.metric.name} of ${strip.subject}: ${strip.dots.length} iterations in order of time`;
  const chart = svg("svg", { class: "strip", height: HEIGHT, tabindex: 0, role: "img", "aria-label": label });
  const box = h("figure", {}, h("figcaption", {}, strip.subject), chart);
  const state = { width: 0, places: [] as { x: number; y: number }[], at: -1 };
  const draw = () => { if (state.width > 0) state.places = paint(chart, strip, state.width, data, colours); };
  onWidth(box, (width) => { state.width = width; draw(); });
  const mark = (i: number, aloud: boolean) => {
    state.at = i;
    chart.querySelectorAll(".at").forEach((dot) => dot.classList.remove("at"));
    if (i < 0) return tip.hide();
    chart.querySelector(`[data-i="${i}"]`)?.classList.add("at");
    const frame = chart.getBoundingClientRect();
    const lines = describe(strip, strip.dots[i]!, data);
    tip.show(lines, frame.left + state.places[i]!.x, frame.top + state.places[i]!.y);
    if (aloud) tip.say(lines.join(", "));
  };
  const point = (event: PointerEvent) => {
    const frame = chart.getBoundingClientRect();
    mark(closest(state.places, event.clientX - frame.left, event.clientY - frame.top), false);
  };
  chart.addEventListener("pointermove", point);
  chart.addEventListener("pointerdown", point);
  chart.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") mark(-1, false); }); // a tap leaves at once
  chart.addEventListener("blur", () => mark(-1, false));
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") return mark(-1, false);
    if (step === undefined) return;
    event.preventDefault();
    mark(Math.min(strip.dots.length - 1, Math.max(0, state.at + step)), true);
  });
  return box;
}

function describe(strip: Strip, dot: Dot, data: ReportData): string[] {
  const run = data.runs[dot.run]!;
  const value = dot.value === undefined ? `failed: ${dot.failure}` : quantity(dot.value, strip.metric.unit);
  const where = data.runs.length > 1 ? `${run.name}, iteration ${dot.iteration}` : `iteration ${dot.iteration}`;
  return [value, run.cases[dot.case]?.label ?? "", `${where}, at ${moment(dot.start)}`];
}

function closest(places: { x: number; y: number }[], x: number, y: number): number {
  let best = -1;
  let least = 40 ** 2;
  places.forEach((place, i) => {
    const distance = (place.x - x) ** 2 + (place.y - y) ** 2 / 4;
    if (distance < least) [best, least] = [i, distance];
  });
  return best;
}

function paint(chart: SVGElement, strip: Strip, width: number, data: ReportData, colours: Colouring): { x: number; y: number }[] {
  const present = strip.dots.flatMap((dot) => (dot.value === undefined ? [] : [dot.value]));
  const span = axisSpan(present);
  const x = linear({ from: -0.7, to: strip.dots.length - 0.3 }, { from: MARGIN.left, to: width - MARGIN.right });
  const y = linear(span, { from: HEIGHT - MARGIN.bottom, to: MARGIN.top });
  chart.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const places = strip.dots.map((dot, i) => ({ x: x(i), y: dot.value === undefined ? HEIGHT - MARGIN.bottom - 7 : y(dot.value) }));
  const dots = strip.dots.map((dot, i) => mark(dot, i, places[i]!, colours));
  chart.replaceChildren(...axis(strip, span, x, y, width), ...runs(strip, x, data), ...medians(strip, y, width, colours), ...dots);
  return places;
}

function mark(dot: Dot, i: number, place: { x: number; y: number }, colours: Colouring): SVGElement {
  const level = colours.of(dot.run, dot.case);
  if (dot.value !== undefined) return svg("path", { class: `dot ${colours.className(level)}`, d: shape(level, place.x, place.y), "data-i": i });
  const cross = `M${place.x - 4} ${place.y - 4}l8 8m0 -8l-8 8`;
  return svg("path", { class: "failed", d: cross, "data-i": i });
}

function axis(strip: Strip, span: { from: number; to: number }, x: (i: number) => number, y: (value: number) => number, width: number): SVGElement[] {
  const { factor, name } = scaled(Math.max(Math.abs(span.from), Math.abs(span.to)), strip.metric.unit);
  const step = niceStep(((span.to - span.from) * factor) / 4) / factor;
  const lines = ticks(span, step).flatMap((value) => [
    svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }),
    svg("text", { class: "tick", x: MARGIN.left - 6, y: y(value) + 4, "text-anchor": "end" }, digits(Math.round((value * factor) / (step * factor)) * (step * factor)))]);
  const places = iterationTicks(strip.dots.length, width).map((n) => svg("text", { class: "tick", x: x(n - 1), y: HEIGHT - MARGIN.bottom + 15, "text-anchor": "middle" }, String(n)));
  return [...lines, ...places,
    svg("text", { class: "tick", x: 0, y: 10 }, name === "" ? strip.metric.name : `${strip.metric.name}, ${name}`),
    svg("text", { class: "tick", x: (MARGIN.left + width - MARGIN.right) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "iteration, in order of time")];
}

/** Which iterations have their number below the axis, from 1. */
function iterationTicks(count: number, width: number): number[] {
  const step = Math.max(1, niceStep(count / Math.max(2, width / 60)));
  return [1, ...ticks({ from: 1, to: count }, step).filter((n) => n - 1 >= step / 2)];
}

/** Where one run ends and the next begins: a line, and the name of each. */
function runs(strip: Strip, x: (i: number) => number, data: ReportData): SVGElement[] {
  if (data.runs.length < 2) return [];
  return strip.dots.flatMap((dot, i) => i === 0 || strip.dots[i - 1]!.run !== dot.run
    ? [...(i > 0 ? [svg("line", { class: "border", x1: x(i - 0.5), x2: x(i - 0.5), y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom })] : []),
      svg("text", { class: "tick", x: x(i - 0.4), y: MARGIN.top - 2 }, data.runs[dot.run]!.name)] : []);
}

function medians(strip: Strip, y: (value: number) => number, width: number, colours: Colouring): SVGElement[] {
  const groups = new Map<number, number[]>();
  for (const dot of strip.dots) {
    if (dot.value === undefined) continue;
    const level = colours.of(dot.run, dot.case);
    const group = groups.get(level) ?? [];
    groups.set(level, group);
    group.push(dot.value);
  }
  return [...groups].map(([level, values]) => {
    const at = y(median(values));
    return svg("line", { class: `median ${colours.className(level)}`, x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at });
  });
}
