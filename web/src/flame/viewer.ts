// The viewer: controls, heat maps, graph and table of one picture, and its place in the address.

import { h } from "../element";
import * as tip from "../tip";
import { ofCategory, ofDifference, theme, verdict } from "./colour";
import type { Picture } from "./data";
import { Graph, type Scene } from "./graph";
import { Heat } from "./heat";
import { legend } from "./legend";
import { type Drawn, Model, type View } from "./model";
import { hidden, parts } from "./parts";
import { initial, pattern, read, type State, written } from "./state";
import { share } from "../number";
import { counted, FunctionTable, points } from "./table";
import { Toolbar } from "./toolbar";
import { find, path } from "./tree";
import { busyRows } from "./layout";

export class Viewer {
  private readonly model: Model;
  private readonly first: State;
  private state: State;
  private readonly toolbar: Toolbar;
  private readonly account = h("div", { class: "flame-accounts" });
  private readonly heats = h("div", { class: "flame-heats" });
  private heat: { of: string; maps: Heat[] } = { of: "", maps: [] };
  private readonly trail = h("p", { class: "flame-trail" });
  private readonly key = h("div", { class: "flame-legend" });
  private readonly table = new FunctionTable((fn) => this.go({ around: this.model.name(fn), zoom: [] }));
  private readonly graphs: Graph[];
  private readonly pane = h("div", { class: "flame-pane" });
  private readonly beside = h("div", { class: "flame-beside" }, this.pane, this.table.element);

