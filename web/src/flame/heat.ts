// Samples over time: a column a second, a row for each fiftieth of it. Dragging chooses a range.

import { h, onWidth } from "../element";
import * as tip from "../tip";
import type { Time } from "./data";
import { theme } from "./colour";
import { counted } from "./table";

const HIGH = 1.6;
/** Pixels of a second where there are few of them. */
const WIDEST = 40;

/** Cells from (included) to (left out). */
export interface TimeRange { from: number; to: number }

export class Heat {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { tabindex: 0, role: "application" });
  private readonly counts: Float64Array;
  private readonly most: number;
  private drag: number | undefined;
  private width = 0;
  private shown: TimeRange | undefined;

  constructor(name: string, private readonly time: Time, private readonly choose: (range: TimeRange | undefined) => void) {
    this.counts = new Float64Array(time.seconds * time.rows);
    time.cell.forEach((cell, i) => (this.counts[cell]! += time.count[i]!));
    this.most = quantile(this.counts, 0.99);
    this.canvas.setAttribute("aria-label", `${name}: samples over time; drag, or press the arrow keys with Shift, to choose a range`);
    this.element = h("figure", { class: "flame-heat" }, h("figcaption", {}, h("b", {}, name), ` samples over time: ${caption(time)}; drag to choose a part`), this.canvas);
    onWidth(this.element, (width) => { this.width = width; this.draw(); });
    this.pointer();
  }

  show(range: TimeRange | undefined): void {
    this.shown = range;
    this.draw();
  }

  /** Pixels of a second. */
  private get wide(): number {
    return Math.max(1, Math.min(WIDEST, this.width / this.time.seconds));
  }

  draw(): void {
    if (this.width === 0) return;
    const { rows, seconds } = this.time;
    const [wide, high] = [Math.ceil(this.wide * seconds), rows * HIGH];
    const ratio = devicePixelRatio || 1;
    this.canvas.width = wide * ratio;
    this.canvas.height = high * ratio;
    this.canvas.style.width = `${wide}px`;
    this.canvas.style.height = `${high}px`;
    const pen = this.canvas.getContext("2d")!;
    pen.scale(ratio, ratio);
    const shades = ramp(theme().dark);
    this.counts.forEach((count, cell) => {
      const inside = this.shown === undefined || (cell >= this.shown.from && cell < this.shown.to);
      pen.globalAlpha = inside ? 1 : 0.22;
      pen.fillStyle = shades[count === 0 ? 0 : 1 + Math.min(8, Math.floor((count / this.most) * 8))]!;
      pen.fillRect(Math.floor(cell / rows) * this.wide, (cell % rows) * HIGH, this.wide > 3 ? this.wide - 1 : this.wide, HIGH);
    });
    pen.globalAlpha = 1;
    this.borders(pen);
  }

  /** Lines where another iteration begins. */
  private borders(pen: CanvasRenderingContext2D): void {
    pen.fillStyle = theme().faint;
    let at = 0;
    for (const [, seconds] of this.time.ranges) {
      if (at > 0) pen.fillRect(at * this.wide - 1, 0, 1, this.time.rows * HIGH);
      at += seconds;
    }
  }

  private cell(event: MouseEvent): number {
    const frame = this.canvas.getBoundingClientRect();
    const second = Math.min(this.time.seconds - 1, Math.max(0, Math.floor((event.clientX - frame.left) / this.wide)));
    const row = Math.min(this.time.rows - 1, Math.max(0, Math.floor((event.clientY - frame.top) / HIGH)));
    return second * this.time.rows + row;
  }

  private pointer(): void {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => { this.drag = this.cell(event); canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      const cell = this.cell(event);
      tip.show([this.moment(cell), `${counted(this.counts[cell]!)} in ${1000 / this.time.rows} ms`], event.clientX, event.clientY);
      if (this.drag !== undefined && cell !== this.drag) this.show(between(this.drag, cell));
    });
    canvas.addEventListener("pointerup", (event) => {
      if (this.drag === undefined) return;
      const cell = this.cell(event);
      this.choose(cell === this.drag ? undefined : between(this.drag, cell));
      this.drag = undefined;
    });
    canvas.addEventListener("pointerleave", () => tip.hide());
    canvas.addEventListener("keydown", (event) => { if (this.key(event)) event.preventDefault(); });
  }

  /** Arrows move the range by a second; with Shift they move its end. */
  private key(event: KeyboardEvent): boolean {
    const step = { ArrowRight: this.time.rows, ArrowLeft: -this.time.rows, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") this.choose(undefined);
    if (step === undefined) return event.key === "Escape";
    const last = this.time.seconds * this.time.rows;
    const { from, to } = this.shown ?? { from: 0, to: this.time.rows };
    const begin = event.shiftKey || this.shown === undefined ? from : Math.min(Math.max(0, from + step), last - 1);
    const end = this.shown === undefined ? to : Math.min(Math.max(begin + 1, to + step), last);
    this.choose({ from: begin, to: end });
    return true;
  }

  /** A cell in words: `iteration 2, 1.24 s`. */
  moment(cell: number): string {
    let second = Math.floor(cell / this.time.rows);
    for (const [name, seconds] of this.time.ranges) {
      const word = this.time.ranges.length === 1 ? "" : name.startsWith("run") ? `${name}, ` : `iteration ${name}, `;
      if (second < seconds) return `${word}${(second + (cell % this.time.rows) / this.time.rows).toFixed(2)} s`;
      second -= seconds;
    }
    return "the end";
  }
}

function caption({ ranges, rows }: Time): string {
  const several = ranges.length > 1 ? `, ${ranges.length} of them one after the other` : "";
  return `a column is a second${several}, a row ${1000 / rows} ms`;
}

function between(a: number, b: number): TimeRange {
  return { from: Math.min(a, b), to: Math.max(a, b) + 1 };
}

function quantile(counts: Float64Array, fraction: number): number {
  const busy = counts.filter((count) => count > 0).sort();
  return busy[Math.floor((busy.length - 1) * fraction)] ?? 1;
}

function ramp(dark: boolean): string[] {
  const steps = [...Array(9).keys()].map((i) => `oklch(${(dark ? 0.3 + i * 0.058 : 0.95 - i * 0.055).toFixed(3)} ${(0.04 + i * 0.017).toFixed(3)} ${80 - i * 6})`);
  return [dark ? "#22272d" : "#eef1f4", ...steps];
}
