// Reading an answer: a kept page opens beside it, by its number in the text, in the list, or by key.

import { announce, fetched, showMessage } from "./viewer.js";

export class Answer {
  constructor() {
    document.addEventListener("click", (event) => this.clicked(event));
  }

  get keys() {
    return {
      ArrowRight: () => this.move(1),
      j: () => this.move(1),
      ArrowLeft: () => this.move(-1),
      k: () => this.move(-1),
      t: () => this.turn(),
      w: () => this.open(0),
      o: () => document.querySelector("#page:not([hidden]) [data-original]")?.click(),
    };
  }

  // What the form asks of a viewer: there is no step to name.
  get index() { return 0; }
  get last() { return 0; }

  get stage() { return document.getElementById("stage"); }
  get kept() { return (this.stage.dataset.kept || "").split(" ").filter(Boolean).map(Number); }
  get page() { return document.getElementById("page"); }
  get current() { return Number(this.page.querySelector(".bar b")?.textContent ?? 0); }

  clicked(event) {
    const link = event.target.closest("a[data-page]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const number = Number(link.dataset.page);
    event.preventDefault();
    if (number && !this.kept.includes(number)) return this.point(number);
    this.open(number, link.dataset.show ?? "");
  }

  // An address whose page was not kept: where it stands in the list.
  point(number) {
    const source = document.getElementById(`cited-${number}`);
    source.scrollIntoView({ block: "nearest" });
    source.focus({ preventScroll: true });
    showMessage(`Page ${number} was not stored`);
  }

  move(by) {
    const [kept, from] = [this.kept, this.wanted ?? this.current];
    const next = by > 0 ? kept.find((number) => number > from) : kept.filter((number) => number < from).at(-1);
    if (next) this.open(next);
    else showMessage(kept.length ? `There is no ${by > 0 ? "later" : "earlier"} page` : "No page was stored");
  }

  turn() {
    const other = this.page.querySelector(".turn a:not([aria-current])");
    if (other) this.open(Number(other.dataset.page), other.dataset.show);
    else showMessage(this.current ? "This page has only text" : "Open a page first: j");
  }

  async open(number, show = "") {
    this.wanted = number;
    const asked = `page=${number}${show ? `&show=${show}` : ""}`;
    try {
      const page = await fetched(`${this.stage.dataset.address}${asked}&bare`, "page");
      if (this.wanted === number) this.show(page, number, asked);
    } catch (problem) {
      showMessage(problem.message);
    } finally {
      if (this.wanted === number) this.wanted = null;
    }
  }

  show(page, number, asked) {
    const inside = this.page.contains(document.activeElement);
    this.page.replaceWith(page.getElementById("page"));
    this.stage.classList.toggle("opened", !this.page.hidden);
    document.querySelectorAll(".sources [aria-current]").forEach((link) => link.removeAttribute("aria-current"));
    const source = document.querySelector(`#cited-${number} [data-page]`);
    source?.setAttribute("aria-current", "true");
    source?.scrollIntoView({ block: "nearest" });
    if (inside) (this.page.querySelector(".leaf") ?? document.getElementById("leaf")).focus({ preventScroll: true });
    history.replaceState(null, "", `${this.stage.dataset.address}${asked}`);
    const shown = this.page.querySelector(".leaf")?.getAttribute("aria-label");
    announce(shown ?? "No page is open");
  }
}
