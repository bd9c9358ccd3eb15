// A person's own phrases: a menu at the reasoning that inserts one at the cursor, and keeps new ones.

import { showMessage } from "./viewer.js";

export class Phrases {
  constructor(form, session) {
    this.session = session;
    this.field = form.elements.reasoning;
    this.token = () => form.elements.csrfmiddlewaretoken.value;
    this.button = form.querySelector("[data-phrases]");
    this.menu = document.getElementById("phrases");
    this.list = this.menu.querySelector("ul");
    this.status = this.menu.querySelector("[role=status]");
    this.keeper = this.menu.querySelector("[data-keep-phrase]");
    this.button.addEventListener("click", () => this.toggle());
    this.keeper.addEventListener("click", () => this.keep());
    this.list.addEventListener("click", (event) => this.insert(event.target.closest("[data-phrase]")));
    this.menu.addEventListener("keydown", (event) => this.inMenu(event));
    this.field.addEventListener("keydown", (event) => this.inField(event));
    document.addEventListener("mousedown", (event) => {
      if (!this.menu.hidden && !event.target.closest("#phrases, [data-phrases]")) this.close();
    });
  }

  get items() { return [...this.list.querySelectorAll("button")]; }
  get selected() { return this.field.value.slice(this.field.selectionStart, this.field.selectionEnd).trim(); }

  toggle() { return this.menu.hidden ? this.open() : this.close(); }

  open() {
    this.back = document.activeElement;
    this.keeper.textContent = this.selected ? "Save the selected words as a phrase" : "Save the reasoning as a phrase";
    this.show(true);
    (this.items[0] ?? this.keeper).focus();
  }

  // Back to where the menu was called from; a phrase that was chosen leads to the reasoning.
  close(to = this.back) {
    this.show(false);
    (to?.isConnected && to !== document.body ? to : document.getElementById("main")).focus({ preventScroll: true });
  }

  show(open) {
    this.menu.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
    this.status.textContent = "";
  }

  // The browser's own insertion can be undone with Ctrl Z.
  insert(item) {
    if (!item) return;
    this.close(this.field);
    const before = this.field.value[this.field.selectionStart - 1];
    const text = (before && !/\s/.test(before) ? " " : "") + item.dataset.phrase;
    if (document.execCommand("insertText", false, text)) return;
    this.field.setRangeText(text, this.field.selectionStart, this.field.selectionEnd, "end");
    this.field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  inField(event) {
    const digit = event.altKey && !event.ctrlKey && /^Digit([1-9])$/.exec(event.code)?.[1];
    if (!digit) return;
    event.preventDefault();
    if (this.items[digit - 1]) this.insert(this.items[digit - 1]);
    else showMessage(`Phrase ${digit} does not exist`);
  }

  inMenu(event) {
    if (event.key === "Tab" || event.ctrlKey || event.metaKey) return;
    event.stopPropagation(); // no key of the desk works in a menu
    const digit = /^Digit([1-9])$/.exec(event.code)?.[1];
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" || event.key === "p") this.close();
    else if (digit) this.insert(this.items[digit - 1]);
    else if (by) this.walk(by);
    else return;
    event.preventDefault();
  }

  walk(by) {
    const all = [...this.items, this.keeper];
    all[(all.indexOf(document.activeElement) + by + all.length) % all.length].focus();
  }

  async keep() {
    const body = () => new URLSearchParams({ csrfmiddlewaretoken: this.token(), text: this.selected || this.field.value.trim() });
    try {
      const answer = await this.session.fetch(this.menu.dataset.add, { body });
      const { phrases, problem } = await answer.json();
      this.status.textContent = problem || "Kept.";
      if (phrases) this.fill(phrases);
    } catch {
      this.status.textContent = "Not saved: the server cannot be reached.";
    }
  }

  fill(phrases) {
    this.menu.querySelector("[data-none]").hidden = phrases.length > 0;
    this.list.replaceChildren(...phrases.map((phrase, index) => {
      const [line, button, text] = ["li", "button", "span"].map((name) => document.createElement(name));
      Object.assign(button, { type: "button", className: "quiet" });
      button.dataset.phrase = phrase;
      Object.assign(text, { className: "agent", textContent: phrase });
      button.append(...(index < 9 ? [key(`Alt ${index + 1}`), " "] : []), text);
      line.append(button);
      return line;
    }));
  }
}

function key(text) {
  const made = document.createElement("kbd");
  made.textContent = text;
  return made;
}
