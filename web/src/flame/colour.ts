// What colours mean: categories, or how far two sides differ. Every colour has its words in the legend.

import { nameBytes } from "../colour";
import type { Category, Change } from "./data";

/** Hue and saturation of families; rules take the numbered ones in turn. */
const FAMILIES: Record<string, [hue: number, spread: number, chroma: number]> = {
  command: [250, 0, 0.012], kernel: [58, 22, 0.13], user: [195, 24, 0.085], unknown: [85, 26, 0.12], nothing: [250, 0, 0.004],
};
const NUMBERED: [number, number, number][] = [[255, 8, 0.15], [150, 8, 0.14], [330, 8, 0.16], [295, 8, 0.15], [18, 6, 0.18], [122, 8, 0.15], [230, 6, 0.1], [275, 6, 0.12]];
const MORE = 38;
const LESS = 255;

export interface Theme { dark: boolean; ink: string; faint: string; card: string; match: string }

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const dark = matchMedia("screen and (prefers-color-scheme: dark)").matches;
  const read = (name: string) => style.getPropertyValue(name).trim();
  return { dark, ink: dark ? "#f2f4f6" : "#1c1a17", faint: read("--soft"), card: read("--card"), match: read("--accent") };
}

/** The colour of a box by its category; functions differ a little so that neighbours can be told apart. */
export function ofCategory(category: Category, name: string, { dark }: Theme): string {
  const [hue, spread, chroma] = FAMILIES[category.hue] ?? NUMBERED[Number(category.hue) % NUMBERED.length] ?? NUMBERED[0]!;
  const [turn, shade] = noise(name);
  const light = dark ? 0.46 + shade * 0.09 : 0.77 + shade * 0.1;
  return `oklch(${light.toFixed(3)} ${(dark ? chroma * 0.85 : chroma).toFixed(3)} ${(hue + (turn - 0.5) * 2 * spread).toFixed(1)})`;
}

/** Two numbers from 0 to 1 that belong to a name. */
function noise(name: string): [number, number] {
  const [turn, shade] = nameBytes(name);
  return [turn / 255, shade / 255];
}

export type Verdict = "more" | "less" | "noise" | "unjudged";

/** What may be said of a difference; what nobody judged may be noise. */
export function verdict(change: Change | undefined): Verdict {
  if (change === undefined) return "unjudged";
  if (!change.changed) return "noise";
  return change.difference > 0 ? "more" : "less";
}

/** The colour of a difference: stronger where it is a larger part of the larger share. Noise is grey. */
export function ofDifference(said: Verdict, before: number, after: number, { dark }: Theme): string {
  if (said === "noise" || said === "unjudged") return dark ? "oklch(0.37 0.004 250)" : "oklch(0.89 0.004 250)";
  const part = Math.min(1, Math.abs(after - before) / (Math.max(before, after) || 1));
  const strength = 0.35 + 0.65 * Math.sqrt(part);
  const light = dark ? 0.4 + 0.14 * strength : 0.9 - 0.22 * strength;
  return `oklch(${light.toFixed(3)} ${(0.17 * strength).toFixed(3)} ${said === "more" ? MORE : LESS})`;
}
