// Call trees in columns: a node stands after its caller, so one walk makes or sums a tree.

import { type Picture, unsigned } from "./data";

/** Node 0 is everything. */
export interface Tree {
  /** Caller of each node; −1 for node 0. */
  parent: Int32Array;
  fn: Int32Array;
  category: Int32Array;
  /** The one node of the picture that this one is; −1 where several were merged. */
  origin: Int32Array;
  depth: Int32Array;
  /** Rows that stand on each node. */
  height: Int32Array;
  /** Samples that end in each node, a column for each side. */
  own: Float64Array[];
  /** Samples that end in each node or above. */
  total: Float64Array[];
  /** Callees of node n: `children[begin[n]]` up to `children[begin[n + 1]]`. */
  begin: Int32Array;
  children: Int32Array;
}

/** The columns that a tree is finished from. */
export interface Raw { parent: ArrayLike<number>; fn: ArrayLike<number>; category: ArrayLike<number>; origin: ArrayLike<number>; own: Float64Array[] }

export function finish(raw: Raw): Tree {
  const parent = Int32Array.from(raw.parent);
  const count = parent.length;
  const depth = new Int32Array(count);
  const height = new Int32Array(count);
  for (let n = 1; n < count; n++) depth[n] = depth[parent[n]!]! + 1;
  for (let n = count - 1; n > 0; n--) height[parent[n]!] = Math.max(height[parent[n]!]!, height[n]! + 1);
  const [fn, category, origin] = [raw.fn, raw.category, raw.origin].map((column) => Int32Array.from(column));
  return { parent, fn: fn!, category: category!, origin: origin!, depth, height, own: raw.own, total: raw.own.map((own) => summed(parent, own)), ...callees(parent) };
}

export function summed(parent: Int32Array, own: Float64Array): Float64Array {
  const total = own.slice();
  for (let n = total.length - 1; n > 0; n--) total[parent[n]!]! += total[n]!;
  return total;
}

function callees(parent: Int32Array): { begin: Int32Array; children: Int32Array } {
  const begin = new Int32Array(parent.length + 2);
  for (let n = 1; n < parent.length; n++) begin[parent[n]! + 2]!++;
  for (let n = 2; n < begin.length; n++) begin[n]! += begin[n - 1]!;
  const children = new Int32Array(Math.max(0, parent.length - 1));
  for (let n = 1; n < parent.length; n++) children[begin[parent[n]! + 1]!++] = n;
  return { begin: begin.subarray(0, parent.length + 1), children };
}

/** The whole tree of a picture, with a column for each of its sides. */
export function whole(picture: Picture): Tree {
  const up = unsigned(picture.nodes.up);
  const parent = Int32Array.from(up, (step, n) => (step === 0 ? -1 : n - step));
  const origin = parent.map((_, n) => n);
  const own = picture.sides.map((side) => unsigned(side.own));
  return finish({ parent, fn: unsigned(picture.nodes.function), category: unsigned(picture.nodes.category), origin, own });
}

/** Functions from node 0 (left out) to a node. */
export function path(tree: Tree, node: number): number[] {
  const out: number[] = [];
  for (let n = node; n > 0; n = tree.parent[n]!) out.push(tree.fn[n]!);
  return out.reverse();
}

/** The node that such a path leads to, as far as it is there. */
export function find(tree: Tree, names: string[], name: (fn: number) => string): number {
  let at = 0;
  for (const wanted of names) {
    const callees = tree.children.subarray(tree.begin[at], tree.begin[at + 1]);
    const next = callees.find((child) => name(tree.fn[child]!) === wanted);
    if (next === undefined) break;
    at = next;
  }
  return at;
}

/** Whether the node, or one that it stands on, is marked by its function. */
export function below(tree: Tree, marked: Uint8Array): Uint8Array {
  const out = new Uint8Array(tree.parent.length);
  for (let n = 0; n < out.length; n++) out[n] = marked[tree.fn[n]!]! | (n > 0 ? out[tree.parent[n]!]! : 0);
  return out;
}

/** Samples of a side that have a marked function on their stack, each once. */
export function inclusive(tree: Tree, inside: Uint8Array, side: number): number {
  const own = tree.own[side]!;
  let sum = 0;
  for (let n = 0; n < own.length; n++) if (inside[n] === 1) sum += own[n]!;
  return sum;
}
