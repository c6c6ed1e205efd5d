// Builds into a temporary directory and compares with what is committed.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assets, BUILT, web } from "./sources.mjs";

const built = mkdtempSync(join(tmpdir(), "perflab-report-"));
try {
  execFileSync("npm", ["run", "--silent", "build"], { cwd: web, stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, REPORT_OUT: built } });
  const places = Object.entries({ ...BUILT, "sources.sha256": assets });
  const stale = places.filter(([name, place]) => !readFileSync(join(built, name)).equals(readFileSync(join(place, name)))).map(([name]) => name);
  if (stale.length > 0) {
    console.error(`stale: ${stale.join(", ")}; run \`npm run build\` in web/ and commit`);
    process.exitCode = 1;
  } else {
    console.log("the committed bundle is fresh");
  }
} finally {
  rmSync(built, { recursive: true, force: true });
}