  constructor(place: Element, picture: Picture) {
    this.model = new Model(picture);
    this.first = initial(picture.sides.length);
    this.state = read(location.hash, this.first);
    this.toolbar = new Toolbar(picture, (change, typing) => this.go(change, typing));
    this.graphs = ["Callers", "Flame graph"].map((label, i) => new Graph(label, { zoom: (node) => this.zoom(i, node), point: (node, x, y) => this.point(i, node, x, y) }));
    // Bars first; what became of the samples, and when they were taken, stands below them.
    place.append(this.toolbar.element, h("div", { class: "flame-line" }, this.trail, this.toolbar.result), this.beside, this.key, this.account, this.heats);
    addEventListener("hashchange", () => { this.state = read(location.hash, this.first); this.draw(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    addEventListener("keydown", (event) => this.shortcut(event));
    this.draw();
  }

  /** Changes the state and the address; what is being typed makes no entry of the history. */
  private go(change: Partial<State>, typing = false): void {
    this.state = { ...this.state, ...change };
    const address = written(this.state, this.first) || location.pathname + location.search;
    if (typing) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    this.draw();
  }

  private draw(): void {
    const { model, state } = this;
    const view = model.view(state);
    const sides = view.shown.map((side) => model.picture.sides[side]!);
    this.account.replaceChildren(...sides.map(parts), ...hidden(sides));
    this.beside.classList.toggle("both", sides.length === 2);
    this.drawHeats(view);
    this.toolbar.show(state, view, model);
    const shown = view.around < 0 ? [this.graphs[1]!] : this.graphs;
    this.pane.classList.toggle("around", view.around >= 0);
    if (this.pane.childElementCount !== shown.length) this.pane.replaceChildren(...shown.map((graph) => graph.element));
    const scenes = view.drawn.map((drawn, i) => this.scene(view, drawn, view.around < 0 ? state.shape === "flame" : i === 0, i));
    this.beside.style.setProperty("--rows", String(view.drawn.reduce((rows, drawn) => rows + busyRows(drawn.tree, drawn.layout), 0)));
    scenes.forEach((scene, i) => shown[i]!.show(scene));
    this.drawTrail(view, scenes.at(-1)!);
    const colour = scenes.at(-1)!;
    const categories = model.picture.categories;
    this.table.show({
      tree: view.tree, around: view.around, changes: view.functions, wanted: pattern(state.search), name: (fn) => model.name(fn),
      colour: view.shown.length === 2 ? undefined : (row) => ofCategory(categories[row.category]!, model.name(row.fn), colour.theme),
    });
    this.key.replaceChildren(...legend(view, model.picture, colour.theme));
  }

  private drawHeats(view: View): void {
    const { picture, times } = this.model;
    const of = view.shown.join();
    if (of !== this.heat.of) {
      const choose = (range: { from: number; to: number } | undefined) => this.go({ time: range === undefined ? "" : `${range.from}-${range.to}` });
      const maps = view.shown.flatMap((side) => (times[side] === undefined ? [] : [new Heat(picture.sides[side]!.name, times[side], choose)]));
      this.heat = { of, maps };
      this.heats.replaceChildren(...maps.map((map) => map.element));
    }
    const [from, to] = this.state.time.split("-").map(Number);
    this.heat.maps.forEach((map) => map.show(this.state.time === "" ? undefined : { from: from!, to: to! }));
  }

  private scene(view: View, drawn: Drawn, flame: boolean, index: number): Scene {
    const { model } = this;
    const colours = theme();
    const { tree, layout } = drawn;
    const both = view.shown.length === 2;
    const memory = new Map<number, string>();
    const plain = (node: number) => {
      const key = tree.category[node]! * model.picture.functions.name.length + tree.fn[node]!;
      let colour = memory.get(key);
      if (colour === undefined) memory.set(key, (colour = ofCategory(model.picture.categories[tree.category[node]!]!, model.name(tree.fn[node]!), colours)));
      return colour;
    };
    const part = (node: number, side: number) => tree.total[side]![node]! / (view.kept[side] || 1);
    return {
      tree, layout, flame, theme: colours, zoom: index === view.drawn.length - 1 ? find(tree, this.state.zoom, (fn) => model.name(fn)) : 0,
      name: (node) => model.name(tree.fn[node]!),
      fill: both ? (node) => ofDifference(verdict(drawn.changes.get(node)), part(node, 0), part(node, 1), colours) : plain,
      striped: both ? (node) => tree.total[0]![node] === 0 || tree.total[1]![node] === 0 : () => false,
      found: model.found(view, tree, this.state.search)?.nodes,
    };
  }

  private zoom(index: number, node: number): void {
    const view = this.model.view(this.state);
    const tree = view.drawn[view.around < 0 ? 0 : index]!.tree;
    const names = path(tree, node).map((fn) => this.model.name(fn));
    if (view.around >= 0 && index === 0) {
      if (node > 0) this.go({ around: names.at(-1)!, zoom: [] });
    } else if (names.join(";") !== this.state.zoom.join(";")) {
      this.go({ zoom: names });
    }
  }

  private point(index: number, node: number | undefined, x: number, y: number): void {
    if (node === undefined) return tip.hide();
    const view = this.model.view(this.state);
    const drawn = view.drawn[view.around < 0 ? 0 : index]!;
    const lines = this.told(view, drawn, node);
    tip.show(lines, x, y);
    tip.say(lines.join(", "));
  }

  /** A box in words. */
  private told(view: View, drawn: Drawn, node: number): string[] {
    const { tree, changes } = drawn;
    const { model } = this;
    const sides = view.shown.map((side, i) => {
      const samples = `${counted(tree.total[i]![node]!)}, ${share(tree.total[i]![node]! / (view.kept[i] || 1))}`;
      const own = `, self ${share(tree.own[i]![node]! / (view.kept[i] || 1))}`;
      return (view.shown.length === 2 ? `${model.picture.sides[side]!.name}: ` : "") + samples + own;
    });
    const category = model.picture.categories[tree.category[node]!]!.name;
    return [model.name(tree.fn[node]!), ...sides, ...difference(view, drawn, node, changes), category].filter((line) => line !== "");
  }

  /** Where the graph is zoomed to, each step a way back. */
  private drawTrail(view: View, scene: Scene): void {
    const { model } = this;
    const names = path(scene.tree, scene.zoom).map((fn) => model.name(fn));
    const step = (name: string, to: Partial<State>) => {
      const button = h("button", { class: "link" }, name);
      button.addEventListener("click", () => this.go(to));
      return button;
    };
    const root = view.around < 0 ? step("all", { zoom: [] }) : step("all stacks", { zoom: [], around: "" });
    const middle = view.around < 0 ? [] : [step(model.name(view.around), { zoom: [] })];
    const zoomed = names.map((name, i) => step(name, { zoom: names.slice(0, i + 1) }));
    const last = names.at(-1);
    const tools = last === undefined || last === this.state.around ? [] : [h("span", { class: "flame-tools" }, this.tool("callers and callees", { around: last, zoom: [] }), this.tool("focus", { focus: exactly(last), zoom: [] }), this.tool("hide", { hide: exactly(last), zoom: [] }))];
    this.trail.replaceChildren(...[root, ...middle, ...zoomed].flatMap((part, i) => (i === 0 ? [part] : [" › ", part])), ...tools);
  }

  private tool(name: string, to: Partial<State>): HTMLElement {
    const button = h("button", { class: "chip" }, name);
    button.addEventListener("click", () => this.go(to));
    return button;
  }

  private shortcut(event: KeyboardEvent): void {
    const typing = event.target instanceof HTMLElement && event.target.closest("input, select, textarea") !== null;
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.toolbar.search();
  }
}

/** The pattern that only this name fits. */
function exactly(name: string): string {
  return `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
}

function difference(view: View, { tree }: Drawn, node: number, changes: Drawn["changes"]): string[] {
  if (view.shown.length < 2) return [];
  const [before, after] = [0, 1].map((side) => tree.total[side]![node]! / (view.kept[side] || 1));
  const change = changes.get(node);
  const side = tree.total[0]![node] === 0 ? ", only after" : tree.total[1]![node] === 0 ? ", only before" : "";
  if (change === undefined) return [`${points(after! - before!)} points${side}, not judged`];
  const interval = `[${points(change.low)}, ${points(change.high)}]`;
  return [`${points(change.difference)} points ${interval}${side}, ${change.changed ? "more than noise" : "inside the noise"}`];
}
