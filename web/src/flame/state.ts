// What is looked at, and its place in the address: `#flame:search=kfree&zoom=…`.

/** Everything that can be chosen; texts are as typed. */
export interface State {
  side: number;
  /** The side that is compared with, or −1. */
  other: number;
  width: "before" | "after" | "both";
  shape: "flame" | "icicle";
  /** Names from the outermost box to the one that is zoomed to. */
  zoom: string[];
  search: string;
  hide: string;
  focus: string;
  /** The function whose callers and callees are shown. */
  around: string;
  /** The range of time, in cells, as `from-to`. */
  time: string;
}

export function initial(sides: number): State {
  return { side: sides > 1 ? 1 : 0, other: sides > 1 ? 0 : -1, width: "both", shape: "flame", zoom: [], search: "", hide: "", focus: "", around: "", time: "" };
}

const MARK = "flame:";

/** The address of a state: only what differs from the beginning. */
export function written(state: State, first: State): string {
  const words = new URLSearchParams();
  for (const key of Object.keys(state) as (keyof State)[]) {
    const [value, plain] = [text(state[key]), text(first[key])];
    if (value !== plain) words.set(key, value);
  }
  const all = words.toString();
  return all === "" ? "" : `#${MARK}${all}`;
}

/** The state of an address; what is not in it, or makes no sense, is as at the beginning. */
export function read(hash: string, first: State): State {
  const state = structuredClone(first);
  if (!hash.startsWith(`#${MARK}`)) return state;
  const words = new URLSearchParams(hash.slice(MARK.length + 1));
  for (const key of ["search", "hide", "focus", "around", "time"] as const) state[key] = words.get(key) ?? first[key];
  for (const key of ["side", "other"] as const) {
    const value = Number(words.get(key) ?? first[key]);
    if (Number.isInteger(value)) state[key] = value;
  }
  const [width, shape, zoom] = [words.get("width"), words.get("shape"), words.get("zoom")];
  if (width === "before" || width === "after" || width === "both") state.width = width;
  if (shape === "flame" || shape === "icicle") state.shape = shape;
  if (zoom !== null && zoom !== "") state.zoom = zoom.split(";");
  return state;
}

function text(value: State[keyof State]): string {
  return Array.isArray(value) ? value.join(";") : String(value);
}

/** A pattern as people type it: a regular expression where it is one, else the text itself. */
export function pattern(typed: string): ((text: string) => boolean) | undefined {
  if (typed === "") return undefined;
  try {
    const found = new RegExp(typed, "i");
    return (text) => found.test(text);
  } catch {
    const wanted = typed.toLowerCase();
    return (text) => text.toLowerCase().includes(wanted);
  }
}
