// The JSON that the page carries: the mirror of crates/present/src/run_viewer.rs.

export interface ReportData { runs: Run[] }

export interface Run {
  name: string;
  /** Milliseconds since 1970; 0 where nobody knows. */
  start: number;
  /** Microseconds from the first to the last thing recorded; so are all times. */
  length: number;
  cases: Case[];
  iterations: Iteration[];
  metrics: Metric[];
  monitors: Monitor[];
}

export interface Case { label: string; subject: string; levels: Record<string, string> }

export interface Iteration {
  case: number; iteration: number; warmup: boolean; failure?: string; start: number; end: number;
}

export interface Metric {
  name: string; unit: string; direction: "higher" | "lower" | "neither"; primary: boolean;
  case: number[]; iteration: number[]; start: number[]; value: number[];
}

export interface Monitor {
  name: string; source: string; interval: number; at: Packed; thinned: boolean; tracks: Track[]; gaps: Gap[];
}

export interface Track {
  key: string; column: string; unit: string; kind: "gauge" | "growth" | "rate"; values: Packed; liveliness: number;
}

export interface Gap { from: number; to: number; reason: string }

/** Differences from the number before; `[n]` is the same number n times more; null is missing. */
export interface Packed { scale: number; items: (number | [number] | null)[] }

/** The numbers of a packed column; NaN where missing. */
export function unpack(packed: Packed): Float64Array {
  const length = packed.items.reduce<number>((sum, item) => sum + (Array.isArray(item) ? item[0] : 1), 0);
  const out = new Float64Array(length);
  let at = 0;
  let value = 0;
  for (const item of packed.items) {
    if (Array.isArray(item)) {
      out.fill(value / packed.scale, at, at + item[0]);
      at += item[0];
    } else if (item === null) {
      out[at++] = NaN;
    } else {
      value += item;
      out[at++] = value / packed.scale;
    }
  }
  return out;
}

/** What a track shows: growth between ticks becomes a rate per second. */
export function shown(track: Track, at: Float64Array): Float64Array {
  const values = unpack(track.values);
  if (track.kind !== "growth") return values;
  return values.map((growth, i) => {
    const step = i === 0 ? NaN : (at[i]! - at[i - 1]!) / 1e6;
    return step > 0 ? growth / step : NaN;
  });
}

/** The unit of what is shown. */
export function shownUnit(track: Track): string {
  return track.kind === "gauge" ? track.unit : `${track.unit}/s`;
}

export function trackName(track: Track): string {
  return track.key === "" ? track.column : `${track.key} · ${track.column}`;
}
