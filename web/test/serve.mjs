// `perflab serve` in real Chromium: an archive of real runs, hostile names in every field that has one. axe-core looks at every page, and
// the distribution's Firefox opens each.
//
// `node test/serve.mjs PERFLAB`: the binary; without an argument that of a debug build. Screenshots go to target/serve-shots/.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { assertAccessible } from "./accessible.mjs";
import { Firefox } from "./bidi.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const shots = join(root, "target/serve-shots");
const perflab = process.argv[2] ?? join(root, "target/debug/perflab");
const browserPath = process.env.PERFLAB_CHROMIUM ?? "/usr/bin/chromium";
const firefoxPath = process.env.PERFLAB_FIREFOX ?? "/usr/bin/firefox-esr";
const HOSTILE = `"><script>document.title="pwned"</script><img src=x onerror=alert(1)>'&amp;\u202e {{ 7*7 }}`;
/** The same as far as a label may have it: no control characters. */
const LABEL = HOSTILE.replace("\u202e", "");

if (!existsSync(browserPath)) {
  if (process.env.PERFLAB_REQUIRE_ALL === "1") throw new Error(`${browserPath} is missing`);
  console.error(`SKIP serve_in_chromium: ${browserPath} is missing (apt install chromium)`);
  process.exit(0);
}
mkdirSync(shots, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "perflab-serve-test-"));
const environment = { ...process.env, PERFLAB_ARCHIVE: join(folder, "archive"), PERFLAB_STATE: join(folder, "state") };
const run = (...words) => execFileSync(perflab, words, { cwd: folder, env: environment, stdio: ["ignore", "ignore", "pipe"] });
let failed = 0;

function fillArchive() {
  const study = (title, extra = "") => `title = ${JSON.stringify(title)}\nrun = { iterations = 6, warmup = 0 }\nmonitors = { vmstat = "5ms" }\n[workload.memory-sweep]\nparameters = { size = "1MiB", passes = 8 }\n${extra}`;
  writeFileSync(join(folder, "plain.toml"), study("memory sweep", '[factor.pages]\nkind = "parameter"\nlevels = ["ordinary", "huge"]\n'));
  writeFileSync(join(folder, "hostile.toml"), study(HOSTILE));
  for (const label of ["before", "after"]) run("run", "plain.toml", "--label", label, "--quiet", "--no-report");
  run("run", "hostile.toml", "--label", LABEL, "--quiet", "--no-report");
}

async function startServer(...more) {
  const child = spawn(perflab, ["serve", ...more], { cwd: folder, env: environment, stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const address = await new Promise((resolve, reject) => {
    lines.once("line", resolve);
    child.once("exit", (code) => reject(new Error(`perflab serve ended with ${code}`)));
  });
  return { child, address, origin: new URL(address).origin };
}

async function test(name, browser, server, options, body) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const noise = [];
  page.on("console", (message) => noise.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => noise.push(String(error)));
  page.on("dialog", (dialog) => { noise.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith(`${server.origin}/`) && !request.url().startsWith("data:")) noise.push(`request: ${request.url()}`); });
  try {
    await page.goto(server.address);
    assert.equal(page.url(), `${server.origin}/`, "the token has left the address");
    await body(page);
    assert.deepEqual(noise, []);
    console.log(`ok   ${name}`);
  } catch (error) {
    failed++;
    console.error(`FAIL ${name}: ${error.stack ?? error}`);
    await page.screenshot({ path: join(shots, "failed.png") });
  } finally {
    await context.close();
  }
}

async function noSidewaysScroll(page) {
  const [width, room] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(width <= room, `${width} px wide in ${room} px`);
}

