import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { afterEach, beforeEach, describe, it } from "node:test";

import { Transfer, formatBytes, formatSeconds } from "../../../static/js/resumable.js";

const SIZE = 5 * 2 ** 20 + 7;
const FILE = new Blob([Buffer.alloc(SIZE, "0123456789")]);

let server, transfer, pauses, person;

// Stores parts as the server does; `script` has answers that it gives instead, one for each request.
class Tus {
  constructor() { Object.assign(this, { stored: Buffer.alloc(0), script: [], requests: [], csrf: "old" }); }

  async start() {
    this.http = createServer((request, response) => {
      const parts = [];
      request.on("data", (part) => parts.push(part));
      request.on("end", () => this.answer(request, response, Buffer.concat(parts)));
    });
    await new Promise((ready) => { this.http.listen(0, "127.0.0.1", ready); });
    return `http://127.0.0.1:${this.http.address().port}/`;
  }

  answer({ method, headers }, response, body) {
    this.requests.push(`${method} ${headers["upload-offset"] ?? ""}`.trim());
    const { status, hang, lose, told = {}, detail } = this.script.shift() ?? {};
    if (hang) return request.destroy();
    if (status) return response.writeHead(status, told).end(JSON.stringify({ detail }));
    if (headers["x-csrftoken"] !== this.csrf) return response.writeHead(403).end('{"detail": "CSRF"}');
    if (method === "PATCH") {
      if (Number(headers["upload-offset"]) !== this.stored.length) return response.writeHead(409).end();
      const digest = createHash("sha256").update(body).digest("base64");
      assert.equal(headers["upload-checksum"], `sha256 ${digest}`);
      this.stored = Buffer.concat([this.stored, body]);
    }
    if (lose) return response.destroy();
    return response.writeHead(204, { "Upload-Offset": String(this.stored.length) }).end();
  }
}

beforeEach(async () => {
  [server, pauses, person] = [new Tus(), [], true];
  const address = await server.start();
  let csrf = "old";
  transfer = new Transfer(FILE, address, {
    token: () => csrf,
    renew: async () => { csrf = server.csrf; return person; },
    wait: (pause) => { pauses.push(pause); return [Promise.resolve(), () => {}]; },
  });
});

afterEach(() => { server.http.closeAllConnections(); server.http.close(); });

async function sentWhole() {
  assert.equal(await transfer.run(), "done");
  assert.ok(server.stored.equals(Buffer.from(await FILE.arrayBuffer())));
}

describe("a transfer", () => {
  it("sends every byte once, with its checksum", async () => {
    await sentWhole();
    assert.deepEqual(pauses, []);
    assert.deepEqual(server.requests.slice(0, 2), ["HEAD", "PATCH 0"]);
  });

  it("continues where the server is", async () => {
    server.stored = Buffer.from(await FILE.slice(0, 2 ** 21 + 1).arrayBuffer());
    await sentWhole();
    assert.equal(server.requests[1], `PATCH ${2 ** 21 + 1}`);
  });

  it("asks for the offset after a lost answer, and sends nothing twice", async () => {
    server.script = [{}, { lose: true }];
    await sentWhole();
    assert.deepEqual(server.requests.slice(0, 4), ["HEAD", "PATCH 0", "HEAD", `PATCH ${2 ** 20}`]);
  });

  it("pauses longer after each failure, and as long as the server says", async () => {
    const full = { status: 507, told: { "Retry-After": "60" }, detail: "The disk is full." };
    server.script = [{ status: 502 }, { lose: true }, {}, full, {}, { status: 460 }, {}, {}, { status: 500 }];
    const shown = new Set();
    transfer.changed = ({ state, trouble }) => shown.add(`${state} ${trouble}`);
    await sentWhole();
    assert.deepEqual(pauses, [1000, 2000, 60000, 8000, 1000]);
    assert.ok(shown.has("waiting The disk is full."));
  });

  it("sends a new token after signing in elsewhere, and waits while nobody is signed in", async () => {
    server.csrf = "fresh";
    await sentWhole();
    server.csrf = "fresher";
    server.stored = Buffer.alloc(0);
    person = false;
    transfer.state = "sending";
    transfer.changed = ({ trouble }) => { if (trouble.startsWith("You are signed out")) person = true; };
    await sentWhole();
  });

  it("stops with the server's reason where another attempt cannot help", async () => {
    for (const [status, reason] of [[404, /expired/], [413, /too many/], [403, /too many/]]) {
      server.script = [{}, { status, detail: "too many" }, {}, { status, detail: "too many" }];
      Object.assign(transfer, { state: "sending", failures: 0 });
      assert.equal(await transfer.run(), "failed");
      assert.match(transfer.trouble, reason);
    }
  });

  it("stops when the file cannot be read any more", async () => {
    transfer.file = { size: SIZE, slice: () => ({ arrayBuffer: () => Promise.reject(new Error()) }) };
    assert.equal(await transfer.run(), "failed");
    assert.match(transfer.trouble, /Choose it again/);
  });

  it("pauses and continues, or is given up", async () => {
    let wake;
    transfer.wait = () => { const over = new Promise((resolve) => { wake = resolve; }); return [over, wake]; };
    const paused = new Promise((resolve) => { transfer.changed = ({ state }) => { if (state === "paused") resolve(); }; });
    transfer.pause();
    const end = transfer.run();
    await paused;
    assert.deepEqual(server.requests, []);
    transfer.resume();
    assert.equal(await end, "done");
    transfer.pause();
    Object.assign(transfer, { state: "sending" });
    const stopped = transfer.run();
    await transfer.cancel();
    assert.equal(await stopped, "cancelled");
    assert.equal(server.requests.at(-1), "DELETE");
  });
});

it("sizes and times are in words", () => {
  assert.deepEqual([0, 1.5e6, 2.34e9].map(formatBytes), ["0.0 kB", "1.5 MB", "2.3 GB"]);
  assert.deepEqual([0.2, 45, 130, 9000].map(formatSeconds), ["1 second", "45 seconds", "2 minutes", "2.5 hours"]);
});
