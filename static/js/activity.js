// How long somebody works on a trajectory, which steps they open, and how long it is held for them.

import { SignedOut } from "./session.js";
import { encode } from "./typed.js";

const IDLE = 60_000; // milliseconds after the last sign of a person in which time still counts
const EVERY = 20_000;
const SOON = 600_000; // the end of a hold is shown when it is nearer than this
const SIGNS = ["pointermove", "pointerdown", "keydown", "input", "wheel", "touchmove", "scroll"];

export class Activity {
  constructor(session) {
    const { activity, revising } = document.getElementById("saved").dataset;
    Object.assign(this, { session, address: activity, revising: revising ?? "", milliseconds: 0 });
    this.lease = new Lease(session);
    this.steps = new Set([Number(document.getElementById("stage").dataset.index)]);
    this.visible = !document.hidden;
    this.until = performance.now(); // counted up to here
    this.last = this.until; // whoever opens a page has just pressed something
    SIGNS.forEach((sign) => document.addEventListener(sign, (event) => event.isTrusted && this.sign(), { capture: true, passive: true }));
    document.addEventListener("visibilitychange", () => this.count());
    document.addEventListener("step", (event) => this.steps.add(event.detail.index));
    window.addEventListener("pagehide", () => this.leave());
    setInterval(() => this.report(), EVERY);
  }

  sign() {
    this.count();
    this.last = this.until;
  }

  count() {
    const now = performance.now();
    if (this.visible) this.milliseconds += Math.max(0, Math.min(now, this.last + IDLE) - this.until);
    this.until = now;
    this.visible = !document.hidden;
  }

  taken() {
    this.count();
    const taken = { seconds: this.milliseconds / 1000, steps: [...this.steps] };
    this.milliseconds = 0;
    this.steps = new Set();
    return taken;
  }

  putBack({ seconds, steps }) {
    this.milliseconds += seconds * 1000;
    steps.forEach((step) => this.steps.add(step));
  }

  body({ seconds, steps }) {
    const token = document.querySelector("#label-form [name=csrfmiddlewaretoken]").value;
    const fields = { csrfmiddlewaretoken: token, seconds: seconds.toFixed(2), steps: steps.join(","), revising: this.revising };
    return new URLSearchParams(fields);
  }

  report() {
    this.reporting ??= this.send().finally(() => { this.reporting = null; });
    return this.reporting;
  }

  async send() {
    const taken = this.taken();
    if (!taken.seconds && !taken.steps.length) return;
    try {
      const answer = await this.session.fetch(this.address, { body: () => this.body(taken) });
      if (answer.ok) this.heard(await answer.json());
      else if (answer.status >= 500) this.putBack(taken);
    } catch {
      this.putBack(taken); // offline or signed out
    }
  }

  // Apply the lease in an answer of the server; `said` may be null or have no lease.
  heard(said) {
    if (said?.code === "label_submitted") this.lease.filled();
    else if (said && "lease_expires_at" in said) this.lease.set(said.lease_expires_at);
  }

  leave() {
    const taken = this.taken();
    if (!taken.seconds && !taken.steps.length) return;
    fetch(this.address, { method: "POST", body: this.body(taken), headers: { Accept: "application/json" }, keepalive: true })
      .catch(() => {});
  }
}

class Lease {
  constructor(session) {
    this.session = session;
    this.chip = document.getElementById("lease");
    this.note = document.getElementById("run-out");
    if (!this.chip) return; // a revision, or an adjudication
    this.note.querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); this.hold(event.target); });
    this.set(this.chip.dataset.until || null);
  }

  // `until` as ISO text, null when it is not held.
  set(until) {
    if (!this.chip) return;
    this.end = until ? Date.parse(until) : 0;
    this.show();
  }

  // The label is submitted, perhaps from another window, so no lease is needed.
  filled() {
    if (!this.chip) return;
    clearTimeout(this.timer);
    this.chip.hidden = true;
    this.note.hidden = true;
    this.chip = null;
  }

  show() {
    clearTimeout(this.timer);
    const left = this.end - Date.now();
    if (left > 0) this.timer = setTimeout(() => this.show(), Math.min(left > SOON ? left - SOON : left, 2 ** 30));
    this.chip.hidden = left > SOON;
    this.chip.textContent = left > 0 ? `reserved until ${new Date(this.end).toTimeString().slice(0, 5)}` : "reservation has expired";
    this.note.hidden = left > 0;
  }

  async hold(form) {
    const text = this.note.querySelector("[data-text]");
    try {
      const answer = await this.session.fetch(form.action, { body: () => encode(form) });
      const said = await answer.json().catch(() => ({}));
      if (said.lease_expires_at) this.set(said.lease_expires_at);
      else text.textContent = said.message ?? `Request failed (${answer.status}). What you typed is saved in this browser.`;
      if (said.code === "label_submitted") form.hidden = true;
    } catch (problem) {
      text.textContent = `${problem instanceof SignedOut ? "You are signed out." : "The server cannot be reached."} What you typed is saved in this browser.`;
    }
  }
}
