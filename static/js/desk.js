// A desk: the viewer, the label form, and one keymap. Keys that navigate never write; none works inside a text field.

import { Activity } from "./activity.js";
import { Drafts } from "./drafts.js";
import { Session } from "./session.js";
import { encode } from "./typed.js";
import { Viewer, announce } from "./viewer.js";

const DIGITS = ["①", "②", "③", "④", "⑤", "⑥", "⑦", "⑧", "⑨"];
const VERDICTS = { f: "0", s: "1", n: "2" };

const numbers = (text) => (text.match(/\d+/g) ?? []).map(Number);
const shown = (element) => element.checkVisibility?.() ?? element.getClientRects().length > 0;

function changed(field) {
  for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
}

class Label {
  constructor(form, viewer) {
    this.form = form;
    this.viewer = viewer;
    form.addEventListener("input", () => this.marks());
    form.addEventListener("change", (event) => this.changed(event.target));
    form.addEventListener("click", (event) => this.clicked(event));
    form.addEventListener("mousedown", (event) => this.pressed(event));
    form.addEventListener("keydown", (event) => this.notByEnter(event));
    document.addEventListener("step", () => this.atStep());
    document.addEventListener("strip", () => this.marks());
    window.addEventListener("resize", () => this.findCut());
    this.changed(form);
    this.findCut();
    this.atStep();
    form.querySelector(".summary a")?.focus();
  }

  get keys() {
    const keys = { r: () => this.to(this.reasoning) };
    if (this.steps) Object.assign(keys, { x: () => this.failHere(), h: () => this.proveHere(), m: () => this.lackHere() });
    for (const [key, value] of Object.entries(VERDICTS)) {
      keys[key] = () => this.choose(value);
      keys[key.toUpperCase()] = () => { this.choose(value); this.toMissing(); };
    }
    for (let digit = 1; digit <= 9; digit += 1) {
      keys[digit] = () => this.bind(digit);
      keys[`Shift ${digit}`] = () => this.toPoint(digit);
    }
    return keys;
  }

  get reasoning() { return this.form.elements.reasoning; }
  get steps() { return "failure_step" in this.form.elements; } // an answer has none
  get main() { return document.getElementById("main"); }
  point(number) { return this.form.querySelector(`.point[data-point="${number}"]`); }

  // --- what a key or a click writes ---------------------------------------------------------------------------------

  put(field, value) {
    field.value = value;
    changed(field);
  }

  here(field) { this.put(field, this.viewer.index); }

  // Met at this step; pressed again unmet, then unclear.
  bind(number) {
    const point = this.point(number);
    if (!point) return announce(`Key point ${number} does not exist`);
    const radios = [...point.querySelectorAll("[type=radio]")];
    const next = radios[(radios.findIndex((radio) => radio.checked) + 1) % radios.length];
    next.checked = true;
    if (this.steps) this.here(point.querySelector(".at input"));
    changed(next);
    return announce(`Key point ${number} ${next.value}${this.steps ? ` at step ${this.viewer.index}` : ""}`);
  }

  choose(value) {
    const option = this.form.querySelector(`[name=verdict][value="${value}"]`);
    option.checked = true;
    changed(option);
    announce(option.closest("label").querySelector("b").textContent);
  }

  failHere() {
    this.choose("0");
    this.here(this.form.elements.failure_step);
    announce(`Failure at step ${this.viewer.index}`);
  }

  proveHere() {
    const point = document.activeElement?.closest(".point");
    if (!point) return announce("Select a key point first: Shift and its digit");
    this.here(point.querySelector(".at input"));
    return announce(`Key point ${point.dataset.point} is proved by step ${this.viewer.index}`);
  }

  lackHere() {
    const [field, step] = [this.form.elements.evidence_missing, this.viewer.index];
    const steps = new Set(numbers(field.value));
    const listed = steps.delete(step);
    if (!listed) steps.add(step);
    this.put(field, [...steps].sort((one, other) => one - other).join(", "));
    announce(`Evidence ${listed ? "is no longer" : "is"} missing at step ${step}`);
  }

