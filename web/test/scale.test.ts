import { expect, test } from "vitest";
import { axisSpan, clockStep, linear, niceStep, ticks } from "../src/scale";

test("a scale maps ends to ends", () => {
  const scale = linear({ from: 10, to: 20 }, { from: 100, to: 0 });
  expect([scale(10), scale(15), scale(20)]).toEqual([100, 50, 0]);
  expect(linear({ from: 1, to: 1 }, { from: 5, to: 9 })(1)).toBe(5);
});

test("steps are 1, 2 or 5 times a power of ten", () => {
  expect([0.013, 0.21, 1, 3, 7, 900].map(niceStep)).toEqual([0.02, 0.5, 1, 5, 10, 1000]);
});

test("steps of time are round on a clock", () => {
  expect([300e3, 7e6, 25e6, 45e6, 200e6, 4000e6].map((rough) => clockStep(rough) / 1e6)).toEqual([0.5, 10, 30, 60, 300, 7200]);
});

test("ticks are the multiples inside, ends included", () => {
  expect(ticks({ from: 0, to: 1 }, 0.5)).toEqual([0, 0.5, 1]);
  expect(ticks({ from: -7, to: 7 }, 5)).toEqual([-5, 0, 5]);
  expect(ticks({ from: 0, to: 1 }, 1e-9).length).toBe(100);
});

test("axes begin at zero where values come near it, and nowhere else", () => {
  expect(axisSpan([1, 10]).from).toBe(0);
  expect(axisSpan([990, 1000]).from).toBeGreaterThan(980);
  expect(axisSpan([990, 1000], true).from).toBe(0);
  expect(axisSpan([-10, -1]).to).toBe(0);
  expect(axisSpan([])).toEqual({ from: 0, to: 1 });
  const flat = axisSpan([5]);
  expect(flat.from).toBeLessThan(5);
  expect(flat.to).toBeGreaterThan(5);
});
