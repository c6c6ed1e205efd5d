// Fewer points than pixels need: the extremes of each bucket, never a mean.

/** Index of the first time that is not before `moment`. */
export function lowerBound(at: ArrayLike<number>, moment: number): number {
  let low = 0;
  let high = at.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle]! < moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Index of the time nearest to `moment`; -1 for none. */
export function nearest(at: ArrayLike<number>, moment: number): number {
  const after = lowerBound(at, moment);
  if (after === at.length) return at.length - 1;
  if (after === 0) return 0;
  return moment - at[after - 1]! <= at[after]! - moment ? after - 1 : after;
}

/**
 * Which of the values from `from` to `to` (exclusive) to draw so that at most two stand in each of `buckets`:
 * smallest and largest, in the order in which they came. A bucket of missing values keeps one, so that the
 * line breaks there.
 */
export function extremes(values: ArrayLike<number>, from: number, to: number, buckets: number): number[] {
  const count = to - from;
  const out: number[] = [];
  if (count <= buckets * 2) {
    for (let i = from; i < to; i++) out.push(i);
    return out;
  }
  for (let bucket = 0; bucket < buckets; bucket++) {
    const begin = from + Math.floor((bucket * count) / buckets);
    const end = from + Math.floor(((bucket + 1) * count) / buckets);
    let low = -1;
    let high = -1;
    for (let i = begin; i < end; i++) {
      const value = values[i]!;
      if (Number.isNaN(value)) continue;
      if (low < 0 || value < values[low]!) low = i;
      if (high < 0 || value > values[high]!) high = i;
    }
    if (low < 0) out.push(begin);
    else if (low === high) out.push(low);
    else out.push(Math.min(low, high), Math.max(low, high));
  }
  return out;
}

/** The middle value, or the mean of the two middle ones; NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  const half = sorted.length >> 1;
  if (sorted.length === 0) return NaN;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** Pearson's correlation of what both have; 0 where one does not vary. */
export function correlation(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let n = 0, sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const x = a[i]!, y = b[i]!;
    if (Number.isNaN(x) || Number.isNaN(y)) continue;
    n++; sa += x; sb += y; saa += x * x; sbb += y * y; sab += x * y;
  }
  const spread = Math.sqrt(Math.max(0, n * saa - sa * sa) * Math.max(0, n * sbb - sb * sb));
  return spread > 0 ? (n * sab - sa * sb) / spread : 0;
}

/** The share of all values' variance that lies between groups, from 0 to 1. */
export function explained(groups: readonly (readonly number[])[]): number {
  const kept = groups.map((group) => group.filter((value) => !Number.isNaN(value))).filter((group) => group.length > 0);
  const all = kept.flat();
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const middle = mean(all);
  const total = all.reduce((sum, value) => sum + (value - middle) ** 2, 0);
  const between = kept.reduce((sum, group) => sum + group.length * (mean(group) - middle) ** 2, 0);
  return total > 0 ? between / total : 0;
}

/** How far groups are apart, from 0 to 1: the share of the variance between them, times how much their means differ for their size. */
export function apart(groups: readonly (readonly number[])[]): number {
  const kept = groups.map((group) => group.filter((value) => !Number.isNaN(value))).filter((group) => group.length > 0);
  if (kept.length < 2) return 0;
  const means = kept.map((group) => group.reduce((sum, value) => sum + value, 0) / group.length);
  const [least, most] = [Math.min(...means), Math.max(...means)];
  const size = Math.abs(least) + Math.abs(most);
  return size > 0 ? explained(kept) * ((most - least) / size) : 0;
}
