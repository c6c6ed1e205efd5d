// Where boxes stand: fractions of the width, and only those that can be seen.

import type { Tree } from "./tree";

/** Whose share of samples is the width of a box. */
export type Width = "before" | "after" | "both";

/** Left edge and size of every node, as fractions of node 0. */
export interface Layout { left: Float64Array; size: Float64Array }

/** A box to draw; `node` is −1 for a run of boxes too narrow to draw one by one. */
export interface Box { node: number; left: number; right: number; depth: number }

/** Boxes narrower than this are drawn as one with their neighbours, in pixels. */
export const NARROW = 0.5;

/** The size of nodes: shares of one side, or their mean, so that a box of one side only has a width too. */
export function sizes(tree: Tree, width: Width): Float64Array {
  const used = tree.total.length === 1 ? [0] : width === "before" ? [0] : width === "after" ? [1] : [0, 1];
  const out = new Float64Array(tree.parent.length);
  const sides = used.filter((side) => tree.total[side]![0]! > 0);
  for (const side of sides) {
    const total = tree.total[side]!;
    for (let n = 0; n < out.length; n++) out[n]! += total[n]! / total[0]! / sides.length;
  }
  return out;
}

/** Rows whose boxes take less of the width than this together set no height: a deep stack alone would leave the rest white. */
const BUSY = 0.04;

/** How many rows a graph is high where nothing else says so; those above it are scrolled to. */
export function busyRows(tree: Tree, { size }: Layout): number {
  const wide = new Float64Array(tree.height[0]! + 1);
  for (let n = 0; n < size.length; n++) wide[tree.depth[n]!]! += size[n]!;
  let rows = wide.length;
  while (rows > 1 && wide[rows - 1]! < BUSY * size[0]!) rows--;
  return Math.min(wide.length, rows + 1);
}

/** Places callees side by side on their caller, in the order of their names. */
export function place(tree: Tree, size: Float64Array, rank: Int32Array): Layout {
  const left = new Float64Array(size.length);
  for (let n = 0; n < size.length; n++) {
    const callees = tree.children.subarray(tree.begin[n], tree.begin[n + 1]);
    if (callees.length > 1) callees.sort((a, b) => rank[tree.fn[a]!]! - rank[tree.fn[b]!]! || a - b);
    let at = left[n]!;
    for (const callee of callees) {
      left[callee] = at;
      at += size[callee]!;
    }
  }
  return { left, size };
}

/** What is seen through a window of so many pixels, zoomed to a node, in rows `from` to `to`. */
export function visible(tree: Tree, layout: Layout, zoom: number, pixels: number, from: number, to: number): Box[] {
  const out: Box[] = [];
  for (let n = zoom; n >= 0; n = tree.parent[n]!) if (tree.depth[n]! >= from && tree.depth[n]! <= to) out.push({ node: n, left: 0, right: pixels, depth: tree.depth[n]! });
  const scale = layout.size[zoom]! > 0 ? pixels / layout.size[zoom]! : 0;
  const begin = layout.left[zoom]!;
  const open = [zoom];
  for (let n = open.pop(); n !== undefined; n = open.pop()) {
    const depth = tree.depth[n]! + 1;
    if (depth > to) continue;
    let narrow: Box | undefined;
    for (let i = tree.begin[n]!; i < tree.begin[n + 1]!; i++) {
      const callee = tree.children[i]!;
      const left = (layout.left[callee]! - begin) * scale;
      const right = left + layout.size[callee]! * scale;
      if (right - left >= NARROW) {
        open.push(callee);
        if (depth >= from) out.push({ node: callee, left, right, depth });
      } else if (narrow !== undefined && left - narrow.right < NARROW) {
        narrow.right = right;
      } else {
        if (narrow !== undefined && depth >= from && narrow.right - narrow.left >= NARROW) out.push(narrow);
        narrow = { node: -1, left, right, depth };
      }
    }
    if (narrow !== undefined && depth >= from && narrow.right - narrow.left >= NARROW) out.push(narrow);
  }
  return out;
}

/** The node at a place, if its box is drawn. */
export function at(tree: Tree, layout: Layout, zoom: number, pixels: number, x: number, depth: number): number | undefined {
  let n = zoom;
  if (depth <= tree.depth[zoom]!) {
    while (tree.depth[n]! > depth) n = tree.parent[n]!;
    return n;
  }
  const wanted = layout.left[zoom]! + (x / pixels) * layout.size[zoom]!;
  while (tree.depth[n]! < depth) {
    const callees = tree.children.subarray(tree.begin[n], tree.begin[n + 1]);
    const next = callees.find((callee) => wanted >= layout.left[callee]! && wanted < layout.left[callee]! + layout.size[callee]!);
    if (next === undefined || (layout.size[next]! / layout.size[zoom]!) * pixels < NARROW) return undefined;
    n = next;
  }
  return n;
}
