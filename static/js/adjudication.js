// The adjudicator's desk beside the viewer and the form: folding the labels, taking parts of them, telling the maintainer.

import { change } from "./marks.js";
import { PATIENCE } from "./session.js";
import { encode } from "./typed.js";

const form = document.getElementById("label-form");
const labels = document.getElementById("labels");
const taken = document.getElementById("taken");

// --- folding, remembered by the server through a cookie, so that the page comes as it was left --------------------

if (form) labels?.addEventListener("toggle", () => {
  const age = 365 * 24 * 3600;
  document.cookie = `labels=${labels.open ? "open" : "folded"}; path=/; max-age=${age}; samesite=lax`;
});

// --- taking parts of a label into the form ---------------------------------------------------------------------------

const named = (name) => [...form.elements].filter((field) => field.name === name && field.type !== "hidden");

function valueOf(field) {
  return field.matches("[type=radio], [type=checkbox]") ? field.checked : field.value;
}

// A radio button or a checkbox is chosen by its value; several checkboxes have their values with blanks between. The
// mark of one step is {step: mark}, and leaves the other steps alone.
function wanted(field, value) {
  if (typeof value === "object") return Object.entries(value).reduce((text, [step, mark]) => change(text, Number(step), mark), field.value);
  if (field.type === "radio") return field.value === value;
  return field.type === "checkbox" ? value.split(" ").includes(field.value) : value;
}

function set(field, value) {
  if (field.matches("[type=radio], [type=checkbox]")) field.checked = value;
  else field.value = value;
  for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
}

// Returns what undoes it: the fields that changed, with what they held before.
function fill(fields) {
  const before = [];
  for (const [name, value] of Object.entries(fields)) {
    for (const field of named(name)) {
      const [was, next] = [valueOf(field), wanted(field, value)];
      if (was === next) continue;
      before.push([field, was]);
      set(field, next);
    }
  }
  return before;
}

function say(text, before) {
  if (!before.length) return taken.replaceChildren(`${text}.`);
  const undo = document.createElement("button");
  undo.type = "button";
  undo.className = "small";
  undo.textContent = "Undo";
  undo.addEventListener("click", () => {
    for (const [field, was] of before) set(field, was);
    taken.replaceChildren("Undone.");
  });
  return taken.replaceChildren(`${text}. `, undo);
}

function take(button) {
  const before = fill(JSON.parse(button.dataset.fields));
  say(`${before.length ? "Copied" : "The form already has"} ${button.dataset.taken}`, before);
}

function quote(button) {
  const reasoning = form.elements.reasoning;
  const before = [[reasoning, reasoning.value]];
  const words = `${button.dataset.name}: ${document.getElementById(button.dataset.quotes).textContent.trim()}`;
  set(reasoning, reasoning.value.trim() ? `${reasoning.value.trimEnd()}\n\n${words}` : words);
  reasoning.scrollTop = reasoning.scrollHeight;
  say(`Quoted ${button.dataset.name}`, before);
}

// One key takes the first label, and again the next one.
let next = 0;
function takeNext() {
  const all = [...document.querySelectorAll(".take.all")];
  if (!form || !all.length) return;
  take(all[next % all.length]);
  announce(`Copied ${all[next % all.length].dataset.taken}`);
  next += 1;
}

document.addEventListener("click", (event) => {
  if (!form || !taken) return;
  const part = event.target.closest("[data-fields]");
  if (part) take(part);
  const quoted = event.target.closest("[data-quotes]");
  if (quoted) quote(quoted);
});

// --- telling the maintainer, without leaving what is being typed -------------------------------------------------------

document.addEventListener("submit", async (event) => {
  const place = event.target.closest("[data-reports]");
  if (!place) return;
  event.preventDefault();
  const body = encode(event.target);
  const kind = body.get("kind");
  try {
    const answer = await fetch(event.target.action, { method: "POST", headers: { "HX-Request": "true" }, body, signal: AbortSignal.timeout(PATIENCE) });
    if (answer.redirected) throw new Error("Not sent: sign in again first.");
    if (!answer.ok) throw new Error(answer.status === 400 ? "Not sent: enter a description." : `Not sent (${answer.status}).`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    place.replaceChildren(...page.querySelector("[data-reports]").children);
    const sent = place.querySelector(`[data-kind="${kind}"]`);
    sent.open = true;
    sent.querySelector("summary").focus();
    announce("Report sent to the maintainer.");
  } catch (problem) {
    const unreached = problem instanceof TypeError || problem.name === "TimeoutError";
    const text = unreached ? "Not sent: the server cannot be reached." : problem.message;
    event.target.querySelector("[data-problem]").textContent = text;
  }
});

function announce(text) {
  document.getElementById("announce").textContent = text;
}

// --- keys: l folds the labels; Ctrl Enter goes on where there is no form ----------------------------------------------

const typing = (element) => element.matches("textarea, select, input:not([type=radio], [type=checkbox]), [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]") || event.isComposing) return;
  if (event.key === "Enter" && event.ctrlKey && !form && !typing(event.target)) {
    event.preventDefault();
    document.querySelector("[data-go]")?.click();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || !labels) return;
  if (event.key === "T") takeNext();
  if (event.key !== "l") return;
  event.preventDefault();
  labels.open = !labels.open;
  announce(labels.open ? "Labels shown." : "Labels hidden.");
});
