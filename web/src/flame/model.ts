// From what is chosen to what is drawn: which tree, how wide, how coloured. No element is touched here.

import { type Change, type Changes, changesOf, type Picture, type Time, timeOf } from "./data";
import { type Layout, place, sizes } from "./layout";
import { calleesOf, callersOf, chosen, within } from "./reshape";
import { pattern, type State } from "./state";
import { below, inclusive, type Tree, whole } from "./tree";

/** One picture unpacked. */
export class Model {
  readonly tree: Tree;
  readonly times: (Time | undefined)[];
  /** Place of each function in the order of names. */
  private readonly rank: Int32Array;
  private made: { key: string; view: View } | undefined;

  constructor(readonly picture: Picture) {
    this.tree = whole(picture);
    this.times = picture.sides.map(timeOf);
    const order = picture.functions.name.map((_, fn) => fn).sort((a, b) => (this.name(a) < this.name(b) ? -1 : 1));
    this.rank = new Int32Array(order.length);
    order.forEach((fn, at) => (this.rank[fn] = at));
  }

  name(fn: number): string {
    return this.picture.functions.name[fn] ?? "";
  }

  /** The function of that name that most samples have on their stack; −1 where there is none. */
  named(name: string): number {
    const found = this.picture.functions.name.flatMap((one, fn) => (one === name ? [fn] : []));
    const samples = (fn: number) => this.tree.fn.reduce((sum, one, n) => sum + (one === fn ? this.tree.total[0]![n]! : 0), 0);
    return found.length < 2 ? (found[0] ?? -1) : found.sort((a, b) => samples(b) - samples(a))[0]!;
  }

  /** What a state shows; kept until something that it depends on changes. */
  view(state: State): View {
    const { side, other, width, hide, focus, around, time } = state;
    const key = JSON.stringify([side, other, width, hide, focus, around, time]);
    if (this.made?.key !== key) this.made = { key, view: this.make(state) };
    return this.made.view;
  }

  private make(state: State): View {
    const shown = this.shown(state);
    const own = shown.map((side) => this.own(side, state.time));
    const [hide, focus] = [this.marked(state.hide), this.marked(state.focus)];
    const tree = chosen(this.tree, { own, hidden: hide, focused: focus && below(this.tree, focus) });
    const kept = own.map((column) => column.reduce((sum, samples) => sum + samples, 0));
    const fn = state.around === "" ? -1 : this.named(state.around);
    const trees = fn < 0 ? [tree] : [callersOf(tree, fn), calleesOf(tree, fn)];
    const changes = shown.length === 2 ? changesOf(this.picture, shown[0]!, shown[1]!) : undefined;
    const whole = shown.every((side, i) => kept[i] === this.tree.total[side]![0]);
    const judged = whole ? changes : undefined;
    const functions = focus === undefined ? judged?.functions : undefined;
    const drawn = trees.map((one) => ({ tree: one, layout: place(one, sizes(one, state.width), this.rank), changes: judgedBoxes(one, this.tree, shown, judged, functions?.get(fn)) }));
    return { shown, tree, kept, around: fn, functions, basis: changes?.basis, drawn };
  }

  /** The sides of a state: the baseline first where two are compared. */
  private shown({ side, other }: State): number[] {
    const last = this.picture.sides.length - 1;
    const known = Math.min(Math.max(0, side), last);
    return other >= 0 && other <= last && other !== known ? [other, known] : [known];
  }

  private own(side: number, typed: string): Float64Array {
    const [from, to] = typed.split("-").map(Number);
    const time = this.times[side];
    if (typed === "" || time === undefined || !(to! > from!)) return this.tree.own[side]!;
    return within(time, from!, to!, this.tree.parent.length);
  }

  /** By function: whether its name fits what was typed; nothing where nothing was. */
  marked(typed: string): Uint8Array | undefined {
    const fits = pattern(typed);
    return fits && Uint8Array.from(this.picture.functions.name, (name) => (fits(name) ? 1 : 0));
  }

  /** By node of a tree whether the search found it, and the share of each side with it on the stack. */
  found(view: View, tree: Tree, typed: string): { nodes: Uint8Array; samples: number[] } | undefined {
    const marked = this.marked(typed);
    if (marked === undefined) return undefined;
    const inside = below(view.tree, marked);
    return { nodes: Uint8Array.from(tree.fn, (fn, n) => (n === 0 && view.around < 0 ? 0 : marked[fn]!)), samples: view.shown.map((_, side) => inclusive(view.tree, inside, side)) };
  }
}

export interface Drawn { tree: Tree; layout: Layout; changes: Map<number, Change> }

export interface View {
  /** Sides by number: one, or before and after. */
  shown: number[];
  /** What is chosen, as stacks. */
  tree: Tree;
  /** Samples of each side that were kept, before focus: what shares are of. */
  kept: number[];
  /** The function in the middle, or −1. */
  around: number;
  /** What was judged of functions; nothing where time or focus leaves samples out, as shares are others then. */
  functions: Map<number, Change> | undefined;
  /** What the intervals of differences rest on. */
  basis: string | undefined;
  /** The tree, or callers and callees. */
  drawn: Drawn[];
}

/** Differences by node of a tree: only of boxes that hold the same samples as where they were judged. */
function judgedBoxes(tree: Tree, whole: Tree, shown: number[], changes: Changes | undefined, middle: Change | undefined): Map<number, Change> {
  const out = new Map<number, Change>();
  if (middle !== undefined) out.set(0, middle);
  for (let n = 0; changes !== undefined && n < tree.parent.length; n++) {
    const origin = tree.origin[n]!;
    const change = origin < 0 ? undefined : changes.nodes.get(origin);
    if (change !== undefined && shown.every((side, i) => tree.total[i]![n] === whole.total[side]![origin])) out.set(n, change);
  }
  return out;
}
