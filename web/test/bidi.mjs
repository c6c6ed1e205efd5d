// The distribution's Firefox by WebDriver BiDi. playwright-core drives a Firefox of its own, and of this one asks for commands that it
// does not have (emulation.setMediaFeaturesOverride).
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import WebSocket from "ws";

export class Firefox {
  #socket;
  #child;
  #profile;
  #next = 1;
  #waiting = new Map();
  /** Console messages, uncaught errors and requests since the last `takeEvents`. */
  #events = [];

  static async launch(path, preferences = {}) {
    const firefox = new Firefox();
    firefox.#profile = mkdtempSync(join(tmpdir(), "perflab-firefox-"));
    const lines = Object.entries(preferences).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`);
    writeFileSync(join(firefox.#profile, "user.js"), lines.join(""));
    firefox.#child = spawn(path, ["--headless", "--no-remote", "--profile", firefox.#profile, "--remote-debugging-port", "0", "about:blank"], { stdio: ["ignore", "ignore", "pipe"] });
    try {
      const address = await new Promise((resolve, reject) => {
        const lines = createInterface({ input: firefox.#child.stderr });
        lines.on("line", (line) => { const found = /^WebDriver BiDi listening on (ws:\S+)/.exec(line); if (found !== null) resolve(found[1]); });
        firefox.#child.once("error", reject);
        firefox.#child.once("exit", (code) => reject(new Error(`Firefox ended with ${code}`)));
      });
      firefox.#socket = new WebSocket(`${address}/session`, { perMessageDeflate: false });
      await new Promise((resolve, reject) => { firefox.#socket.once("open", resolve); firefox.#socket.once("error", reject); });
      firefox.#socket.on("message", (text) => firefox.#receive(JSON.parse(String(text))));
      await firefox.send("session.new", { capabilities: {} });
      await firefox.send("session.subscribe", { events: ["log.entryAdded", "network.beforeRequestSent"] });
      const { contexts } = await firefox.send("browsingContext.getTree", {});
      firefox.context = contexts[0].context;
    } catch (error) {
      await firefox.close();
      throw error;
    }
    return firefox;
  }

  #receive(message) {
    if (message.type === "event") {
      if (message.method === "log.entryAdded") this.#events.push(`${message.params.level}: ${message.params.text}`);
      if (message.method === "network.beforeRequestSent") this.#events.push(`request: ${message.params.request.url}`);
      return;
    }
    const { resolve, reject } = this.#waiting.get(message.id) ?? {};
    this.#waiting.delete(message.id);
    if (message.type === "error") reject?.(new Error(`${message.error}: ${message.message}`));
    else resolve?.(message.result);
  }

  send(method, params) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }

  setViewport(width, height) {
    return this.send("browsingContext.setViewport", { context: this.context, viewport: { width, height } });
  }

  goto(url) {
    return this.send("browsingContext.navigate", { context: this.context, url, wait: "complete" });
  }

  /** The value of an expression, awaited. */
  async evaluate(expression) {
    const answer = await this.send("script.evaluate", { expression, target: { context: this.context }, awaitPromise: true });
    if (answer.type === "exception") throw new Error(answer.exceptionDetails.text);
    return answer.result.value;
  }

  async screenshot(path) {
    const { data } = await this.send("browsingContext.captureScreenshot", { context: this.context, origin: "document" });
    writeFileSync(path, Buffer.from(data, "base64"));
  }

  takeEvents() {
    return this.#events.splice(0);
  }

  async close() {
    this.#socket?.close();
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = new Promise((resolve) => this.#child.once("exit", resolve));
      this.#child.kill("SIGTERM");
      await ended;
    }
    rmSync(this.#profile, { recursive: true, force: true });
  }
}