async function everything(browser, server) {
  for (const [device, width, height] of [["phone", 360, 740], ["desktop", 1280, 900], ["wide", 2560, 1300]]) {
    for (const colorScheme of ["light", "dark"]) {
      await test(`runs: ${device}, ${colorScheme}`, browser, server, { viewport: { width, height }, colorScheme }, async (page) => {
        assert.equal(await page.locator("tbody tr").count(), 3);
        await noSidewaysScroll(page);
        await page.screenshot({ path: join(shots, `runs-${device}-${colorScheme}.png`), fullPage: true });
      });
    }
  }
  await test("hostile names are text", browser, server, {}, async (page) => {
    assert.equal(await page.title(), "Runs · perflab");
    const row = page.locator("tbody tr").first();
    assert.ok((await row.textContent()).includes("<script>document.title"));
    assert.equal(await page.locator("main script, main img").count(), 0);
    await row.locator("th a").click();
    await page.waitForSelector(".alive");
    assert.ok(!(await page.title()).startsWith("pwned"));
    await page.goto(`${server.origin}/?q=${encodeURIComponent(HOSTILE)}`);
    assert.equal(await page.locator("input[name=q]").inputValue(), HOSTILE);
    await page.goto(`${server.origin}/?label=${encodeURIComponent(LABEL)}`);
    assert.equal(await page.locator("tbody tr").count(), 1);
    await page.goto(`${server.origin}/history`);
    await page.waitForSelector("h1");
    await page.screenshot({ path: join(shots, "history.png"), fullPage: true });
  });
  for (const [device, width, height] of [["phone", 360, 740], ["desktop", 1400, 900]]) {
    for (const colorScheme of ["light", "dark"]) {
      await test(`boards: ${device}, ${colorScheme}`, browser, server, { viewport: { width, height }, colorScheme }, async (page) => {
        await page.locator("nav a", { hasText: "Boards" }).click();
        assert.equal(await page.locator(".board").count(), 2);
        assert.equal(await page.locator(".board svg[role=img]").count(), 3);
        assert.equal(await page.locator("main script, main img").count(), 0);
        await noSidewaysScroll(page);
        await page.screenshot({ path: join(shots, `boards-${device}-${colorScheme}.png`), fullPage: true });
        await page.locator(".board h2 a", { hasText: "memory sweep" }).click();
        await page.waitForSelector("#history");
      });
    }
  }
  for (const [device, width, height] of [["phone", 360, 740], ["desktop", 1400, 900]]) {
    await test(`matters of a run: ${device}`, browser, server, { viewport: { width, height }, colorScheme: "dark" }, async (page) => {
      await page.goto(`${server.origin}/runs/before`);
      const links = await page.locator(".reference a").evaluateAll((all) => all.map((link) => link.getAttribute("href")).filter((address) => /^\/runs\/[^/]+\/(?!notes)/.test(address)));
      assert.equal(links.length, 8);
      for (const address of links) {
        await page.goto(server.origin + address);
        const sections = await page.locator("main section").count();
        assert.equal(sections, /\/(timelines|kernels)$/.test(address) ? 1 : 0, address);
        if (sections === 0) assert.equal(await page.locator(".answer code").count() > 0, true, address);
        else await page.waitForSelector(".alive");
        await noSidewaysScroll(page);
        await page.screenshot({ path: join(shots, `matter-${address.split("/").pop()}-${device}.png`), fullPage: true });
      }
      await page.locator(".reference a", { hasText: "The whole report" }).click();
      await page.waitForSelector("#runs");
    });
  }
  await test("refusals say what to do", browser, server, {}, async (page) => {
    // A page that is not there is an error of the network to the console: asked for by a script, it is none.
    const text = await page.evaluate(async () => (await fetch("/api/v1/runs?status=damaged")).text());
    assert.equal(JSON.parse(text).matched, 0);
  });
  await test("filter, run and comparison by keyboard alone", browser, server, { viewport: { width: 1280, height: 900 } }, async (page) => {
    const focus = async (selector, most = 60) => {
      for (let presses = 0; presses < most; presses++) {
        if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector)) return;
        await page.keyboard.press("Tab");
      }
      throw new Error(`no focus on ${selector}`);
    };
    await focus("input[name=q]");
    await page.keyboard.type("memory");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=memory/);
    assert.equal(await page.locator("tbody tr").count(), 2);
    await focus("input[name=a]");
    await page.keyboard.press("ArrowDown");
    await focus("input[name=b]");
    await page.keyboard.press("Space");
    await focus("main form button:not([class])", 80);
    await page.waitForTimeout(50);
    const shown = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(shown, "none");
    await page.locator("form[action='/compare'] button").focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/compare\?a=/);
    await page.waitForSelector(".alive");
    assert.ok(await page.locator("#verdicts").count() === 1);
    await noSidewaysScroll(page);
    await page.screenshot({ path: join(shots, "compare.png"), fullPage: true });
    await page.locator(".reference a", { hasText: "Runs" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(`${server.origin}/`);
  });
  await test("without JavaScript", browser, server, { javaScriptEnabled: false, viewport: { width: 360, height: 740 } }, async (page) => {
    await page.locator("tbody th a").first().click();
    assert.equal(await page.locator("h1").count(), 1);
    await page.screenshot({ path: join(shots, "run-phone.png") });
  });
}

