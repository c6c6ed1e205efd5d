import { expect, test } from "vitest";
import { ascending, changesOf, type Picture, signed, unsigned } from "../src/flame/data";
import { ofCategory } from "../src/flame/colour";
import { functions } from "../src/flame/functions";
import { at, busyRows, place, sizes, visible } from "../src/flame/layout";
import { Model } from "../src/flame/model";
import { callersOf, calleesOf } from "../src/flame/reshape";
import { initial, pattern, read, type State, written } from "../src/flame/state";
import { find, path, type Tree } from "../src/flame/tree";

/** As crates/present/src/packed_column.rs writes it. */
function packed(numbers: number[]): string {
  const bytes: number[] = [];
  for (let number of numbers) {
    for (; number >= 0x80; number = Math.floor(number / 128)) bytes.push((number % 128) | 0x80);
    bytes.push(number);
  }
  return btoa(String.fromCharCode(...bytes));
}

const differences = (of: number[]) => ({ of: packed(of), difference: packed([1, 4]), low: packed([3, 2]), high: packed([0, 6]), changed: packed([0, 1]) });

/** all → a → (b → a, c), all → b; numbers of samples that end in each, before and after. */
function picture(): Picture {
  const side = (name: string, own: number[], cells?: number[]) => ({
    name, source: "here", parts: [["with a stack", own.reduce((a, b) => a + b)]] as [string, number][], own: packed(own),
    ...(cells === undefined ? {} : { time: { rows: 50, ranges: [["1", 2]] as [string, number][], cell: packed(cells), node: packed([2, 3, 4]), count: packed([10, 30, 60]) } }),
  });
  return {
    title: "t", functions: { name: ["all", "a", "b", "c"], role: "akku", inlined: "" },
    categories: [{ name: "all", hue: "command" }, { name: "kernel", hue: "kernel" }],
    //       all a  b  a' c  b'
    nodes: { count: 6, up: packed([0, 1, 1, 1, 3, 5]), function: packed([0, 1, 2, 1, 3, 2]), category: packed([0, 1, 1, 1, 1, 1]) },
    sides: [side("before", [0, 0, 10, 30, 60, 0], [3, 47, 20]), side("after", [0, 0, 20, 0, 60, 120])],
    changes: [{ before: 0, after: 1, basis: "so", nodes: differences([2, 2]), functions: differences([1, 1]) }],
  };
}

const start = (change: Partial<State> = {}): State => ({ ...initial(2), ...change });
const lines = (model: Model, tree: Tree) => [...tree.parent.keys()].map((n) => `${path(tree, n).map((fn) => model.name(fn)).join(";")} ${tree.total.map((total) => total[n]).join("/")}`);

test("columns come back as they were", () => {
  // The same texts as in crates/present/src/packed_column.rs.
  expect([...unsigned("AAF/gAGsAsCEPQ==")]).toEqual([0, 1, 127, 128, 300, 1_000_000]);
  expect([...signed("AAEC/4h6")]).toEqual([0, -1, 1, -1_000_000]);
  expect([...ascending("AwDFAQ==")]).toEqual([3, 3, 200]);
});

test("totals are aggregated up the tree, on every side", () => {
  const model = new Model(picture());
  expect(lines(model, model.tree)).toEqual([" 100/200", "a 100/80", "a;b 40/20", "a;b;a 30/0", "a;c 60/60", "b 0/120"]);
});

test("a hidden function's samples go to its callers, and nothing is lost", () => {
  const model = new Model(picture());
  const view = model.view(start({ hide: "^b$" }));
  expect(lines(model, view.tree)).toEqual([" 100/200", "a 100/80", "a;a 30/0", "a;c 60/60"]);
});

test("focus keeps stacks that pass through, and shares stay those of all", () => {
  const model = new Model(picture());
  const view = model.view(start({ focus: "b" }));
  expect(lines(model, view.tree)).toEqual([" 40/140", "a 40/20", "a;b 40/20", "a;b;a 30/0", "b 0/120"]);
  expect(view.kept).toEqual([100, 200]);
});

test("the search counts a stack once however often it matches", () => {
  const model = new Model(picture());
  expect(model.found(model.view(start()), model.tree, "a|b")?.samples).toEqual([100, 200]);
  expect(model.found(model.view(start()), model.tree, "b")?.samples).toEqual([40, 140]);
});

test("a function that calls itself is counted once in the table", () => {
  const model = new Model(picture());
  const a = functions(model.tree).find((row) => model.name(row.fn) === "a")!;
  expect([a.own, a.inclusive]).toEqual([[30, 0], [100, 80]]);
});

