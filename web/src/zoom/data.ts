// The operations of one trace as the page carries them: the mirror of crates/present/src/trace/zoom.rs.

/** Columns are texts: base64 of deflated bytes (RFC 1951). */
export interface Packed {
  title: string; operation: string; clock: string;
  rows: number; operations: number;
  /** Rows of one bin. */
  width: number;
  /** Nanoseconds of step 1, and how many times as much each next step is. */
  low: number; ratio: number;
  /** One byte a row: its step, 0 where the row is no such operation. Empty where single operations are not told. */
  steps: string;
  bins: string;
  outliers: string; outlier_count: number;
  causes: Cause[];
  notes: [row: number, text: string][];
}

export interface Cause { name: string; colour: string; outliers: number }

/** Bins of one width: operations in each, the shortest, the longest, and the row of the longest. */
export interface Level { width: number; count: Float64Array; shortest: Float64Array; longest: Float64Array; row: Float64Array }

export interface Outlier { row: number; time: number; cause: number }

export interface Trace {
  packed: Packed;
  steps: Uint8Array;
  /** Nanoseconds of each step; of step 0 nothing. */
  times: Float64Array;
  /** From the narrowest bins to one. */
  levels: Level[];
  /** In the order of rows. */
  outliers: Outlier[];
  notes: Map<number, string>;
}

/** Bins of the next level that one of a level above takes together. */
const FACTOR = 4;

export async function unpack(packed: Packed): Promise<Trace> {
  const [steps, bins, outliers] = await Promise.all([packed.steps, packed.bins, packed.outliers].map(inflated));
  return {
    packed, steps: steps!, times: Float64Array.from({ length: 256 }, (_, step) => step === 0 ? NaN : packed.low * packed.ratio ** (step - 1)),
    levels: pyramid(lowest(numbers(bins!), packed)), outliers: rare(numbers(outliers!), packed.outlier_count), notes: new Map(packed.notes),
  };
}

async function inflated(text: string): Promise<Uint8Array> {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  if (bytes.length === 0) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Groups of seven bits, the low ones first. */
export function numbers(bytes: Uint8Array): Float64Array {
  const out = new Float64Array(bytes.length);
  let length = 0;
  let value = 0;
  let weight = 1;
  for (const byte of bytes) {
    value += (byte & 0x7f) * weight;
    weight *= 128;
    if (byte < 0x80) {
      out[length++] = value;
      value = 0;
      weight = 1;
    }
  }
  return out.subarray(0, length);
}

function lowest(columns: Float64Array, packed: Packed): Level {
  const bins = Math.ceil(packed.rows / packed.width);
  const count = columns.slice(0, bins);
  const filled = count.reduce((sum, one) => sum + (one > 0 ? 1 : 0), 0);
  const level = empty(packed.width, count);
  for (let bin = 0, at = bins; bin < bins; bin++) {
    if (count[bin] === 0) continue;
    level.shortest[bin] = columns[at]!;
    level.longest[bin] = columns[at]! + columns[at + filled]!;
    level.row[bin] = bin * packed.width + columns[at + 2 * filled]!;
    at++;
  }
  return level;
}

function empty(width: number, count: Float64Array): Level {
  return { width, count, shortest: new Float64Array(count.length), longest: new Float64Array(count.length), row: new Float64Array(count.length) };
}

/** Each level from the one below, so that every maximum goes up to the top. */
export function pyramid(level: Level): Level[] {
  const levels = [level];
  while (level.count.length > 1) levels.push((level = above(level)));
  return levels;
}

function above(below: Level): Level {
  const level = empty(below.width * FACTOR, new Float64Array(Math.ceil(below.count.length / FACTOR)));
  for (let i = 0; i < below.count.length; i++) {
    const bin = Math.floor(i / FACTOR);
    if (below.count[i] === 0) continue;
    const first = level.count[bin] === 0;
    if (first || below.longest[i]! > level.longest[bin]!) [level.longest[bin], level.row[bin]] = [below.longest[i]!, below.row[i]!];
    level.shortest[bin] = first ? below.shortest[i]! : Math.min(level.shortest[bin]!, below.shortest[i]!);
    level.count[bin]! += below.count[i]!;
  }
  return level;
}

function rare(columns: Float64Array, count: number): Outlier[] {
  let row = 0;
  return Array.from({ length: count }, (_, i) => ({ row: (row += columns[i]!), time: columns[count + i]!, cause: columns[2 * count + i]! }));
}

/** The level whose bins are nearest below so many rows; the narrowest where all are wider. */
export function levelFor(levels: Level[], rows: number): Level {
  return [...levels].reverse().find((level) => level.width <= rows) ?? levels[0]!;
}

/** The first outlier at or behind a row. */
export function firstFrom(outliers: Outlier[], row: number): number {
  let [low, high] = [0, outliers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (outliers[middle]!.row < row) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What is known of one row: exact where it is an outlier or the longest of its bin. */
export function known(trace: Trace, row: number): { time: number; exact: boolean; cause?: Cause } | undefined {
  const outlier = trace.outliers[firstFrom(trace.outliers, row)];
  if (outlier?.row === row) return { time: outlier.time, exact: true, cause: trace.packed.causes[outlier.cause]! };
  const level = trace.levels[0]!;
  const bin = Math.floor(row / level.width);
  if (level.row[bin] === row && level.count[bin]! > 0) return { time: level.longest[bin]!, exact: true };
  const step = trace.steps[row] ?? 0;
  return step === 0 ? undefined : { time: trace.times[step]!, exact: false };
}