/** Label and notes, by pages of a server that may write. */
async function writing(browser, server) {
  await test("label and notes are written", browser, server, { viewport: { width: 360, height: 740 } }, async (page) => {
    await page.locator("tbody tr", { hasText: "after" }).locator("th a").click();
    await page.locator(".reference a", { hasText: "Label and notes" }).click();
    await page.locator("textarea").fill(`${HOSTILE}\nsecond line`);
    await page.locator("input[name=by]").fill("<b>Ada</b>");
    await page.locator("button", { hasText: "Add note" }).press("Enter");
    await page.waitForSelector("article.card");
    assert.ok((await page.locator(".note-text").textContent()).endsWith("\nsecond line"));
    await page.locator("input[name=label]").fill("renamed");
    await page.locator("input[name=label]").press("Enter");
    await page.locator("p b", { hasText: "renamed" }).waitFor();
    await noSidewaysScroll(page);
    await page.screenshot({ path: join(shots, "notes-phone.png"), fullPage: true });
    await page.locator("main p a").first().click();
    await page.waitForSelector(".alive");
    assert.ok((await page.locator("#runs").textContent()).includes("second line"));
    assert.equal(await page.locator("main img").count(), 0);
  });
}

/** Ten runs of one command, which gets slower after the sixth. */
function recordStep() {
  for (let number = 0; number < 10; number++) {
    writeFileSync(join(folder, "pace"), number < 6 ? "0.02" : "0.05");
    run("run", "--iterations", "4", "--quiet", "--no-report", "--", "sh", "-c", "sleep $(cat pace)");
  }
}

/** Operations, call stacks and slab caches, as far as this machine records them. */
function recordKinds() {
  const monitors = process.getuid() === 0 ? '\nmonitors = { slabinfo = "20ms" }' : "";
  writeFileSync(join(folder, "traced.toml"), `title = "traced insertions"\nrun = { iterations = 3, warmup = 0 }${monitors}\n[workload.drv_rand_ops]\nparameters = { elements = 20000 }\n`);
  run("run", "traced.toml", "--label", "watched", "--profile", "999", "--quiet", "--no-report");
}

/** A step is acknowledged on its board, by keyboard. */
async function acknowledging(browser, server) {
  await test("a step is acknowledged with a note", browser, server, { viewport: { width: 360, height: 740 } }, async (page) => {
    await page.goto(`${server.origin}/boards?steps=open`);
    const rows = await page.locator(".open-alarm").count();
    assert.ok(rows >= 1);
    const row = page.locator(".board-rows li", { has: page.locator(".open-alarm") }).first();
    const metric = await row.locator(".board-name a").textContent();
    await row.locator("summary").focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.type(`wanted ${HOSTILE}`);
    await page.keyboard.press("Tab");
    await page.keyboard.type("Ada");
    await page.screenshot({ path: join(shots, "acknowledge-phone.png"), fullPage: true });
    await page.keyboard.press("Tab");
    await Promise.all([page.waitForEvent("load"), page.keyboard.press("Enter")]);
    assert.equal(await page.locator(".open-alarm").count(), rows - 1);
    await page.goto(`${server.origin}/boards?steps=worse`);
    const note = page.locator(".board-step .note-text").first();
    assert.ok((await note.textContent()).includes('Ada: wanted "><script>'));
    assert.equal(await page.locator(".board-rows li", { has: page.locator(".note-text") }).locator(".board-name a").first().textContent(), metric);
    await noSidewaysScroll(page);
    await page.screenshot({ path: join(shots, "acknowledged-phone.png"), fullPage: true });
  });
}

/** One address of each kind of page, with and without data. */
function pageAddresses(server) {
  const matters = ["slab", "operations", "flame", "io", "guests", "startups", "timelines", "kernels"];
  const runs = ["", "/notes", ...matters.map((matter) => `/${matter}`)].map((rest) => `/runs/watched${rest}`);
  return ["/", "/?q=nothing", "/boards", "/boards?steps=open", "/history", "/history?metric=primary", "/compare?a=before&b=renamed", "/runs/before", ...runs].map((address) => server.origin + address);
}

