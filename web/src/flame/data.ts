// The JSON that flame graphs are drawn from: the mirror of crates/present/src/flame/page/data.rs.

/** Texts are packed columns: see `unsigned`, `signed` and `ascending`. */
export interface Picture {
  title: string;
  functions: { name: string[]; role: string; inlined: string };
  categories: Category[];
  nodes: { count: number; up: string; function: string; category: string };
  sides: Side[];
  changes: PackedChanges[];
}

export interface Category { name: string; hue: string }

export interface Side {
  name: string; source: string; hides?: string; parts: [name: string, samples: number][]; own: string; time?: PackedTime;
}

export interface PackedTime { rows: number; ranges: [name: string, seconds: number][]; cell: string; node: string; count: string }

export interface PackedChanges { before: number; after: number; basis: string; nodes: Differences; functions: Differences }

export interface Differences { of: string; difference: string; low: string; high: string; changed: string }

/** Numbers from 0: base64 of little-endian groups of seven bits. */
export function unsigned(text: string): Float64Array {
  const bytes = atob(text);
  const out = new Float64Array(bytes.length);
  let length = 0;
  let value = 0;
  let weight = 1;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes.charCodeAt(i);
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

/** Numbers of either sign: 0, 1, 2, 3 stand for 0, −1, 1, −2. */
export function signed(text: string): Float64Array {
  return unsigned(text).map((code) => (code % 2 === 0 ? code / 2 : -(code + 1) / 2));
}

/** Steps from one number to the next become the numbers. */
export function ascending(text: string): Float64Array {
  let value = 0;
  return unsigned(text).map((step) => (value += step));
}

/** What is known of a difference of shares. */
export interface Change { difference: number; low: number; high: number; changed: boolean }

/** What was judged between two sides, by node and by function. */
export interface Changes { basis: string; nodes: Map<number, Change>; functions: Map<number, Change> }

/** Differences of two sides, turned round where they are asked for in the other order. */
export function changesOf(picture: Picture, before: number, after: number): Changes | undefined {
  const found = picture.changes.find((one) => [one.before, one.after].every((side) => side === before || side === after));
  if (found === undefined || before === after) return undefined;
  const sign = found.before === before ? 1 : -1;
  return { basis: found.basis, nodes: unpacked(found.nodes, sign), functions: unpacked(found.functions, sign) };
}

function unpacked(packed: Differences, sign: number): Map<number, Change> {
  const [difference, low, high] = [packed.difference, packed.low, packed.high].map((text) => signed(text).map((value) => (sign * value) / 1e6));
  const changed = unsigned(packed.changed);
  const out = new Map<number, Change>();
  ascending(packed.of).forEach((of, i) => {
    const ends = [low![i]!, high![i]!];
    out.set(of, { difference: difference![i]!, low: Math.min(...ends), high: Math.max(...ends), changed: changed[i] === 1 });
  });
  return out;
}

/** Which samples were taken when, unpacked. */
export interface Time { rows: number; ranges: [string, number][]; seconds: number; cell: Float64Array; node: Float64Array; count: Float64Array }

export function timeOf(side: Side): Time | undefined {
  if (side.time === undefined) return undefined;
  const { rows, ranges, cell, node, count } = side.time;
  const seconds = ranges.reduce((sum, [, length]) => sum + length, 0);
  return { rows, ranges, seconds, cell: ascending(cell), node: unsigned(node), count: unsigned(count) };
}