  // --- answering what is chosen and pressed -------------------------------------------------------------------------

  changed(field) {
    if (this.steps && field.matches(".point [type=radio]")) {
      const step = field.closest(".point").querySelector(".at input");
      if (!step.value.trim()) this.here(step);
    }
    this.form.querySelectorAll("[data-explains]").forEach((select) => {
      document.getElementById(select.dataset.explains).textContent = select.selectedOptions[0]?.dataset.definition ?? "";
    });
    this.listFurther();
    this.marks();
  }

  listFurther() {
    const main = this.form.elements.failure_type?.value;
    const boxes = [...this.form.querySelectorAll(".further [type=checkbox]")];
    boxes.forEach((box) => { box.closest("li").hidden = box.value === main; });
    const names = boxes.filter((box) => box.checked && box.value !== main).map((box) => box.closest("label").textContent.trim());
    const chosen = this.form.querySelector(".further .chosen");
    chosen.textContent = names.length ? `: ${names.length}` : "";
    chosen.title = names.join(", ");
  }

  clicked(event) {
    const here = event.target.closest("[data-here]");
    if (here) this.here(document.getElementById(here.dataset.here));
    if (event.target.closest("[data-lacking]")) this.lackHere();
    const link = event.target.closest(".missing a, .summary a");
    const field = link && document.getElementById(link.hash.slice(1));
    if (!field) return;
    event.preventDefault();
    this.form.querySelector(".missing").open = false;
    this.to(field);
  }

  // What is pressed with the mouse leaves the focus to a text, or gives it to the desk: the next key is meant for it.
  pressed(event) {
    if (!event.target.closest(".seg, .option, [data-here], [data-lacking]")) return;
    event.preventDefault();
    if (!document.activeElement?.matches("textarea")) this.main.focus({ preventScroll: true });
  }

  // Enter in a line of text would submit; that is Ctrl Enter, from everywhere.
  notByEnter(event) {
    if (event.key === "Enter" && !event.ctrlKey && event.target.matches("input, select")) event.preventDefault();
  }

  // --- going to fields ----------------------------------------------------------------------------------------------

  toPoint(number) {
    const point = this.point(number);
    if (!point) return announce(`Key point ${number} does not exist`);
    return this.to(point.querySelector(":checked") ?? point.querySelector("input"));
  }

  toMissing() {
    const first = [...this.form.querySelectorAll("[data-needed]")].find((field) => this.lacks(field));
    if (!first) return this.form.querySelector("[data-submit]").focus();
    return this.to(first.matches("fieldset") ? first.querySelector("input") : first);
  }

  lacks(field) {
    const block = field.closest(".for-failure, .for-cause, .for-exception");
    if (block && !shown(block)) return false;
    if (field.matches("fieldset")) return !field.querySelector(":checked");
    const point = field.closest(".point");
    if (point && !point.querySelector("[value=met]:checked, [value=unmet]:checked")) return false;
    if (field.name === "attempt_steps" && this.couldNot()) return false;
    return !field.value.trim();
  }

  // An annotator who could not do the task has no steps to count.
  couldNot() {
    return this.form.querySelector("[name=verdict][value='2']:checked") || this.form.elements.attempt_path.value === "not_comparable";
  }

  // A link for a key point leads to its buttons; once one is chosen, what is missing is the step.
  to(field) {
    const point = field.matches("[type=radio]") && field.closest(".point");
    const step = point && point.querySelector(":checked") && point.querySelector(".at input");
    const target = step && !step.value.trim() ? step : field; // a point of an answer has no step
    for (let details = target.closest("details"); details; details = details.parentElement.closest("details")) details.open = true;
    target.focus({ preventScroll: true });
    (point || target).scrollIntoView({ block: "nearest" });
  }

  // --- what the page shows of the form ------------------------------------------------------------------------------

