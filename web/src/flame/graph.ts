// One flame graph on a canvas as large as what is seen of it: boxes, zoom, pointer, keys.

import { h, onWidth } from "../element";
import type { Theme } from "./colour";
import { at, type Box, type Layout, visible } from "./layout";
import type { Tree } from "./tree";

export const ROW = 19;
const FONT = '11.5px ui-monospace, "SF Mono", "Cascadia Mono", Menlo, "DejaVu Sans Mono", monospace';
/** Boxes narrower than this have no room for letters. */
const LETTERS = 22;

/** What a graph shows; whoever owns it makes a new one for every change. */
export interface Scene {
  tree: Tree;
  layout: Layout;
  zoom: number;
  /** Callers below callees. */
  flame: boolean;
  name(node: number): string;
  fill(node: number): string;
  /** Stripes over the box: it is there on one side only. */
  striped(node: number): boolean;
  /** By node: boxes that the search found; all are where nothing is searched. */
  found: Uint8Array | undefined;
  theme: Theme;
}

export interface Reactions {
  zoom(node: number): void;
  point(node: number | undefined, x: number, y: number): void;
}

export class Graph {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { "aria-hidden": true });
  private readonly over = h("canvas", { class: "over", "aria-hidden": true });
  private readonly room = h("div", { class: "flame-room" }, h("div", { class: "flame-glass" }, this.canvas, this.over));
  private scene: Scene | undefined;
  private pointed: number | undefined;
  private width = 0;
  private pending = 0;

  constructor(label: string, private readonly react: Reactions) {
    this.element = h("div", { class: "flame-graph", tabindex: 0, role: "application", "aria-label": label }, this.room);
    this.element.addEventListener("scroll", () => this.later(), { passive: true });
    onWidth(this.element, (width) => { this.width = width; this.later(); });
    this.pointer();
    this.element.addEventListener("keydown", (event) => { if (this.key(event)) event.preventDefault(); });
  }

  show(scene: Scene): void {
    const before = this.scene;
    this.scene = scene;
    this.element.classList.toggle("upright", scene.flame);
    this.room.style.height = `${this.rows * ROW}px`;
    if (before?.tree !== scene.tree || before.flame !== scene.flame || before.zoom !== scene.zoom) {
      this.pointed = undefined;
      this.element.scrollTop = scene.flame ? this.element.scrollHeight : 0;
    }
    this.draw();
  }

  /** Draws at the next frame, once. */
  later(): void {
    if (this.pending === 0) this.pending = requestAnimationFrame(() => { this.pending = 0; this.draw(); });
  }

  private get rows(): number {
    const { tree, zoom } = this.scene!;
    return tree.depth[zoom]! + tree.height[zoom]! + 1;
  }

  /** Where a row stands in the room, in pixels. */
  private top(depth: number): number {
    return (this.scene!.flame ? this.rows - 1 - depth : depth) * ROW;
  }

  /** Draws what is seen; the element says how many boxes that were and how long it took, in milliseconds. */
  draw(): void {
    if (this.scene === undefined || this.width === 0) return;
    const began = performance.now();
    const high = Math.min(this.element.clientHeight, this.rows * ROW);
    const pen = ready(this.canvas, this.width, high);
    const first = Math.floor(this.element.scrollTop / ROW);
    const last = Math.ceil((this.element.scrollTop + high) / ROW);
    const [from, to] = this.scene.flame ? [this.rows - 1 - last, this.rows - 1 - first] : [first, last];
    const boxes = visible(this.scene.tree, this.scene.layout, this.scene.zoom, this.width, from, to);
    this.paint(pen, boxes);
    this.outline();
    this.element.dataset["milliseconds"] = (performance.now() - began).toFixed(2);
    this.element.dataset["boxes"] = String(boxes.length);
  }

  private paint(pen: CanvasRenderingContext2D, boxes: Box[]): void {
    const { theme, found, name, fill, striped, tree, zoom } = this.scene!;
    const letter = (pen.font = FONT, pen.measureText("m").width);
    const stripes = pattern(pen, theme);
    pen.textBaseline = "middle";
    for (const { node, left, right, depth } of boxes) {
      const y = this.top(depth) - this.element.scrollTop;
      const wide = right - left > 3 ? right - left - 1 : right - left;
      const dim = (found !== undefined && node >= 0 && found[node] !== 1) || (node >= 0 && depth < tree.depth[zoom]!);
      pen.globalAlpha = dim ? 0.32 : 1;
      pen.fillStyle = node < 0 ? (theme.dark ? "#3b4148" : "#d3d8dd") : fill(node);
      pen.fillRect(left, y, wide, ROW - 1);
      if (node < 0) continue;
      if (striped(node)) { pen.fillStyle = stripes; pen.fillRect(left, y, wide, ROW - 1); }
      if (found?.[node] === 1) { pen.fillStyle = theme.match; pen.fillRect(left, y + ROW - 3, wide, 2); }
      if (wide < LETTERS) continue;
      pen.globalAlpha = dim ? 0.6 : 1;
      pen.fillStyle = theme.ink;
      pen.fillText(fitted(name(node), Math.floor((wide - 7) / letter)), left + 4, y + ROW / 2);
    }
    pen.globalAlpha = 1;
  }

  /** The box under the pointer, on a canvas of its own so that nothing else is drawn again. */
  private outline(): void {
    const scene = this.scene!;
    const high = Math.min(this.element.clientHeight, this.rows * ROW);
    const pen = ready(this.over, this.width, high);
    const node = this.pointed;
    if (node === undefined) return;
    const { layout, tree, zoom } = scene;
    const scale = this.width / (layout.size[zoom]! || 1);
    const inside = tree.depth[node]! > tree.depth[zoom]!;
    const left = inside ? (layout.left[node]! - layout.left[zoom]!) * scale : 0;
    const wide = inside ? layout.size[node]! * scale : this.width;
    pen.strokeStyle = scene.theme.ink;
    pen.lineWidth = 1.5;
    pen.strokeRect(left + 0.5, this.top(tree.depth[node]!) - this.element.scrollTop + 0.5, Math.max(1, wide - 2), ROW - 2);
  }

  /** Points at a node, as a pointer over it does. */
  point(node: number | undefined, x = 0, y = 0): void {
    if (node !== this.pointed) {
      this.pointed = node;
      this.outline();
    }
    this.react.point(node, x, y);
  }

  private under(event: MouseEvent): number | undefined {
    if (this.scene === undefined) return undefined;
    const frame = this.room.getBoundingClientRect();
    const row = Math.floor((event.clientY - frame.top) / ROW);
    const depth = this.scene.flame ? this.rows - 1 - row : row;
    if (depth < 0 || depth >= this.rows) return undefined;
    return at(this.scene.tree, this.scene.layout, this.scene.zoom, this.width, event.clientX - frame.left, depth);
  }

  private pointer(): void {
    this.element.addEventListener("pointermove", (event) => this.point(this.under(event), event.clientX, event.clientY));
    this.element.addEventListener("pointerleave", () => this.point(undefined));
    this.element.addEventListener("click", (event) => {
      const node = this.under(event);
      if (node !== undefined) this.react.zoom(node);
    });
  }

  /** Arrows walk from box to box, Enter zooms; whether the key meant something. */
  private key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey || this.scene === undefined) return false;
    const { flame, zoom } = this.scene;
    const node = this.pointed ?? zoom;
    const keys: Record<string, () => number | undefined> = {
      [flame ? "ArrowUp" : "ArrowDown"]: () => this.widest(node),
      [flame ? "ArrowDown" : "ArrowUp"]: () => this.scene!.tree.parent[node]!,
      ArrowRight: () => this.beside(node, 1),
      ArrowLeft: () => this.beside(node, -1),
    };
    if (event.key === "Enter") this.react.zoom(node);
    else if (event.key === "Escape") this.react.zoom(Math.max(0, this.scene.tree.parent[zoom]!));
    else if (keys[event.key] !== undefined) this.walk(this.pointed === undefined ? zoom : keys[event.key]!());
    else return false;
    return true;
  }

  private walk(node: number | undefined): void {
    if (node === undefined || node < 0) return;
    const top = this.top(this.scene!.tree.depth[node]!);
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop || top + ROW > scrollTop + clientHeight) this.element.scrollTop = top - clientHeight / 2;
    const frame = this.room.getBoundingClientRect();
    this.point(node, frame.left + 24, frame.top + top + ROW);
  }

  private widest(node: number): number | undefined {
    const { tree, layout } = this.scene!;
    const callees = [...tree.children.subarray(tree.begin[node], tree.begin[node + 1])];
    return callees.sort((a, b) => layout.size[b]! - layout.size[a]!)[0];
  }

  private beside(node: number, way: number): number | undefined {
    const { tree } = this.scene!;
    const parent = tree.parent[node]!;
    if (parent < 0) return undefined;
    const callees = tree.children.subarray(tree.begin[parent], tree.begin[parent + 1]);
    return callees[callees.indexOf(node) + way];
  }
}

/** The longest beginning of so many letters. */
function fitted(text: string, letters: number): string {
  if (text.length <= letters) return text;
  return letters < 3 ? "" : text.slice(0, letters - 1) + "…";
}

/** A cleared canvas of so many pixels as people count them. */
function ready(canvas: HTMLCanvasElement, wide: number, high: number): CanvasRenderingContext2D {
  const ratio = devicePixelRatio || 1;
  const [w, t] = [Math.round(wide * ratio), Math.round(high * ratio)];
  const pen = canvas.getContext("2d")!;
  if (canvas.width !== w || canvas.height !== t) {
    canvas.width = w;
    canvas.height = t;
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, wide, high);
  return pen;
}

function pattern(pen: CanvasRenderingContext2D, { dark }: Theme): CanvasPattern {
  const tile = h("canvas", { width: 6, height: 6 });
  const brush = tile.getContext("2d")!;
  brush.strokeStyle = dark ? "rgb(255 255 255 / 28%)" : "rgb(0 0 0 / 22%)";
  brush.lineWidth = 1.4;
  for (const from of [-6, 0, 6]) { brush.moveTo(from, 6); brush.lineTo(from + 6, 0); }
  brush.stroke();
  return pen.createPattern(tile, "repeat")!;
}
