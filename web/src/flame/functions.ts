// A row a function: samples that end in it, and samples that it is on the stack of.

import type { Tree } from "./tree";

export interface FunctionRow { fn: number; category: number; own: number[]; inclusive: number[] }

export function functions(tree: Tree): FunctionRow[] {
  const rows = new Map<number, FunctionRow>();
  const nested = recursive(tree);
  for (let n = 1; n < tree.parent.length; n++) {
    let row = rows.get(tree.fn[n]!);
    if (row === undefined) {
      row = { fn: tree.fn[n]!, category: tree.category[n]!, own: tree.own.map(() => 0), inclusive: tree.own.map(() => 0) };
      rows.set(row.fn, row);
    }
    for (let side = 0; side < tree.own.length; side++) {
      row.own[side]! += tree.own[side]![n]!;
      if (nested[n] === 0) row.inclusive[side]! += tree.total[side]![n]!;
    }
  }
  return [...rows.values()];
}

/** By node: whether a caller of it is the same function. */
function recursive(tree: Tree): Uint8Array {
  const out = new Uint8Array(tree.parent.length);
  const open = new Map<number, number>();
  const walk: number[] = [0];
  for (let n = walk.pop(); n !== undefined; n = walk.pop()) {
    if (n < 0) {
      open.set(tree.fn[~n]!, open.get(tree.fn[~n]!)! - 1);
      continue;
    }
    const calls = open.get(tree.fn[n]!) ?? 0;
    out[n] = calls > 0 ? 1 : 0;
    open.set(tree.fn[n]!, calls + 1);
    walk.push(~n);
    for (let i = tree.begin[n]!; i < tree.begin[n + 1]!; i++) walk.push(tree.children[i]!);
  }
  return out;
}
