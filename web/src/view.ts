// The range that all pictures beside one another show (of time, or of operations), and the place under the cursor.

import type { Span } from "./scale";

/** Of a run, nothing shorter can be zoomed into: a millisecond. */
const SHORTEST = 1000;

export class View {
  span: Span;
  cursor: number | undefined;
  private readonly onSpan: (() => void)[] = [];
  private readonly onCursor: (() => void)[] = [];

  constructor(readonly length: number, private readonly shortest = SHORTEST) {
    this.span = { from: 0, to: Math.max(1, length) };
  }

  get zoomed(): boolean {
    return this.span.from > 0 || this.span.to < this.length;
  }

  listen(span: () => void, cursor: () => void): void {
    this.onSpan.push(span);
    this.onCursor.push(cursor);
  }

  /** Shows a range, kept inside the run. */
  show(from: number, to: number): void {
    const size = Math.min(this.length, Math.max(this.shortest, to - from));
    const begin = Math.min(Math.max(0, from), this.length - size);
    this.span = { from: begin, to: begin + size };
    this.onSpan.forEach((listener) => listener());
  }

  reset(): void {
    this.show(0, this.length);
  }

  /** Zooms around a moment; factors below 1 come closer. */
  zoom(factor: number, around: number): void {
    this.show(around - (around - this.span.from) * factor, around + (this.span.to - around) * factor);
  }

  point(moment: number | undefined): void {
    this.cursor = moment;
    this.onCursor.forEach((listener) => listener());
  }
}
