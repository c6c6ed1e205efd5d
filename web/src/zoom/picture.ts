// One range of a trace on a canvas: every operation as a dot where the page tells it, else from the shortest to the
// longest of each bin; above them the longest of each bin, and above those the outliers in the colours of their causes.

import { count, quantity } from "../number";
import { linear, niceStep, type Span, ticks } from "../scale";
import { firstFrom, known, type Level, levelFor, type Trace } from "./data";

export const HEIGHT = 420;
const TOP = 10;
const BOTTOM = 26;
/** Pixels an operation must have before it becomes a mark of its own. */
const ROOMY = 4;

export interface Frame { width: number; left: number; right: number }

/** Something that stands in the picture: an operation and where it is. */
export interface Drawn { row: number; x: number; y: number; time: number }

export class Picture {
  /** The longest of each bin that is drawn now, and every outlier: what a pointer finds first. */
  marks: Drawn[] = [];
  private readonly context: CanvasRenderingContext2D;
  private readonly high: number;
  private readonly low: number;

  constructor(private readonly canvas: HTMLCanvasElement, private readonly trace: Trace) {
    this.context = canvas.getContext("2d")!;
    const top = trace.levels.at(-1)!;
    this.low = Math.max(1, top.shortest[0]!) * 0.9;
    this.high = Math.max(this.low * 10, top.longest[0]! * 1.15);
  }