  atStep() {
    this.form.elements.step.value = this.viewer.index;
    this.marks();
  }

  // {step: words} of what the form names: key points proved, the failure, evidence that is missing.
  named() {
    const named = new Map();
    if (!this.steps) return named;
    const name = (step, words) => named.set(step, [...(named.get(step) ?? []), words]);
    this.form.querySelectorAll(".point").forEach((point, index) => {
      numbers(point.querySelector(".at input").value).forEach((step) => name(step, DIGITS[index] ?? `(${index + 1})`));
    });
    if (this.form.querySelector("[name=verdict][value='0']:checked")) {
      numbers(this.form.elements.failure_step.value).forEach((step) => name(step, "failure"));
    }
    numbers(this.form.elements.evidence_missing.value).forEach((step) => name(step, "no evidence"));
    return named;
  }

  marks() {
    const named = this.named();
    document.querySelectorAll("#strip .thumb").forEach((thumb) => {
      const words = named.get(Number(thumb.dataset.step)) ?? [];
      thumb.classList.toggle("named", words.length > 0);
      thumb.classList.toggle("lacking", words.includes("no evidence"));
      thumb.querySelector(".names")?.remove();
      if (words.length) thumb.append(badge(words.join(" ")));
    });
  }

  // A key point that does not fit its line is shown whole over the next ones, when pointed or gone to.
  findCut() {
    this.form.querySelectorAll(".point").forEach((point) => {
      const text = point.querySelector(".text");
      point.classList.toggle("cut", text.scrollHeight > text.clientHeight + 2);
    });
  }
}

function badge(text) {
  const made = document.createElement("span");
  made.className = "names";
  made.textContent = text;
  return made;
}

// --- the page ------------------------------------------------------------------------------------------------------

const answer = document.getElementById("strip") ? null : await import("./answer.js"); // few desks need it
document.documentElement.classList.add("scripted");
const form = document.getElementById("label-form");
const main = document.getElementById("main");
const session = new Session();
const activity = form?.dataset.draft ? new Activity(session) : null;
const viewer = answer ? new answer.Answer() : new Viewer();
const label = form ? new Label(form, viewer) : null;
const rules = document.getElementById("rules");

// What nobody needs before their first key or click comes with it: phrases, guidelines, what to fetch ahead, search.
let loading = null;
async function tools() {
  loading ??= Promise.all(
    [import("./phrases.js"), import("./guidelines.js"), import("./ahead.js"), import("./search.js")],
  ).then(
    ([{ Phrases }, { Panel }, { Ahead }]) => {
      if (activity) new Ahead(session, form);
      return {
        phrases: document.getElementById("phrases") ? new Phrases(form, session) : null,
        rules: new Panel(rules, announce),
      };
    },
  );
  try {
    return await loading;
  } catch {
    loading = null; // offline: the next try may find the server
    announce("The server cannot be reached");
    return {};
  }
}
for (const sign of ["keydown", "pointerdown", "focusin"]) addEventListener(sign, () => tools(), { once: true, capture: true });

function opened(id) {
  if (id === "rules") return tools().then((loaded) => loaded.rules?.toggle());
  const dialog = document.getElementById(id);
  return dialog && !dialog.open && dialog.showModal();
}

