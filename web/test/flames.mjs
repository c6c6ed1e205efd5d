// Flame graphs in real Chromium: what a pointer, a key and an address do, and how long a frame of 100,000 boxes takes.
import assert from "node:assert/strict";
import { join } from "node:path";

export async function flames({ test, shots, desktop, flame, large, report }) {
  const alone = "#flame:side=0&other=-1";
  const at = async (page, hash) => {
    await page.goto(page.url().split("#")[0] + hash);
    await page.waitForSelector(".alive");
    await page.waitForTimeout(100);
  };
  /** What the page itself has for its address: the browser's word of it comes later. */
  const address = (page) => page.evaluate(() => location.href);
  const said = (page) => page.locator(".flame-line output").innerText();
  const trail = (page) => page.locator(".flame-trail").innerText();
  const graph = (page) => page.locator(".flame-graph").last();
  /** Where an element stands, once the page is scrolled to it. */
  const seen = async (locator) => {
    await locator.evaluate((element) => element.scrollIntoView({ block: "end", behavior: "instant" }));
    await locator.page().waitForTimeout(100); // the event of the scrolling hides tips
    return locator.boundingBox();
  };
  const boxes = (page) => graph(page).getAttribute("data-boxes").then(Number);

  await test("flame: the parts of the samples sum to 100 %", flame, desktop, async (page) => {
    const lines = await page.locator(".flame-account").allInnerTexts();
    assert.equal(lines.length, 2);
    for (const line of lines) {
      assert.match(line, /without a stack.*of dying tasks.*lost for want of room/);
      const parts = [...line.matchAll(/([\d.]+)\u00a0%/g)].map((found) => Number(found[1]));
      const sum = parts.reduce((a, b) => a + b, 0);
      assert.ok(Math.abs(sum - 100) < 0.03, `${sum} in ${line}`);
    }
    assert.equal(await page.locator(".flame-hides").count(), 1);
  });
  await test("flame: a click zooms, the trail leads back, the address and its history follow", flame, desktop, async (page) => {
    await at(page, alone);
    const before = await boxes(page);
    const frame = await seen(graph(page));
    // The third row from below is main, the widest function.
    await page.mouse.move(frame.x + 40, frame.y + frame.height - 19 * 2.5);
    assert.match(await page.locator(".tip").innerText(), /^main\n.*samples, .*%, self 0.00.%/);
    await page.mouse.click(frame.x + 40, frame.y + frame.height - 19 * 2.5);
    assert.match(await trail(page), /^all › bench › main/);
    assert.match(decodeURIComponent(await address(page)), /zoom=bench;main/);
    await page.goBack();
    await page.waitForTimeout(50);
    assert.match(await trail(page), /^all$/);
    assert.equal(await boxes(page), before);
    await page.goForward();
    await page.waitForTimeout(50);
    assert.match(await trail(page), /main/);
    await page.locator(".flame-trail button", { hasText: /^all$/ }).click();
    assert.doesNotMatch(await address(page), /zoom/);
  });
  await test("flame: an opened address shows the same picture", flame, desktop, async (page) => {
    await at(page, "#flame:side=0&other=-1&zoom=bench;main&search=kfree&shape=icicle&hide=walk");
    assert.match(await trail(page), /^all › bench › main/);
    assert.match(await said(page), /^found: /);
    assert.equal(await page.inputValue("[name=flame-hide]"), "walk");
    assert.equal(await page.locator(".flame-bar .flame-icicle").innerText(), "Flame");
  });
  await test("flame: the search says its inclusive share, each sample once", flame, desktop, async (page) => {
    await at(page, alone);
    await page.keyboard.press("/");
    await page.keyboard.type("kfree|kmem_cache_free|skb_free");
    const expected = await shareOf(page, (stack) => stack.some((name) => /kfree|kmem_cache_free|skb_free/.test(name)));
    assert.equal(await said(page), `found: ${expected}`);
    const rows = await page.locator(".flame-table tbody th").allInnerTexts();
    assert.deepEqual(rows.map((row) => row.trim()).sort(), ["kfree", "kmem_cache_free", "skb_free"]);
    assert.match(await address(page), /search=kfree/);
    await page.screenshot({ path: join(shots, "flame-search.png") });
  });
  await test("flame: hide and focus change the picture, not the sums", flame, desktop, async (page) => {
    await at(page, alone);
    const account = await page.locator(".flame-account").first().innerText();
    await page.fill("[name=flame-hide]", "^sock_");
    assert.equal(await page.locator(".flame-table tbody th", { hasText: "sock_" }).count(), 0);
    await page.fill("[name=flame-hide]", "");
    await page.fill("[name=flame-focus]", "^read$");
    const expected = await shareOf(page, (stack) => stack.includes("read"));
    assert.equal(await said(page), `in focus: ${expected}`);
    assert.equal(await page.locator(".flame-table tbody th", { hasText: "sendmsg" }).count(), 0);
    assert.equal(await page.locator(".flame-account").first().innerText(), account);
    await page.click(".flame-bar .flame-reset");
    assert.equal(await said(page), "");
    assert.equal(await page.inputValue("[name=flame-focus]"), "");
  });
  await test("flame: callers and callees of a function that is called from two places", flame, desktop, async (page) => {
    await at(page, alone);
    await page.locator(".flame-table button.link", { hasText: /^kfree$/ }).click();
    assert.equal(await page.locator(".flame-graph").count(), 2);
    assert.match(await trail(page), /^all stacks › kfree/);
    const callers = page.locator(".flame-graph").first();
    const frame = await seen(callers);
    await page.mouse.move(frame.x + 30, frame.y + frame.height - 19 * 1.5 - 2);
    assert.match(await page.locator(".tip").innerText(), /^(skb_free|schedule)\n/);
    await page.screenshot({ path: join(shots, "flame-around.png") });
    await page.goBack();
    await page.waitForTimeout(50);
    assert.equal(await page.locator(".flame-graph").count(), 1);
  });
  await test("flame: a difference is coloured, noise is grey, one side only is striped", flame, desktop, async (page) => {
    await at(page, "");
    assert.match(await page.locator(".flame-legend").innerText(), /Judged by 6 and 6 iterations/);
    const tell = async (zoom) => {
      await at(page, `#flame:zoom=${zoom}`);
      const colour = await pixel(page, graph(page));
      await graph(page).focus();
      await page.keyboard.press("ArrowUp");
      return { text: await page.locator(".tip").innerText(), colour };
    };
    const send = "bench;main;send;write;sock_sendmsg;alloc_skb;kmem_cache_alloc;___slab_alloc";
    const slow = (await tell(send)).colour;
    assert.ok(slow[0] > slow[2] + 40, `grown: ${slow}`);
    const gone = (await tell("bench;main;old_path")).colour;
    assert.ok(gone[2] > gone[0] + 20, `gone: ${gone}`);
    const same = (await tell("bench;main;receive;read;schedule")).colour;
    assert.ok(Math.max(...same) - Math.min(...same) < 12, `the same: ${same}`);
    assert.match((await tell("bench;main")).text, /points \[.*\].*noise/s);
    await page.screenshot({ path: join(shots, "flame-difference.png") });
  });
  await test("flame: widths before, after and of both", flame, desktop, async (page) => {
    const width = async (mode) => {
      await at(page, `#flame:width=${mode}&zoom=bench;main`);
      return boxes(page);
    };
    const [both, before, after] = [await width("both"), await width("before"), await width("after")];
    assert.ok(both > before && both > after, `${both} boxes of both sides, ${before} before, ${after} after`);
  });
  await test("flame: a range of time is chosen on the heat map", flame, desktop, async (page) => {
    await at(page, alone);
    const map = page.locator(".flame-heat canvas");
    const frame = await seen(map);
    await page.mouse.move(frame.x + 2, frame.y + 2);
    assert.match(await page.locator(".tip").innerText(), /iteration 1, 0\.0\d s\n\d+ samples? in 20 ms/);
    await page.mouse.down();
    await page.mouse.move(frame.x + frame.width / 4, frame.y + 30, { steps: 5 });
    await page.mouse.up();
    assert.match(await address(page), /time=\d+-\d+/);
    const some = Number((await said(page)).replace(/,/g, "").match(/in time: (\d+) samples/)[1]);
    const all = await page.evaluate(() => JSON.parse(document.getElementById("flame-data").textContent).sides[0].parts.slice(0, 3).reduce((sum, [, samples]) => sum + samples, 0));
    assert.ok(some > all / 10 && some < all / 2, `${some} of ${all}`);
    await page.screenshot({ path: join(shots, "flame-time.png") });
    await page.mouse.click(frame.x + 20, frame.y + 20);
    assert.doesNotMatch(await address(page), /time=/);
  });
  await test("flame: keys walk, zoom and come back", flame, desktop, async (page) => {
    await at(page, alone);
    await graph(page).focus();
    for (const key of ["ArrowUp", "ArrowUp", "ArrowUp", "Enter"]) await page.keyboard.press(key);
    assert.match(await trail(page), /^all › bench › main/);
    assert.match(await page.locator("[role=status]").innerText(), /samples/);
    await page.keyboard.press("Escape");
    assert.match(await trail(page), /^all › bench(?! ›)/);
  });
  await test("flame: the same component inside the report", report, desktop, async (page) => {
    await page.waitForSelector(".alive");
    await page.locator("#flame").scrollIntoViewIfNeeded();
    assert.ok(await boxes(page) > 10);
    await page.fill("[name=flame-search]", "kfree");
    assert.match(await said(page), /found: .*→/);
    await page.locator("nav a", { hasText: "Facts" }).click();
    assert.match(await address(page), /#facts$/);
  });
  await test("flame: 100,000 boxes stay fluid", large, desktop, async (page) => {
    await page.waitForSelector(".alive");
    const measured = await page.evaluate(paces);
    const total = await page.evaluate(() => JSON.parse(document.getElementById("flame-data").textContent).nodes.count);
    assert.ok(total >= 100_000, `${total} boxes`);
    console.log(`     ${total} boxes: ${Object.entries(measured).map(([name, { median, worst }]) => `${name} ${median.toFixed(1)} ms (worst ${worst.toFixed(1)})`).join(", ")}`);
    // No assertion on time, which belongs to the machine: what is drawn is bounded by what is seen.
    const { width, height } = await graph(page).boundingBox();
    const most = await page.evaluate(() => Math.max(...globalThis.drawn));
    assert.ok(most > 100 && most < (2 * width * height) / 19, `${most} boxes drawn`);
    await page.screenshot({ path: join(shots, "flame-large.png") });
  });
}

/** Runs in the page: milliseconds of script for a frame of scrolling, pointing, zooming, and for a letter typed. */
async function paces() {
  const graph = document.querySelector(".flame-graph");
  const drawn = (globalThis.drawn = []);
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const pace = async (step) => {
    const times = [];
    for (let i = 0; i < 30; i++) {
      const began = performance.now();
      step(i);
      const script = performance.now() - began;
      await frame();
      await frame();
      times.push(script + Number(graph.dataset.milliseconds));
      drawn.push(Number(graph.dataset.boxes));
    }
    times.sort((a, b) => a - b);
    return { median: times[15], worst: times[29] };
  };
  const move = (x, y) => graph.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
  const { left, bottom } = graph.getBoundingClientRect();
  const click = (x, y) => graph.dispatchEvent(new MouseEvent("click", { clientX: x, clientY: y, bubbles: true }));
  const type = (key, text) => {
    const input = document.querySelector(`[name=flame-${key}]`);
    input.value = text;
    input.dispatchEvent(new Event("input"));
  };
  return {
    scroll: await pace((i) => { graph.scrollTop = graph.scrollHeight - graph.clientHeight - i * 40; }),
    point: await pace((i) => move(left + 20 + i * 20, bottom - 60 - i * 8)),
    zoom: await pace((i) => (i % 2 === 0 ? click(left + 30, bottom - 19 * 6.5) : click(left + 30, bottom - 10))),
    search: await pace((i) => type("search", i % 2 === 0 ? `function_${i}` : "")),
    hide: await pace((i) => type("hide", i % 2 === 0 ? `function_${i}` : "")),
  };
}

/** The share of all kept samples of the first side whose stack fits, worked out from the page's data. */
async function shareOf(page, fits) {
  const stacks = await page.evaluate(() => {
    const picture = JSON.parse(document.getElementById("flame-data").textContent);
    const numbers = (text) => {
      const out = [];
      let [value, shift] = [0, 1];
      for (const sign of atob(text)) {
        const byte = sign.charCodeAt(0);
        value += (byte & 127) * shift;
        shift *= 128;
        if (byte < 128) { out.push(value); [value, shift] = [0, 1]; }
      }
      return out;
    };
    const [up, fn, own] = [picture.nodes.up, picture.nodes.function, picture.sides[0].own].map(numbers);
    const stack = (n) => (n === 0 ? [] : [...stack(n - up[n]), picture.functions.name[fn[n]]]);
    return own.map((samples, n) => [stack(n), samples]);
  });
  const sum = (list) => list.reduce((total, [, samples]) => total + samples, 0);
  return `${((100 * sum(stacks.filter(([stack]) => fits(stack)))) / sum(stacks)).toFixed(2)}\u00a0%`;
}

/** The colour of the box that is zoomed to, as drawn: near its right end, where no letters are. */
async function pixel(page, graph) {
  return graph.locator("canvas").first().evaluate((canvas) => {
    const depth = new URLSearchParams(location.hash.slice(7)).get("zoom").split(";").length;
    const ratio = canvas.width / canvas.clientWidth;
    const room = canvas.closest(".flame-graph");
    const rows = Math.round(room.querySelector(".flame-room").clientHeight / 19);
    const y = ((rows - 1 - depth) * 19 - room.scrollTop + 3) * ratio;
    const copy = new OffscreenCanvas(24, 1).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, canvas.width - 60 * ratio, y, 24, 1, 0, 0, 24, 1);
    const { data } = copy.getImageData(0, 0, 24, 1);
    return [0, 1, 2].map((channel) => data.reduce((sum, value, i) => sum + (i % 4 === channel ? value : 0), 0) / 24);
  });
}
