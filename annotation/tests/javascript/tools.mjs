// What the tests have in common: a server that answers as it is told, a clock that is set by hand, a page of few parts.

import { createServer } from "node:http";

export const GOOD = { status: 200, body: JSON.stringify({ version: 1, saved_at: "2026-11-23T10:00:00Z", missing: [] }) };
export const LABEL = { status: 200, body: JSON.stringify({ address: "/trajectories/2" }) };

// Answers one request after the other by `script`: {status, body, headers, promised, hang}; its last one for ever.
export class Server {
  async start() {
    this.script = [];
    this.requests = [];
    this.server = createServer((request, response) => this.answer(request, response));
    await new Promise((ready) => { this.server.listen(0, "127.0.0.1", ready); });
    this.address = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise((done) => { this.server.close(done); });
  }

  answer(request, response) {
    let body = "";
    request.on("data", (part) => { body += part; });
    request.on("end", () => {
      const path = new URL(request.url, this.address).pathname;
      if (path === "/session") return response.end(JSON.stringify({ person: this.person ?? 1, csrf: "fresh" }));
      if (path === "/sign-in") return response.end("<h1>Sign in</h1>");
      this.requests.push({ path, body });
      const { status = 200, body: text = "", headers = {}, promised, hang } = this.script.length > 1 ? this.script.shift() : this.script[0];
      if (hang === "before") return null;
      response.writeHead(status, promised ? { ...headers, "Content-Length": promised } : headers);
      if (!promised && !hang) return response.end(text);
      response.write(text);
      return hang ? null : setTimeout(() => response.destroy());
    });
  }
}

export class Clock {
  constructor() { Object.assign(this, { now: 0, timers: [] }); }
  setTimeout(act, pause) { return this.timers.push({ act, at: this.now + pause }); }
  clearTimeout(number) { if (number) this.timers[number - 1].act = null; }
  get pending() { return this.timers.filter((timer) => timer.act).map((timer) => timer.at - this.now).sort((a, b) => a - b); }

  // Runs what is due, the earliest first; what it returns has to be awaited, since saving takes a request.
  async pass(pause) {
    this.now += pause;
    for (const timer of this.timers.filter(({ act, at }) => act && at <= this.now).sort((a, b) => a.at - b.at)) {
      const { act } = timer;
      timer.act = null;
      await act();
    }
  }
}

// A page as `Session` needs it: the dialog, its form, and the bar.
export function page(address) {
  const part = () => ({ hidden: true, addEventListener() {}, close() {}, contains: () => false, querySelector: () => part() });
  const form = { ...part(), action: `${address}/sign-in`, dataset: { person: "1", session: `${address}/session` } };
  const parts = { "signed-out": { ...part(), querySelector: (name) => (name === "form" ? form : part()) }, "session-ended": part() };
  globalThis.CustomEvent ??= class extends Event {};
  const token = { value: "old" };
  globalThis.document = Object.assign(new EventTarget(), { getElementById: (id) => parts[id], querySelectorAll: () => [token] });
  return { token, bar: parts["session-ended"] };
}
