// Numbers as people read them; crates/present/src/number/report.rs follows the same rules, and
// test/numbers.json holds both to them.

type Step = readonly [from: number, factor: number, name: string];

const TIMES: readonly (readonly [string, number])[] = [["ns", 1e-9], ["us", 1e-6], ["µs", 1e-6], ["ms", 1e-3], ["s", 1]];
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB"];
const DECIMAL = ["", "k", "M", "G", "T"];
const NBSP = "\u00a0";

/** A number with its unit: `1.5 MiB`, `12.3 k faults/s`. */
export function quantity(value: number, unit: string): string {
  if (!Number.isFinite(value)) return "–";
  const scale = scaled(value, unit);
  return scale.name === "" ? digits(value * scale.factor) : digits(value * scale.factor) + NBSP + scale.name;
}

/** What to multiply numbers of this size by, and the unit they then have. */
export function scaled(value: number, unit: string): { factor: number; name: string } {
  const steps = ladder(unit);
  const size = Math.abs(value);
  const [, factor, name] = [...steps].reverse().find(([from]) => size >= from) ?? steps[0]!;
  return { factor, name };
}

function ladder(unit: string): Step[] {
  const rate = unit.endsWith("/s") ? "/s" : "";
  const base = rate === "" ? unit : unit.slice(0, -2);
  if (base === "percent") return [[0, 1, "%" + rate]];
  const seconds = TIMES.find(([name]) => name === base)?.[1];
  if (seconds !== undefined) return rate === "" ? times(seconds) : [[0, seconds * 100, "%"]];
  if (["bytes", "byte", "B"].includes(base)) return BINARY.map((name, i) => [1024 ** i, 1024 ** -i, name + rate]);
  if (/[A-Z%kµ]/.test(base)) return [[0, 1, unit]];
  return counts(base === "1" ? "" : base, rate);
}

function times(seconds: number): Step[] {
  const steps = TIMES.filter(([name]) => name !== "us").map(([name, size], i): Step => [i === 0 ? Number.MIN_VALUE : size / seconds, seconds / size, name]);
  const own = TIMES.find(([, size]) => size === seconds)![0].replace("us", "µs");
  return [[0, 1, own], ...steps];
}

function counts(word: string, rate: string): Step[] {
  return DECIMAL.map((prefix, i): Step => {
    const name = word === "" ? prefix + rate : prefix === "" ? word + rate : prefix + NBSP + word + rate;
    return [i === 0 ? 0 : i === 1 ? 1e4 : 1000 ** i, 1000 ** -i, name];
  });
}

/** Four significant digits without trailing zeros; thousands apart by a thin space. */
export function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0 || !Number.isFinite(size)) return size === 0 ? "0" : "–";
  const decimals = Math.min(6, Math.max(0, 3 - Math.floor(Math.log10(size))));
  const text = value.toFixed(decimals);
  const short = text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
  return grouped(short.replace("-", "−"));
}

function grouped(text: string): string {
  const [whole = "", rest] = text.split(".");
  const spaced = whole.replace("−", "").length < 5 ? whole : whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return rest === undefined ? spaced : `${spaced}.${rest}`;
}

/** A fraction as a signed percentage. */
export function percent(fraction: number): string {
  const value = fraction * 100;
  const size = Math.abs(value);
  const text = size.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
  const zero = /^[0.]+$/.test(text);
  return (zero ? "0" : (value < 0 ? "−" : "+") + text) + NBSP + "%";
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
