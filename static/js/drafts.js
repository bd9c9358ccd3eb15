// Nothing that is typed is lost: it is saved within a second, kept in this browser until then, and submitted by script.

import { SignedOut } from "./session.js";
import { Copy, different, fill, inWords, title, typed } from "./typed.js";

const DELAY = 600; // milliseconds from a change to its save
const SIGNED_OUT = "you are signed out. What you typed is kept; submit again when you have signed in.";
const PAUSES = [1000, 2000, 4000, 8000, 15_000]; // until the next try, while saving fails

export class Drafts {
  constructor(form, session, activity) {
    Object.assign(this, { form, session, activity, timer: null, saving: null, dirty: false, failures: 0 });
    this.status = document.getElementById("saved");
    this.copy = new Copy(this.status.dataset.person, this.status.dataset.trajectory);
    form.autocomplete = "off"; // the browser's own idea of what was typed is older than ours
    form.addEventListener("input", () => this.changed());
    form.addEventListener("change", () => this.changed());
    form.addEventListener("submit", (event) => this.submitting(event));
    window.addEventListener("online", () => { if (this.dirty) this.save(); });
    window.addEventListener("pagehide", () => { if (this.dirty) this.send(true).catch(() => {}); });
    window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
    window.addEventListener("beforeunload", (event) => { if (this.dirty && !this.kept) event.preventDefault(); });
    document.addEventListener("signing-in", () => { if (this.dirty || this.saving) this.failed("not saved: signed out"); });
    document.addEventListener("signed-in", () => { if (this.dirty) this.save(); });
    this.localTime(this.status.querySelector("time"));
    this.restore();
    // A form that was refused holds what no draft may have yet.
    if (form.hasAttribute("data-unsaved")) this.changed();
  }

  get version() { return Number(this.form.elements.version.value); }
  get place() { return new URL(this.form.action).pathname; }

  // `sent` is what the last save took along: a page that is left before the answer does not know whether it arrived.
  keep() {
    const { version, place, sent } = this;
    this.kept = this.copy.write({ fields: typed(this.form), version, place, sent });
  }

  changed() {
    this.dirty = true;
    if (this.closed) return;
    this.keep();
    this.timer ??= setTimeout(() => this.save(), DELAY);
  }

  async save() {
    clearTimeout(this.timer);
    this.timer = null;
    if (this.saving) { this.timer = setTimeout(() => this.save(), DELAY); return; }
    this.dirty = false;
    this.sent = typed(this.form);
    this.keep();
    this.saving = this.send(false);
    const again = await this.saving;
    this.saving = null;
    if (!again || this.closed) return;
    this.dirty = true;
    this.timer ??= setTimeout(() => this.save(), PAUSES[Math.min(this.failures++, PAUSES.length - 1)]);
  }

  // Returns whether it must be tried again.
  async send(leaving) {
    const address = this.form.dataset.draft, body = () => new FormData(this.form);
    if (leaving) {
      const headers = { Accept: "application/json" };
      return fetch(address, { method: "POST", body: body(), headers, keepalive: true });
    }
    let answer;
    try {
      answer = await this.session.fetch(address, { body });
    } catch (problem) {
      if (problem instanceof SignedOut) return this.signedOut("not saved: signed out");
      return this.failed(navigator.onLine ? "not saved: no answer" : "not saved: offline", true);
    }
    if (answer.status === 409) return this.stale(await answer.json());
    if (!answer.ok) return this.failed(`not saved: refused (${answer.status})`, answer.status >= 500 || answer.status === 429);
    this.saved(await answer.json());
    return false;
  }

  saved(draft) {
    this.failures = 0;
    this.form.elements.version.value = draft.version;
    if (this.dirty) this.keep();
    else this.copy.remove();
    const time = document.createElement("time");
    time.dateTime = draft.saved_at;
    this.localTime(time);
    this.status.replaceChildren("saved ", time);
    this.status.className = "chip ok";
    this.missing(draft.missing);
    if (this.unreached) this.say("The connection is back and what you typed is saved. It is not submitted yet.");
    this.unreached = false;
  }

  failed(text, again) {
    this.status.textContent = text;
    this.status.className = "chip bad";
    return again;
  }

