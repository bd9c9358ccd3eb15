// The page "Upload a submission": sends the package in parts, and continues an upload after a reload.

import { Failure, Transfer, formatBytes, formatSeconds } from "./resumable.js";

const form = document.getElementById("upload-form"), card = document.getElementById("transfer");
const again = document.getElementById("resume"), errors = document.getElementById("upload-errors");
const KEY = `upload-${form.dataset.person}`;
let transfer = null;

const part = (parent, name) => parent.querySelector(`[data-part=${name}]`);
const token = () => form.elements.csrfmiddlewaretoken.value;

async function renew() {
  const answer = await fetch(form.dataset.session, { signal: AbortSignal.timeout(20_000) });
  const { person, csrf } = await answer.json();
  form.elements.csrfmiddlewaretoken.value = csrf;
  return String(person) === form.dataset.person;
}

// --- what the browser remembers ---

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(KEY));
  } catch {
    return null;
  }
}

function remember(upload) {
  try {
    if (upload) localStorage.setItem(KEY, JSON.stringify(upload));
    else localStorage.removeItem(KEY);
  } catch {
    // Without the store, an upload cannot be continued after a reload.
  }
}

// --- starting ---

function report(problems) {
  const rows = problems.map(({ field, label, message }) => {
    const row = document.createElement("li"), link = document.createElement(field ? "a" : "span");
    if (field) link.href = `#${field}`;
    link.textContent = label ? `${label}: ${message}` : message;
    row.append(link);
    return row;
  });
  errors.querySelector("ul").replaceChildren(...rows);
  errors.hidden = !rows.length;
  if (rows.length) errors.focus();
}

async function start(file) {
  const given = new FormData(form);
  given.delete("package");
  given.set("file_name", file.name.slice(0, 255));
  given.set("length", file.size);
  // A file with the tasks of a new benchmark may be large.
  const answer = await fetch(form.dataset.start, { method: "POST", body: given, signal: AbortSignal.timeout(600_000) });
  const { address, report: page, errors: problems } = await answer.json();
  if (problems) return report(problems);
  const upload = { address, page, name: file.name, size: file.size, modified: file.lastModified };
  remember(upload);
  return send(file, upload);
}

form.addEventListener("submit", async (event) => {
  const file = form.elements.package.files[0];
  if (!file?.size) return; // the server says what is missing
  event.preventDefault();
  report([]);
  const button = form.querySelector("button.primary");
  button.disabled = true;
  try {
    await start(file);
  } catch {
    report([{ message: "The server cannot be reached, or you are signed out. Nothing was sent. Try again." }]);
  }
  button.disabled = false;
});

// --- sending ---

async function send(file, upload) {
  transfer = new Transfer(file, upload.address, { token, renew, changed: show });
  part(card, "name").textContent = file.name;
  [form.hidden, again.hidden, card.hidden] = [true, true, false];
  card.focus();
  const end = await transfer.run();
  if (end !== "failed") remember(null);
  if (end === "done") location.assign(upload.page);
  if (end === "cancelled") [form.hidden, card.hidden] = [false, true];
}

const STATES = { sending: "Sending", paused: "Paused", waiting: "Interrupted", failed: "Stopped", done: "Sent" };

function show({ file, offset, rate, seconds, state, trouble, isPaused }) {
  const bar = part(card, "bar");
  bar.max = file.size;
  bar.value = offset;
  part(card, "bytes").textContent = `${formatBytes(offset)} of ${formatBytes(file.size)}`;
  part(card, "rate").textContent = state === "sending" && rate ? ` · ${formatBytes(rate)}/s · about ${formatSeconds(seconds)} left` : "";
  // Only when it changes: screen readers read it each time.
  const title = isPaused && state === "sending" ? "Pausing" : STATES[state];
  if (part(card, "state").textContent !== title) part(card, "state").textContent = title;
  const told = state === "waiting" ? `${trouble} The page tries again.` : trouble;
  if (part(card, "trouble").textContent !== told) part(card, "trouble").textContent = told;
  part(card, "pause").hidden = isPaused || state !== "sending";
  part(card, "continue").hidden = !["paused", "waiting"].includes(state);
  part(card, "continue").textContent = state === "waiting" ? "Try now" : "Continue";
  part(card, "again").hidden = state !== "failed";
  part(card, "stop").hidden = ["failed", "done"].includes(state);
}

part(card, "pause").addEventListener("click", () => { transfer.pause(); show(transfer); });
part(card, "continue").addEventListener("click", () => transfer.resume());
part(card, "stop").addEventListener("click", () => giveUp(transfer));

function giveUp(stopped) {
  remember(null);
  return stopped.cancel().catch(() => {}); // it expires
}

// --- continuing after a reload ---

async function offer(upload) {
  const unsent = new Transfer({ size: upload.size }, upload.address, { token, renew });
  try {
    const offset = await unsent.ask();
    if (offset >= upload.size) {
      remember(null);
      return;
    }
    part(again, "bytes").textContent = `${formatBytes(offset)} of ${formatBytes(upload.size)} received.`;
  } catch (error) {
    if (error instanceof Failure) {
      remember(null);
      return;
    }
    part(again, "bytes").textContent = "The server does not say how much has arrived.";
  }
  part(again, "name").textContent = upload.name;
  part(again, "stop").addEventListener("click", () => {
    again.hidden = true;
    giveUp(unsent);
  });
  part(again, "file").addEventListener("change", ({ target }) => {
    const [file] = target.files;
    if (!file) return;
    const isSame = file.name === upload.name && file.size === upload.size && file.lastModified === upload.modified;
    part(again, "trouble").textContent = isSame ? "" : "This is another file, or it was changed. Choose the same file, or give up and upload it from the beginning.";
    if (isSame) send(file, upload);
  });
  again.hidden = false;
}

const unfinished = remembered();
if (unfinished) offer(unfinished);
