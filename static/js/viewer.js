// Walking through the steps: the next ones are fetched before they are asked for, and shown without a blank moment.

const AHEAD = [1, 2, -1];

export class Viewer {
  constructor() {
    this.pages = new Map();
    this.wanted = this.index;
    this.zoomed = false;
    this.onstep = () => {};
    document.addEventListener("click", (event) => this.clicked(event));
    this.markCurrent();
    this.lookAhead();
  }

  get stage() { return document.getElementById("stage"); }
  get address() { return this.stage.dataset.address; }
  get index() { return Number(this.stage.dataset.index); }
  get last() { return Number(this.stage.dataset.last); }

  clicked(event) {
    const link = event.target.closest("a[data-step]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    this.go(Number(link.dataset.step));
  }

  move(by) { this.go(this.wanted + by); }

  async go(to) {
    const index = Math.min(Math.max(to, 0), this.last);
    this.wanted = index;
    try {
      const page = await this.page(index);
      if (this.wanted !== index) return;
      this.show(page, index);
    } catch (problem) {
      this.pages.delete(index);
      announce(problem.message);
    }
  }

  page(index) {
    if (!this.pages.has(index)) {
      if (this.pages.size > 60) this.pages.clear();
      const loading = this.load(index);
      loading.catch(() => this.pages.delete(index));
      this.pages.set(index, loading);
    }
    return this.pages.get(index);
  }

  async load(index) {
    const answer = await fetch(`${this.address}step=${index}`, { headers: { "HX-Request": "true" } }).catch(() => {
      throw new Error("The server cannot be reached; the step is not shown.");
    });
    if (answer.redirected) throw new Error("Your session has ended: sign in again in another tab.");
    if (!answer.ok) throw new Error(`The step cannot be shown (${answer.status}).`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const picture = page.querySelector("#stage image");
    if (picture) await settled(picture.getAttribute("href"));
    return page;
  }

  show(page, index) {
    const kept = document.activeElement?.closest("#strip, #step, .shot");
    for (const id of ["stage", "step"]) {
      document.getElementById(id).replaceWith(page.getElementById(id).cloneNode(true));
    }
    const neighbours = [index - 6, index + 6].map((n) => Math.min(Math.max(n, 0), this.last));
    const here = (n) => document.querySelector(`#strip .thumb[data-step="${n}"]`);
    if (!neighbours.every(here)) {
      document.getElementById("strip").replaceWith(page.getElementById("strip").cloneNode(true));
    }
    document.querySelectorAll("#strip [aria-current]").forEach((thumb) => thumb.removeAttribute("aria-current"));
    here(index)?.setAttribute("aria-current", "step");
    this.markCurrent();
    if (this.zoomed) this.applyZoom();
    if (kept?.id === "strip") here(index)?.focus({ preventScroll: true });
    if (kept?.id === "step") document.getElementById("step").focus({ preventScroll: true });
    if (kept?.classList.contains("shot")) document.querySelector(".shot").focus({ preventScroll: true });
    history.replaceState(null, "", `${this.address}step=${index}`);
    announce(`Step ${index} of ${this.last}`);
    this.onstep(index);
    this.lookAhead();
  }

  markCurrent() {
    const strip = document.getElementById("strip");
    const thumb = strip.querySelector("[aria-current]");
    if (thumb) strip.scrollLeft = thumb.offsetLeft - (strip.clientWidth - thumb.clientWidth) / 2;
  }

  lookAhead() {
    for (const by of AHEAD) {
      const index = this.index + by;
      if (index >= 0 && index <= this.last) this.page(index).catch(() => {});
    }
  }

  zoom() {
    this.zoomed = !this.zoomed;
    this.applyZoom();
  }

  applyZoom() {
    document.querySelector(".shot")?.classList.toggle("full", this.zoomed);
    document.querySelector("[data-zoom]")?.setAttribute("aria-pressed", String(this.zoomed));
    const picture = document.querySelector("#stage image");
    const original = document.querySelector("[data-original]");
    // At 100 % the pixels count, and the picture for the screen may have fewer.
    if (this.zoomed && picture && original) picture.setAttribute("href", original.href);
  }
}

export function announce(text) {
  document.getElementById("announce").textContent = text;
}

// Decoded or broken, but never waited for longer than a person would notice.
function settled(address) {
  const image = new Image();
  image.src = address;
  return Promise.race([image.decode().catch(() => {}), new Promise((done) => { setTimeout(done, 400); })]);
}
