// The annotator's own attempt: a timer, the steps counted from the lines of the notes, and the own path beside the agent's.

import { announce, showMessage } from "./viewer.js";

const SAVED_EVERY = 20; // seconds between two saves of the running time
const LONGEST = 3600; // seconds: a forgotten timer must not keep the trajectory reserved
const CLOCK = /^(?:(\d{1,2}):(?=[0-5]\d:))?(\d{1,3}):([0-5]\d)$/;
const ADDRESSES = /^https?:\/\/\S+(\s+https?:\/\/\S+)+$/;

// Seconds of a text such as 4:30 or 1:04:30; null if it is none.
function parseClock(text) {
  if (!text.trim()) return 0;
  const parts = CLOCK.exec(text.trim());
  return parts && (Number(parts[1] ?? 0) * 60 + Number(parts[2])) * 60 + Number(parts[3]);
}

function formatClock(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

const linesOf = (notes) => notes.split("\n").map((line) => line.trim()).filter(Boolean);

// What is pasted as several addresses becomes a line for each; anything else is left as it is (null).
const listAddresses = (pasted) => (ADDRESSES.test(pasted.trim()) ? `${pasted.trim().split(/\s+/).join("\n")}\n` : null);

function put(field, value) {
  field.value = value;
  for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
}

class Timer {
  constructor(field, button) {
    Object.assign(this, { field, button, running: null });
    button.disabled = false;
    button.addEventListener("click", () => (this.running ? this.pause() : this.start()));
    // A correction: the next tick would move the cursor.
    const correct = (event) => event.isTrusted && this.stop("Timer paused: continue it after your correction");
    for (const sign of ["pointerdown", "input"]) field.addEventListener(sign, correct);
    // Before the listeners of drafts.js, which send what the field has then.
    field.form.addEventListener("submit", () => this.pause(), { capture: true });
    window.addEventListener("pagehide", () => this.pause(), { capture: true });
  }

  start() {
    const before = parseClock(this.field.value);
    if (before === null) {
      this.field.focus();
      return showMessage("Correct the time first: minutes:seconds, such as 4:30");
    }
    this.run = { before, from: performance.now(), saved: 0 };
    this.running = setInterval(() => this.tick(), 1000);
    this.button.textContent = "Pause timer";
    if (!this.field.value.trim()) this.field.value = formatClock(0);
    return announce("Timer started");
  }

  get elapsed() { return Math.round((performance.now() - this.run.from) / 1000); }

  tick() {
    const { before, saved } = this.run;
    const elapsed = Math.min(this.elapsed, LONGEST);
    this.field.value = formatClock(before + elapsed);
    if (elapsed === LONGEST) return this.pause("Timer paused after an hour. Correct the time if you stopped earlier.");
    if (elapsed - saved >= SAVED_EVERY) {
      this.run.saved = elapsed;
      put(this.field, this.field.value);
    }
    return null;
  }

  pause(says = "Timer paused") {
    if (!this.running) return;
    this.stop(says);
    put(this.field, formatClock(this.run.before + Math.min(this.elapsed, LONGEST)));
  }

  stop(says) {
    if (!this.running) return;
    clearInterval(this.running);
    this.running = null;
    this.button.textContent = "Continue timer";
    announce(says);
  }
}

class Path {
  constructor(form) {
    this.notes = form.elements.attempt_notes;
    this.steps = form.elements.attempt_steps;
    this.count = form.querySelector("[data-count-steps]");
    this.own = form.querySelector("[data-own-path]"); // an answer has no steps to compare with
    form.addEventListener("input", () => this.show());
    this.notes.addEventListener("paste", (event) => this.pasted(event));
    this.count.addEventListener("click", () => this.fill());
    this.show();
  }

  get lines() { return linesOf(this.notes.value); }

  // A number that was typed is replaced only by a button that names it.
  show() {
    const [counted, typed] = [this.lines.length, this.steps.value.trim()];
    this.count.hidden = !counted || typed === String(counted);
    this.count.textContent = `Counted ${counted} step${counted === 1 ? "" : "s"}: ${typed ? `replace ${typed.slice(0, 8)}` : "fill in"}`;
    if (!this.own) return;
    this.own.closest(".paths").hidden = !counted;
    this.own.replaceChildren(...this.lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
  }

  fill() {
    put(this.steps, this.lines.length);
    this.steps.focus();
    announce(`Steps entered: ${this.steps.value}`);
  }

  pasted(event) {
    const list = listAddresses(event.clipboardData.getData("text/plain"));
    if (list === null) return;
    event.preventDefault();
    const { notes } = this;
    const fresh = notes.selectionStart === 0 || notes.value[notes.selectionStart - 1] === "\n";
    notes.setRangeText(fresh ? list : `\n${list}`, notes.selectionStart, notes.selectionEnd, "end");
    put(notes, notes.value);
    announce(`${linesOf(list).length} addresses, a line for each`);
  }
}

const form = document.getElementById("label-form");
new Timer(form.elements.attempt_seconds, form.querySelector("[data-timer]"));
new Path(form);
