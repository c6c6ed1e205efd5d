// speedscope itself reads what `perflab flame export` writes: the golden files of crates/stacks.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const goldens = fileURLToPath(new URL("../../crates/stacks/src/snapshots/", import.meta.url));
const page = fileURLToPath(new URL("../node_modules/speedscope/dist/release/index.html", import.meta.url));
const FILES = [
  ["speedscope_is_told_every_sample", "a.speedscope.json", "a run"],
  ["folded_text_comes_back_through_our_own_import", "a.folded", "a.folded"],
];

/** The text of a golden file, below its head. */
function golden(name) {
  const text = readFileSync(join(goldens, `perflab_stacks__tests__${name}.snap`), "utf8");
  return text.slice(text.indexOf("\n---\n") + 5);
}

export async function speedscope(browser, folder, report) {
  for (const [name, file, title] of FILES) {
    await report(`speedscope reads ${file}`, async () => {
      const script = join(folder, `${file}.js`);
      const text = Buffer.from(golden(name)).toString("base64");
      writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(file)}, "${text}")`);
      const tab = await browser.newPage();
      const alerts = [];
      tab.on("dialog", (dialog) => { alerts.push(dialog.message()); void dialog.dismiss(); });
      await tab.goto(`${pathToFileURL(page).href}#localProfilePath=${script}`);
      await tab.waitForFunction((wanted) => document.title.includes(wanted), title, { timeout: 15_000 }).catch(() => undefined);
      assert.deepEqual(alerts, []);
      assert.match(await tab.title(), new RegExp(title));
      await tab.close();
    });
  }
}
