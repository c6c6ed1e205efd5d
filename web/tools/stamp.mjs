// Writes the hash of sources and bundle beside the bundle.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { assets, stamp } from "./sources.mjs";

const built = process.env.REPORT_OUT;
writeFileSync(join(built ?? assets, "sources.sha256"), stamp(built) + "\n");
