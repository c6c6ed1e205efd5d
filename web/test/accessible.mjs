// axe-core over a page as it stands: no serious and no critical finding. It is never in the bundle.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function assertAccessible(page, name) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    // What is folded is looked at, too.
    for (const fold of document.querySelectorAll("details:not([open])")) fold.open = true;
    const { violations } = await axe.run(document, { resultTypes: ["violations"], preload: false });
    return violations.filter((one) => ["serious", "critical"].includes(one.impact)).map((one) => ({
      rule: one.id, help: one.help, count: one.nodes.length, first: one.nodes.slice(0, 3).map((node) => `${node.target.join(" ")}: ${node.html.slice(0, 160)} ${node.any.map((check) => check.message).join("; ").slice(0, 200)}`),
    }));
  });
  assert.deepEqual(found, [], `${name}: ${JSON.stringify(found, null, 1)}`);
}