  y(time: number): number {
    const part = Math.log(Math.max(time, this.low) / this.low) / Math.log(this.high / this.low);
    return HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP);
  }

  draw(span: Span, frame: Frame): void {
    const sharp = devicePixelRatio;
    this.canvas.width = Math.round(frame.width * sharp);
    this.canvas.height = Math.round(HEIGHT * sharp);
    this.marks = [];
    const x = linear(span, { from: frame.left, to: frame.right });
    const each = x(1) - x(0);
    const colours = getComputedStyle(this.canvas);
    const level = levelFor(this.trace.levels, 1 / each);
    if (each < ROOMY && this.trace.steps.length > 0) this.body(span, frame, sharp, colours.color);
    this.context.setTransform(sharp, 0, 0, sharp, 0, 0);
    this.axes(span, frame, x, colours);
    if (this.trace.steps.length === 0) this.ranges(level, span, x, colours.color);
    else if (each >= ROOMY) this.single(span, x, colours.color);
    this.longest(level, span, x, colours.color);
    this.outliers(span, x);
  }

  /** How many operations lie on each pixel, as opacity. */
  private body(span: Span, frame: Frame, sharp: number, ink: string): void {
    const [left, width, height] = [Math.round(frame.left * sharp), Math.round((frame.right - frame.left) * sharp), Math.round(HEIGHT * sharp)];
    const counts = new Uint32Array(width * height);
    // A step stands for all times from the one before to the next: its dots are spread over their pixels.
    const high = (this.y(1e3) - this.y(1e3 * this.trace.packed.ratio)) * sharp;
    const rows = Float64Array.from(this.trace.times, (time) => (this.y(time) || 0) * sharp - high / 2);
    const first = Math.max(0, Math.floor(span.from));
    const last = Math.min(this.trace.steps.length, Math.ceil(span.to));
    const scale = width / (span.to - span.from);
    for (let row = first; row < last; row++) {
      const step = this.trace.steps[row]!;
      if (step === 0) continue;
      const y = Math.floor(rows[step]! + (Math.imul(row, 0x9e3779b1) >>> 0) / 2 ** 32 * high);
      counts[Math.max(0, y) * width + Math.min(width - 1, Math.max(0, Math.floor((row - span.from) * scale)))]!++;
    }
    const image = this.context.createImageData(width, height);
    const pixels = new DataView(image.data.buffer);
    const [red, green, blue] = rgb(ink);
    const colour = red * 2 ** 24 + green * 2 ** 16 + blue * 2 ** 8;
    const shades = Uint32Array.from({ length: 32 }, (_, log) => colour + Math.min(255, 110 + 36 * log));
    for (let at = 0; at < counts.length; at++) {
      if (counts[at]! > 0) pixels.setUint32(at * 4, shades[31 - Math.clz32(counts[at]!)]!);
    }
    this.context.putImageData(image, left, 0);
  }

  /** From the shortest to the longest of each bin. */
  private ranges(level: Level, span: Span, x: (row: number) => number, ink: string): void {
    this.context.fillStyle = ink;
    this.context.globalAlpha = 0.35;
    this.inside(level, span, (bin) => {
      const [from, to] = [x(bin * level.width), x((bin + 1) * level.width)];
      const [high, low] = [this.y(level.longest[bin]!), this.y(level.shortest[bin]!)];
      this.context.fillRect(from, high, Math.max(1, to - from), Math.max(1, low - high));
    });
    this.context.globalAlpha = 1;
  }

  private single(span: Span, x: (row: number) => number, ink: string): void {
    this.context.fillStyle = ink;
    for (let row = Math.max(0, Math.floor(span.from)); row < Math.min(span.to, this.trace.steps.length); row++) {
      const time = known(this.trace, row)?.time;
      if (time !== undefined) this.mark({ row, x: x(row + 0.5), y: this.y(time), time }, 5);
    }
  }

  private longest(level: Level, span: Span, x: (row: number) => number, ink: string): void {
    this.context.fillStyle = ink;
    this.inside(level, span, (bin) => {
      const [row, time] = [level.row[bin]!, level.longest[bin]!];
      if (row >= span.from && row <= span.to) this.mark({ row, x: x(row + 0.5), y: this.y(time), time }, 2);
    });
  }

  /** The longest last, so that no shorter one lies above it. */
  private outliers(span: Span, x: (row: number) => number): void {
    const { outliers, packed } = this.trace;
    const seen = outliers.slice(firstFrom(outliers, Math.floor(span.from)), firstFrom(outliers, Math.ceil(span.to)));
    for (const { row, time, cause } of seen.sort((a, b) => a.time - b.time)) {
      this.context.fillStyle = packed.causes[cause]!.colour;
      this.mark({ row, x: x(row + 0.5), y: this.y(time), time }, x(1) - x(0) >= ROOMY ? 7 : 4);
    }
  }

  private inside(level: Level, span: Span, each: (bin: number) => void): void {
    const last = Math.min(level.count.length, Math.ceil(span.to / level.width));
    for (let bin = Math.max(0, Math.floor(span.from / level.width)); bin < last; bin++) if (level.count[bin]! > 0) each(bin);
  }

  private mark(drawn: Drawn, size: number): void {
    this.context.fillRect(drawn.x - size / 2, drawn.y - size / 2, size, size);
    this.marks.push(drawn);
  }

  private axes(span: Span, frame: Frame, x: (row: number) => number, colours: CSSStyleDeclaration): void {
    const { context } = this;
    context.font = `11.5px ${colours.fontFamily}`;
    context.fillStyle = colours.getPropertyValue("--soft");
    context.strokeStyle = colours.getPropertyValue("--rule");
    context.textAlign = "right";
    for (let time = 10 ** Math.ceil(Math.log10(this.low)); time <= this.high; time *= 10) {
      const y = Math.round(this.y(time)) + 0.5;
      line(context, frame.left, y, frame.right, y);
      context.fillText(quantity(time, "ns"), frame.left - 6, y + 4);
    }
    line(context, frame.left, HEIGHT - BOTTOM + 0.5, frame.right, HEIGHT - BOTTOM + 0.5);
    for (const row of ticks(span, Math.max(1, niceStep((span.to - span.from) / Math.max(2, (frame.right - frame.left) / 110))))) {
      line(context, x(row + 0.5), HEIGHT - BOTTOM, x(row + 0.5), HEIGHT - BOTTOM + 4);
      context.textAlign = x(row + 0.5) > frame.right - 30 ? "right" : "center";
      context.fillText(count(row), Math.min(frame.right, x(row + 0.5)), HEIGHT - 8);
    }
  }
}

function line(context: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

function rgb(colour: string): [number, number, number] {
  const [red = 0, green = 0, blue = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return [red, green, blue];
}
