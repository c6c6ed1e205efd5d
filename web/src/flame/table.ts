// The table beside the graph: functions by their own or inclusive share, of what the graph shows.

import { h } from "../element";
import { count, share } from "../number";
import type { Change } from "./data";
import { functions, type FunctionRow } from "./functions";
import type { Tree } from "./tree";

/** Rows before somebody asks for more. */
const ROWS = 60;

export interface TableScene {
  tree: Tree;
  name(fn: number): string;
  /** Left out where two sides are compared. */
  colour: ((row: FunctionRow) => string) | undefined;
  /** Only functions whose name fits. */
  wanted: ((name: string) => boolean) | undefined;
  /** What was judged of functions, where two sides are compared. */
  changes: Map<number, Change> | undefined;
  /** The function in the middle of callers and callees. */
  around: number;
}

interface Column { title: string; hint: string; value(row: FunctionRow): number; text(row: FunctionRow): string; judged?: boolean }

export class FunctionTable {
  readonly element = h("div", { class: "flame-table scroll", tabindex: 0, role: "region", "aria-label": "Functions" });
  private scene: TableScene | undefined;
  private rows: FunctionRow[] = [];
  private of: Tree | undefined;
  private sorted = 0;
  private most = ROWS;

  constructor(private readonly choose: (fn: number) => void) {}

  show(scene: TableScene): void {
    if (scene.tree !== this.of) {
      const columns = scene.tree.own.length;
      if (this.of?.own.length !== columns) this.sorted = columns === 2 ? 2 : 0;
      this.rows = functions(scene.tree);
      this.of = scene.tree;
    }
    this.scene = scene;
    this.draw();
  }

  private draw(): void {
    const { tree, name, wanted } = this.scene!;
    const columns = tree.own.length === 1 ? alone(tree) : compared(tree);
    const by = columns[this.sorted]!;
    const rows = this.rows.filter((row) => wanted === undefined || wanted(name(row.fn)));
    rows.sort((a, b) => Math.abs(by.value(b)) - Math.abs(by.value(a)) || (name(a.fn) < name(b.fn) ? -1 : 1));
    const head = h("tr", {}, h("th", { scope: "col" }, "function"), ...columns.map((column, i) => this.head(column, i)));
    const body = rows.slice(0, this.most).map((row) => this.row(row, columns));
    const table = h("table", {}, h("caption", { class: "unseen" }, "Functions"), h("thead", {}, head), h("tbody", {}, ...body));
    this.element.replaceChildren(table, ...this.foot(rows.length));
  }

  private head(column: Column, index: number): HTMLElement {
    const button = h("button", { class: "sort", title: column.hint }, column.title + (index === this.sorted ? " ▾" : ""));
    button.addEventListener("click", () => { this.sorted = index; this.draw(); });
    return h("th", { scope: "col", class: "number", "aria-sort": index === this.sorted ? "descending" : undefined }, button);
  }

  private row(row: FunctionRow, columns: Column[]): HTMLElement {
    const { name, colour, around } = this.scene!;
    const swatch = h("span", { class: "swatch", "aria-hidden": true });
    swatch.style.background = colour?.(row) ?? "";
    const button = h("button", { class: "link", title: `${name(row.fn)}: callers and callees` }, name(row.fn));
    button.addEventListener("click", () => this.choose(row.fn));
    return h("tr", { class: row.fn === around ? "at" : undefined }, h("th", { scope: "row" }, h("span", { class: "named" }, colour === undefined ? undefined : swatch, button)),
      ...columns.map((column) => this.cell(row, column)));
  }

  /** A difference inside the noise, or not judged, is faint; one beyond it has its interval as a title. */
  private cell(row: FunctionRow, column: Column): HTMLElement {
    if (column.judged !== true) return h("td", { class: "number" }, column.text(row));
    const change = this.scene!.changes?.get(row.fn);
    const title = change === undefined ? "not judged" : `[${points(change.low)}, ${points(change.high)}] points, ${change.changed ? "more than noise" : "inside the noise"}`;
    return h("td", { class: change?.changed === true ? "number strong" : "number faint", title }, column.text(row));
  }

  private foot(all: number): HTMLElement[] {
    if (all <= this.most) return [];
    const more = h("button", {}, `More of ${all} functions`);
    more.addEventListener("click", () => { this.most *= 4; this.draw(); });
    return [h("p", { class: "flame-more" }, more)];
  }
}

const part = (samples: number[], side: number, tree: Tree) => samples[side]! / (tree.total[side]![0]! || 1);

function alone(tree: Tree): Column[] {
  const column = (title: string, hint: string, samples: (row: FunctionRow) => number[]): Column => {
    const value = (row: FunctionRow) => part(samples(row), 0, tree);
    return { title, hint, value, text: (row) => share(value(row)) };
  };
  return [column("self", "samples that end in it", (row) => row.own), column("inclusive", "samples that it is on the stack of", (row) => row.inclusive)];
}

function compared(tree: Tree): Column[] {
  const of = (title: string, hint: string, side: number): Column => {
    const value = (row: FunctionRow) => part(row.inclusive, side, tree);
    return { title, hint, value, text: (row) => share(value(row)) };
  };
  const growth = (samples: (row: FunctionRow) => number[]) => (row: FunctionRow) => part(samples(row), 1, tree) - part(samples(row), 0, tree);
  const difference = (title: string, hint: string, value: (row: FunctionRow) => number): Column => ({ title, hint, value, text: (row) => points(value(row)) });
  return [of("before", "inclusive share before", 0), of("after", "inclusive share after", 1),
    { ...difference("± incl.", "points of inclusive share, after less before; faint inside the noise", growth((row) => row.inclusive)), judged: true },
    difference("± self", "points of own share, after less before", growth((row) => row.own))];
}

/** A number of samples with its word. */
export function counted(samples: number): string {
  return `${count(samples)} ${samples === 1 ? "sample" : "samples"}`;
}

/** A difference of shares, in points of percent. */
export function points(fraction: number): string {
  const text = Math.abs(fraction * 100).toFixed(2);
  return (text === "0.00" ? "" : fraction < 0 ? "-" : "+") + text;
}
