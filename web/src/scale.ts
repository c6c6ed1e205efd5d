// Axes: from values to pixels, and round places for ticks.

export interface Span { from: number; to: number }

/** From values to pixels. */
export function linear(domain: Span, range: Span): (value: number) => number {
  const slope = domain.to === domain.from ? 0 : (range.to - range.from) / (domain.to - domain.from);
  return (value) => range.from + (value - domain.from) * slope;
}

/** The smallest of 1, 2, 5 times a power of ten that is not below `rough`. */
export function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5].find((n) => n * power >= rough * 0.999) ?? 10) * power;
}

const CLOCK_STEPS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** Like niceStep, in microseconds, but round on a clock above half a minute. */
export function clockStep(rough: number): number {
  const seconds = rough / 1e6;
  if (seconds <= 20) return niceStep(rough);
  if (seconds <= 30) return 30e6;
  return (CLOCK_STEPS.find((step) => step >= seconds * 0.999) ?? niceStep(seconds)) * 1e6;
}

/** The multiples of `step` inside a span. */
export function ticks(span: Span, step: number): number[] {
  const first = Math.ceil(span.from / step - 1e-9) + 0; // not −0
  const last = Math.floor(span.to / step + 1e-9);
  const out: number[] = [];
  for (let n = first; n <= last && out.length < 100; n++) out.push(n * step);
  return out;
}

/**
 * The span of an axis for these values: from zero where the values come near it or where they are rates,
 * else around them with a little room.
 */
export function axisSpan(values: Iterable<number>, fromZero = false): Span {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return { from: 0, to: 1 };
  if (low >= 0 && (fromZero || high - low > 0.5 * high)) low = 0;
  if (high <= 0 && low < high * 2) high = 0;
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return { from: low === 0 ? 0 : low - room, to: high === 0 && low < 0 ? 0 : high + room };
}
