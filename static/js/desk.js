// A desk: the viewer, the label form, and one keymap. Keys that navigate never write; none works inside a text field.

import { Activity } from "./activity.js";
import { Drafts } from "./drafts.js";
import { Session } from "./session.js";
import { encode } from "./typed.js";
import { Viewer, announce, showMessage } from "./viewer.js";

const CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳";
const MOST_NAMED = 4; // marks on a thumbnail
const VERDICTS = { f: "0", s: "1", n: "2" };
const FINDINGS = { h: "met", H: "unmet", q: "unclear" };
const UNFOLDED = 6; // more key points than this fold when they are met

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
    form.addEventListener("focusin", (event) => this.select(event.target.closest(".point")));
    document.addEventListener("step", () => this.atStep());
    for (const list of ["strip", "transcript"]) document.addEventListener(list, () => this.marks());
    this.selected = this.nextOpen(0) ?? this.points[0];
    this.changed(form);
    this.atStep();
    form.querySelector(".summary a")?.focus();
    // Behind what a draft brought: phrases and typing go on there.
    this.reasoning.setSelectionRange(this.reasoning.value.length, this.reasoning.value.length);
  }

  get keys() {
    const keys = { r: () => this.to(this.reasoning) };
    if (this.steps) Object.assign(keys, { x: () => this.failHere(), m: () => this.lackHere(), B: () => this.drawBox() });
    for (const [key, finding] of Object.entries(FINDINGS)) keys[key] = () => this.judge(this.selected, finding);
    keys["."] = () => this.toNextOpen();
    keys[","] = () => this.select(this.points[this.points.indexOf(this.selected) - 1]);
    for (const [key, value] of Object.entries(VERDICTS)) {
      keys[key] = () => this.choose(value);
      keys[key.toUpperCase()] = () => { this.choose(value); this.toMissing(); };
    }
    for (let digit = 1; digit <= 9; digit += 1) {
      keys[digit] = () => this.judgeOpen(digit, "met");
      keys[`Shift ${digit}`] = () => this.judgeOpen(digit, "unmet");
    }
    return keys;
  }

  get reasoning() { return this.form.elements.reasoning; }
  get steps() { return "failure_step" in this.form.elements; } // an answer has none
  get main() { return document.getElementById("main"); }
  get points() { return [...this.form.querySelectorAll(".point")]; }

  // --- what a key or a click writes ---------------------------------------------------------------------------------

  put(field, value) {
    field.value = value;
    changed(field);
  }

  here(field) { this.put(field, this.viewer.index); }

  // A digit never changes a finding: on a key point that has one it only goes there.
  judgeOpen(number, finding) {
    const point = this.points[number - 1];
    if (!point) return showMessage(`Key point ${number} does not exist`);
    const found = point.querySelector(":checked")?.value;
    if (!found) return this.judge(point, finding);
    this.select(point);
    return showMessage(`Key point ${number} is ${found}. Press h, Shift H or q to change it.`);
  }

  judge(point, finding) {
    if (!point) return showMessage("This task has no key points");
    if (!shown(point.parentElement)) return showMessage("Not executable: key points need no finding");
    const radio = point.querySelector(`[value=${finding}]`);
    radio.checked = true;
    if (this.steps) this.here(point.querySelector(".at input"));
    changed(radio);
    this.select(point);
    return announce(`Key point ${point.dataset.point} ${finding}${this.steps ? ` at step ${this.viewer.index}` : ""}`);
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

  lackHere() {
    const [field, step] = [this.form.elements.evidence_missing, this.viewer.index];
    const steps = new Set(numbers(field.value));
    const listed = steps.delete(step);
    if (!listed) steps.add(step);
    this.put(field, [...steps].sort((one, other) => one - other).join(", "));
    announce(`${listed ? "Mark removed" : "Marked"}: no evidence at step ${step}`);
  }

  // --- boxes: what proves a key point, or shows the failure, on the screenshot of its step ----------------------------

  get boxes() {
    try {
      return JSON.parse(this.form.elements.boxes?.value || "[]");
    } catch {
      return []; // the server says what is wrong with it
    }
  }

  get failed() { return Boolean(this.form.querySelector("[name=verdict][value='0']:checked")); }

  // The text of a key point names its box; null is the failure.
  setBox(keyPoint, step, box) {
    const others = this.boxes.filter((one) => one.key_point !== keyPoint);
    const all = box ? [...others, { key_point: keyPoint, step, box }] : others;
    this.put(this.form.elements.boxes, all.length ? JSON.stringify(all) : "");
  }

  // The current key point; the same key again, or in a field of the failure: the failure, which is null.
  get boxTarget() {
    const failure = this.drawing ? this.drawing.point : document.activeElement?.closest(".for-failure");
    return failure ? null : this.selected ?? null;
  }

  async drawBox(point = this.boxTarget) {
    const drawing = this.drawing;
    drawing?.leave();
    if (this.early || (drawing && drawing.point === point)) return null;
    if (!this.viewer.picture.svg) return showMessage("This step has no screenshot");
    if (point && !shown(point.parentElement)) return showMessage("Not executable: key points need no finding");
    const keyPoint = point ? textOf(point) : null;
    const name = point ? `key point ${point.dataset.point}` : "the failure";
    const step = this.viewer.index;
    const old = this.boxes.find((one) => one.key_point === keyPoint && one.step === step);
    const early = [];
    this.early = early; // keys that are pressed while drawing.js loads
    const loaded = await import("./drawing.js").catch(() => null);
    this.early = null;
    if (!loaded) return showMessage("The server cannot be reached");
    if (this.viewer.index !== step) return showMessage("No box was drawn, because the step has changed");
    const ended = (box) => {
      this.drawing = null;
      if (box !== undefined) this.keepBox(box, point, step, name);
      this.showBoxes();
      this.main.focus({ preventScroll: true });
    };
    this.drawing = Object.assign(new loaded.Drawing(this.viewer.picture, old?.box, name, announce, ended), { point });
    return again(early);
  }

  keepBox(box, point, step, name) {
    if (box && !point && !this.failed) this.choose("0");
    if (box) this.put(point ? point.querySelector(".at input") : this.form.elements.failure_step, step);
    this.setBox(point ? textOf(point) : null, step, box);
    announce(box ? `Box saved for ${name} at step ${step}` : `Box removed for ${name}`);
  }

  // The proof has moved to another step: the box does not show it any more.
  dropMovedBoxes() {
    const steps = new Map(this.points.map((point) => [textOf(point), point.querySelector(".at input").value.trim()]));
    steps.set(null, this.form.elements.failure_step.value.trim());
    const kept = this.boxes.filter((one) => steps.get(one.key_point) === "" || Number(steps.get(one.key_point)) === one.step);
    if (kept.length === this.boxes.length) return;
    this.form.elements.boxes.value = kept.length ? JSON.stringify(kept) : "";
    showMessage("Box removed, because its finding is at another step now");
  }

  showBoxes() {
    if (this.drawing) return;
    const numbers = new Map(this.points.map((point) => [textOf(point), point.dataset.point]));
    const own = this.boxes.filter((one) => one.step === this.viewer.index && (one.key_point !== null || this.failed));
    showBoxes(own.map(({ key_point: text, box }) => ({ box, name: numbers.get(text) ?? "failure", kind: "own" })));
  }

  // --- answering what is chosen and pressed -------------------------------------------------------------------------

  changed(field) {
    if (this.steps && field.matches(".point [type=radio]")) {
      const step = field.closest(".point").querySelector(".at input");
      if (!step.value.trim()) this.here(step);
    }
    if (this.steps) this.dropMovedBoxes();
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
    const box = event.target.closest("[data-box]")?.dataset.box;
    if (box) this.drawBox(this.points[box - 1] ?? null);
    const unfolded = this.points[event.target.closest("[data-unfold]")?.dataset.unfold - 1];
    this.select(unfolded ?? event.target.closest(".point"));
    unfolded?.querySelector(":checked").focus({ preventScroll: true }); // its button is gone
    const link = event.target.closest(".missing a, .summary a");
    const field = link && document.getElementById(link.hash.slice(1));
    if (!field) return;
    event.preventDefault();
    this.form.querySelector(".missing").open = false;
    this.to(field);
  }

  // What is pressed with the mouse leaves the focus to a text, or gives it to the desk: the next key is meant for it.
  pressed(event) {
    if (!event.target.closest(".seg, .option, [data-here], [data-lacking], [data-box]")) return;
    event.preventDefault();
    if (!document.activeElement?.matches("textarea")) this.main.focus({ preventScroll: true });
  }

  // Enter in a line of text would submit; that is Ctrl Enter, from everywhere. It goes on to what is missing.
  notByEnter(event) {
    if (event.key !== "Enter" || event.ctrlKey || !event.target.matches("input, select")) return;
    event.preventDefault();
    if (!event.target.matches("[type=radio], [type=checkbox]")) this.toMissing();
  }

  // --- going to fields ----------------------------------------------------------------------------------------------

  // The current key point has the large buttons and the step.
  select(point) {
    if (!point) return;
    this.selected = point;
    this.showPoints();
    point.scrollIntoView({ block: "nearest" });
  }

  nextOpen(after) {
    const open = this.points.filter((point) => !point.querySelector(":checked"));
    return open.find((point) => Number(point.dataset.point) > after) ?? open[0];
  }

  toNextOpen() {
    const next = this.nextOpen(Number(this.selected?.dataset.point ?? 0));
    this.select(next);
    if (next) announce(`Key point ${next.dataset.point}`);
    else showMessage("All key points have a finding");
  }

  toMissing() {
    const first = [...this.form.querySelectorAll("[data-needed]")].find((field) => this.lacks(field));
    if (!first) return this.form.querySelector("[data-submit]").focus();
    return this.to(first.matches("fieldset") ? first.querySelector("input") : first);
  }

  lacks(field) {
    const block = field.closest(".for-failure, .for-cause, .for-exception, .points");
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
    const point = field.closest(".point");
    this.select(point);
    const step = point?.querySelector(":checked") && point.querySelector(".at input");
    const target = step && !step.value.trim() ? step : field; // a point of an answer has no step
    for (let details = target.closest("details"); details; details = details.parentElement.closest("details")) details.open = true;
    target.focus({ preventScroll: true });
    (point || target).scrollIntoView({ block: "nearest" });
  }

  // --- what the page shows of the form ------------------------------------------------------------------------------

  atStep() {
    this.form.elements.step.value = this.viewer.index;
    if (this.steps) this.showBoxes();
  }

  // {step: words} of what the form names: key points proved, the failure, evidence that is missing.
  named() {
    const named = new Map();
    if (!this.steps) return named;
    const name = (step, words) => named.set(step, [...(named.get(step) ?? []), words]);
    this.form.querySelectorAll(".point").forEach((point, index) => {
      numbers(point.querySelector(".at input").value).forEach((step) => name(step, CIRCLED[index] ?? `(${index + 1})`));
    });
    if (this.form.querySelector("[name=verdict][value='0']:checked")) {
      numbers(this.form.elements.failure_step.value).forEach((step) => name(step, "failure"));
    }
    numbers(this.form.elements.evidence_missing.value).forEach((step) => name(step, "no evidence"));
    return named;
  }

  marks() {
    const named = this.named();
    this.showPoints();
    this.linkSteps();
    if (this.steps) this.showBoxes();
    document.querySelectorAll("#strip .thumb, #transcript li").forEach((thumb) => {
      const words = named.get(Number(thumb.dataset.step)) ?? [];
      thumb.classList.toggle("named", words.length > 0);
      thumb.classList.toggle("lacking", words.includes("no evidence"));
      thumb.querySelector(".names")?.remove();
      if (words.length) (thumb.querySelector(":scope > div") ?? thumb).append(badge(shortened(words)));
    });
  }

  // Many key points that are met become one line: the open ones stay in sight.
  showPoints() {
    const points = this.points;
    const folds = [];
    const boxed = new Set(this.boxes.map((one) => one.key_point));
    points.forEach((point) => {
      const finding = point.querySelector(":checked")?.value ?? "";
      const step = point.querySelector(".at input")?.value.trim() ?? "";
      const current = point === this.selected;
      const folded = points.length > UNFOLDED && finding === "met" && !current;
      if (folded) folds.push([point.dataset.point, step]);
      point.classList.toggle("current", current);
      point.classList.toggle("judged", finding !== "");
      point.classList.toggle("folded", folded);
      const [shown, link] = point.querySelectorAll(".result > *");
      shown.className = `finding ${finding}`;
      shown.textContent = finding;
      if (!link) return;
      link.hidden = !/^\d+$/.test(step);
      link.dataset.step = step;
      link.href = `${this.viewer.address}step=${step}`;
      link.textContent = `${boxed.has(textOf(point)) ? "▭ " : ""}step ${step}`;
    });
    const count = this.form.querySelector("[data-judged]");
    if (count) count.textContent = `${points.filter((point) => point.matches(".judged")).length} of ${points.length} judged`;
    const line = this.form.querySelector(".folded-points");
    line.hidden = !folds.length;
    if (line.dataset.folds === String(folds)) return; // a button that has the focus stays
    line.dataset.folds = folds;
    line.querySelectorAll("button").forEach((button) => button.remove());
    folds.forEach(([number, step]) => line.append(unfolding(number, step)));
  }

  // Steps that the reasoning names, as links below it.
  linkSteps() {
    const line = this.form.querySelector(".step-links");
    if (!line) return;
    const steps = [...new Set([...this.reasoning.value.matchAll(/\bsteps?[ \u00a0]#?(\d{1,6})\b/gi)].map((match) => Number(match[1])))];
    const known = steps.filter((step) => step <= this.viewer.last).slice(0, 8);
    line.hidden = !known.length;
    line.replaceChildren("Links", ...known.map((step) => stepLink(step, this.viewer.address)));
  }
}

// Replay keys in order: each one needs the result of the one before. Such events type nothing into a field.
async function again(events) {
  for (const event of events) {
    const field = document.activeElement;
    if (typing(field) && field.setRangeText && event.key.length === 1) insert(field, event.key);
    else field.dispatchEvent(new KeyboardEvent("keydown", event));
    await null;
  }
}

function insert(field, text) {
  field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

const textOf = (point) => point.querySelector(".text").textContent;

function stepLink(step, address) {
  const link = document.createElement("a");
  link.dataset.step = step;
  link.href = `${address}step=${step}`;
  link.textContent = `step ${step}`;
  return link;
}

function unfolding(number, step) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small";
  button.dataset.unfold = number;
  button.title = `Key point ${number}: met${step ? ` at step ${step}` : ""}`;
  button.innerHTML = "<b></b>";
  button.firstChild.textContent = number;
  if (step) button.append(` · ${step}`);
  return button;
}

function shortened(words) {
  return words.length > MOST_NAMED ? [...words.slice(0, MOST_NAMED - 1), `+${words.length - MOST_NAMED + 1}`].join(" ") : words.join(" ");
}

function badge(text) {
  const made = document.createElement("span");
  made.className = "names";
  made.textContent = text;
  return made;
}

// --- boxes on the picture -----------------------------------------------------------------------------------------

// Those of labels that the page shows: {step, box, name, kind}.
const others = [...document.querySelectorAll("[data-boxes] script")].flatMap((list) => JSON.parse(list.textContent));

function showBoxes(own = []) {
  viewer.picture.frame([...others.filter((one) => one.step === viewer.index), ...own]);
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
    showMessage("The server cannot be reached");
    return {};
  }
}
for (const sign of ["keydown", "pointerdown", "focusin"]) addEventListener(sign, () => tools(), { once: true, capture: true });
if (form?.querySelector(".attempt")) {
  const load = () => import("./attempt.js").catch(() => showMessage("The timer cannot be loaded"));
  for (const sign of ["pointerover", "focusin", "keydown"]) addEventListener(sign, load, { once: true, capture: true });
}

function opened(id) {
  if (id === "rules") return tools().then((loaded) => loaded.rules?.toggle());
  const dialog = document.getElementById(id);
  return dialog && !dialog.open && dialog.showModal();
}

// What is typed for a panel that is still on its way is no key of the desk: it is kept for the panel.
let opening = null;
let early = [];
function panel(open) {
  early = [];
  const mine = Promise.resolve(open()).catch(() => {}).finally(() => {
    if (opening !== mine) return;
    opening = null;
    const place = document.activeElement;
    if (typing(place) || place.closest("#phrases")) again(early);
  });
  opening = mine;
}

// By key or by its link.
const find = viewer.find?.bind(viewer);
if (find) viewer.find = () => panel(find);

function typedEarly(event) {
  event.preventDefault();
  if (event.key === "Backspace") early.pop();
  else if (event.key.length === 1) early.push(event);
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
  D: () => showFacts(),
  ...(document.querySelector("[data-put-off]") && { L: () => document.querySelector("[data-put-off]").click() }),
};

function showFacts(open = !document.querySelector(".task-facts").open) {
  document.querySelector(".task-facts").open = open;
}

// Keys that write at the current step. While another step loads, they and the submit wait for it.
export const AT_STEP = new Set(["h", "H", "q", "x", "m", "B", ...[1, 2, 3, 4, 5, 6, 7, 8, 9].flatMap((n) => [`${n}`, `Shift ${n}`])]);
let waiting = null;
async function afterStep(act) {
  if (waiting) return waiting.push(act);
  const [acts, step] = [[act], viewer.wanted];
  waiting = acts;
  while (viewer.wanted !== viewer.index) await viewer.going;
  waiting = null;
  if (viewer.index === step) return acts.forEach((each) => each());
  return showMessage("The step is not shown, so the keys pressed for it did nothing");
}

const LISTS = ".missing[open], .others[open], .task-facts[open]";
const typing = (element) => element.matches("textarea, select, input:not([type=radio], [type=checkbox]), [contenteditable]");

// Out of a field first, then what is open.
function leave(element) {
  const list = element.closest(LISTS) ?? document.querySelector(LISTS);
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
    if (label?.early) return label.early.push(event);
    const submit = () => form.requestSubmit(form.querySelector("[data-submit]"));
    return waiting ? afterStep(submit) : submit();
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const name = named(event);
  if (dialog) {
    if ((name === "a" && dialog.id === "answer") || (name === "?" && dialog.id === "keys")) dialog.close();
    return;
  }
  if (opening) return typedEarly(event);
  if (label?.early && !typing(event.target)) {
    event.preventDefault();
    label.early.push(event);
    return;
  }
  if (typing(event.target) ? name !== "Escape" : itsOwn(event)) return;
  if (!Object.hasOwn(KEYS, name)) return;
  event.preventDefault();
  if (label?.steps && AT_STEP.has(name) && (waiting || viewer.wanted !== viewer.index)) afterStep(KEYS[name]);
  else KEYS[name](event);
});

document.addEventListener("click", (event) => {
  document.querySelectorAll(LISTS).forEach((list) => { list.open = list.contains(event.target); });
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

if (others.length && !label) {
  document.addEventListener("step", () => showBoxes());
  showBoxes();
}

if (activity) {
  new Drafts(form, session, activity);
}
