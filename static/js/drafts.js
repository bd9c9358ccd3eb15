// Nothing that is typed is lost: it is saved within a second, kept in this browser until then, and submitted by script.

import { Copy, Saving, different, encode, fill, inWords, title, trouble, typed } from "./typed.js";

const REASONS = {
  "signed out": "you are signed out",
  offline: "you are offline",
  "no answer": "the server cannot be reached",
};

export class Drafts {
  constructor(form, session, activity) {
    Object.assign(this, { form, session, activity });
    this.status = document.getElementById("saved");
    this.copy = new Copy(this.status.dataset.person, this.status.dataset.trajectory);
    this.saving = new Saving(this);
    form.autocomplete = "off"; // the browser's own idea of what was typed is older than ours
    form.addEventListener("input", () => this.saving.changed());
    form.addEventListener("change", () => this.saving.changed());
    form.addEventListener("submit", (event) => this.submitting(event));
    window.addEventListener("online", () => this.saving.retry());
    document.addEventListener("signed-in", () => this.saving.retry());
    window.addEventListener("pagehide", () => this.leaving());
    window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
    window.addEventListener("beforeunload", (event) => this.beforeLeaving(event));
    this.localTime(this.status.querySelector("time"));
    this.restore();
    // A form that was refused holds what no draft may have yet.
    if (form.hasAttribute("data-unsaved")) this.saving.changed();
  }

  get version() { return Number(this.form.elements.version.value); }
  adopt(version) { this.form.elements.version.value = version; }
  get place() { return new URL(this.form.action).pathname; }

  // --- interface for `Saving` ---

  fields() { return typed(this.form); }

  keep(sent, saved = false) {
    const { version, place } = this;
    this.kept = this.copy.write({ fields: this.fields(), version, place, sent, saved });
  }

  post() { return this.session.fetch(this.form.dataset.draft, { body: () => encode(this.form) }); }
  measure() { return this.activity.report(); }

  submit(submitter) {
    const body = () => {
      const body = encode(this.form);
      if (submitter?.name) body.append(submitter.name, submitter.value);
      return body;
    };
    return this.session.fetch(this.form.action, { body });
  }

  // --- leaving the page ---

  leaving() {
    if (!this.saving.dirty || this.saving.submission || this.saving.done) return;
    const request = { method: "POST", body: encode(this.form), headers: { Accept: "application/json" }, keepalive: true };
    fetch(this.form.dataset.draft, request).catch(() => {});
  }

  beforeLeaving(event) {
    this.left = true;
    if (this.passed || this.saving.done) return;
    if (this.saving.submission || (this.saving.dirty && !this.kept)) event.preventDefault();
  }

  // --- result of a save ---

  saved(draft, dirty) {
    this.adopt(draft.version);
    if (dirty) this.keep(this.saving.sent);
    else if (this.left) this.keep(null, true); // the next page may have been rendered before this save
    else this.copy.remove();
    const time = document.createElement("time");
    time.dateTime = draft.saved_at;
    this.localTime(time);
    this.status.replaceChildren("saved ", time);
    this.status.className = "chip ok";
    this.missing(draft.missing);
  }

  unsaved(answer) {
    this.failed(`not saved: ${answer.status === 409 && answer.said?.message || trouble(answer)}`);
    this.activity.heard(answer.said);
  }

  failed(text) {
    this.status.textContent = text;
    this.status.className = "chip bad";
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
    const shown = kept.saved && kept.version <= this.version;
    if (shown || different(kept.fields, there).length === 0) this.copy.remove(kept.key);
    else if (kept.place === this.place && (kept.version >= this.version || this.arrived(kept, there))) this.restored(kept);
    else this.compare({ there, version: this.version }, kept);
  }

  // The server has moved on by nothing but this window's own last save.
  arrived(kept, there) { return Boolean(kept.sent) && different(kept.sent, there).length === 0; }

