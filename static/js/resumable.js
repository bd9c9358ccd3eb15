// Sends a file in parts (tus 1.0.0). A broken connection costs one part at most: the server says where to continue.

export const SMALLEST = 2 ** 20, LARGEST = 2 ** 23; // bytes of a part
const PART = 1000; // milliseconds that a part may take
const PATIENCE = 120_000; // milliseconds until a silent server counts as one that cannot be reached
const FIRST_PAUSE = 1000, LONGEST_PAUSE = 60_000; // milliseconds between two attempts
const TUS = { "Tus-Resumable": "1.0.0", Accept: "application/json" };
const CURABLE = new Set([408, 409, 429, 460]); // of 4xx, what another attempt may cure

// Another attempt may succeed, after `pause` milliseconds at least.
class Trouble extends Error {
  constructor(message, pause = 0) { super(message); this.pause = pause; }
}

// No attempt can succeed.
export class Failure extends Error { name = "Failure"; }

export class Transfer {
  // `token` returns the CSRF token; `renew` gets a new one, and returns whether the same person is signed in; `changed`
  // is called whenever there is something to show; `wait` returns a promise and the function that ends it early.
  constructor(file, address, { token, renew, changed = () => {}, wait = waitFor }) {
    Object.assign(this, { file, address, token, renew, changed, wait });
    Object.assign(this, { offset: 0, size: SMALLEST, rate: 0, state: "sending", trouble: "", failures: 0 });
  }

  // Resolves to "done", "failed" or "cancelled".
  async run() {
    let known = false;
    while (!this.ended) {
      if (this.isPaused) {
        known = false;
        await this.rest("paused", Infinity);
        continue;
      }
      try {
        if (known) await this.sendPart();
        else this.offset = await this.ask();
        if (known) this.failures = 0;
        known = true;
        this.show(this.offset < this.file.size ? "sending" : "done");
      } catch (error) {
        known = false;
        if (error instanceof Failure) this.show("failed", error.message);
        else if (!this.ended) await this.recover(error);
      }
    }
    return this.state;
  }

  get ended() { return ["done", "failed", "cancelled"].includes(this.state); }

  get seconds() { return this.rate ? (this.file.size - this.offset) / this.rate : null; }

  pause() { this.isPaused = true; }

  resume() {
    this.isPaused = false;
    this.wake?.();
  }

  async cancel() {
    this.show("cancelled");
    this.wake?.();
    await this.request("DELETE", {});
  }

  show(state, trouble = "") {
    if (this.state !== "cancelled") Object.assign(this, { state, trouble });
    this.changed(this);
  }

  async recover(error) {
    this.size = SMALLEST;
    const pause = Math.max(error.pause ?? 0, Math.min(FIRST_PAUSE * 2 ** this.failures, LONGEST_PAUSE));
    this.failures += 1;
    await this.rest("waiting", pause, error.message);
  }

  async rest(state, pause, trouble) {
    this.show(state, trouble);
    const [over, wake] = this.wait(pause);
    this.wake = wake;
    await over;
    this.show("sending");
  }

  async ask() {
    const answer = await this.request("HEAD", {});
    return Number(answer.headers.get("Upload-Offset"));
  }

  async sendPart() {
    const began = performance.now(), part = this.file.slice(this.offset, this.offset + this.size);
    const body = await part.arrayBuffer().catch(() => { throw new Failure("The browser cannot read the file any more. Choose it again."); });
    const headers = { "Upload-Offset": String(this.offset), "Content-Type": "application/offset+octet-stream" };
    // Browsers offer it in secure contexts only.
    if (globalThis.crypto?.subtle) headers["Upload-Checksum"] = `sha256 ${encode(await crypto.subtle.digest("SHA-256", body))}`;
    const answer = await this.request("PATCH", headers, body);
    const reached = Number(answer.headers.get("Upload-Offset"));
    const rate = (reached - this.offset) / Math.max(performance.now() - began, 1); // bytes per millisecond
    this.size = Math.round(Math.min(Math.max(rate * PART, SMALLEST), LARGEST));
    this.rate = this.rate ? this.rate * 0.8 + rate * 200 : rate * 1000;
    this.offset = reached;
    this.wasRefused = false;
  }

  async request(method, headers, body) {
    const sent = { ...TUS, ...headers, "X-CSRFToken": this.token() };
    const limited = { signal: AbortSignal.timeout(PATIENCE) };
    const answer = await fetch(this.address, { method, body, headers: sent, ...limited }).catch(() => {
      throw new Trouble("The server cannot be reached.");
    });
    if (answer.ok && !answer.redirected) return answer;
    const problem = await answer.json().catch(() => ({}));
    const detail = problem.detail ?? `The server answered ${answer.status}.`;
    if (answer.redirected || answer.status === 401 || answer.status === 403) throw await this.refusal(detail);
    if (answer.status === 404) throw new Failure("The upload was given up or has expired. Start again.");
    if (answer.status < 500 && !CURABLE.has(answer.status)) throw new Failure(detail);
    throw new Trouble(detail, Number(answer.headers.get("Retry-After")) * 1000);
  }

  // A token is out of date after signing in elsewhere; a second refusal with a new token has another reason.
  async refusal(detail) {
    const signedIn = await this.renew().catch(() => false);
    if (!signedIn) return new Trouble("You are signed out. Sign in in another tab, then the upload continues.");
    if (this.wasRefused) return new Failure(detail);
    this.wasRefused = true;
    return new Trouble(detail);
  }
}

function waitFor(pause) {
  let wake;
  const over = new Promise((resolve) => { wake = resolve; });
  if (pause < Infinity) setTimeout(wake, pause);
  return [over, wake];
}

function encode(digest) { return btoa(String.fromCharCode(...new Uint8Array(digest))); }

export function formatBytes(size) {
  const [unit, name] = size >= 1e9 ? [1e9, "GB"] : size >= 1e6 ? [1e6, "MB"] : [1e3, "kB"];
  return `${(size / unit).toFixed(1)} ${name}`;
}

export function formatSeconds(seconds) {
  if (seconds < 90) return counted(Math.max(Math.round(seconds), 1), "second");
  if (seconds < 5400) return counted(Math.round(seconds / 60), "minute");
  return `${(seconds / 3600).toFixed(1)} hours`;
}

function counted(number, noun) { return `${number} ${noun}${number === 1 ? "" : "s"}`; }
