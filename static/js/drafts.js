// Saving what is typed within a second, and saying so.

const DELAY = 600; // milliseconds from a change to its save
const RETRY = 3000;

export class Drafts {
  constructor(form) {
    this.form = form;
    this.status = document.getElementById("saved");
    this.timer = null;
    this.saving = null;
    this.dirty = false;
    form.addEventListener("input", () => this.changed());
    form.addEventListener("change", () => this.changed());
    form.addEventListener("submit", (event) => this.submitting(event));
    window.addEventListener("pagehide", () => { if (this.dirty) this.send(true); });
    this.localTime(this.status?.querySelector("time"));
    // A form that was refused holds what no draft may have yet.
    if (form.hasAttribute("data-unsaved")) this.changed();
  }

  changed() {
    this.dirty = true;
    if (!this.timer && !this.closed) this.timer = setTimeout(() => this.save(), DELAY);
  }

  async save() {
    this.timer = null;
    if (this.saving) { this.timer = setTimeout(() => this.save(), DELAY); return; }
    this.dirty = false;
    this.saving = this.send(false);
    const again = await this.saving;
    this.saving = null;
    if (again && !this.closed) {
      this.dirty = true;
      this.timer ??= setTimeout(() => this.save(), RETRY);
    }
  }

  // Returns whether it must be tried again.
  async send(leaving) {
    let answer;
    try {
      const headers = { Accept: "application/json" };
      answer = await fetch(this.form.dataset.draft, { method: "POST", headers, body: new FormData(this.form), keepalive: leaving });
    } catch {
      return this.failed("not saved: offline", true);
    }
    if (answer.redirected) return this.failed("not saved: signed out", true);
    if (answer.status === 409) return this.conflict(await answer.json());
    if (!answer.ok) return this.failed(`not saved (${answer.status})`, answer.status >= 500);
    this.saved(await answer.json());
    return false;
  }

  saved(draft) {
    this.form.elements.version.value = draft.version;
    const time = document.createElement("time");
    time.dateTime = draft.saved_at;
    this.localTime(time);
    this.status.replaceChildren("saved ", time);
    this.status.className = "chip ok";
    this.missing(draft.missing);
  }

  failed(text, again) {
    this.status.textContent = text;
    this.status.className = "chip bad";
    return again;
  }

  localTime(time) {
    if (time) time.textContent = new Date(time.dateTime).toTimeString().slice(0, 8);
  }

  missing(problems) {
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
  }

  conflict(both) {
    const dialog = document.getElementById("conflict");
    const names = [...new Set([...Object.keys(both.here), ...Object.keys(both.there)])];
    const different = names.filter((name) => both.here[name] !== both.there[name]);
    dialog.querySelector("tbody").replaceChildren(...different.map((name) => {
      const row = document.createElement("tr");
      for (const text of [this.title(name), both.here[name] ?? "", both.there[name] ?? ""]) {
        const cell = document.createElement("td");
        cell.className = "agent pre";
        cell.textContent = text;
        row.append(cell);
      }
      return row;
    }));
    dialog.querySelector("[data-keep=here]").onclick = () => {
      this.form.elements.version.value = both.version;
      dialog.close();
      this.changed();
    };
    dialog.querySelector("[data-keep=there]").onclick = () => {
      this.closed = true;
      this.dirty = false;
      location.reload();
    };
    if (!dialog.open) dialog.showModal();
    return this.failed("not saved: edited elsewhere", false);
  }

  title(name) {
    const field = this.form.elements[name];
    return (field instanceof RadioNodeList ? field[0] : field)?.dataset.title ?? name;
  }

  // A save on its way would arrive after the label and leave a draft behind: it is waited for.
  async submitting(event) {
    clearTimeout(this.timer);
    this.timer = null;
    this.closed = true;
    this.dirty = false;
    if (!this.saving) return;
    event.preventDefault();
    await this.saving;
    this.form.requestSubmit(event.submitter);
  }
}