  restored(kept) {
    // What the earlier page sent as it was left may arrive only now.
    this.saving.unanswered.push(kept.fields, ...(kept.sent ? [kept.sent] : []));
    fill(this.form, kept.fields);
    // This page may have been rendered before a save of the earlier one.
    this.adopt(Math.max(kept.version, this.version));
    if (!kept.saved) this.say(`Restored unsaved text from ${clock(kept.at)}`);
    this.saving.changed();
    if (kept.key !== this.copy.key) this.copy.remove(kept.key);
  }

  // --- two versions ---

  // No dialog opens by itself: it would take the focus from a person who is typing.
  conflict(said) {
    this.form.removeAttribute("aria-busy");
    this.failed("not saved: edited in another window");
    const button = Object.assign(document.createElement("button"), { type: "button", className: "small", textContent: "Compare both" });
    button.onclick = () => this.compare(said);
    this.say("This was edited in another window. What you type here is saved in this browser only. ", "error", button);
  }

  // `here` comes from `kept`, the copy of an earlier page, or from the form.
  compare({ there, version }, kept = null) {
    const dialog = document.getElementById("conflict");
    const here = kept?.fields ?? this.fields();
    dialog.querySelector("tbody").replaceChildren(...different(here, there).map((name) => this.row(name, here, there)));
    const keep = (fields) => {
      dialog.onclose = null;
      dialog.close();
      fill(this.form, fields);
      this.adopt(version);
      this.say("");
      this.saving.settled();
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
  submitting(event) {
    if (this.passed) return;
    if (event.submitter?.hasAttribute("formaction")) {
      this.saving.stop();
      if (!this.saving.saving) return;
      event.preventDefault(); // the draft that is on its way has a new version
      this.saving.saving.then(() => this.form.requestSubmit(event.submitter));
      return;
    }
    event.preventDefault();
    if (this.saving.conflict) this.compare(this.saving.conflict);
    else this.saving.submit(event.submitter);
  }

  sending() {
    this.form.setAttribute("aria-busy", "true");
    this.status.textContent = "submitting…";
    this.status.className = "chip";
  }

  submitted(address, whole) {
    this.form.removeAttribute("aria-busy");
    if (whole) {
      this.copy.removeAll();
      return location.assign(address);
    }
    this.failed("submitted without the last changes");
    const text = "Submitted without your last changes. They are saved in this browser. ";
    return this.say(text, "error", link(`${location.pathname}?revise`, "Open it again"), " ", link(address, "Continue"));
  }

  // The server has a page to show, such as the form with its errors: let the browser fetch it.
  pass(submitter) {
    this.passed = true;
    this.form.requestSubmit(submitter);
  }

  notSubmitted(answer, again) {
    this.form.removeAttribute("aria-busy");
    this.failed("not submitted");
    this.activity.heard(answer.said);
    const said = answer.said?.message ?? answer.said?.detail;
    if (again) {
      const reason = answer.status ? said ?? trouble(answer) : REASONS[trouble(answer)];
      const then = trouble(answer) === "signed out" ? "It will be submitted after you sign in" : "It will be submitted automatically when this works again";
      return this.say(`Not submitted yet: ${reason}. What you typed is saved in this browser. ${then}, unless you change it. `, "error");
    }
    const reason = said ?? `the server has refused it (${answer.status}). What you typed is saved in this browser.`;
    const label = answer.said?.code === "label_submitted";
    const more = label ? link(`${location.pathname}?revise`, "Revise the label") : link(location.pathname, "Show the saved version");
    return this.say(`Not submitted: ${reason} `, "error", more);
  }

  stopped() { this.say("Not submitted: the form has changed. Submit it again when it is complete.", "error"); }
}

function link(href, textContent) { return Object.assign(document.createElement("a"), { href, textContent }); }

const clock = (moment) => new Date(moment).toTimeString().slice(0, 8);
