// The fields of a form, their copy in this browser until the server has saved them, and the schedule of saves. All in one
// file, because the first desk page has no request to spare. Nothing here needs a page, so Node tests it.

export const DELAY = 600; // milliseconds from a change to its save
export const PAUSES = [1000, 2000, 4000, 8000, 15_000, 30_000]; // until the next try, while tries fail
const LONGEST = 600_000; // milliseconds; a longer Retry-After is cut to this
const MEASURING = 3000; // milliseconds that a submit waits at most for the report of the active time
const PREFIX = "webverdict-typed";
const OURS = new Set(["csrfmiddlewaretoken", "version", "step", "undo"]);
const TAB = Math.random().toString(36).slice(2);

const named = (form) => [...form.elements].filter((field) => field.name && !OURS.has(field.name) && field.type !== "submit");
const lines = (text) => String(text).replaceAll("\r\n", "\n");

// {name: value} of everything that is not empty, as the server keeps drafts: checkboxes of one name with blanks between.
export function typed(form) {
  const fields = {};
  for (const field of named(form)) {
    if (/^(radio|checkbox)$/.test(field.type) && !field.checked) continue;
    if (field.value !== "") fields[field.name] = field.name in fields ? `${fields[field.name]} ${field.value}` : lines(field.value);
  }
  return fields;
}

// The body of a request. As a multipart body, which FormData makes, a label would be several times as long: the proxy passes
// bodies of 100,000 bytes to the web server for uploads (config/Caddyfile).
export const encode = (form) => new URLSearchParams(new FormData(form));

export function fill(form, fields) {
  for (const field of named(form)) {
    const value = lines(fields[field.name] ?? "");
    if (field.type === "radio") field.checked = field.value === value;
    else if (field.type === "checkbox") field.checked = value.split(" ").includes(field.value);
    else field.value = value;
    if (field.type === "select-one") field.dispatchEvent(new Event("change", { bubbles: true }));
  }
  form.dispatchEvent(new Event("change"));
  form.dispatchEvent(new Event("input"));
}

export const different = (here, there) =>
  [...new Set([...Object.keys(here), ...Object.keys(there)])].filter((name) => lines(here[name] ?? "") !== lines(there[name] ?? ""));

export function title(form, name) {
  const field = named(form).find((one) => one.name === name);
  const words = field?.dataset.title ?? field?.labels?.[0]?.textContent ?? name.replaceAll("_", " ");
  return words.trim();
}

// A value as the person chose it: "Failure" and not 0.
export function inWords(form, name, value) {
  const fields = named(form).filter((field) => field.name === name);
  const word = (code) => {
    const chosen = fields[0]?.options ? [...fields[0].options].find((option) => option.value === code) : null;
    if (chosen) return chosen.text;
    const label = fields.find((field) => field.value === code && /^(radio|checkbox)$/.test(field.type))?.labels?.[0];
    return (label?.querySelector("b, span") ?? label)?.textContent.trim() ?? code;
  };
  if (!value) return "";
  return fields[0]?.type === "checkbox" ? value.split(" ").map(word).join(", ") : word(lines(value));
}

function all(prefix) {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  } catch {
    return []; // the browser forbids it
  }
}

// One copy for every window: two that are offline at the same time do not overwrite each other.
export class Copy {
  constructor(person, trajectory) {
    this.prefix = `${PREFIX}:${person}:${trajectory}:`;
    this.key = this.prefix + TAB;
  }

  // Whether the browser has taken it.
  write(copy) {
    try {
      localStorage.setItem(this.key, JSON.stringify({ ...copy, at: new Date().toISOString() }));
      return true;
    } catch {
      return false;
    }
  }

  // The newest one, of this window or of one that is gone: {key, fields, version, place, at}.
  newest() {
    const copies = all(this.prefix).map((key) => {
      try {
        return { key, ...JSON.parse(localStorage.getItem(key)) };
      } catch {
        return null;
      }
    });
    return copies.filter((copy) => copy?.fields).sort((one, other) => (one.at < other.at ? 1 : -1))[0] ?? null;
  }

  remove(key = this.key) { try { localStorage.removeItem(key); } catch { /* nothing is kept then */ } }
  removeAll() { all(this.prefix).forEach((key) => this.remove(key)); }
}

// Whether a page shows as the server's text what was submitted with a copy (`sent` is the button); blanks around it may go.
export const hasArrived = ({ sent, fields }, text) =>
  Boolean(sent) && lines(text).trim() === (sent === "withdraw" ? "" : lines(fields.text ?? "").trim());

export const copiesOf = (person) => all(`${PREFIX}:${person}:`);

// Whether the server has a copy, which only waits for a page that shows it.
export function isSaved(key) {
  try {
    return Boolean(JSON.parse(localStorage.getItem(key)).saved);
  } catch {
    return false;
  }
}

// --- saving and submitting ----------------------------------------------------------------------------------------

// {status, said, text, after, problem}: `said` is the JSON object of the answer, or null; `after` the milliseconds that
// the server asks to wait. A missing or incomplete answer has the status 0.
export async function read(request) {
  try {
    const answer = await request();
    const text = await answer.text();
    return { status: answer.status, said: parseObject(text), text, after: parseRetryAfter(answer.headers.get("Retry-After")) };
  } catch (problem) {
    return { status: 0, said: null, text: "", after: 0, problem };
  }
}

