import { expect, test } from "vitest";
import { deflateRawSync } from "node:zlib";
import { firstFrom, known, levelFor, numbers, type Packed, unpack } from "../src/zoom/data";

const leb = (values: number[]) => values.flatMap((value) => { const out = []; for (; value >= 128; value = Math.floor(value / 128)) out.push((value % 128) + 128); return [...out, value]; });
const packed = (bytes: number[]) => deflateRawSync(Uint8Array.from(bytes)).toString("base64");

/** 1,000 operations in bins of 16, every 7th row of another kind, the time of row n being 100 + (n · 7919 mod 5000). */
const time = (row: number) => 100 + ((row * 7919) % 5000);
const isOne = (row: number) => row % 7 !== 3;
const rows = Array.from({ length: 1000 }, (_, row) => row);

function sample(): Packed {
  const bins = Array.from({ length: 63 }, (_, bin) => rows.slice(bin * 16, bin * 16 + 16).filter(isOne));
  const longest = bins.map((bin) => bin.reduce((best, row) => (time(row) > time(best) ? row : best)));
  const least = bins.map((bin) => Math.min(...bin.map(time)));
  const columns = [bins.map((bin) => bin.length), least, longest.map((row, i) => time(row) - least[i]!), longest.map((row) => row % 16)].flat();
  const ratio = (5100 / 100) ** (1 / 249);
  const steps = rows.map((row) => (isOne(row) ? Math.round(Math.log(time(row) / 100) / Math.log(ratio)) + 1 : 0));
  return {
    title: "t", operation: "insert", clock: "time on the CPU", rows: 1000, operations: rows.filter(isOne).length, width: 16, low: 100, ratio,
    steps: packed(steps), bins: packed(leb(columns)), outliers: packed(leb([10, 490, 5090, 5095, 0, 1])), outlier_count: 2,
    causes: [{ name: "reap", colour: "#000", outliers: 1 }, { name: "unexplained", colour: "#999", outliers: 1 }], notes: [[10, "reap 5 us"]],
  };
}

test("numbers of one and of several bytes", () => {
  expect([...numbers(Uint8Array.from(leb([0, 127, 128, 300, 5_000_000_000])))]).toEqual([0, 127, 128, 300, 5_000_000_000]);
});

test("every level holds every maximum, minimum and count, and the row of the maximum", async () => {
  const trace = await unpack(sample());
  expect(trace.levels.at(-1)!.count.length).toBe(1);
  for (const level of trace.levels) {
    for (let bin = 0; bin < level.count.length; bin++) {
      const inside = rows.slice(bin * level.width, (bin + 1) * level.width).filter(isOne);
      expect(level.count[bin]).toBe(inside.length);
      expect(level.longest[bin]).toBe(Math.max(...inside.map(time)));
      expect(level.shortest[bin]).toBe(Math.min(...inside.map(time)));
      expect(time(level.row[bin]!)).toBe(level.longest[bin]);
    }
  }
});

test("a single operation is exact where it stands out, else within its step", async () => {
  const trace = await unpack(sample());
  expect(known(trace, 10)).toMatchObject({ time: 5090, exact: true, cause: { name: "reap" } });
  expect(known(trace, 3)).toBeUndefined();
  for (const row of rows.filter((row) => isOne(row) && row !== 10 && row !== 500)) {
    const found = known(trace, row)!;
    expect(found.exact ? found.time : Math.abs(found.time / time(row) - 1)).toSatisfy((value: number) => (found.exact ? value === time(row) : value < 0.009));
  }
  expect([firstFrom(trace.outliers, 0), firstFrom(trace.outliers, 11), firstFrom(trace.outliers, 501)]).toEqual([0, 1, 2]);
  expect([levelFor(trace.levels, 1).width, levelFor(trace.levels, 70).width]).toEqual([16, 64]);
});
