// Elements without a framework. Texts are set as text, never as markup.

type Attributes = Record<string, string | number | boolean | undefined>;
type Child = Node | string | undefined;

const SVG = "http://www.w3.org/2000/svg";

export function h<K extends keyof HTMLElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(name), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

/** A `<details>` whose content is made when it is first opened. */
export function folded(summary: Child[], content: () => Node, attributes: Attributes = {}): HTMLDetailsElement {
  const details = h("details", { class: "more", ...attributes }, h("summary", {}, ...summary));
  details.addEventListener("toggle", () => details.append(content()), { once: true });
  return details;
}

/** A table inside a box that scrolls by itself. */
export function table(caption: string, head: string[], rows: (string | Node)[][], numbersFrom = head.length): HTMLElement {
  const kind = (i: number) => (i >= numbersFrom ? "number" : undefined);
  const body = rows.map((row) => h("tr", {}, ...row.map((cell, i) => (i === 0 ? h("th", { scope: "row" }, cell) : h("td", { class: kind(i) }, cell)))));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, ...head.map((text, i) => h("th", { scope: "col", class: kind(i) }, text)))),
      h("tbody", {}, ...body)));
}

/** Calls back with the element's width now and whenever it changes. */
export function onWidth(element: Element, draw: (width: number) => void): void {
  let before = -1;
  new ResizeObserver((entries) => {
    const width = Math.floor(entries[0]?.contentRect.width ?? 0);
    if (width > 0 && width !== before) draw((before = width));
  }).observe(element);
}
