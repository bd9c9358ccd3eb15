// The editor of checks and rubrics: numbered lines, a way to the line of a problem, and nothing that is typed is lost.

import { Copy, different, fill, hasArrived, typed } from "./typed.js";

const form = document.getElementById("writing");
const text = document.getElementById("id_text");
const gutter = document.querySelector(".gutter");
const said = document.getElementById("restored");
const copy = new Copy(form.dataset.person, form.dataset.kept);
const start = typed(form);
let leaving = false;

document.documentElement.classList.add("scripted");

// --- lines ---

function number() {
  const count = text.value.split("\n").length;
  if (Number(gutter.dataset.count) === count) return;
  gutter.dataset.count = count;
  gutter.textContent = Array.from({ length: count }, (_, index) => index + 1).join("\n");
}

function goTo(line) {
  const lines = text.value.split("\n");
  const at = Math.min(line, lines.length) - 1;
  const from = lines.slice(0, at).reduce((sum, one) => sum + one.length + 1, 0);
  text.focus();
  text.setSelectionRange(from, from + lines[at].length);
  text.scrollTop = Math.max(0, at - 3) * parseFloat(getComputedStyle(text).lineHeight);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-line]");
  if (!link) return;
  event.preventDefault();
  goTo(Number(link.dataset.line));
});
text.addEventListener("scroll", () => { gutter.scrollTop = text.scrollTop; });

// --- nothing is lost ---

const unsaved = () => form.hasAttribute("data-unsaved") || different(typed(form), start).length > 0;

function keep(sent) {
  if (unsaved()) copy.write({ fields: typed(form), version: form.elements.after.value, sent });
  else copy.removeAll();
}

function say(words, ...more) {
  said.replaceChildren(words, ...more);
  said.hidden = false;
}

function restore() {
  const kept = copy.newest();
  if (!kept || form.hasAttribute("data-unsaved")) return;
  if (hasArrived(kept, start.text ?? "")) { copy.removeAll(); return; }
  if (different(kept.fields, start).length === 0) return;
  const back = document.createElement("button");
  Object.assign(back, { type: "button", className: "small", textContent: "Use the version on the server" });
  back.onclick = () => { fill(form, start); copy.removeAll(); said.hidden = true; changed(); };
  const newer = kept.version !== form.elements.after.value;
  const after = form.elements.after.value;
  fill(form, kept.fields);
  form.elements.after.value = after;
  say(`Restored unsaved text.${newer ? " There is a newer version by now: view it before you save yours." : ""} `, back);
  number();
  window.addEventListener("load", changed, { once: true }); // htmx listens by then
}

function changed() {
  number();
  text.dispatchEvent(new Event("made", { bubbles: true })); // htmx asks for the preview
}

form.addEventListener("input", () => { number(); keep(); });
form.addEventListener("submit", (event) => { leaving = !event.submitter?.hasAttribute("hx-post"); if (leaving) keep(event.submitter?.value ?? "keep"); });
window.addEventListener("beforeunload", (event) => { if (!leaving && unsaved()) event.preventDefault(); });

// --- a check out of a trace ---

// Put behind the last check, with the indentation of those that are there.
export function inserted(whole, snippet) {
  const lines = whole.replace(/\s+$/, "").split("\n");
  const key = lines.findIndex((line) => /^checks:\s*(#.*)?$/.test(line));
  if (key < 0) return `${whole.trim() ? `${whole.replace(/\s+$/, "")}\n` : ""}checks:\n${indented(snippet, "  ")}\n`;
  let end = key + 1;
  while (end < lines.length && (/^(\s|-|#|$)/.test(lines[end]))) end += 1;
  const first = lines.slice(key + 1, end).find((line) => /^\s*- /.test(line));
  lines.splice(end, 0, indented(snippet, first ? first.match(/^\s*/)[0] : "  "));
  return `${lines.join("\n")}\n`;
}

const indented = (snippet, by) => snippet.trimEnd().split("\n").map((line) => (line ? by + line : line)).join("\n");

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-check]");
  if (!button) return;
  const before = text.value.split("\n").length;
  text.value = inserted(text.value, button.dataset.check);
  keep();
  changed();
  goTo(Math.min(before, text.value.split("\n").length));
});

number();
restore();
