// The hash of everything that the bundle is made from; crates/present/tests/bundle_is_fresh.rs computes the same.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

export const web = fileURLToPath(new URL("..", import.meta.url));
export const assets = join(web, "../crates/present/assets");

/** Each built file with where it is committed. */
export const BUILT = { "report.css": assets, "report.js": assets, "laboratory.js": join(web, "../crates/serve/assets") };

/** Paths below web/, sorted by their bytes, with `/` between parts. */
export function sources() {
  const below = readdirSync(join(web, "src"), { recursive: true, withFileTypes: true });
  const files = below.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(web.length));
  return [...files, "package-lock.json", "vite.config.ts", "vite.laboratory.config.ts"].map((path) => path.replaceAll("\\", "/")).sort();
}

/** SHA-256, in hex, over `path NUL content NUL` of every source and the built files themselves, which lie in `built` or where they are committed. */
export function stamp(built) {
  const hash = createHash("sha256");
  for (const path of sources()) hash.update(path).update("\0").update(readFileSync(join(web, path))).update("\0");
  for (const [name, committed] of Object.entries(BUILT)) hash.update(name).update("\0").update(readFileSync(join(built ?? committed, name))).update("\0");
  return hash.digest("hex");
}
