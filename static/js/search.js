// Search in actions, thoughts and addresses: a small panel over the strip that leaves the page as it is.

import { PATIENCE } from "./session.js";

const PAUSE = 200; // ms after the last key before the server is asked

export class Search {
  // ``go`` shows a step; ``address`` is that of the search, with the desk it leads back to.
  constructor(go) {
    this.go = go;
    this.panel = null;
    this.back = null;
  }

  open() {
    this.panel ??= this.build();
    if (this.panel.hidden) this.back = document.activeElement;
    this.panel.hidden = false;
    this.field.focus();
    this.field.select();
  }

  close() {
    this.panel.hidden = true;
    (this.back?.isConnected ? this.back : document.querySelector(".shot"))?.focus({ preventScroll: true });
  }

  build() {
    const panel = document.createElement("search");
    panel.className = "finder";
    panel.innerHTML = `<form><label for="finder-words">Search in actions, thoughts and addresses</label>
      <input id="finder-words" type="search" maxlength="200" autocomplete="off" spellcheck="false">
      <button type="button" class="small">Close <kbd>Esc</kbd></button></form><div class="found-steps"></div>`;
    panel.hidden = true;
    this.field = panel.querySelector("input");
    this.list = panel.querySelector(".found-steps");
    panel.querySelector("button").addEventListener("click", () => this.close());
    panel.addEventListener("submit", (event) => {
      event.preventDefault();
      this.walk(1);
    });
    panel.addEventListener("input", () => {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.ask(), PAUSE);
    });
    panel.addEventListener("keydown", (event) => this.pressed(event));
    panel.addEventListener("click", (event) => {
      const hit = event.target.closest("[data-step]");
      if (hit) this.choose(hit);
    });
    document.getElementById("strip").before(panel);
    return panel;
  }

  pressed(event) {
    if (event.key === "Escape") this.close();
    else if (event.key === "ArrowDown") this.walk(1);
    else if (event.key === "ArrowUp") this.walk(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  async ask() {
    const words = this.field.value.trim();
    const address = document.querySelector("[data-search]").href;
    try {
      const answer = await fetch(`${address}&q=${encodeURIComponent(words)}`, { headers: { "HX-Request": "true" }, signal: AbortSignal.timeout(PATIENCE) });
      if (answer.redirected) throw new Error("Your session has ended. Sign in again.");
      if (!answer.ok) throw new Error(`The search failed (${answer.status}).`);
      const found = await answer.text();
      if (words !== this.field.value.trim()) return;
      this.list.innerHTML = found;
      this.asked = words;
    } catch (problem) {
      this.list.textContent = problem instanceof TypeError || problem.name === "TimeoutError" ? "The server cannot be reached." : problem.message;
    }
  }

  // The next hit, or the previous one; from the last on to the first.
  async walk(by) {
    if (this.field.value.trim() !== this.asked) {
      clearTimeout(this.waiting);
      await this.ask();
    }
    const hits = [...this.list.querySelectorAll("[data-step]")];
    if (!hits.length) return;
    const at = hits.findIndex((hit) => hit.hasAttribute("aria-current"));
    const next = at < 0 ? (by > 0 ? 0 : hits.length - 1) : (at + by + hits.length) % hits.length;
    this.choose(hits[next]);
    this.go(Number(hits[next].dataset.step));
  }

  choose(hit) {
    this.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    hit.setAttribute("aria-current", "true");
    hit.scrollIntoView({ block: "nearest" });
  }
}
