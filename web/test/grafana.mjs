// The dashboards of contrib/grafana/ against the schema that Grafana publishes, as its package has it: types. Nothing that they do not
// know passes, and a value is one of those that there are. Their queries are asked by crates/perflab/tests/it/dashboards.rs.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const web = fileURLToPath(new URL("..", import.meta.url));
const dashboards = join(web, "../contrib/grafana");

/** The package's names of the options of each kind of panel. */
const PANELS = { table: "table/panelcfg/x/Table", timeseries: "timeseries/panelcfg/x/TimeSeries", stat: "stat/panelcfg/x/Stat" };

const HEAD = `import type { Dashboard, Panel, RowPanel } from "@grafana/schema/dist/esm/raw/dashboard/x/Dashboard_types.gen";
${Object.entries(PANELS).map(([kind, path]) => `import type * as ${kind} from "@grafana/schema/dist/esm/raw/composable/${path}PanelCfg_types.gen";`).join("\n")}
/** As JSON has it: a value instead of the name of an enumeration. */
type Written<T> = unknown extends T ? T : T extends string ? \`\${T}\` : T extends number | boolean | null | undefined ? T : { [Key in keyof T]: Written<T[Key]> };
`;

function declarations(name, dashboard) {
  const { panels, ...rest } = dashboard;
  const text = (value) => JSON.stringify(value);
  const lines = [`export const dashboard = ${text(rest)} satisfies Written<Omit<Dashboard, "panels">>;`];
  const ids = new Set();
  panels.forEach((panel, at) => {
    if (ids.has(panel.id)) throw new Error(`${name}: two panels have the id ${panel.id}`);
    ids.add(panel.id);
    if (panel.type === "row") {
      lines.push(`export const panel${at} = ${text(panel)} satisfies Written<RowPanel>;`);
      return;
    }
    if (!(panel.type in PANELS)) throw new Error(`${name}: no schema for a panel of type ${panel.type}`);
    lines.push(`export const panel${at} = ${text(panel)} satisfies Written<Panel>;`);
    if (panel.options !== undefined) lines.push(`export const options${at} = ${text(panel.options)} satisfies Partial<Written<${panel.type}.Options>>;`);
    const custom = panel.fieldConfig?.defaults?.custom;
    if (custom !== undefined) lines.push(`export const custom${at} = ${text(custom)} satisfies Partial<Written<${panel.type}.FieldConfig>>;`);
  });
  return HEAD + lines.join("\n") + "\n";
}

const folder = mkdtempSync(join(web, ".grafana-"));
try {
  const names = readdirSync(dashboards).filter((name) => name.endsWith(".json"));
  if (names.length === 0) throw new Error(`no dashboard in ${dashboards}`);
  const files = names.map((name) => {
    const file = join(folder, name.replace(/\.json$/, ".ts"));
    writeFileSync(file, declarations(name, JSON.parse(readFileSync(join(dashboards, name), "utf8"))));
    return file;
  });
  const { status } = spawnSync(join(web, "node_modules/.bin/tsc"), ["--ignoreConfig", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", ...files], { stdio: ["ignore", "inherit", "inherit"] });
  if (status === 0) console.log(`ok   ${names.join(", ")} are as Grafana's schema says`);
  else process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
