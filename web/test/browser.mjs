// The report in real Chromium: no console message, no request, no sideways scrolling, and what it says it shows.
//
// `node test/browser.mjs [PAGE.html]`: without an argument the pages are rendered by
// `cargo run -p perflab-present --example sample_report`. Screenshots go to target/report-shots/.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { flames } from "./flames.mjs";
import { operations } from "./operations.mjs";
import { speedscope } from "./speedscope.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const shots = join(root, "target/report-shots");
const browserPath = process.env.PERFLAB_CHROMIUM ?? "/usr/bin/chromium";
const desktop = { viewport: { width: 1280, height: 900 } };
const WIDTHS = [["phone", 390, 844], ["desktop", 1280, 900], ["wide", 1800, 1000]];

if (!existsSync(browserPath)) {
  if (process.env.PERFLAB_REQUIRE_ALL === "1") throw new Error(`${browserPath} is missing`);
  console.error(`SKIP report_in_chromium: ${browserPath} is missing (apt install chromium)`);
  process.exit(0);
}
mkdirSync(shots, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "perflab-report-test-"));
const launch = { executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--allow-file-access-from-files"] };
const browser = await chromium.launch(launch);
let passed = 0;
let failed = 0;
try {
  await everything();
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
console.log(`report in Chromium: ${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;

async function everything() {
  const given = process.argv[2];
  if (given !== undefined) {
    await looks(given, "given");
    await behaves(given);
    return;
  }
  const one = sample("one");
  await looks(one, "one");
  const two = sample("two");
  await looks(two, "two");
  await beforeAfter(two);
  await behaves(one);
  await long();
  await many();
  const flame = sample("flame");
  await looks(flame, "flame");
  await firstScreen(one, flame);
  await flames({ test, shots, desktop, flame, large: sample("flame-large"), report: one });
  await operations({ test, shots, desktop, file: sample("trace") });
  await speedscope(browser, folder, counted);
}

function sample(kind) {
  const page = join(folder, `${kind}.html`);
  const binary = process.env.PERFLAB_SAMPLE_REPORT;
  if (binary !== undefined) execFileSync(binary, [page, kind], { stdio: "inherit" });
  else execFileSync("cargo", ["run", "--quiet", "-p", "perflab-present", "--example", "sample_report", "--", page, kind], { cwd: root, stdio: "inherit" });
  return page;
}

/** Opens the page; every test ends by asking that nothing was logged and nothing requested. */
async function test(name, file, options, body) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const noise = [];
  page.on("console", (message) => noise.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => noise.push(String(error)));
  page.on("request", (request) => { if (!/^(file|data):/.test(request.url()) || (request.url().startsWith("file:") && !request.isNavigationRequest())) noise.push(`request: ${request.url()}`); });
  try {
    await page.goto(pathToFileURL(file).href);
    await body(page);
    assert.deepEqual(noise, []);
    passed++;
    console.log(`ok   ${name}`);
  } catch (error) {
    failed++;
    console.error(`FAIL ${name}: ${error.stack ?? error}`);
  } finally {
    await context.close();
  }
}

/** A test without a page of ours. */
async function counted(name, body) {
  try {
    await body();
    passed++;
    console.log(`ok   ${name}`);
  } catch (error) {
    failed++;
    console.error(`FAIL ${name}: ${error.stack ?? error}`);
  }
}

async function looks(file, name) {
  for (const [device, width, height] of WIDTHS) {
    for (const colorScheme of ["light", "dark"]) {
      await test(`${name}: ${device}, ${colorScheme}`, file, { viewport: { width, height }, colorScheme }, async (page) => {
        await page.waitForSelector(".alive");
        await page.waitForTimeout(150);
        await noSidewaysScroll(page);
        await page.screenshot({ path: join(shots, `${name}-${device}-${colorScheme}.png`), fullPage: true });
      });
    }
  }
}

async function noSidewaysScroll(page) {
  const over = await page.evaluate(() => {
    const room = document.documentElement.clientWidth;
    const inBox = (element) => element.closest(".scroll, pre, .choices, .unseen, svg svg, .skip") !== null;
    const wide = [...document.querySelectorAll("body *")].filter((element) => !inBox(element) && element.getBoundingClientRect().right > room + 1);
    return { page: document.documentElement.scrollWidth - room, wide: wide.slice(0, 5).map((element) => `${element.tagName}.${element.getAttribute("class")}`) };
  });
  assert.deepEqual(over, { page: 0, wide: [] });
}

async function behaves(file) {
  await test("a dot for every sample, a cross for every failure", file, desktop, async (page) => {
    await page.locator("#iterations details.explanatory > summary").evaluateAll((folds) => folds.forEach((fold) => fold.click()));
    const expected = await page.evaluate(() => {
      const data = JSON.parse(document.getElementById("data").textContent);
      const samples = data.runs.flatMap((run) => run.metrics.map((metric) => metric.value.length));
      const failures = data.runs.flatMap((run) => run.iterations.filter((one) => !one.warmup && one.failure !== undefined).map(() => new Set(run.metrics.map((m) => m.name)).size));
      const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
      return [sum(samples), sum(failures)];
    });
    await page.waitForTimeout(100);
    assert.ok(expected[0] > 0);
    assert.deepEqual([await page.locator("svg.strip .dot").count(), await page.locator("svg.strip .failed").count()], expected);
  });
  await test("the filter hides rows by text and by verdict", file, desktop, async (page) => {
    const rows = page.locator("#verdicts table.verdicts tbody tr");
    const all = await rows.count();
    const visible = () => rows.evaluateAll((found) => found.filter((row) => !row.hidden).length);
    await page.fill("#verdicts input[type=search]", "no such case anywhere");
    assert.equal(await visible(), 0);
    await page.fill("#verdicts input[type=search]", "");
    assert.equal(await visible(), all);
    const chip = page.locator("#verdicts button.chip").first();
    const word = await chip.textContent();
    const ofWord = await rows.evaluateAll((found, w) => found.filter((row) => row.dataset.verdict === w).length, word);
    await chip.click();
    assert.equal(await visible(), all - ofWord);
    assert.equal(await chip.getAttribute("aria-pressed"), "false");
  });
  await test("dots answer to pointer, tap and keys", file, desktop, async (page) => {
    const strip = page.locator("svg.strip").first();
    await strip.scrollIntoViewIfNeeded();
    const dot = await strip.locator(".dot").first().boundingBox();
    await page.mouse.move(dot.x + dot.width / 2, dot.y + dot.height / 2);
    assert.match(await page.locator(".tip").innerText(), /iteration \d+/);
    await strip.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.match(await page.locator("[role=status]").innerText(), /iteration \d+/);
    assert.equal(await strip.locator(".at").count(), 1);
  });
  await test("a tap on a phone shows a value and keeps it", file, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }, async (page) => {
    const strip = page.locator("svg.strip").first();
    await strip.scrollIntoViewIfNeeded();
    const dot = await strip.locator(".dot").first().boundingBox();
    await page.waitForTimeout(150);
    await page.touchscreen.tap(dot.x + dot.width / 2, dot.y + dot.height / 2);
    await page.waitForTimeout(150);
    assert.match(await page.locator(".tip").innerText(), /iteration \d+/);
    await noSidewaysScroll(page);
    await page.screenshot({ path: join(shots, "tap.png") });
  });
  await test("timelines zoom by drag, keep one cursor, and come back", file, desktop, async (page) => {
    const stack = page.locator(".stack").first();
    await stack.scrollIntoViewIfNeeded();
    const path = () => page.locator("svg.panel .line").first().getAttribute("d");
    const before = await path();
    const box = await stack.boundingBox();
    const y = Math.min(box.y + 80, 880);
    await page.mouse.move(box.x + box.width * 0.4, y);
    const cursors = await page.locator("svg.panel .cursor").evaluateAll((lines) => new Set(lines.map((line) => line.getAttribute("x1"))).size);
    assert.equal(cursors, 1);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, y, { steps: 4 });
    await page.mouse.move(box.x + box.width * 0.6, y, { steps: 4 });
    await page.mouse.up();
    const zoomed = await path();
    assert.notEqual(zoomed, before);
    assert.equal(await page.locator("button.reset").isEnabled(), true);
    await page.screenshot({ path: join(shots, "zoomed.png") });
    await page.locator("button.reset").click();
    assert.equal(await path(), before);
    await stack.focus();
    await page.keyboard.press("+");
    assert.notEqual(await path(), before);
    await page.keyboard.press("0");
    assert.equal(await path(), before);
  });
  await test("the picker finds columns and shows them", file, desktop, async (page) => {
    const card = page.locator(".monitor:has(.picker)").first();
    await card.locator(".picker summary").click();
    await card.locator(".picker input[type=search]").fill("nr_free_pages");
    const found = card.locator(".choices label").first();
    const shown = await card.locator("svg.panel").count();
    if (await found.count() === 0) return;
    await found.locator("input").click();
    assert.equal(Math.abs((await card.locator("svg.panel").count()) - shown), 1);
    await card.locator("> details.more summary").click();
    // The rows are made when the details' toggle event comes, which is after the click.
    await card.locator("> details.more tbody tr").first().waitFor({ timeout: 10_000 });
    await card.screenshot({ path: join(shots, "picker.png") });
  });
  await test("colours follow the chosen factor", file, desktop, async (page) => {
    const select = page.locator("#iterations select");
    if (await select.count() === 0) return;
    const legend = () => page.locator("#iterations .legend").innerText();
    const before = await legend();
    await select.selectOption({ index: 1 });
    assert.notEqual(await legend(), before);
    assert.equal(await page.locator("#timelines .legend").first().innerText(), await legend());
  });
  await test("readable with JavaScript off", file, { ...desktop, javaScriptEnabled: false }, async (page) => {
    assert.ok(await page.locator("table.verdicts tbody tr").count() > 0);
    assert.ok(await page.locator("svg.interval .point").count() > 0);
    await page.screenshot({ path: join(shots, "no-script.png"), fullPage: true });
  });
  await test("every focusable thing has a name, and paper gets a page", file, desktop, async (page) => {
    await page.waitForSelector(".alive");
    const nameless = await page.evaluate(() => [...document.querySelectorAll("[tabindex='0'], button, input, select, svg[role=img]")]
      .filter((e) => !e.closest("pre") && e.tagName !== "PRE" && !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label")?.textContent.trim())).map((e) => e.outerHTML.slice(0, 120)));
    assert.deepEqual(nameless, []);
    await page.emulateMedia({ media: "print" });
    await page.setViewportSize({ width: 720, height: 1000 });
    await page.waitForTimeout(150);
    await noSidewaysScroll(page);
    await page.screenshot({ path: join(shots, "print.png"), fullPage: true });
  });
}

/** What was asked is answered before anybody scrolls. */
async function firstScreen(report, flame) {
  const end = async (locator) => { const box = await locator.boundingBox(); return box.y + box.height; };
  const phone = { viewport: { width: 390, height: 844 }, isMobile: true };
  for (const [name, options] of [["desktop", desktop], ["phone", phone]]) {
    await test(`the first screen has the answer: ${name}`, report, options, async (page) => {
      assert.ok(await end(page.locator(".answer").last()) < options.viewport.height);
      if (name === "desktop") assert.ok(await end(page.locator("table.verdicts tbody tr").first()) < options.viewport.height);
      await page.screenshot({ path: join(shots, `first-${name}.png`) });
    });
    await test(`the first screen has bars: ${name}`, flame, options, async (page) => {
      await page.waitForSelector(".flame-graph[data-boxes]");
      const graph = page.locator(".flame-graph").last();
      assert.ok(Number(await graph.getAttribute("data-boxes")) > 5);
      assert.ok(await end(graph) < options.viewport.height, `${await end(graph)}`);
      await page.screenshot({ path: join(shots, `first-flame-${name}.png`) });
    });
  }
}

/** Two runs stand over one another on one axis of time. */
async function beforeAfter(file) {
  await test("two runs share each panel of the timelines", file, desktop, async (page) => {
    await page.waitForSelector(".alive");
    assert.equal(await page.locator("svg.panel").first().locator(".line").count(), 2);
    assert.deepEqual(await page.locator("#timelines .legend li").evaluateAll((items) => items.map((item) => item.textContent.replace(/ from .*/, "").trim())), ["before", "after"]);
    await page.locator("#timelines select").first().selectOption({ label: "after" });
    assert.equal(await page.locator("svg.panel").first().locator(".line").count(), 1);
  });
}

async function many() {
  const file = sample("many");
  await test("a thousand cases of thirty iterations", file, desktop, async (page) => {
    assert.ok(statSync(file).size < 8e6, `${statSync(file).size} bytes`);
    await page.waitForSelector(".alive");
    assert.equal(await page.locator("table.verdicts tbody tr").count(), 500);
    const before = await page.locator("svg.strip").count();
    assert.ok(before < 50);
    await page.fill("#verdicts input[type=search]", "size=499");
    assert.match(await page.locator("#verdicts output").innerText(), /^1 of 500/);
    await noSidewaysScroll(page);
  });
}

async function long() {
  const file = sample("long");
  await test("an hour at 10 Hz stays small and quick", file, desktop, async (page) => {
    assert.ok(statSync(file).size < 8e6, `${statSync(file).size} bytes`);
    await page.waitForSelector(".alive");
    const longest = await page.locator("svg.panel .line").evaluateAll((lines) => Math.max(...lines.map((line) => line.getAttribute("d").length)));
    assert.ok(longest < 60_000, `a path of ${longest} characters`);
  });
}