test("callers and callees stand around a function", () => {
  const model = new Model(picture());
  const b = model.named("b");
  expect(lines(model, calleesOf(model.tree, b))).toEqual([" 40/140", "a 30/0"]);
  expect(lines(model, callersOf(model.tree, b))).toEqual([" 40/140", "a 40/20"]);
});

test("a range of time has only its samples", () => {
  const model = new Model(picture());
  const view = model.view(start({ side: 0, other: -1, time: "3-51" }));
  expect(view.kept).toEqual([40]);
  expect(lines(model, view.tree)).toEqual([" 40", "a 40", "a;b 40", "a;b;a 30"]);
});

test("differences turn round with the sides, and only stand where the box is as it was judged", () => {
  const changes = changesOf(picture(), 1, 0)!.nodes.get(2)!;
  expect(changes).toEqual({ difference: 1e-6, low: -0, high: 2e-6, changed: false });
  const model = new Model(picture());
  const judged = (state: State) => [...model.view(state).drawn[0]!.changes.values()].map((change) => change.changed);
  expect(judged(start())).toEqual([false, true]);
  expect(judged(start({ focus: "c" }))).toEqual([true]);
  expect(judged(start({ focus: "a" }))).toEqual([false, true]);
  expect(judged(start({ time: "3-51" }))).toEqual([]);
  expect(judged(start({ around: "b" }))).toEqual([true]);
  expect(judged(start({ hide: "b" }))).toEqual([true]);
});

test("boxes of one side only have a width, and widths are shares", () => {
  const model = new Model(picture());
  expect([...sizes(model.tree, "both")]).toEqual([1, 0.7, 0.25, 0.15, expect.closeTo(0.45), 0.3]);
  expect([...sizes(model.tree, "after")]).toEqual([1, 0.4, 0.1, 0, 0.3, 0.6]);
});

test("only what can be seen is laid out, and narrow boxes become one", () => {
  const model = new Model(picture());
  const { tree, layout } = model.view(start({ width: "before" })).drawn[0]!;
  const boxes = (zoom: number, from: number, to: number, pixels = 100) => visible(tree, layout, zoom, pixels, from, to).map((box) => [box.node, box.left, box.right]);
  expect(boxes(0, 1, 1)).toEqual([[1, 0, 100]]);
  expect(boxes(0, 2, 2, 0.8)).toEqual([[-1, 0, expect.closeTo(0.8)]]);
  const b = find(tree, ["a", "b"], (fn) => model.name(fn));
  expect(boxes(b, 0, 3)).toEqual([[b, 0, 100], [tree.parent[b], 0, 100], [0, 0, 100], [b + 1, 0, 75]]);
  expect(at(tree, layout, 0, 100, 10, 2)).toBe(b);
  expect(at(tree, layout, 0, 100, 39, 3)).toBeUndefined();
});

test("the address says what is not as at the beginning, and gives it back", () => {
  const first = initial(2);
  const state = start({ zoom: ["a", "b<int>", "c d"], search: "kfree|a&b", time: "3-51", shape: "icicle", other: -1 });
  expect(written(first, first)).toBe("");
  expect(read(written(state, first), first)).toEqual(state);
  expect(read("#verdicts", first)).toEqual(first);
  expect(read("#flame:width=nonsense&side=x", first)).toEqual(first);
});

test("names move colours as in the static picture", () => {
  // The same numbers as in crates/present/src/chart/palette.rs.
  const light = { dark: false, ink: "", faint: "", card: "", match: "" };
  expect(ofCategory({ name: "kernel", hue: "kernel" }, "vfs_read", light)).toBe("oklch(0.777 0.130 55.7)");
});

test("a pattern that is no regular expression is searched as it stands", () => {
  expect(["a(b", "A(B)", "ab"].map(pattern("a(b")!)).toEqual([true, true, false]);
  expect(pattern("")).toBeUndefined();
});

test("rows that hardly anything reaches set no height", () => {
  // A chain of 30 calls under one sample of a hundred, beside two rows of the others.
  const chain = [...Array(30).keys()];
  const deep: Picture = {
    ...picture(), functions: { name: ["all", "a"], role: "au", inlined: "" }, changes: [],
    nodes: { count: 33, up: packed([0, 1, 2, ...chain.map(() => 1)]), function: packed([0, 1, 1, ...chain.map(() => 1)]), category: packed(Array(33).fill(0) as number[]) },
    sides: [{ name: "one", source: "here", parts: [["with a stack", 100]], own: packed([0, 99, ...Array(30).fill(0) as number[], 1]) }],
  };
  const { tree } = new Model(deep);
  expect(tree.height[0]).toBe(31);
  expect(busyRows(tree, place(tree, sizes(tree, "both"), new Int32Array(2)))).toBeLessThan(6);
});