/** No serious and no critical finding of axe-core, on any page. */
async function accessible(browser, server) {
  for (const colorScheme of ["light", "dark"]) {
    await test(`accessible: ${colorScheme}`, browser, server, { viewport: { width: 1280, height: 900 }, colorScheme }, async (page) => {
      for (const address of pageAddresses(server)) {
        await page.goto(address);
        await assertAccessible(page, address);
      }
    });
  }
  await test("accessible: a refusal", browser, server, {}, async (page) => {
    const refused = await page.context().request.get(`${server.origin}/?limit=0`);
    assert.equal(refused.status(), 400);
    await page.setContent((await refused.text()).replace(/<script[^>]*><\/script>/, ""));
    await assertAccessible(page, "refusal");
  });
}

/** Every page without a message of the console, and without a request elsewhere. */
async function inFirefox(server) {
  if (!existsSync(firefoxPath)) {
    if (process.env.PERFLAB_REQUIRE_ALL === "1") throw new Error(`${firefoxPath} is missing`);
    console.error(`SKIP serve_in_firefox: ${firefoxPath} is missing (apt install firefox-esr)`);
    return;
  }
  const begun = performance.now();
  const firefox = await Firefox.launch(firefoxPath, { "layout.css.prefers-color-scheme.content-override": 0 });
  try {
    await firefox.setViewport(360, 740);
    await firefox.goto(server.address);
    for (const address of pageAddresses(server)) {
      await firefox.goto(address);
      const [width, room] = JSON.parse(await firefox.evaluate("JSON.stringify([document.documentElement.scrollWidth, document.documentElement.clientWidth])"));
      assert.ok(width <= room, `${address}: ${width} px wide in ${room} px`);
      const noise = firefox.takeEvents().filter((event) => !event.startsWith(`request: ${server.origin}/`) && !event.startsWith("request: data:"));
      assert.deepEqual(noise, [], address);
    }
    await firefox.screenshot(join(shots, "firefox-phone-dark.png"));
    console.log(`ok   every page in Firefox (${((performance.now() - begun) / 1000).toFixed(0)} s)`);
  } catch (error) {
    failed++;
    console.error(`FAIL every page in Firefox: ${error.stack ?? error}`);
  } finally {
    await firefox.close();
  }
}

/** A run that begins and ends while the list is looked at. */
async function following(browser, server) {
  await test("a run is followed while it is recorded", browser, server, {}, async (page) => {
    await page.waitForTimeout(1500);
    const recording = spawn(perflab, ["run", "--iterations", "12", "--quiet", "--no-report", "--", "sleep", "0.4"], { cwd: folder, env: environment, stdio: ["ignore", "ignore", "inherit"] });
    await page.locator("[data-news] a").waitFor({ timeout: 20_000 });
    await page.locator("[data-news] a").click();
    const row = page.locator("tbody tr").first();
    await row.locator("progress").waitFor({ timeout: 20_000 });
    const before = await row.locator("[data-cell=done]").textContent();
    await page.screenshot({ path: join(shots, "following.png") });
    await page.waitForFunction((text) => document.querySelector("tbody tr [data-cell=done]")?.textContent !== text, before, { timeout: 20_000 });
    await page.waitForFunction(() => document.querySelector("tbody tr [data-cell=status]")?.textContent === "finished", undefined, { timeout: 60_000 });
    const [done, planned] = (await row.locator("[data-cell=done]").textContent()).split("/");
    assert.ok(done === planned && Number(done) >= 12, `${done} of ${planned}`);
    await new Promise((resolve) => (recording.exitCode === null ? recording.once("exit", resolve) : resolve()));
  });
}

const started = [];
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
try {
  fillArchive();
  const server = await startServer();
  started.push(server);
  await everything(browser, server);
  const writer = await startServer("--write");
  started.push(writer);
  await writing(browser, writer);
  recordStep();
  await acknowledging(browser, writer);
  await following(browser, writer);
  recordKinds();
  await accessible(browser, writer);
  await inFirefox(writer);
} finally {
  await browser.close();
  started.forEach((server) => server.child.kill("SIGTERM"));
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed > 0 ? 1 : 0;
