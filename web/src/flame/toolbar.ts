// The controls above the graph. They show the state and ask for changes of it; nothing else knows them.

import { h } from "../element";
import type { Picture } from "./data";
import type { Model, View } from "./model";
import type { State } from "./state";
import { count, share } from "../number";

type Go = (change: Partial<State>, typing?: boolean) => void;

export class Toolbar {
  readonly element: HTMLElement;
  private readonly side: HTMLSelectElement;
  private readonly other: HTMLSelectElement;
  private readonly width: HTMLSelectElement;
  private readonly shape: HTMLButtonElement;
  private readonly reset: HTMLButtonElement;
  private readonly typed: Record<"search" | "focus" | "hide", HTMLInputElement>;
  /** What search, focus and time amount to; it stands where there is always room, so that nothing moves. */
  readonly result = h("output", { class: "readout" });
  private readonly versus: HTMLElement;
  private readonly choice: HTMLElement;

  constructor(picture: Picture, private readonly go: Go) {
    this.side = this.select("Profile", (value) => ({ side: Number(value), zoom: [] }));
    this.other = this.select("Compared with", (value) => ({ other: Number(value), zoom: [] }));
    this.width = this.select("Width", (value) => ({ width: value as State["width"] }));
    this.width.append(...[["both", "mean of both"], ["before", "before"], ["after", "after"]].map(([value, text]) => h("option", { value }, text)));
    this.shape = this.button("Icicle", () => ({ shape: this.shape.dataset["next"] as State["shape"] }));
    this.reset = this.button("Reset", () => ({ zoom: [], search: "", hide: "", focus: "", around: "", time: "" }));
    this.typed = { search: this.input("search", "Search", "kfree|kmem_cache"), focus: this.input("focus", "Focus", "only stacks with"), hide: this.input("hide", "Hide", "leave out functions") };
    this.versus = label("Width", this.width);
    this.choice = h("span", { class: "flame-sides" }, label("Profile", this.side), label("compared with", this.other));
    this.choice.hidden = picture.sides.length < 2;
    const typed = Object.entries(this.typed).map(([name, input]) => label(name[0]!.toUpperCase() + name.slice(1), input));
    const more = h("details", { class: "flame-more-controls" }, h("summary", {}, "More"), h("div", { class: "toolbar" }, this.versus, ...typed.slice(1), this.shape, this.reset));
    // On a phone they are opened on demand.
    const narrow = matchMedia("(max-width: 700px)");
    const unfold = () => { more.open = !narrow.matches; };
    narrow.addEventListener("change", unfold);
    unfold();
    this.element = h("div", { class: "toolbar flame-bar" }, this.choice, typed[0], more);
  }

  search(): void {
    this.typed.search.focus();
    this.typed.search.select();
  }

  show(state: State, view: View, model: Model): void {
    const { sides } = model.picture;
    const [before, after] = view.shown.length === 2 ? view.shown : [-1, view.shown[0]!];
    fill(this.side, sides.map((side, i) => [String(i), side.name]), String(after));
    fill(this.other, [["-1", "nothing"], ...sides.flatMap((side, i): [string, string][] => (i === after ? [] : [[String(i), side.name]]))], String(before));
    this.versus.hidden = view.shown.length < 2;
    this.width.value = state.width;
    this.shape.textContent = state.shape === "flame" ? "Icicle" : "Flame";
    this.shape.dataset["next"] = state.shape === "flame" ? "icicle" : "flame";
    this.shape.hidden = view.around >= 0;
    for (const [name, input] of Object.entries(this.typed)) if (document.activeElement !== input) input.value = state[name as "search"];
    this.reset.disabled = !(state.zoom.length > 0 || state.search || state.hide || state.focus || state.around || state.time);
    this.result.textContent = said(state, view, model);
  }

  private select(name: string, change: (value: string) => Partial<State>): HTMLSelectElement {
    const select = h("select", { "aria-label": name });
    select.addEventListener("change", () => this.go(change(select.value)));
    return select;
  }

  private button(name: string, change: () => Partial<State>): HTMLButtonElement {
    const button = h("button", { class: `flame-${name.toLowerCase()}` }, name);
    button.addEventListener("click", () => this.go(change()));
    return button;
  }

  private input(key: "search" | "focus" | "hide", name: string, hint: string): HTMLInputElement {
    const input = h("input", { type: "search", name: `flame-${key}`, placeholder: hint, spellcheck: "false", autocomplete: "off", "aria-label": name });
    input.addEventListener("input", () => this.go(key === "search" ? { search: input.value } : { [key]: input.value, zoom: [] }, true));
    return input;
  }
}

/** What the search found, what the focus left, and how much is in the chosen range of time. */
function said(state: State, view: View, model: Model): string {
  const of = (samples: number[]) => samples.map((count, side) => share(count / (view.kept[side] || 1))).join(" → ");
  const words: string[] = [];
  const found = model.found(view, view.tree, state.search);
  if (found !== undefined) words.push(`found: ${of(found.samples)}`);
  if (state.focus !== "") words.push(`in focus: ${of(view.tree.total.map((total) => total[0]!))}`);
  if (state.time !== "") words.push(`in time: ${view.kept.map((kept) => count(kept)).join(" → ")} samples`);
  return words.join("   ");
}

function label(name: string, control: HTMLElement): HTMLLabelElement {
  return h("label", { class: "control" }, `${name} `, control);
}

function fill(select: HTMLSelectElement, options: [string, string][], value: string): void {
  const same = select.options.length === options.length && options.every(([value, text], i) => select.options[i]!.value === value && select.options[i]!.text === text);
  if (!same) select.replaceChildren(...options.map(([value, text]) => h("option", { value }, text)));
  select.value = value;
}
