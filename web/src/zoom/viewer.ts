// A trace to walk in: from all its operations down to a single one, which then says what happened in it.

import { h, onWidth } from "../element";
import { count, quantity } from "../number";
import { MARGIN } from "../panel";
import { pointing } from "../pointing";
import * as tip from "../tip";
import { View } from "../view";
import { known, levelFor, type Packed, type Trace, unpack } from "./data";
import { type Drawn, HEIGHT, Picture } from "./picture";

/** Rows that the shortest range has, and that one around an operation that was asked for. */
const SHORTEST = 8;
const AROUND = 60;
/** Pixels within which a pointer finds a mark. */
const REACH = 12;

export async function install(place: HTMLElement, packed: Packed): Promise<void> {
  const trace = await unpack(packed);
  const view = new View(packed.rows, SHORTEST);
  const canvas = h("canvas", { class: "zoom-canvas", role: "img", "aria-label": `Every operation of ${packed.title}, its time by its number` });
  const stack = h("div", { class: "stack", tabindex: 0, role: "group", "aria-roledescription": "zoomable picture", "aria-label": `Operations of ${packed.title}` }, canvas);
  const picture = new Picture(canvas, trace);
  const said = h("p", { class: "zoom-said small" });
  const { bar, tell } = toolbar(trace, view, said);
  let width = 0;
  const draw = () => {
    if (width === 0) return;
    picture.draw(view.span, { width, left: MARGIN.left, right: width - MARGIN.right });
    canvas.dataset.marks = String(picture.marks.length);
    canvas.dataset.longest = String(picture.marks.reduce((most, mark) => Math.max(most, mark.time), 0));
    tell();
  };
  view.listen(draw, () => { if (view.cursor !== undefined) said.textContent = story(trace, Math.floor(view.cursor), view).join(" · "); });
  pointing(stack, view);
  pointer(canvas, picture, trace, view, said);
  place.append(
    h("p", { class: "hint" }, "Every operation. Drag to zoom, double-click or press 0 to see all, click a mark to go to that operation. With the keyboard: arrows move the cursor, + and − zoom, shift and arrows move along."),
    bar, legend(trace), stack, said);
  place.classList.add("shown");
  onWidth(stack, (now) => { width = now; draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

function legend(trace: Trace): HTMLElement {
  const { causes, operation, operations, clock } = trace.packed;
  const shown = causes.filter((cause) => cause.outliers > 0);
  const item = (name: string, colour?: string) => {
    const box = h("span", { class: "zoom-ink" });
    if (colour !== undefined) box.style.background = colour;
    return h("li", {}, box, name);
  };
  return h("ul", { class: "legend" }, item(`${operation}: ${count(operations)} (${clock})`),
    ...shown.map((cause) => item(`${cause.name}: ${count(cause.outliers)} outliers`, cause.colour)));
}

/** Buttons, and what is in view. */
function toolbar(trace: Trace, view: View, said: HTMLElement): { bar: HTMLElement; tell: () => void } {
  const button = (text: string, act: () => void, name: string) => {
    const made = h("button", { type: "button", "data-act": name }, text);
    made.addEventListener("click", act);
    return made;
  };
  const middle = () => (view.span.from + view.span.to) / 2;
  const longest = [...trace.outliers].sort((a, b) => b.time - a.time);
  let rank = -1;
  const walk = (step: number) => () => {
    if (longest.length === 0) return;
    rank = Math.min(longest.length - 1, Math.max(0, rank + step));
    visit(trace, view, longest[rank]!.row, said, `no. ${rank + 1} of the longest: `);
  };
  const all = button("Show all", () => { rank = -1; view.reset(); }, "all");
  const readout = h("output", { class: "readout" });
  const bar = h("div", { class: "toolbar" }, button("The longest", () => { rank = -1; walk(1)(); }, "longest"), button("Next longest", walk(1), "next"), button("Before", walk(-1), "before"),
    button("Zoom in", () => view.zoom(0.25, middle()), "in"), button("Zoom out", () => view.zoom(4, middle()), "out"), all, readout);
  const tell = () => {
    all.disabled = !view.zoomed;
    readout.textContent = `operations ${count(view.span.from)} to ${count(view.span.to)}`;
  };
  return { bar, tell };
}

/** Zooms to an operation and says what it was. */
function visit(trace: Trace, view: View, row: number, said: HTMLElement, before = ""): void {
  view.show(row - AROUND / 2, row + AROUND / 2 + 1);
  said.textContent = before + single(trace, row).join(" · ");
}

function pointer(canvas: HTMLCanvasElement, picture: Picture, trace: Trace, view: View, said: HTMLElement): void {
  let found: Drawn | undefined;
  canvas.addEventListener("pointermove", (event) => {
    found = nearest(picture, event);
    if (found !== undefined) tip.show(single(trace, found.row), event.clientX, event.clientY);
    else if (view.cursor !== undefined) tip.show(story(trace, Math.floor(view.cursor), view), event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", () => tip.hide());
  canvas.addEventListener("click", (event) => {
    found = nearest(picture, event);
    if (found !== undefined) visit(trace, view, found.row, said);
  });
}

/** The nearest mark; of equally near ones that which lies on top. */
function nearest(picture: Picture, event: MouseEvent): Drawn | undefined {
  const [x, y] = [event.offsetX, event.offsetY];
  let best: Drawn | undefined;
  let least = REACH ** 2;
  for (const mark of picture.marks) {
    const away = (mark.x - x) ** 2 + (mark.y - y) ** 2;
    if (away <= least) [best, least] = [mark, away];
  }
  return y < HEIGHT ? best : undefined;
}

/** One operation: number and time, its cause, what happened in it. */
function single(trace: Trace, row: number): string[] {
  const found = known(trace, row);
  if (found === undefined) return [`operation ${count(row)}: of another kind`];
  const fine = Math.round((Math.sqrt(trace.packed.ratio) - 1) * 1000) / 10;
  const lines = [`operation ${count(row)}: ${found.exact ? "" : "about "}${quantity(found.time, "ns")}${found.exact ? "" : ` (to ${fine}\u00a0%)`}`];
  if (found.cause !== undefined) lines.push(`outlier: ${found.cause.name}`);
  const note = trace.notes.get(row);
  if (note !== undefined) lines.push(...note.split("; "));
  return lines;
}

/** What is at a place: the operation, or the bin of as many as share a pixel. */
function story(trace: Trace, row: number, view: View): string[] {
  const shared = (view.span.to - view.span.from) / 1000;
  if (shared < 1 && trace.steps.length > 0) return single(trace, row);
  const level = levelFor(trace.levels, shared);
  const bin = Math.min(level.count.length - 1, Math.max(0, Math.floor(row / level.width)));
  const to = Math.min(trace.packed.rows, (bin + 1) * level.width) - 1;
  return [`operations ${count(bin * level.width)} to ${count(to)}: ${count(level.count[bin]!)}`,
    `${quantity(level.shortest[bin]!, "ns")} to ${quantity(level.longest[bin]!, "ns")}`, `the longest: operation ${count(level.row[bin]!)}`];
}
