// Numbers as people read them: the mirror of UnitScale and its functions in crates/model/src/quantity.rs;
// test/quantities.json holds both to the same texts.

type Ladder = readonly (readonly [name: string, size: number])[];

const TIMES: Ladder = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
const LADDERS: readonly Ladder[] = [
  TIMES,
  [["B", 1], ["KiB", 1024], ["MiB", 1024 ** 2], ["GiB", 1024 ** 3], ["TiB", 1024 ** 4]],
  [["kB", 1], ["MB", 1e3], ["GB", 1e6], ["TB", 1e9]],
  [["Hz", 1], ["kHz", 1e3], ["MHz", 1e6], ["GHz", 1e9]],
  [["nJ", 1], ["µJ", 1e3], ["mJ", 1e6], ["J", 1e9]],
];
const PREFIXES: readonly (readonly [prefix: string, from: number, size: number])[] = [["k", 1e4, 1e3], ["M", 1e6, 1e6], ["G", 1e9, 1e9], ["T", 1e12, 1e12]];
const SPELLINGS: Record<string, string> = { us: "µs", "\u03bcs": "µs", uJ: "µJ", bytes: "B", byte: "B", percent: "%" };
const NBSP = "\u00a0";

/** A number with its unit: `1.5 MiB`, `12.35 k faults/s`. */
export function quantity(value: number, unit: string): string {
  if (!Number.isFinite(value)) return "–";
  const { factor, name } = scaled(value, unit);
  return digits(value * factor) + (name === "" ? "" : NBSP + name);
}

/** What to multiply numbers of this size by, and the unit they then have. */
export function scaled(value: number, unit: string): { factor: number; name: string } {
  const slash = unit.indexOf("/");
  const [written, per] = slash < 0 ? [unit, ""] : [unit.slice(0, slash), unit.slice(slash)];
  const base = SPELLINGS[written] ?? written;
  const time = TIMES.find(([name]) => name === base);
  if (time !== undefined && per === "/s") return { factor: time[1] / 1e7, name: "%" };
  for (const ladder of LADDERS) {
    const here = ladder.find(([name]) => name === base);
    if (here === undefined) continue;
    const amount = Math.abs(value) * here[1];
    const [name, size] = amount > 0 ? ([...ladder].reverse().find(([, step]) => amount >= step) ?? ladder[0]!) : here;
    return { factor: here[1] / size, name: name + per };
  }
  const word = base === "1" ? "" : base;
  const isCount = !word.startsWith("k") && !/[\p{Lu}%µ]/u.test(word);
  const [prefix, , size] = (isCount ? [...PREFIXES].reverse().find(([, from]) => Math.abs(value) >= from) : undefined) ?? ["", 0, 1];
  return { factor: 1 / size, name: prefix + (prefix === "" || word === "" ? "" : NBSP) + word + per };
}

/** From here on digits before the point say nothing, and fill the page. */
const HUGE = 1e15;

/** Four digits that count, without zeros at the end. */
export function digits(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return value === 0 ? "0" : "–";
  if (Math.abs(value) < 1e-4 || Math.abs(value) >= HUGE) {
    const [number = "", exponent = "0"] = value.toExponential(3).split("e");
    return `${trimmed(number)}e${exponent.replace("+", "")}`;
  }
  return trimmed(value.toFixed(Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value))))));
}

function trimmed(text: string): string {
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

/** A fraction as a signed percentage. */
export function percent(fraction: number): string {
  const value = fraction * 100;
  const size = Math.abs(value);
  const text = size >= HUGE ? digits(size) : size.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
  const zero = /^[0.]+$/.test(text);
  return (zero ? "0" : (value < 0 ? "-" : "+") + trimmed(text)) + NBSP + "%";
}

/** A part of a whole: two decimals always; never nothing or all of it where it is not. */
export function share(fraction: number): string {
  const text = (fraction * 100).toFixed(2);
  if (text === "0.00" && fraction > 0) return `<0.01${NBSP}%`;
  if (text === "100.00" && fraction < 1) return `>99.99${NBSP}%`;
  return `${text === "-0.00" ? "0.00" : text}${NBSP}%`;
}

/** A whole number with every digit, in groups of three: `1,416,100`. */
export function count(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A moment of a run, from microseconds: `1:02.35`, `12.3 s`; `step` decides how exact. */
export function moment(micros: number, step = 1e4): string {
  const seconds = micros / 1e6;
  const decimals = Math.min(3, Math.max(0, Math.ceil(-Math.log10(step / 1e6) - 1e-9)));
  if (Math.abs(seconds) < 120) return `${seconds.toFixed(decimals)}${NBSP}s`;
  const minutes = Math.floor(seconds / 60);
  const rest = (seconds - minutes * 60).toFixed(decimals);
  return `${minutes}:${rest.padStart(decimals === 0 ? 2 : decimals + 3, "0")}`;
}

/** A date, from milliseconds since 1970: `2026-11-21 15:38 UTC`. */
export function date(millis: number): string {
  return `${new Date(millis).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
