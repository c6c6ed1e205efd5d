// Pointer and keys over a stack of timelines: cursor, zoom by drag, reset.

import { h } from "./element";
import { MARGIN } from "./panel";
import { linear } from "./scale";
import type { View } from "./view";

/** A shorter drag is a tap. */
const SHORTEST_DRAG = 6;

export function pointing(stack: HTMLElement, view: View): void {
  const brush = h("div", { class: "brush", hidden: true });
  let from: number | undefined;
  const moment = (x: number) => {
    const frame = stack.getBoundingClientRect();
    const inside = Math.min(Math.max(x, frame.left + MARGIN.left), frame.right - MARGIN.right);
    return linear({ from: frame.left + MARGIN.left, to: frame.right - MARGIN.right }, view.span)(inside);
  };
  const sweep = (event: PointerEvent) => {
    if (from === undefined) return;
    const frame = stack.getBoundingClientRect();
    if (!brush.isConnected) stack.append(brush);
    brush.hidden = Math.abs(event.clientX - from) < SHORTEST_DRAG;
    brush.style.left = `${Math.min(event.clientX, from) - frame.left}px`;
    brush.style.width = `${Math.abs(event.clientX - from)}px`;
  };
  stack.addEventListener("pointermove", (event) => { sweep(event); view.point(moment(event.clientX)); });
  stack.addEventListener("pointerleave", (event) => { if (from === undefined && event.pointerType === "mouse") view.point(undefined); });
  stack.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    from = event.clientX;
    stack.setPointerCapture(event.pointerId);
    view.point(moment(event.clientX));
  });
  stack.addEventListener("pointerup", (event) => {
    const begin = from;
    from = undefined;
    brush.hidden = true;
    if (begin === undefined || Math.abs(event.clientX - begin) < SHORTEST_DRAG) return;
    const ends = [moment(begin), moment(event.clientX)];
    view.show(Math.min(...ends), Math.max(...ends));
  });
  stack.addEventListener("pointercancel", () => { from = undefined; brush.hidden = true; });
  stack.addEventListener("dblclick", () => view.reset());
  stack.addEventListener("keydown", (event) => { if (key(event, view)) event.preventDefault(); });
}

/** Whether the key meant something. */
function key(event: KeyboardEvent, view: View): boolean {
  const size = view.span.to - view.span.from;
  const middle = view.cursor ?? (view.span.from + view.span.to) / 2;
  const way = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (way !== 0 && event.shiftKey) view.show(view.span.from + (way * size) / 5, view.span.to + (way * size) / 5);
  else if (way !== 0) view.point(Math.min(view.span.to, Math.max(view.span.from, middle + (way * size) / 100)));
  else if (event.key === "+" || event.key === "=") view.zoom(0.5, middle);
  else if (event.key === "-") view.zoom(2, middle);
  else if (event.key === "0" || event.key === "Escape") { view.reset(); view.point(undefined); }
  else return false;
  return true;
}
