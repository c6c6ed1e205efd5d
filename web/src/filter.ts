// Filters the tables of verdicts by text and by verdict. The rows are the page's own.

import { h } from "./element";

const ORDER = ["better", "worse", "differs", "unclear", "changed", "same", "same here", "missing", "withheld"];

export function install(section: Element): void {
  const rows = [...section.querySelectorAll<HTMLTableRowElement>("table.verdicts tbody tr")];
  if (rows.length < 2) return;
  const texts = rows.map((row) => `${row.cells[1]?.textContent} ${row.cells[2]?.textContent}`.toLowerCase());
  const there = ORDER.filter((word) => rows.some((row) => row.dataset["verdict"] === word));
  const chosen = new Set(there);
  const search = h("input", { type: "search", placeholder: "case or metric", "aria-label": "Filter by case or metric" });
  const count = h("output", { class: "faint" });
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    let left = 0;
    rows.forEach((row, i) => {
      row.hidden = !chosen.has(row.dataset["verdict"] ?? "") || !words.every((word) => texts[i]!.includes(word));
      if (!row.hidden) left++;
    });
    if (words.length > 0) unfold(rows);
    count.textContent = left === rows.length ? `${rows.length} rows` : `${left} of ${rows.length} rows`;
  };
  search.addEventListener("input", apply);
  const boxes = there.map((word) => toggle(word, chosen, apply));
  const bar = h("div", { class: "toolbar", role: "search", "aria-label": "Filter of the verdicts" }, search, ...boxes, count);
  section.querySelector("h2")?.after(bar);
  apply();
}

/** What was found in a folded table is shown. */
function unfold(rows: HTMLTableRowElement[]): void {
  const folds = rows.filter((row) => !row.hidden).map((row) => row.closest("details"));
  new Set(folds).forEach((fold) => fold?.setAttribute("open", ""));
}

function toggle(word: string, chosen: Set<string>, apply: () => void): HTMLElement {
  const box = h("button", { type: "button", class: `chip verdict ${word}`, "aria-pressed": "true" }, word);
  box.addEventListener("click", () => {
    const on = !chosen.has(word);
    if (on) chosen.add(word);
    else chosen.delete(word);
    box.setAttribute("aria-pressed", String(on));
    apply();
  });
  return box;
}
