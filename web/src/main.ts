// Brings the page to life: what can be read without a script stands there already.

import "./report.css";
import { Colouring } from "./colour";
import type { ReportData } from "./data";
import * as filter from "./filter";
import * as strips from "./strips";
import * as timelines from "./timelines";
import * as tip from "./tip";

function section(id: string): Element {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no section ${id}`);
  return found;
}

const data = JSON.parse(section("data").textContent ?? "") as ReportData;
const colours = new Colouring(data);
tip.install();
filter.install(section("verdicts"));
strips.install(section("iterations"), data, colours);
timelines.install(section("timelines"), data, colours);
document.documentElement.classList.add("alive");
