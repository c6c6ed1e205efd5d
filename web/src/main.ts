// Brings the page to life: what can be read without a script stands there already.

import "./report.css";
import "./flame/flame.css";
import "./zoom/zoom.css";
import { Colouring } from "./colour";
import type { ReportData } from "./data";
import * as filter from "./filter";
import type { Picture } from "./flame/data";
import { Viewer } from "./flame/viewer";
import * as strips from "./strips";
import * as timelines from "./timelines";
import * as tip from "./tip";
import type { Packed } from "./zoom/data";
import * as zoom from "./zoom/viewer";

function section(id: string): Element {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no section ${id}`);
  return found;
}

function parsed(element: Element): unknown {
  return JSON.parse(element.textContent ?? "");
}

/** What each viewer is made from: crates/present/src/section.rs names them, and their data. */
const VIEWERS: Record<string, (place: HTMLElement, data: unknown) => void> = {
  iterations: (place, data) => strips.install(place, data as ReportData, colouring(data as ReportData)),
  timelines: (place, data) => timelines.install(place, data as ReportData, colouring(data as ReportData)),
  flame: (place, data) => { new Viewer(place, data as Picture); },
  operations: (place, data) => void zoom.install(place, data as Packed),
};

/** One choice of colours for all viewers of the same data. */
function colouring(data: ReportData): Colouring {
  const known = colours.get(data) ?? new Colouring(data);
  colours.set(data, known);
  return known;
}

const colours = new Map<ReportData, Colouring>();
const read = new Map<string, unknown>();

function dataOf(id: string): unknown {
  if (!read.has(id)) read.set(id, parsed(section(id)));
  return read.get(id);
}

tip.install();
const verdicts = document.getElementById("verdicts");
if (verdicts !== null) filter.install(verdicts);
for (const place of document.querySelectorAll<HTMLElement>(".viewer")) VIEWERS[place.dataset["viewer"] ?? ""]?.(place, dataOf(place.dataset["of"] ?? ""));
document.documentElement.classList.add("alive");
