import { expect, test } from "vitest";
import { nameClasses } from "../src/colour";

test("a name has the colour that it has in static pictures, whatever its rank", () => {
  // The same colours as in crates/present/src/chart/palette.rs.
  expect(nameClasses(["none", "sync", "async", "staged", "relaid"])).toEqual(["g1", "g9", "g8", "g10", "g7"]);
  expect(nameClasses(["guest3", "guest1", "guest2"])).toEqual(["g3", "g13", "g2"]);
});

test("more names than colours share the grey", () => {
  const names = Array.from({ length: 16 }, (_, n) => `cache-${n}`);
  const classes = nameClasses(names);
  expect(new Set(classes).size).toBe(15);
  expect(classes.filter((name) => name === "g14")).toHaveLength(2);
});