function parseObject(text) {
  try {
    const said = JSON.parse(text);
    return said !== null && typeof said === "object" ? said : null;
  } catch {
    return null; // a page of a proxy, or half an answer
  }
}

// Retry-After is a number of seconds or a date.
function parseRetryAfter(after) {
  if (!after) return 0;
  const wait = /^\d+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - Date.now();
  return wait > 0 ? Math.min(wait, LONGEST) : 0;
}

export const pauseOf = (failures, after) => Math.max(PAUSES[Math.min(failures, PAUSES.length - 1)], after);

// A short description of the problem.
export function trouble({ status, problem }) {
  if (problem?.name === "SignedOut") return "signed out";
  if (status === 0) return globalThis.navigator?.onLine === false ? "offline" : "no answer";
  if (status === 503) return "server unavailable (503)";
  if (status === 507) return "the server's disk is full (507)";
  return status < 400 ? `unreadable answer (${status})` : `refused (${status})`;
}

const isDraft = ({ status, said }) => status === 200 && Number.isInteger(said?.version) && Array.isArray(said.missing);
const isConflict = ({ status, said }) => status === 409 && Number.isInteger(said?.version) && Boolean(said.there);
const isForm = ({ status, text }) => status === 400 && text.includes('id="label-form"');
// The server understood a submit and refused it: a retry would be refused too.
const isRefused = ({ status }) => status >= 400 && status < 500 && ![408, 425, 429].includes(status);

// After any answer, typed text is copied and saved, and Submit works.
export class Saving {
  // `desk` has the form and shows the results: see `Drafts`. `clock` has the timers.
  constructor(desk, clock = globalThis) {
    Object.assign(this, { desk, clock, dirty: false, failures: 0, timer: null, saving: null, submission: null, conflict: null, done: "" });
    this.unanswered = []; // fields of saves that may have arrived although no answer came
  }

  changed() {
    this.dirty = true;
    this.desk.keep(this.sent);
    if (this.submission && !this.submission.sending && this.differs()) {
      this.giveUp();
      this.desk.stopped();
    }
    if (!this.saving) this.later(DELAY);
  }

  later(pause) {
    if (this.submission || this.conflict || this.done) return;
    this.timer ??= this.clock.setTimeout(() => this.save(), pause);
  }

  stop() {
    this.clock.clearTimeout(this.timer);
    this.timer = null;
  }

  // The network is back, or the person has signed in: retry at once.
  retry() {
    if (!this.submission) return this.dirty ? this.save() : null;
    return this.submission.sending ? null : this.attempt(this.submission);
  }

  // The person has chosen between two versions.
  settled() {
    this.conflict = null;
    this.changed();
  }

  // --- saving ---

  save() {
    this.stop();
    if (this.submission || this.conflict || this.done) return null;
    this.saving ??= this.send();
    return this.saving;
  }

  // `sent` are the fields of the last save: a page that closes before the answer does not know whether they arrived.
  async send() {
    this.dirty = false;
    this.sent = this.desk.fields();
    this.unanswered.push(this.sent);
    this.desk.keep(this.sent);
    const answer = await read(() => this.desk.post());
    this.saving = null;
    if (isDraft(answer)) {
      this.failures = 0;
      this.unanswered = [];
      if (this.dirty) this.later(DELAY);
      return this.desk.saved(answer.said, this.dirty);
    }
    this.dirty = true;
    if (isConflict(answer)) {
      const own = this.unanswered.some((fields) => different(fields, answer.said.there).length === 0);
      if (own) {
        this.unanswered = [];
        this.desk.adopt(answer.said.version);
        return this.save();
      }
      this.conflict = answer.said;
      return this.desk.conflict(answer.said);
    }
    // A draft that the server refused is sent again only after the next change.
    if (!(answer.status === 409 && answer.said)) this.later(pauseOf(this.failures++, answer.after));
    return this.desk.unsaved(answer);
  }

  // --- submitting ---

  // Retry until the server has the label or refuses it, or the form changes. Another click on Submit retries at once.
  submit(submitter) {
    if (this.done) return this.desk.submitted(this.done, false);
    if (this.submission?.sending) return this.desk.sending();
    this.stop();
    this.clock.clearTimeout(this.submission?.timer);
    this.submission = { submitter, fields: this.desk.fields(), failures: 0 };
    return this.attempt(this.submission);
  }

  differs() { return different(this.submission.fields, this.desk.fields()).length > 0; }

  giveUp() {
    this.clock.clearTimeout(this.submission.timer);
    this.submission = null;
    this.dirty = true;
    this.later(DELAY);
  }

  async attempt(submission) {
    this.clock.clearTimeout(submission.timer);
    submission.sending = true;
    this.desk.keep(this.sent);
    this.desk.sending();
    await this.saving; // a save that arrives after the label would leave a draft
    if (this.conflict) return this.giveUp();
    await Promise.race([this.desk.measure(), new Promise((late) => { this.clock.setTimeout(late, MEASURING); })]);
    const answer = await read(() => this.desk.submit(submission.submitter));
    if (isForm(answer)) return this.desk.pass(submission.submitter);
    submission.sending = false;
    const same = !this.differs();
    if (typeof answer.said?.address === "string") {
      this.done = answer.said.address;
      return this.desk.submitted(this.done, same);
    }
    const again = same && !isRefused(answer);
    if (again) submission.timer = this.clock.setTimeout(() => this.attempt(submission), pauseOf(submission.failures++, answer.after));
    else this.giveUp();
    return this.desk.notSubmitted(answer, again);
  }
}
