// What colours mean: the levels of one factor, or the runs. One choice for the whole page. A colour belongs to a name:
// the mirror of name_colours in crates/present/src/chart/palette.rs.

import type { ReportData } from "./data";
import { h } from "./element";

/** Number of colours in the style sheet; names beyond share the grey after them. */
const COLOURS = 14;

export class Colouring {
  readonly choices: string[];
  private chosen: string;
  private levels: string[] = [];
  private classes: string[] = [];
  /** Factors that each run has at one level, which is not that of the others: they tell the same as the run. */
  private readonly ofRuns: Set<string>;
  private readonly listeners: (() => void)[] = [];

  constructor(private readonly data: ReportData) {
    this.choices = choices(data);
    this.ofRuns = factorsOfRuns(data);
    this.chosen = this.choices[0] ?? "run";
    this.relevel();
  }

  /** The levels in the order of their colours. */
  get legend(): readonly string[] {
    return this.levels;
  }

  /** Index of the level of a case of a run. */
  of(run: number, index: number): number {
    return Math.max(0, this.levels.indexOf(this.level(run, index)));
  }

  /** What stays the same when the colour changes: workload, point, and the levels of the other factors. */
  rest(run: number, index: number): string {
    const found = this.data.runs[run]!.cases[index];
    if (found === undefined) return "";
    const others = Object.entries(found.levels).filter(([factor]) => factor !== this.chosen && !(this.chosen === "run" && this.ofRuns.has(factor)));
    return [found.subject, ...others.map(([factor, level]) => `${factor}=${level}`)].join(" ");
  }

  className(level: number): string {
    return this.classes[level] ?? `g${COLOURS}`;
  }

  listen(listener: () => void): void {
    this.listeners.push(listener);
  }

  choose(choice: string): void {
    this.chosen = choice;
    this.relevel();
    this.listeners.forEach((listener) => listener());
  }

  /** The control, where there is something to choose. */
  control(): HTMLElement | undefined {
    if (this.choices.length < 2) return undefined;
    const select = h("select", {}, ...this.choices.map((choice) => h("option", { value: choice }, choice)));
    select.value = this.chosen;
    select.addEventListener("change", () => this.choose(select.value));
    this.listen(() => (select.value = this.chosen));
    return h("label", { class: "control" }, "Colour by ", select);
  }

  private level(run: number, index: number): string {
    const { name, cases } = this.data.runs[run]!;
    if (this.chosen === "run") return name;
    const level = cases[index]?.levels[this.chosen];
    return level === undefined ? "other" : `${this.chosen}=${level}`;
  }

  private relevel(): void {
    const all = this.data.runs.flatMap((run, r) => run.cases.map((_, c) => this.level(r, c)));
    this.levels = [...new Set(all)];
    const names = this.levels.map((level) => (this.chosen === "run" ? level : level.slice(level.indexOf("=") + 1)));
    this.classes = nameClasses(names);
  }
}

/** Two bytes that belong to a name: FNV-1a over its UTF-16 units, then mixed. */
export function nameBytes(name: string): [number, number] {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  return [(hash >>> 16) & 0xff, (hash >>> 8) & 0xff];
}

/** The classes of names, whatever their order; where two of them meet at a colour, the later one in the alphabet moves on. */
export function nameClasses(names: readonly string[]): string[] {
  const slots = new Map<string, number>();
  const taken = new Set<number>();
  for (const name of [...new Set(names)].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))) {
    const [high, low] = nameBytes(name);
    let slot = (high * 256 + low) % COLOURS;
    while (taken.size < COLOURS && taken.has(slot)) slot = (slot + 1) % COLOURS;
    slots.set(name, taken.size < COLOURS ? slot : COLOURS);
    taken.add(slot);
  }
  return names.map((name) => `g${slots.get(name)!}`);
}

/** Runs where there are several, then every factor that has more than one level. */
function choices(data: ReportData): string[] {
  const levels = new Map<string, Set<string>>();
  for (const one of data.runs.flatMap((run) => run.cases)) {
    for (const [factor, level] of Object.entries(one.levels)) levels.set(factor, (levels.get(factor) ?? new Set()).add(level));
  }
  const factors = [...levels].filter(([, set]) => set.size > 1).map(([factor]) => factor);
  return data.runs.length > 1 || factors.length === 0 ? ["run", ...factors] : factors;
}

function factorsOfRuns(data: ReportData): Set<string> {
  const levels = (run: ReportData["runs"][number], factor: string) => new Set(run.cases.map((one) => one.levels[factor]));
  const factors = new Set(data.runs.flatMap((run) => run.cases.flatMap((one) => Object.keys(one.levels))));
  const isOfRuns = (factor: string) => data.runs.length > 1 && data.runs.every((run) => levels(run, factor).size === 1);
  return new Set([...factors].filter(isOfRuns));
}

/** The mark of a level around (x, y): circle, triangle, square, diamond, in turn. */
export function shape(level: number, x: number, y: number): string {
  const r = 3.8;
  switch (level % 4) {
    case 0: return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
    case 1: return `M${x} ${y - r * 1.15}l${r * 1.15} ${r * 2}h${-2.3 * r}z`;
    case 2: return `M${x - r * 0.9} ${y - r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`;
    default: return `M${x} ${y - r * 1.25}l${r * 1.25} ${r * 1.25}l${-r * 1.25} ${r * 1.25}l${-r * 1.25} ${-r * 1.25}z`;
  }
}
