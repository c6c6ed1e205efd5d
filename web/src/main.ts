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

function report(): void {
  const data = parsed(section("data")) as ReportData;
  const colours = new Colouring(data);
  filter.install(section("verdicts"));
  strips.install(section("iterations"), data, colours);
  timelines.install(section("timelines"), data, colours);
}

tip.install();
if (document.getElementById("data") !== null) report();
const flames = document.getElementById("flame-data");
if (flames !== null) new Viewer(section("flame"), parsed(flames) as Picture);
for (const place of document.querySelectorAll<HTMLElement>(".zoom")) void zoom.install(place, parsed(place) as Packed);
document.documentElement.classList.add("alive");
