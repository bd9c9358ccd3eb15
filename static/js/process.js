// Marks on single steps, only where a submission asks for them: keys, buttons under the screenshot, and the strip.

import { AT_STEP, KEYS } from "./desk.js";
import { change, read } from "./marks.js";
import { announce } from "./viewer.js";

const SIGNS = { wrong: "✕", unnecessary: "–", "side effect": "!" };
const form = document.getElementById("label-form");
const field = form.elements.process;
const stage = document.getElementById("stage");
const list = form.querySelector("[data-marked]");
const buttons = document.getElementById("process-marks").content.firstElementChild;

// The same mark again: the step is right.
function press(mark) {
  const step = Number(stage.dataset.index);
  const next = read(field.value).get(step) === mark ? "right" : mark;
  field.value = change(field.value, step, next);
  for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
  announce(`Step ${step}: ${next}`);
}

function badge(mark) {
  const made = document.createElement("span");
  made.className = "marked";
  made.textContent = `${SIGNS[mark] ?? ""} ${mark}`;
  return made;
}

function link(step, mark) {
  const made = document.createElement("a");
  made.dataset.step = step;
  made.href = `${stage.dataset.address}step=${step}`;
  made.textContent = `step ${step} ${mark}`;
  return made;
}

function show() {
  const all = read(field.value);
  const here = all.get(Number(stage.dataset.index));
  for (const button of buttons.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.mark === here));
  document.querySelectorAll("#strip .marked, #transcript .marked").forEach((old) => old.remove());
  for (const [step, mark] of all) {
    document.querySelector(`#strip .thumb[data-step="${step}"]`)?.append(badge(mark));
    document.querySelector(`#transcript li[data-step="${step}"] > div`)?.append(badge(mark));
  }
  const links = [...all].map((pair) => link(...pair));
  list.hidden = !links.length;
  list.replaceChildren("Not right", ...links);
}

for (const { dataset: { key, mark } } of buttons.querySelectorAll("button")) {
  KEYS[key] = () => press(mark);
  AT_STEP.add(key);
}
buttons.addEventListener("mousedown", (event) => event.preventDefault()); // the focus stays where somebody works
buttons.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) press(button.dataset.mark);
});
for (const kind of ["input", "change"]) form.addEventListener(kind, show);
for (const kind of ["step", "strip", "transcript"]) document.addEventListener(kind, show);
stage.append(buttons);
show();
