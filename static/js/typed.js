// What a form holds, as plain fields, and the copy of it that this browser keeps until the server has it.

const PREFIX = "webverdict-typed";
const OURS = new Set(["csrfmiddlewaretoken", "version", "step"]);
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

export const copiesOf = (person) => all(`${PREFIX}:${person}:`);
