import { expect, test } from "vitest";
import { apart, correlation, explained, extremes, lowerBound, median, nearest } from "../src/thin";

test("few values are all kept", () => {
  expect(extremes([3, 1, 2], 0, 3, 2)).toEqual([0, 1, 2]);
  expect(extremes([9, 3, 1, 2], 1, 4, 5)).toEqual([1, 2, 3]);
});

test("the only spike among many survives, whatever the number of pixels", () => {
  const values = new Float64Array(100_000).fill(1);
  values[54_321] = 99;
  values[12_345] = -99;
  for (const buckets of [10, 333, 1000]) {
    const kept = extremes(values, 0, values.length, buckets);
    expect(kept.length).toBeLessThanOrEqual(buckets * 2);
    expect(kept).toContain(54_321);
    expect(kept).toContain(12_345);
    expect(kept).toEqual([...kept].sort((a, b) => a - b));
  }
});

test("a bucket of missing values breaks the line", () => {
  const values = new Float64Array(1000).fill(1);
  values.fill(NaN, 400, 600);
  const kept = extremes(values, 0, 1000, 10).map((i) => values[i]!);
  expect(kept.some(Number.isNaN)).toBe(true);
});

test("places in time", () => {
  const at = [0, 10, 20];
  expect([lowerBound(at, 10), lowerBound(at, 11), lowerBound(at, 99)]).toEqual([1, 2, 3]);
  expect([nearest(at, -5), nearest(at, 14), nearest(at, 16), nearest(at, 99), nearest([], 1)]).toEqual([0, 1, 2, 2, -1]);
});

test("medians and correlations leave out what is missing", () => {
  expect([median([3, NaN, 1, 2]), median([1, 2])]).toEqual([2, 1.5]);
  expect(median([])).toBeNaN();
  expect(correlation([1, 2, 3, NaN], [2, 4, 6, 0])).toBeCloseTo(1);
  expect(correlation([1, 1], [1, 2])).toBe(0);
});

test("variance between groups: all of it, none of it, nothing there", () => {
  expect(explained([[1, 1], [2, 2, NaN]])).toBeCloseTo(1);
  expect(explained([[1, 2], [2, 1]])).toBeCloseTo(0);
  expect([explained([]), explained([[3, 3], []])]).toEqual([0, 0]);
});

test("groups are apart where they differ for their size", () => {
  expect(apart([[0, 0, 0], [32, 32, 32]])).toBe(1);
  // A drift of a per cent is as sure, but hardly a difference.
  expect(apart([[100, 100, 100], [101, 101, 101]])).toBeLessThan(0.01);
  expect(apart([[1, 2, 3], [3, 2, 1]])).toBe(0);
  expect(apart([[1, 2, NaN]])).toBe(0);
});
