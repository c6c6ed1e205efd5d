import { expect, test } from "vitest";
import { count, date, digits, moment, percent, quantity, share } from "../src/number";
import shared from "./quantities.json";

const plain = (text: string) => text.replace(/\u00a0/g, " ");

test("quantities are printed as Rust prints them", () => {
  for (const [value, unit, printed] of shared.quantities) expect(plain(quantity(value as number, unit as string))).toBe(printed);
});

test("percentages are printed as Rust prints them", () => {
  for (const [value, printed] of shared.percents) expect(plain(percent(value as number))).toBe(printed);
});

test("shares and counts are printed as Rust prints them", () => {
  for (const [value, printed] of shared.shares) expect(plain(share(value as number))).toBe(printed);
  for (const [value, printed] of shared.counts) expect(count(value as number)).toBe(printed);
});

test("what is not a number is a dash", () => {
  expect(quantity(NaN, "s")).toBe("–");
  expect(digits(Infinity)).toBe("–");
});

test("moments are as exact as the step asks for", () => {
  expect(plain(moment(1_234_567, 1e6))).toBe("1 s");
  expect(plain(moment(1_234_567, 1e4))).toBe("1.23 s");
  expect(plain(moment(125_000_000, 1e6))).toBe("2:05");
  expect(plain(moment(125_500_000, 1e5))).toBe("2:05.5");
});

test("dates are those of Greenwich", () => {
  expect(date(1_795_275_500_123)).toBe("2026-11-21 15:38 UTC");
});