  // The retries go on: they notice when the person has signed in in another window.
  signedOut(text) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "small", textContent: "Sign in" });
    button.onclick = () => this.session.restored(true).then(() => { this.say(""); this.save(); }, () => {});
    this.say("You are signed out. What you typed is kept in this browser. ", "error", button);
    return this.failed(text, true);
  }

  say(text, kind = "info", ...more) {
    const item = document.createElement("li");
    item.className = kind;
    item.append(text, ...more);
    document.getElementById("notices").replaceChildren(...(text ? [item] : []));
    item.scrollIntoView({ block: "nearest" });
  }

  localTime(time) {
    if (time) time.textContent = clock(time.dateTime);
  }

  missing(problems) {
    this.forgive(new Set(problems.map((problem) => problem.where)));
    const details = this.form.querySelector(".missing");
    details.hidden = problems.length === 0;
    this.form.querySelector(".complete").hidden = problems.length > 0;
    details.querySelector("[data-count]").textContent = problems.length;
    details.querySelector("ul").replaceChildren(...problems.map((problem) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = `#f-${problem.where}`;
      link.textContent = problem.message;
      item.append(link);
      return item;
    }));
    this.form.dispatchEvent(new CustomEvent("missing", { detail: { count: problems.length } }));
  }

  // What a refused form complained of goes away as it is mended.
  forgive(still) {
    this.form.querySelectorAll(".summary a").forEach((link) => {
      const where = link.hash.slice("#f-".length);
      if (still.has(where)) return;
      link.closest("li").remove();
      const block = document.getElementById(`f-${where}`)?.closest(".wrong");
      block?.classList.remove("wrong");
      block?.querySelector(".error")?.remove();
    });
    const summary = this.form.querySelector(".summary");
    if (summary && !summary.querySelector("li")) summary.remove();
  }

  // --- what an earlier page left ---

  restore() {
    const kept = this.copy.newest();
    if (!kept) return;
    const there = typed(this.form);
    if (different(kept.fields, there).length === 0) this.copy.remove(kept.key);
    else if (kept.place === this.place && (kept.version === this.version || this.arrived(kept, there))) this.restored(kept);
    else this.conflict({ here: kept.fields, there, version: this.version }, kept);
  }

  // The server has moved on by nothing but this window's own last save.
  arrived(kept, there) { return Boolean(kept.sent) && different(kept.sent, there).length === 0; }

  restored(kept) {
    fill(this.form, kept.fields);
    this.say(`Restored what was not saved: ${clock(kept.at)}`);
    this.changed();
    if (kept.key !== this.copy.key) this.copy.remove(kept.key);
  }

  // --- two versions ---

  stale(answer) {
    if (!answer.there) return this.failed(`not saved: ${answer.message}`, false);
    this.conflict(answer);
    return this.failed("not saved: edited elsewhere", false);
  }

  // `here` and `there` are the fields of both, `kept` the copy that one of them comes from.
  conflict({ here, there, version }, kept = null) {
    const dialog = document.getElementById("conflict");
    dialog.querySelector("tbody").replaceChildren(...different(here, there).map((name) => this.row(name, here, there)));
    const keep = (fields) => {
      dialog.onclose = null;
      dialog.close();
      fill(this.form, fields);
      this.form.elements.version.value = version;
      this.changed();
      if (kept && kept.key !== this.copy.key) this.copy.remove(kept.key);
    };
    dialog.querySelector("[data-keep=here]").onclick = () => keep(here);
    dialog.querySelector("[data-keep=there]").onclick = () => keep(there);
    // Nobody chooses by Escape which one is lost.
    dialog.onclose = () => dialog.showModal();
    if (!dialog.open) dialog.showModal();
  }

  row(name, here, there) {
    const row = document.createElement("tr");
    const heading = document.createElement("th");
    heading.scope = "row";
    heading.textContent = title(this.form, name);
    row.append(heading, ...[here, there].map((fields) => {
      const cell = document.createElement("td");
      cell.className = "agent pre";
      cell.textContent = inWords(this.form, name, fields[name]);
      return cell;
    }));
    return row;
  }

  // --- submitting ---

  // By script: a page that cannot be reached must not take the form's place.
  async submitting(event) {
    if (this.passed || event.submitter?.hasAttribute("formaction")) return;
    event.preventDefault();
    if (this.closed) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.keep();
    // A save on its way would arrive after the label and leave a draft behind: it is waited for.
    this.closed = true;
    this.form.setAttribute("aria-busy", "true");
    await this.saving;
    const { dismissed } = this.session;
    await this.activity.report();
    // Who has just said "not now" is not asked a second time.
    if (this.session.dismissed <= dismissed) await this.submit(event.submitter);
    else this.stay(SIGNED_OUT);
    this.form.removeAttribute("aria-busy");
  }

  async submit(submitter) {
    const body = () => {
      const body = new FormData(this.form);
      if (submitter?.name) body.append(submitter.name, submitter.value);
      return body;
    };
    let answer;
    try {
      answer = await this.session.fetch(this.form.action, { body, asked: true });
    } catch (problem) {
      if (problem instanceof SignedOut) return this.stay(SIGNED_OUT);
      this.unreached = true;
      return this.stay("the server cannot be reached. What you typed is kept here; submit again when the connection is back.");
    }
    const said = answer.headers.get("Content-Type")?.startsWith("application/json") ? await answer.json() : {};
    if (said.address) return this.leave(said.address);
    if (answer.ok || answer.status === 400) return this.pass(submitter);
    const link = document.createElement("a");
    Object.assign(link, { href: location.pathname, textContent: "Show what the server has" });
    return this.stay(`${said.message ?? `the server has refused it (${answer.status}). What you typed is kept.`} `, link);
  }

  leave(address) {
    this.dirty = false;
    this.copy.removeAll();
    location.assign(address);
  }

  // The server has a page to show, such as the form with its errors: let the browser fetch it.
  pass(submitter) {
    this.passed = true;
    this.dirty = false;
    this.form.requestSubmit(submitter);
  }

  stay(text, ...more) {
    this.closed = false;
    this.say(`Not submitted: ${text}`, "error", ...more);
    this.changed();
  }
}

const clock = (moment) => new Date(moment).toTimeString().slice(0, 8);
