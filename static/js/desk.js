// A desk: the viewer, the label form, and one keymap. Keys that navigate never write; none works inside a text field.

import { Drafts } from "./drafts.js";
import { Viewer } from "./viewer.js";

document.documentElement.classList.add("scripted");
const form = document.getElementById("label-form");
const viewer = new Viewer();
if (form) new Drafts(form);

viewer.onstep = (index) => {
  if (form) form.elements.step.value = index;
  markNamed();
};

function opened(id) {
  const dialog = document.getElementById(id);
  if (dialog && !dialog.open) dialog.showModal();
}

function setStep(id) {
  const field = document.getElementById(id);
  if (!field) return;
  field.value = viewer.index;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function choose(value) {
  const option = form?.querySelector(`[name=verdict][value="${value}"]`);
  if (!option) return;
  option.click();
  option.focus({ preventScroll: true });
}

function toPoint(number) {
  const point = form?.querySelector(`[data-point="${number}"]`);
  (point?.querySelector("input:checked") ?? point?.querySelector("input"))?.focus();
}

function proveHere() {
  const button = document.activeElement?.closest(".point")?.querySelector("[data-here]");
  if (button) setStep(button.dataset.here);
}

function failHere() {
  if (!form) return;
  choose(0);
  setStep("f-failure_step");
}

// The steps that the form names are underlined in the strip.
function markNamed() {
  if (!form) return;
  const named = new Set([...form.querySelectorAll(".at input")].map((field) => field.value.trim()).filter(Boolean));
  document.querySelectorAll("#strip .thumb").forEach((thumb) => {
    thumb.classList.toggle("named", named.has(thumb.dataset.step));
  });
}

const KEYS = {
  ArrowRight: () => viewer.move(1),
  j: () => viewer.move(1),
  ArrowLeft: () => viewer.move(-1),
  k: () => viewer.move(-1),
  Home: () => viewer.go(0),
  End: () => viewer.go(viewer.last),
  z: () => viewer.zoom(),
  o: () => document.querySelector("[data-original]")?.click(),
  a: () => opened("answer"),
  g: () => opened("rules"),
  "?": () => opened("keys"),
  f: () => choose(0),
  s: () => choose(1),
  n: () => choose(2),
  x: failHere,
  h: proveHere,
  r: () => form?.elements.reasoning.focus(),
};

const typing = (element) => element.matches("textarea, select, input:not([type=radio], [type=checkbox]), [contenteditable]");

document.addEventListener("keydown", (event) => {
  const dialog = document.querySelector("dialog[open]");
  if (event.key === "Enter" && event.ctrlKey && form && !dialog) {
    event.preventDefault();
    form.requestSubmit(form.querySelector("[data-submit]"));
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || dialog || typing(event.target)) return;
  // The arrows belong to a group of radio buttons that has the focus, and Home and End to what scrolls.
  if (event.key.startsWith("Arrow") && event.target.matches("[type=radio]")) return;
  const act = /^[1-9]$/.test(event.key) ? () => toPoint(event.key) : Object.hasOwn(KEYS, event.key) && KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens]");
  if (opener) {
    event.preventDefault();
    opened(opener.dataset.opens);
  }
  if (event.target.closest("[data-zoom]")) viewer.zoom();
  const here = event.target.closest("[data-here]");
  if (here) setStep(here.dataset.here);
  if (event.target.closest(".missing a")) event.target.closest("details").open = false;
});

form?.addEventListener("input", markNamed);
form?.addEventListener("change", (event) => {
  const explained = event.target.dataset.explains;
  if (explained) {
    document.getElementById(explained).textContent = event.target.selectedOptions[0]?.dataset.definition ?? "";
  }
});
markNamed();
document.querySelector(".summary a")?.focus();
