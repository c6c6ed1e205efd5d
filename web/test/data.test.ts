import { expect, test } from "vitest";
import { shown, shownUnit, type Track, unpack } from "../src/data";

test("packed columns come back as they were", () => {
  // The same text as in crates/present/src/run_viewer.rs.
  const items = JSON.parse("[5,[2],null,0,-7,null,null,2]");
  expect([...unpack({ scale: 1, items })]).toEqual([5, 5, 5, NaN, 5, -2, NaN, NaN, 0]);
  expect([...unpack({ scale: 100, items: [25, 125, [1]] })]).toEqual([0.25, 1.5, 1.5]);
});

test("growth between ticks becomes a rate by the second", () => {
  const track: Track = { key: "", column: "pgfault", unit: "faults", kind: "growth", liveliness: 1, values: { scale: 1, items: [null, 10, -5] } };
  expect([...shown(track, Float64Array.of(0, 100_000, 600_000))]).toEqual([NaN, 100, 10]);
  expect(shownUnit(track)).toBe("faults/s");
});