// What is typed for a panel that is still on its way is no key of the desk: it is kept for the panel's field.
let opening = null;
let early = "";
function panel(open) {
  early = "";
  const mine = Promise.resolve(open()).catch(() => {}).finally(() => {
    if (opening !== mine) return;
    opening = null;
    const field = document.activeElement;
    if (!early || !typing(field)) return;
    field.setRangeText(early, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  opening = mine;
}

// By key or by its link.
const find = viewer.find?.bind(viewer);
if (find) viewer.find = () => panel(find);

function typedEarly(event) {
  event.preventDefault();
  if (event.key === "Backspace") early = early.slice(0, -1);
  else if (event.key.length === 1) early += event.key;
}

export const KEYS = {
  ...viewer.keys,
  a: () => opened("answer"),
  g: () => opened("rules"),
  ...(find && { "/": () => viewer.find() }),
  G: () => panel(() => tools().then((loaded) => loaded.rules?.search())),
  "?": () => opened("keys"),
  Escape: () => leave(document.activeElement),
  ...label?.keys,
  ...(document.getElementById("phrases") && { p: () => panel(() => tools().then((loaded) => loaded.phrases?.open())) }),
  u: () => document.querySelector("[data-undo]")?.click(),
};

const typing = (element) => element.matches("textarea, select, input:not([type=radio], [type=checkbox]), [contenteditable]");

// Out of a field first, then what is open.
function leave(element) {
  const list = element.closest(".missing[open], .others[open]") ?? document.querySelector(".missing[open], .others[open]");
  if (list) list.open = false;
  else if (!rules.hidden && (rules.contains(element) || !typing(element))) tools().then((loaded) => loaded.rules.close());
  main.focus({ preventScroll: true });
}

// The name of a key in the map, whatever the layout of the keyboard: digits by their place, letters by Shift alone.
function named(event) {
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code)?.[1];
  if (digit && (/[1-9]/.test(event.key) || !Object.hasOwn(KEYS, event.key))) {
    return event.shiftKey && event.key !== digit ? `Shift ${digit}` : digit;
  }
  const letter = /^[a-z]$/i.test(event.key) ? event.key : /^Key([A-Z])$/.exec(event.code)?.[1];
  if (letter) return event.shiftKey ? letter.toUpperCase() : letter.toLowerCase();
  return event.key;
}

// What has the focus keeps the keys that are its own.
function itsOwn(event) {
  const target = event.target;
  if (event.key === " ") return target.matches("button, summary, [type=checkbox], [type=radio]:not(:checked)");
  return (event.key === "Home" || event.key === "End") && rules.contains(target);
}

document.addEventListener("keydown", (event) => {
  const dialog = document.querySelector("dialog[open]");
  if (event.defaultPrevented || event.isComposing) return;
  if (event.key === "Enter" && event.ctrlKey && form && !dialog) {
    event.preventDefault();
    form.requestSubmit(form.querySelector("[data-submit]"));
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const name = named(event);
  if (dialog) {
    if ((name === "a" && dialog.id === "answer") || (name === "?" && dialog.id === "keys")) dialog.close();
    return;
  }
  if (opening) return typedEarly(event);
  if (typing(event.target) ? name !== "Escape" : itsOwn(event)) return;
  if (!Object.hasOwn(KEYS, name)) return;
  event.preventDefault();
  KEYS[name]();
});

document.addEventListener("click", (event) => {
  document.querySelectorAll(".missing[open], .others[open]").forEach((list) => { list.open = list.contains(event.target); });
  const opener = event.target.closest("[data-opens]");
  if (opener) {
    event.preventDefault();
    opened(opener.dataset.opens);
  }
  if (event.target.closest("[data-report]")) {
    event.preventDefault();
    label.to(document.getElementById("report-note") ?? document.querySelector("#report summary"));
  }
});

// The report goes without leaving what is being typed.
document.addEventListener("submit", async (event) => {
  const report = event.target.closest("[data-reporting]");
  if (!report) return;
  event.preventDefault();
  const problem = report.querySelector(".error");
  try {
    const answer = await session.fetch(report.action, { body: () => encode(report) });
    if (!answer.ok) throw new Error();
    report.replaceWith("Report sent to the maintainer.");
    announce("Task reported as outdated");
  } catch {
    problem.textContent = "Not sent: enter what is outdated, or try again.";
  }
});

// What the agent says it found is shown at its last step.
const final = document.getElementById("final");
const showFinal = () => { if (final) final.hidden = viewer.index !== viewer.last; };
document.addEventListener("step", showFinal);
showFinal();

if (activity) {
  new Drafts(form, session, activity);
}
