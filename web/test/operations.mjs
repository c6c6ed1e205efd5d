// 1,416,100 operations in real Chromium: from all of them to a single one, with nothing hidden on the way.
import assert from "node:assert/strict";
import { join } from "node:path";

export async function operations({ test, shots, desktop, file }) {
  const all = async (page) => {
    await page.waitForSelector(".zoom-canvas[data-longest]");
    await page.locator(".viewer.operations").scrollIntoViewIfNeeded();
    await page.waitForTimeout(150);
  };
  const said = (page) => page.locator(".zoom-said").innerText();
  const longest = (page) => page.locator(".zoom-canvas").getAttribute("data-longest").then(Number);
  const act = async (page, name) => { await page.click(`.viewer.operations [data-act=${name}]`); await page.waitForTimeout(50); };

  await test("operations: at most 2 MB, all of them drawn, the longest among them", file, desktop, async (page) => {
    await all(page);
    const bytes = await page.locator("#operations-0").evaluate((script) => script.textContent.length);
    assert.ok(bytes <= 2_000_000, `${bytes} bytes`);
    assert.match(await page.locator(".viewer.operations .readout").innerText(), /0 to 1.416.100/);
    await page.screenshot({ path: join(shots, "operations-all.png") });
    assert.ok((await longest(page)) > 900_000, `${await longest(page)}`);
    // What is drawn, pixel by pixel: the longest stands where it belongs, in the colour of its cause.
    const reddest = await page.locator(".zoom-canvas").evaluate((canvas) => {
      const picture = canvas.getContext("2d").getImageData(60, 0, canvas.width - 70, canvas.height);
      for (let y = 0; y < picture.height; y++) for (let x = 0; x < picture.width; x++) {
        const at = (y * picture.width + x) * 4;
        const [red, green, blue] = picture.data.slice(at, at + 3);
        if (picture.data[at + 3] === 255 && Math.max(red, green, blue) - Math.min(red, green, blue) > 40) return { x: x / picture.width, y };
      }
      return undefined;
    });
    assert.ok(reddest !== undefined && Math.abs(reddest.x - 1_234_567 / 1_416_100) < 0.01 && reddest.y < 40, JSON.stringify(reddest));
  });
  await test("operations: the longest one after the other, down to the single operation", file, desktop, async (page) => {
    await all(page);
    await act(page, "longest");
    assert.match(await said(page), /no\. 1 of the longest: operation 1.234.567: 9\d\d.*µs.*outlier: reap.*reap 9\d\d.*elements 1234567/);
    await page.screenshot({ path: join(shots, "operations-single.png") });
    const first = await longest(page);
    const times = [first];
    for (let rank = 2; rank <= 6; rank++) {
      await act(page, "next");
      assert.match(await said(page), new RegExp(`no\\. ${rank} of the longest`));
      times.push(await longest(page));
    }
    assert.deepEqual(times, [...times].sort((a, b) => b - a));
    await act(page, "before");
    assert.match(await said(page), /no\. 5 of the longest/);
    await act(page, "all");
    assert.equal(await longest(page), first);
  });
  await test("operations: a drag zooms, a single one of no importance says its time, keys go along", file, desktop, async (page) => {
    await all(page);
    const frame = await page.locator(".zoom-canvas").boundingBox();
    for (let times = 0; times < 5; times++) {
      await page.mouse.move(frame.x + 300, frame.y + 200);
      await page.mouse.down();
      await page.mouse.move(frame.x + 340, frame.y + 200, { steps: 3 });
      await page.mouse.up();
      await page.waitForTimeout(40);
    }
    const [from, to] = (await page.locator(".viewer.operations .readout").innerText()).match(/\d[\d,]*/g).map((text) => Number(text.replace(/,/g, "")));
    assert.ok(to - from < 100 && from > 300_000 && to < 500_000, `${from} ${to}`);
    await page.mouse.move(frame.x + 600, frame.y + 30);
    assert.match(await page.locator(".tip").innerText(), /^operation \d+.\d+: (about )?[\d.]+.(ns|µs)/);
    await page.locator(".viewer.operations .stack").focus();
    await page.keyboard.press("0");
    assert.match(await page.locator(".viewer.operations .readout").innerText(), /0 to 1.416.100/);
    const took = await page.evaluate(() => { const since = performance.now(); document.querySelector(".viewer.operations [data-act=out]").click(); return performance.now() - since; });
    console.log(`     all 1,416,100 drawn in ${took.toFixed(0)} ms`);
  });
  await test("operations: nothing scrolls sideways on a phone", file, { viewport: { width: 390, height: 844 }, colorScheme: "dark" }, async (page) => {
    await all(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth));
    await page.screenshot({ path: join(shots, "operations-phone.png") });
  });
}
