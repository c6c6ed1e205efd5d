// Other trees from a tree: a stretch of time, stacks in focus, hidden functions, callers and callees.

import type { Time } from "./data";
import { finish, type Raw, summed, type Tree } from "./tree";

/** Samples that end in each node within some cells of time. */
export function within(time: Time, from: number, to: number, nodes: number): Float64Array {
  const own = new Float64Array(nodes);
  for (let i = 0; i < time.cell.length; i++) {
    if (time.cell[i]! >= from && time.cell[i]! < to) own[time.node[i]!]! += time.count[i]!;
  }
  return own;
}

export interface Choice {
  /** Samples that end in each node of the tree, a column for each side that is shown. */
  own: Float64Array[];
  /** By function: its boxes are left out, and what they hold goes to their callers. */
  hidden?: Uint8Array | undefined;
  /** By node: stacks that end elsewhere are left out. */
  focused?: Uint8Array | undefined;
}

/** The tree of what is chosen. Boxes without a sample are not in it. */
export function chosen(tree: Tree, choice: Choice): Tree {
  const { hidden, focused } = choice;
  const own = focused === undefined ? choice.own : choice.own.map((column) => column.map((samples, n) => (focused[n] === 1 ? samples : 0)));
  const totals = own.map((column) => summed(tree.parent, column));
  const merging = new Merging(own.length, tree);
  const place = new Int32Array(tree.parent.length);
  for (let n = 1; n < place.length; n++) {
    if (!totals.some((total) => total[n]! > 0)) continue;
    const under = place[tree.parent[n]!]!;
    if (hidden === undefined) place[n] = merging.fresh(under, n);
    else place[n] = hidden[tree.fn[n]!] === 1 ? under : merging.node(under, n);
  }
  own.forEach((column, side) => column.forEach((samples, n) => merging.add(place[n]!, side, samples)));
  return merging.finish();
}

/** What a function calls: its outermost boxes become node 0. */
export function calleesOf(tree: Tree, fn: number): Tree {
  const merging = new Merging(tree.own.length, tree, fn);
  const place = new Int32Array(tree.parent.length).fill(-1);
  for (let n = 1; n < place.length; n++) {
    const under = place[tree.parent[n]!]!;
    if (under >= 0) place[n] = merging.node(under, n);
    else if (tree.fn[n] === fn) place[n] = 0;
    if (place[n]! >= 0) tree.own.forEach((own, side) => merging.add(place[n]!, side, own[n]!));
  }
  return merging.finish();
}

/** Who calls a function: its callers stand on it, theirs on them. */
export function callersOf(tree: Tree, fn: number): Tree {
  const merging = new Merging(tree.own.length, tree, fn);
  const inside = new Uint8Array(tree.parent.length);
  for (let n = 1; n < inside.length; n++) {
    inside[n] = inside[tree.parent[n]!]! | (tree.fn[n] === fn ? 1 : 0);
    if (inside[n] === 0 || inside[tree.parent[n]!] === 1) continue;
    let at = 0;
    for (let caller = tree.parent[n]!; caller > 0; caller = tree.parent[caller]!) at = merging.node(at, caller);
    tree.total.forEach((total, side) => merging.add(at, side, total[n]!));
  }
  return merging.finish();
}

/** A tree that is being put together from the nodes of another. */
class Merging {
  private readonly raw: { parent: number[]; fn: number[]; category: number[]; origin: number[] };
  private readonly own: number[][];
  private readonly known = new Map<number, number>();
  private readonly functions: number;

  constructor(sides: number, private readonly from: Tree, root = from.fn[0]!) {
    this.raw = { parent: [-1], fn: [root], category: [from.category[Math.max(0, from.fn.indexOf(root))]!], origin: [root === from.fn[0] ? from.origin[0]! : -1] };
    this.own = Array.from({ length: sides }, () => [0]);
    this.functions = from.fn.reduce((most, fn) => Math.max(most, fn), 0) + 1;
  }

  /** The node on `under` that is the function of a node of the other tree. */
  node(under: number, of: number): number {
    const key = under * this.functions + this.from.fn[of]!;
    const known = this.known.get(key);
    if (known !== undefined) {
      if (this.raw.origin[known] !== this.from.origin[of]) this.raw.origin[known] = -1;
      return known;
    }
    const next = this.fresh(under, of);
    this.known.set(key, next);
    return next;
  }

  /** The same, where it is known to be the first. */
  fresh(under: number, of: number): number {
    const next = this.raw.parent.push(under) - 1;
    this.raw.fn.push(this.from.fn[of]!);
    this.raw.category.push(this.from.category[of]!);
    this.raw.origin.push(this.from.origin[of]!);
    this.own.forEach((own) => own.push(0));
    return next;
  }

  add(node: number, side: number, samples: number): void {
    this.own[side]![node]! += samples;
  }

  finish(): Tree {
    const raw: Raw = { ...this.raw, own: this.own.map((own) => Float64Array.from(own)) };
    return finish(raw);
  }
}
